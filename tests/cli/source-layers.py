#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several archives or directories are layers of one filesystem, the lowest first: what a layer has, and its whiteouts,
hide what is below; the archive of one filesystem with the same files is read to the same.

SOURCE_LIST is the program that prints a source as text. Exits with 77 if it cannot run.
"""
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile

from tool import skip

LIST = os.environ['SOURCE_LIST']
DIR, LINK, SYM, CHR = tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE
checks = 0


def source(*args, **kwargs):
    done = subprocess.run([LIST, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600,
                          **kwargs)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def tar(*members):
    """A member is a name, which ends in a slash for a directory, and its contents or other attributes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as t:
        for name, what in members:
            info, data = tarfile.TarInfo(name.rstrip('/') or '.'), what if isinstance(what, bytes) else b''
            info.type = DIR if name.endswith('/') else tarfile.REGTYPE
            for key, value in ({} if isinstance(what, bytes) else what).items():
                if key == 'data':
                    data = value
                else:
                    setattr(info, key, value)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def link(target):
    return {'type': LINK, 'linkname': target}


class Archives:
    def __init__(self, folder):
        self.folder = folder

    def write(self, layers):
        for i, layer in enumerate(layers):
            with open(f'{self.folder}/{i}.tar', 'wb') as f:
                f.write(tar(*layer))
        return [f'{self.folder}/{i}.tar' for i in range(len(layers))]

    def are(self, wanted, *layers, options=()):
        """The layers, the lowest first, make what the archive of @wanted alone makes."""
        global checks
        expected = source(*options, 'archive', *self.write([wanted]))
        assert expected[0] == 0, expected
        found = source(*options, 'archive', *self.write(layers))
        assert found == expected, f'{layers}:\n{found[1] + found[2]}instead of\n{expected[1]}'
        checks += 1

    def fail(self, says, *layers, options=(), paths=None, **kwargs):
        global checks
        done = source(*options, 'archive', *(paths or self.write(layers)), **kwargs)
        assert done[:2] == (1, '') and re.search(says, done[2]) and done[2].count('\n') == 1, done
        checks += 1


D, OPQ = {}, '.wh..wh..opq'


def xattr(value):
    return {'pax_headers': {'SCHILY.xattr.user.x': value}}


def archives_are_layers(a):
    x, y, z = b'x', b'yy', b'zzz'
    a.are([('a', y)], [('a', x)], [('a', y)])
    a.are([('a', x), ('b', y)], [('a', x)], [('b', y)])
    a.are([('a', z), ('b', y), ('c', x)], [('a', x), ('b', x), ('c', x)], [('a', y), ('b', y)], [('a', z)])
    # Directories are merged, with the attributes of the highest that has them.
    old, new = {'mode': 0o700, 'uid': 1, 'mtime': 5}, {'mode': 0o755, 'uid': 2, 'mtime': 9}
    a.are([('d/', new), ('d/a', x), ('d/b', y)], [('d/', old), ('d/a', x)], [('d/', new), ('d/b', y)])
    a.are([('/', D), ('d/', old), ('d/a', x), ('d/b', y)], [('/', D), ('d/', old), ('d/a', x)], [('d/b', y)])
    a.are([('/', new), ('a', x), ('b', y)], [('/', old), ('a', x)], [('/', new), ('b', y)])
    a.are([('/', old), ('a', x), ('b', y)], [('/', old), ('a', x)], [('b', y)])
    other = {'pax_headers': {'SCHILY.xattr.user.y': '1', 'SCHILY.xattr.trusted.overlay.origin': 'z',
                             'SCHILY.xattr.trusted.overlay.overlay.opaque': 'y'}}
    shown = {'pax_headers': {'SCHILY.xattr.user.y': '1', 'SCHILY.xattr.trusted.overlay.opaque': 'y'}}
    a.are([('d/', shown), ('e/', xattr('1'))], [('d/', xattr('1')), ('e/', xattr('1'))], [('d/', other)])
    # A file hides a directory, and a directory a file, with what the layers below that have.
    a.are([('d', x)], [('d/', D), ('d/a', x)], [('d', x)])
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d', x)], [('d/', D), ('d/b', y)])
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d', {'type': SYM, 'linkname': 'x'})],
          [('d/', D), ('d/b', y)])
    a.are([('d/e/f', y)], [('d/e', x)], [('d/e/f', y)])
    a.are([('d/e/f', y)], [('d', x)], [('d/e/f', y)])


def whiteouts_hide(a):
    x, y = b'x', b'yy'
    gone, device = {'data': b''}, {'type': CHR}
    for name, what in (('.wh.a', gone), ('a', device), ('.wh.a', link('b'))):
        a.are([('b', y)], [('a', x), ('b', y)], [('b', y), (name, what)])
        a.are([('b', y)], [('a/', D), ('a/c', x), ('b', y)], [('b', y), (name, what)])
        # Only in the layers below.
        a.are([('a', y), ('b', y)], [('b', y)], [('b', y), (name, what)], [('a', y)])
        a.are([('b', y)], [('b', y), (name, what)], [('b', y)])
    for first, second in ((('.wh.a', gone), ('a', y)), (('a', y), ('.wh.a', gone))):
        a.are([('a', y)], [('a', x)], [first, second])
    for order in (1, -1):
        a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d/', D), ('d/b', y), ('.wh.d', gone)][::order])
        a.are([('d/', D), ('d/b', y), ('d/c', x)], [('d/', D), ('d/a', x)],
              [('d/', D), ('d/b', y), (f'd/{OPQ}', gone)][::order], [('d/', D), ('d/c', x)])
        a.are([('b', y)], [('a', x)], [('b', y), (OPQ, gone)][::order])
    # Nothing is left.
    a.are([('/', D)], [('/', D), ('a', x)], [('/', D), (OPQ, gone)])
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x), ('d/e/a', x)], [('d/b', y), (f'd/{OPQ}', gone)], [('d/', D)])
    opaque = {'pax_headers': {'SCHILY.xattr.trusted.overlay.opaque': 'y'}}
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d/', opaque), ('d/b', y)])
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d/', opaque)], [('d/', D), ('d/b', y)])
    a.are([('d/', D), ('d/b', y)], [('d/', D), ('d/a', x)], [('d/b', y), ('d/', opaque)])
    # A mark hides entries, not the attributes of a directory that no member has described yet.
    old, new, mark = dict(xattr('1'), mode=0o700, uid=1, mtime=5), dict(xattr('2'), mode=0o711, uid=2, mtime=6), \
        (f'd/{OPQ}', gone)
    kept = [('/', D), ('d/', old), ('d/b', y)]
    for layers in ([[('/', D), ('d/', old), ('d/a', x)], [('d/b', y), mark]],
                   [[('/', D), ('d/', old), ('d/a', x)], [mark, ('d/b', y)]],
                   [[('/', D), ('d/a', x), ('d/', old)], [('d/c', x), mark], [('d/b', y), mark]],
                   [[('/', D), ('d/', new)], [('d/', old), ('d/a', x)], [mark], [('d/b', y)]],
                   [[('/', D), ('d/', new)], [('d/a', x)], [('d/', old), ('d/a', x)], [mark], [], [('d/b', y)]],
                   [[('/', D), ('d/', new)], [('d/', old), mark], [('d/b', y), mark], []],
                   [[('/', D), ('d/', new)], [mark, ('d/', old), ('d/b', y)]]):
        a.are(kept, *layers)
    a.are([('/', D), ('d/', old), ('d/e/b', y)], [('/', D), ('d/', old), ('d/e/', new), ('d/e/a', x)],
          [('d/e/b', y), mark])
    a.are([('/', D), ('d/', old), ('d/e/', new), ('d/e/b', y)], [('/', D), ('d/', old), ('d/e/', new), ('d/e/a', x)],
          [('d/e/b', y), (f'd/e/{OPQ}', gone)])
    # Another directory, behind a file or a whiteout, gives nothing.
    for between in ([('d', x)], [('.wh.d', gone)], [('d', device)]):
        a.are([('/', D), ('d/b', y)], [('/', D), ('d/', old), ('d/a', x)], between, [mark, ('d/b', y)])
    a.are([('/', D), ('d/b', y), ('c', x)], [('/', D), ('d/', old), ('d/a', x)], [('c', x), ('d', link('c'))],
          [mark, ('d/b', y)])
    for order in (1, -1):
        a.are([('/', D), ('d/b', y)], [('/', D), ('d/', old), ('d/a', x)],
              [*(mark, ('.wh.d', gone))[::order], ('d/b', y)])
    # A whiteout hides what layers below have, not the member beside it, whichever comes first.
    for order in (1, -1):
        a.are(kept, [('/', D), ('d/', new), ('d/a', x)], [('.wh.d', gone), ('d/', old)][::order], [mark, ('d/b', y)])
        a.are(kept, [('/', D), ('d/', new), ('d/a', x)], [('.wh.d', gone), ('d/', old), ('d/a', x)][::order],
              [mark], [mark, ('d/b', y)])
    # Names of aufs itself.
    a.are([('a', x)], [('a', x)], [('.wh..wh.aufs', gone), ('.wh..wh.orph/', D)])
    # What a layer above hides may have a name that could not be there.
    a.are([('d', x)], [('d/', D), ('d/a', x)], [('d/b', x), ('.wh.d', gone)], [('d', x)])
    a.fail(r'\.wh\.: whiteout without a name', [('.wh.', x)], [('a', x)])
    a.fail(r': \.wh\.a: whiteout, which', [('.wh.a', x)])
    for word in ('redirect', 'metacopy', 'whiteout'):
        a.fail(rf': d: attribute overlay\.{word} is not supported in a layer', [('a', x)],
               [('d', {'pax_headers': {f'SCHILY.xattr.trusted.overlay.{word}': 'y'}})])


def links_stay_in_their_layer(a):
    x, y, z = b'x', b'yy', b'zzz'
    a.are([('a', x), ('l', link('a'))], [('a', x), ('l', link('a'))], [])
    # The target is hidden: another name is the first one then, and the archive is read twice.
    a.are([('a', y), ('l', x)], [('a', x), ('l', link('a'))], [('a', y)])
    a.are([('a', y), ('d/l', x), ('m', link('d/l'))], [('a', x), ('d/l', link('./a')), ('m', link('d/l'))], [('a', y)])
    a.are([('l', x), ('m', link('l'))], [('a', x), ('b', link('a')), ('l', link('b')), ('m', link('a'))],
          [('.wh.a', b''), ('.wh.b', b'')])
    a.are([('d', y), ('l', x), ('m', z)], [('d/', D), ('d/a', x), ('d/b', z), ('l', link('d/a')), ('m', link('/d/b'))],
          [('d', y)])
    a.are([('a', y), ('b', y), ('l', {'type': SYM, 'linkname': 'to'})],
          [('a', {'type': SYM, 'linkname': 'to'}), ('l', link('a'))], [('a', y), ('b', y)])
    # The link is hidden, or both are; the hidden one leads to a file that is there.
    a.are([('a', x), ('l', y)], [('a', x), ('l', link('a'))], [('l', y)])
    a.are([('b', y)], [('a', x), ('l', link('a'))], [('b', y), ('.wh.a', b''), ('.wh.l', b'')])
    a.are([('a', x), ('m', link('a')), ('l', y)], [('a', x), ('l', link('a')), ('m', link('l'))], [('l', y)])
    a.are([('a', y), ('m', x), ('l', z)], [('a', x), ('l', link('a')), ('m', link('l'))], [('a', y)], [('l', z)])
    # Flags, owners and attributes come from the hidden name, too.
    whole = {'data': x, 'uid': 5, 'pax_headers': {'SCHILY.xattr.user.x': '1', 'SCHILY.fflags': 'nodump'}}
    a.are([('a', y), ('l', whole)], [('a', whole), ('l', link('a'))], [('a', y)])
    a.are([('a', y), ('m', x)], [('a', x), ('l', link('a')), ('m', link('a'))], [('a', y)], options=['-x', 'l'])
    a.are([('a', y)], [('a', x), ('l', link('a'))], [('a', y)], options=['-x', 'l'])
    a.fail('l: hard link to a, which is missing or excluded', [('a', x)], [('l', link('a'))])
    a.fail('l: hard link to b, which is missing', [('a', x), ('l', link('b'))], [('a', y)])
    a.fail('l: duplicate entry', [('a', x), ('l', y), ('l', link('a'))], [('a', y)])
    a.fail('m: duplicate entry', [('m', x)], [('m', x), ('m', y)], [('a', y)])
    for paths, kwargs in (([f'{a.folder}/fifo', f'{a.folder}/1.tar'], {}), (['-', f'{a.folder}/1.tar'], {})):
        a.write([[('a', x), ('l', link('a'))], [('a', y)]])
        with open(f'{a.folder}/0.tar', 'rb') as f:
            if paths[0] != '-':
                os.mkfifo(paths[0])
                feeder = subprocess.Popen(['cp', f'{a.folder}/0.tar', paths[0]])  # pylint: disable=consider-using-with
            a.fail('must be read twice, since a layer above hides the target of the hard link l: give the name of a f',
                   paths=paths, stdin=f, **kwargs)
            if paths[0] != '-':
                feeder.wait()
    a.fail('only one layer can be the standard input', paths=['-', '-'])
    a.fail('whiteouts of layers are applied', paths=['0', '1'], options=['-W'])
    a.fail('cannot open archive', paths=[f'{a.folder}/0.tar', f'{a.folder}/none'])


def options_apply_to_all(a):
    x, y = b'x', b'yy'
    a.are([('d/b', y)], [('a', x), ('d/b', y)], [('a', y), ('d/a', x)], options=['-x', 'a'])
    a.are([('d/', D), ('d/a', x), ('d/b', y)], [('d/', D), ('d/a', x)], [('d/', D), ('d/b', y)],
          options=['-s', 'd', '-c', 'd/a'])
    a.are([('d/', D), ('d/l', x), ('a', y)], [('a', x), ('d/', D), ('d/l', link('a'))], [('a', y)], options=['-s', 'd'])


def directories_are_layers(folder):
    """As archives of the same; more in the comparison with overlayfs."""
    global checks
    for i, files in enumerate((('d/a', 'd/b', 'o/gone', 'e/a', 'same', 'f'), ('d/b', 'o/c', 'e/b', 'f/a', '.wh.same'))):
        for name in files:
            os.makedirs(os.path.dirname(f'{folder}/{i}/{name}'), exist_ok=True)
            with open(f'{folder}/{i}/{name}', 'wb') as f:
                f.write(f'{i}{name}'.encode())
    os.link(f'{folder}/0/d/a', f'{folder}/0/l')
    os.link(f'{folder}/0/d/b', f'{folder}/0/hidden-below')
    try:
        os.setxattr(f'{folder}/1/o', 'user.overlay.opaque', b'y')
        os.setxattr(f'{folder}/1/e', 'user.overlay.opaque', b'n')
        attributes = True
    except OSError as e:
        attributes = print(f'without attributes: {e}')
    status, out, err = source('directory', f'{folder}/0', f'{folder}/1')
    assert (status, err) == (0, ''), err
    names = re.findall(r'^entry (\S+)', out, re.M)
    wanted = ['/d', '/d/a', '/d/b', '/e', '/e/a', '/e/b', '/f', '/f/a', '/hidden-below', '/l', '/o', '/o/c', '/same',
              '/.wh.same'] + ([] if attributes else ['/o/gone'])
    assert sorted(names) == sorted(wanted), names
    assert 'overlay' not in out
    sizes = dict(re.findall(r'^inode (\S+) .* size=(\d+)', out, re.M))
    assert sizes['/d/b'] == '4' and re.search(r'^inode /hidden-below .*nlink=1 ', out, re.M)
    assert re.search(r'^inode /d/a .*nlink=2 ', out, re.M)
    # The contents are those of each layer.
    crcs = dict(re.findall(r'^inode (\S+) .*crc=(\S+)', out, re.M))
    assert crcs['/d/b'] != crcs['/hidden-below']
    alone = source('directory', f'{folder}/0')[1]
    assert crcs['/hidden-below'] == dict(re.findall(r'^inode (\S+) .*crc=(\S+)', alone, re.M))['/d/b']
    if attributes:
        os.setxattr(f'{folder}/1/e', 'user.overlay.redirect', b'/x')
        says = source('directory', f'{folder}/0', f'{folder}/1')
        assert says[0] == 1 and re.search(r': e: a directory renamed in an overlay cannot be merged', says[2]), says
        os.removexattr(f'{folder}/1/e', 'user.overlay.redirect')
        os.setxattr(f'{folder}/1/d/b', 'user.overlay.metacopy', b'')
        says = source('directory', f'{folder}/0', f'{folder}/1')
        assert says[0] == 1 and re.search(r': d/b: its contents are in a layer below', says[2]), says
    assert source('directory', f'{folder}/0', f'{folder}/none')[0] == 1
    assert source('manifest', f'{folder}/0', f'{folder}/1')[2].endswith('a manifest cannot be a layer\n')
    assert source('directory', *[f'{folder}/0'] * 501)[2].endswith('501 layers, maximum is 500\n')
    checks += 10


def main():
    with tempfile.TemporaryDirectory() as folder:
        a = Archives(folder)
        if source('archive', *a.write([[('a', b'x')]]))[2].find('without libarchive') >= 0:
            skip('needs libarchive')
        archives_are_layers(a)
        whiteouts_hide(a)
        links_stay_in_their_layer(a)
        options_apply_to_all(a)
    with tempfile.TemporaryDirectory() as folder:
        directories_are_layers(folder)
    print(f'{checks} checks')
    return 0 if checks > 70 else 1


if __name__ == '__main__':
    sys.exit(main())
