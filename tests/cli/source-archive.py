#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Archives as a source: what tar and cpio make of a directory is read like that directory, in any locale, compressed or
not; broken or incomplete archives and paths out of the tree are refused with a clear message.

SOURCE_LIST is the program that prints a source as text. Exits with 77 if it cannot run.
"""
import base64
import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import zlib

from tool import skip

LIST = os.environ['SOURCE_LIST']
DIR, LINK, SYM = tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE
compared = 0


def source(data, *options, **environment):
    done = subprocess.run([LIST, *options, 'archive', '-'], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=600, env={**os.environ, **environment})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def good(data, *options, **environment):
    status, out, err = source(data, *options, **environment)
    assert (status, err) == (0, ''), (status, err)
    return out


def bad(message, data, *options):
    global compared
    status, out, err = source(data, *options)
    assert (status, out) == (1, ''), (message, status, out)
    assert re.search(message, err) and err.count('\n') == 1, f'{err!r} does not say {message!r}'
    compared += 1


def tar(*members, **kwargs):
    out = io.BytesIO()
    kwargs = {'format': tarfile.PAX_FORMAT, 'encoding': 'utf-8', 'errors': 'surrogateescape', **kwargs}
    with tarfile.open(fileobj=out, mode='w', **kwargs) as t:
        for name, attributes in members:
            info, data = tarfile.TarInfo(name), attributes.get('data', b'')
            for key, value in attributes.items():
                if key != 'data':
                    setattr(info, key, value)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


FILE = {'data': b'x'}
ACL = bytes.fromhex('02000000' '01000600ffffffff' '02000600d2040000' '04000400ffffffff' '10000600ffffffff'
                    '20000400ffffffff')


def make_tree(top):
    os.makedirs(f'{top}/dir/deep/er')
    for name in (b'plain', 'é'.encode(), 'e\u0301'.encode(), b'bad\xff\xfe', b'l' * 200 + b'\xff', b'new\nline\\'):
        with open(os.fsencode(top) + b'/dir/' + name, 'wb') as f:
            f.write(name * 100)
        os.utime(f.name, ns=(0, 1234567890123456789))
    os.link(f'{top}/dir/plain', f'{top}/dir/deep/link')
    os.link(f'{top}/dir/plain', f'{top}/again')
    os.symlink(b'target\xff', os.fsencode(top) + b'/sym\xff')
    os.symlink('t' * 3949, f'{top}/longest')
    os.mkfifo(f'{top}/fifo')
    with open(f'{top}/sparse', 'wb') as f:
        f.seek(1 << 20)
        f.write(b'x' * 5000)
        f.seek(2 << 20)
        f.write(b'y')
        f.truncate(3 << 20)
    open(f'{top}/empty', 'wb').close()
    os.chmod(f'{top}/empty', 0o6751)
    if os.getuid() == 0:
        os.chown(f'{top}/empty', 123456789, 3000000000)
        os.chmod(f'{top}/empty', 0o6751)
        os.mknod(f'{top}/device', 0o20600, os.makedev(300, 70000))
    try:
        os.setxattr(f'{top}/dir/plain', 'user.attribute', b'with \0 and = and \xff')
        os.setxattr(f'{top}/dir/plain', 'system.posix_acl_access', ACL)
        os.setxattr(f'{top}/dir', 'system.posix_acl_default', ACL)
        if os.getuid() == 0:
            os.setxattr(f'{top}/sparse', 'security.capability', bytes.fromhex('0100000200040000' + 24 * '0'))
    except OSError as e:
        print(f'without some attributes: {e}')


def without(lines, *words):
    return '\n'.join(re.sub('|'.join(words), '', line) for line in lines.splitlines())


def trees_come_out_equal(folder):
    global compared
    tree = f'{folder}/tree'
    make_tree(tree)
    wanted = subprocess.run([LIST, '-n', 'directory', tree], stdout=subprocess.PIPE, check=True).stdout.decode()
    pax = subprocess.run(['tar', '--format=pax', '--xattrs', '--xattrs-include=*', '--acls', '--sparse', '-C', tree,
                          '-cf', '-', '.'], stdout=subprocess.PIPE, check=True,
                         env={**os.environ, 'LC_ALL': 'C'}).stdout
    assert len(wanted.splitlines()) > 30
    for locale in ('C', 'C.UTF-8', 'en_US.UTF-8', 'POSIX'):
        assert good(pax, '-n', LC_ALL=locale) == wanted, locale
        compared += 1
    for compress in (gzip.compress, bz2.compress, lzma.compress,
                     lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE)):
        assert good(compress(pax), '-n') == wanted
        compared += 1
    if shutil.which('zstd'):
        assert good(subprocess.run(['zstd', '-q'], input=pax, stdout=subprocess.PIPE, check=True).stdout,
                    '-n') == wanted
    # These formats have whole seconds and no attributes.
    less = without(wanted, r'\.\d{9}', r' (user|system|security)\.\S*=\S*')
    gnu = subprocess.run(['tar', '--format=gnu', '-C', tree, '-cf', '-', '.'], stdout=subprocess.PIPE,
                         check=True).stdout
    assert without(good(gnu, '-n'), r'\.\d{9}') == less
    if shutil.which('cpio'):
        names = subprocess.run(['find', '.', '-print0'], cwd=tree, stdout=subprocess.PIPE, check=True).stdout
        for form in ('newc', 'crc'):
            cpio = subprocess.run(['cpio', '-0', '-o', '-H', form], input=names, cwd=tree, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=True).stdout
            assert without(good(cpio, '-n'), r'\.\d{9}') == less, form
            cut_is_refused(cpio, len(cpio.rstrip(b'\0')) - 200)
            compared += 1
    cut_is_refused(pax, len(pax.rstrip(b'\0')) + 1)
    return pax


def cut_is_refused(data, end):
    for length in [*range(1, end, end // 50 * 2 + 1), *range(512, end, end // 51200 * 512 + 512), end]:
        bad('(broken archive)', data[:length])


def decompressed(module, data):
    try:
        return module.decompress(data)
    except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error):
        return None


def compressed_damage_is_found(pax):
    for module in (gzip, lzma, bz2):
        data = module.compress(pax)
        for cut in (1, 4, 8, 20, len(data) // 2):
            bad('broken archive', data[:-cut])
        for at in range(20, len(data) - 8, len(data) // 40):
            flipped = bytearray(data)
            flipped[at] ^= 1
            # A flipped bit may not matter, for example in a distance, if the data repeats. The damaged archive may also
            # be refused before its checksum is reached.
            if decompressed(module, bytes(flipped)) != pax:
                bad('^-: .', bytes(flipped))
    # In stored (uncompressed) data only the checksum reveals a changed byte.
    member = tar(('a', {'data': b'what is in the file'}))
    for count in (1, 3):
        third = -(-len(member) // count)
        stored = b''.join(gzip.compress(member[at:at + third], 0) for at in range(0, len(member), third))
        good(stored)
        bad('broken archive: invalid gzip data or checksum', stored.replace(b'in the file', b'in the film'))
        good(stored + bytes(1000))
        bad('broken archive: trailing data after the gzip data', stored + b'x')
        bad('broken archive: trailing data after the gzip data', stored + bytes(1000) + b'x')
        bad('broken archive: gzip data is truncated', stored[:-1])
    for behind in (b'garbage', bytes(300000) + b'x' * 512, pax):
        bad('standard input: trailing data after the end of the archive', pax + behind)
    # Truncated after a header that belongs to no member.
    member, header = tar(('a', FILE))[:1024], tar(pax_headers={'comment': 'x'})[:1024]
    bad('broken archive: no end-of-archive marker', member + header)
    bad('broken archive: no end-of-archive marker', header)
    good(member + header + bytes(512))
    bad('broken archive: Unrecognized', b'')
    bad('broken archive: Unrecognized', b'neither tar nor anything\n' * 1000)


def what_must_not_be_is_refused():
    bad(r': a/../../b: path with .. leads out of the tree', tar(('a/../../b', FILE)))
    bad(r': l: hard link to ../a: path with .. leads', tar(('a', FILE), ('l', {'type': LINK, 'linkname': '../a'})))
    bad(': a: duplicate entry', tar(('a', FILE), ('./a', FILE)))
    bad(': a: duplicate entry', tar(('a', {'type': DIR}), ('a/b', FILE), ('a', {'type': DIR, 'mode': 0o700})))
    bad(r': \.: duplicate entry', tar(('.', {'type': DIR}), ('./', {'type': DIR, 'uid': 1})))
    bad(': l: duplicate entry', tar(('a', FILE), ('l', FILE), ('l', {'type': LINK, 'linkname': 'a'})))
    bad(': a: not a directory, but has entries', tar(('a', FILE), ('a/b', FILE)))
    bad(': a: both a directory and something else', tar(('a/b', FILE), ('a', FILE)))
    bad(': s: not a directory, but has entries', tar(('s', {'type': SYM, 'linkname': '/etc'}), ('s/passwd', FILE)))
    bad(r': \.wh\.a: whiteout', tar(('.wh.a', FILE)))
    bad(r': d/\.wh\.\.wh\.\.opq: whiteout', tar(('d/.wh..wh..opq', FILE)))
    bad(': x: whiteout', tar(('x', {'type': tarfile.CHRTYPE})))
    bad(r': \.wh\.l: whiteout', tar(('a', FILE), ('.wh.l', {'type': LINK, 'linkname': 'a'})))
    assert '/.wh.a 0:1' in good(tar(('.wh.a', FILE), ('x', {'type': tarfile.CHRTYPE})), '-W')
    bad('l: hard link to a, which is missing', tar(('l', {'type': LINK, 'linkname': 'a'}), ('a', FILE)))
    bad('l: hard link to a, which is missing or excluded',
        tar(('a', FILE), ('l', {'type': LINK, 'linkname': 'a'})), '-x', 'a')
    bad('d2: hard link to a directory', tar(('d', {'type': DIR}), ('d2', {'type': LINK, 'linkname': 'd'})))
    bad('invalid device number', tar(('d', {'type': tarfile.BLKTYPE, 'devmajor': 4096, 'devminor': 1})))
    bad(': a/b: uid or gid exceeds 32 bits', tar(('a/b', {'uid': 1 << 32})))
    bad(': a/b: invalid uid or gid', tar(('a/b', {'uid': 4294967295})))
    bad(': g: invalid uid or gid', tar(('g', {'type': DIR, 'gid': 4294967295})))
    good(tar(('a', {'uid': 4294967294, 'gid': 4294967294})))
    bad('s: target of symbolic link is too long: 3950 bytes, maximum is 3949',
        tar(('s', {'type': SYM, 'linkname': 't' * 3950})))
    bad('name is too long: 256 bytes, maximum is 255', tar(('n' * 256, FILE)))
    bad('nn/: ?|name is too long: 256 bytes', tar(('n' * 256 + '/a', FILE)))
    bad('a: ACL has the name joe without a numeric id',
        tar(('a', {'pax_headers': {'SCHILY.acl.access': 'user::rw-,user:joe:r--,group::r--,mask::r--,other::r--'}})))
    bad('attribute user.x is too large: 17000 bytes', tar(('a', {'pax_headers': {'SCHILY.xattr.user.x': 'x' * 17000}})))
    whole = tar(('a', FILE), pax_headers={'comment': 'x' * 90})
    good(whole)
    for record, says in ((b'\t 103 uid=5', None), (b'9' * 99, None), (b' ' * 99, None),
                         (b'2 =', None), (b'103 =omment', None), (b'103 commen2=', 'commen2 is not supported'),
                         (b'103 gid=5', 'gid has an invalid value')):
        was = (b'103 comment=' + b'x' * 90)[:len(record)]
        bad(f'global header with {says or "an invalid record"}$', whole.replace(was, record, 1))
    bad('a: flags are requested for b, a later name', tar(('a', FILE), ('b', {'type': LINK, 'linkname': 'a'})), '-c',
        'b')
    bad('no such directory in the source', tar(('a', FILE)), '-s', 'b')


def attributes_are_checked():
    """Names and attributes that Linux's btrfs would not show, or could not remove, are refused with a message."""
    def entries(*rows):
        return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *row, 0xffffffff) for row in rows)

    def archive(name, value, kind):
        coded = {'LIBARCHIVE.xattr.' + urllib.parse.quote(name): base64.b64encode(value).decode()}
        return tar(('d/\x01', {'type': kind, 'linkname': 't' if kind == SYM else '', 'pax_headers': coded}))

    access, default, capability = 'system.posix_acl_access', 'system.posix_acl_default', 'security.capability'
    acl, regular, fifo = entries((1, 7), (4, 5), (32, 5)), tarfile.REGTYPE, tarfile.FIFOTYPE
    capable = bytes.fromhex('0100000200040000' + 24 * '0')
    for name, value, kind, says in (
            ('foo.x', b'1', regular, 'unsupported'), ('name', b'1', DIR, 'unsupported'),
            ('system.x', b'1', regular, 'unsupported'), ('User.x', b'1', regular, 'unsupported'),
            ('user.', b'1', regular, 'prefix only'), ('trusted.', b'1', DIR, 'prefix only'),
            ('security.', b'1', SYM, 'prefix only'), ('btrfs.', b'1', regular, 'prefix only'),
            ('btrfs.x', b'1', regular, 'unknown property'),
            ('btrfs.compression', b'xyz', regular, 'invalid compression'),
            ('btrfs.compression', b'zstd', SYM, 'only files'), ('user.x', b'1', SYM, 'only files'),
            ('user.x', b'1', fifo, 'only files'), ('user.' + 'x' * 251, b'', regular, 'name of 256 bytes'),
            (access, b'', regular, 'ACL has invalid size 0'), (access, b'abc', regular, 'ACL has invalid size 3'),
            (access, acl[:-1], regular, 'ACL has invalid size 27'),
            (access, b'\1' + acl[1:], DIR, 'ACL has unknown version 1'),
            (access, entries(), regular, 'no entries'), (access, entries((1, 7)), regular, 'out of order'),
            (access, entries((4, 5), (1, 7), (32, 5)), regular, 'out of order'), (access, acl, SYM, 'has no ACL'),
            (access, entries((1, 8), (4, 5), (32, 5)), DIR, 'out of order'),
            (default, acl, regular, 'only directories'),
            (access, entries((3, 7)), regular, 'invalid ACL entry'), (capability, b'', regular, 'invalid file cap'),
            (capability, b'abc', regular, 'invalid file cap'), (capability, capable[:12], regular, 'invalid file cap')):
        what = 'attribute ' if len(name) > 255 else f'attribute {name[:80]}: '
        bad(rf': d/\\001: {re.escape(what)}.*{says}.*; --without-xattr leaves it out', archive(name, value, kind))
    for name, value, kind in (
            ('user.x', b'', DIR), ('trusted.x', b'1', SYM), ('security.x', b'1', fifo), (access, acl, fifo),
            (default, acl, DIR), (capability, capable, regular), ('btrfs.compression', b'zstd:3', DIR),
            ('btrfs.compression', b'', regular), ('user.' + 'x' * 250, b'', regular)):
        assert f' {name}=' in good(archive(name, value, kind)), name


def lines_of(out, *wanted):
    global compared
    for line in wanted:
        assert re.search(line, out, re.M), f'{line!r} is not in {out}'
        compared += 1


def members_are_understood():
    out = good(tar(('p/q/r', {'data': b'abc', 'mtime': 5}), ('p', {'type': DIR, 'mode': 0o700, 'uid': 7, 'mtime': 9})),
               '-n')
    lines_of(out, r'^inode / .*mode=40755 .*mtime=5\.000000000$', r'^inode /p 0:1 mode=40700 .*owner=7:0.*mtime=9\.0',
             r'^inode /p/q 0:2 mode=40755 .*owner=0:0.*mtime=5\.0')
    out = good(tar(('a', FILE), ('.', {'type': DIR, 'mode': 0o711, 'mtime': -3.5})), '-n', '-u', '5', '-g', '6')
    lines_of(out, r'^inode / .*mode=40711 .*owner=5:6 .*mtime=-3\.500000000$')
    out = good(tar(('a', {'mode': 0o664, 'pax_headers': {
        'SCHILY.acl.access': 'user::rw-,user:joe:r--:1001,group::---,mask::rw-,other::r--'}})))
    lines_of(out, r'^inode /a .*mode=100664 .*system.posix_acl_access=\\x02\\x00\\x00\\x00\\x01\\x00\\x06\\x00'
             r'\\xff\\xff\\xff\\xff\\x02\\x00\\x04\\x00\\xe9\\x03\\x00\\x00\\x04\\x00\\x00\\x00\\xff')
    out = good(tar(('a', {'pax_headers': {'RHT.security.selinux': 'label_t\0', 'LIBARCHIVE.xattr.user.foo': 'YmFy',
                                          'SCHILY.xattr.user.foo': 'bar', 'SCHILY.xattr.trusted.overlay.x': 'y'}})),
               '-H')
    lines_of(out, r'^inode /a .* user\.foo=bar$')
    # As GNU tar encodes and decodes names.
    out = good(tar(('a', {'pax_headers': {'SCHILY.xattr.user.a%3Db%253D%20': 'y'}})))
    lines_of(out, r'^inode /a .* user\.a\\x3db%3D%20=y$')
    out = good(tar(('a', FILE), ('s', {'type': DIR}), ('s/l', {'type': LINK, 'linkname': './a'}),
                   ('s/m', {'type': LINK, 'linkname': 'a'})), '-r', 's', '-c', 's')
    lines_of(out, r'^inode /a 0:1 .*nlink=1 .*flags=0 .*contents=0:1',
             r'^inode /s/l 1:1 .*nlink=2 .*flags=3 .*contents=0:1', '^cut 1$')
    assert '/' in good(tar(('a', FILE), ('b', {'type': LINK, 'linkname': 'a'})), '-x', '[ab]')
    out = good(tar(('x', FILE), ('y/z', FILE), ('y/.', {'type': DIR})), '-x', 'y')
    assert '/y' not in out


def absolute_paths_begin_at_the_top():
    """As GNU tar, bsdtar and tar2sqfs take them; kaniko and umoci write them."""
    plain = (('.', {'type': DIR, 'mode': 0o711, 'uid': 7}), ('etc', {'type': DIR}), ('etc/a', FILE),
             ('b', {'type': LINK, 'linkname': 'etc/a'}))
    absolute = (('/', plain[0][1]), ('/etc', plain[1][1]), ('//etc/a', FILE),
                ('/b', {'type': LINK, 'linkname': '/etc/a'}))
    wanted = good(tar(*plain))
    assert 'mode=40711' in wanted and 'entry /etc/a 2 ' in wanted
    assert good(tar(*absolute)) == wanted
    assert good(tar(*plain[:3], absolute[3])) == wanted
    bad(r': /../b: path with .. leads out of the tree', tar(('/../b', FILE)))


def links_have_the_mode_of_linux():
    out = good(tar(('s', {'type': SYM, 'linkname': 't', 'mode': 0o755})))
    lines_of(out, r'^inode /s 0:1 mode=120777 ')


def pax(*records):
    """A header of a pax archive: type, records."""
    out = b''
    for kind, words in records:
        body = b''
        for word, value in words.items():
            record = f' {word}={value}\n'.encode()
            length = len(record)
            while len(str(length)) + len(record) != length:
                length = len(str(length)) + len(record)
            body += str(length).encode() + record
        info = tarfile.TarInfo('header')
        info.type, info.size = kind, len(body)
        out += info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)
    return out


def plain(*members):
    """Members without an end of the archive."""
    return tar(*members, format=tarfile.USTAR_FORMAT).rstrip(b'\0').ljust(512 * 2 * len(members), b'\0')


def global_headers_are_honoured():
    """They hold for all members behind them, unless a member's own header says otherwise, as for GNU tar."""
    g, x = tarfile.XGLTYPE, tarfile.XHDTYPE
    data = (plain(('a', FILE)) + pax((g, {'uid': 7, 'gid': 3000000000, 'mtime': '-1.75', 'comment': 'c'})) +
            plain(('b', FILE)) + pax((x, {'uid': 8})) + plain(('c', FILE)) +
            pax((g, {'uid': '', 'atime': '5.25', 'ctime': 6})) + plain(('d', {'uid': 9, **FILE})))
    out = good(data + bytes(1024))
    lines_of(out, r'^inode /a .*owner=0:0 .*mtime=0\.0',
             r'^inode /b .*owner=7:3000000000 .*mtime=-2\.250000000',
             r'^inode /c .*owner=8:3000000000 .*mtime=-2\.250000000',
             r'^inode /d .*owner=9:3000000000 .*mtime=-2\.25.* atime=5\.25.* ctime=6\.0')
    # Wherever a header lies in the blocks that a pipe or a decompressor delivers. Behind a hard link with a size, which
    # may have contents or not, libarchive looks ahead.
    link = tarfile.TarInfo('l')
    link.type, link.linkname, link.size = LINK, 'f1', 2
    data = link.tobuf(tarfile.USTAR_FORMAT) + data
    big = b''.join(plain((f'f{i}', {'data': b'y' * (i % 500 + 1)})) for i in range(300)) + data + bytes(1024)
    wanted = good(big)
    for step in (1, 7, 100, 511, 512, 513, 700, 1023, 4095, 10000):
        with subprocess.Popen([LIST, 'archive', '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            part = plain(('f1', {'data': b'yy'})) + data + bytes(1024) if step < 100 else big
            for at in range(0, len(part), step):
                p.stdin.write(part[at:at + step])
                p.stdin.flush()
            out = p.communicate()[0].decode()
        assert p.returncode == 0 and (step < 100 or out == wanted), step
        lines_of(out, r'^inode /b .*owner=7:3000000000')
    assert good(gzip.compress(big)) == wanted == good(bz2.compress(big)) == good(lzma.compress(big))
    # What star and others say of the archive as a whole.
    for words in ({'SCHILY.volhdr.label': 'x', 'SCHILY.volhdr.blocksize': 20, 'SCHILY.release': 'star 1.6',
                   'SCHILY.archtype': 'exustar'}, {'uname': 'joe', 'gname': 'joe', 'charset': 'x',
                                                   'hdrcharset': 'BINARY', 'GNU.volume.label': 'v'}):
        good(pax((g, words)) + plain(('a', FILE)) + bytes(1024))
    for word in ('path', 'size', 'linkpath', 'SCHILY.xattr.user.x', 'GNU.sparse.size', 'SCHILY.volhdr.'):
        bad(f': global header with {word} is not supported$',
            plain(('a', FILE)) + pax((g, {word: 1})) + plain(('b', FILE)) + bytes(1024))
    for value in ('x', '-', '5x', '1.2.3', '9' * 30, '-1'):
        bad(': global header with (uid|mtime) has an invalid value$|exceeds 32 bits',
            pax((g, {'mtime' if '.' in value else 'uid': value})) + plain(('a', FILE)) + bytes(1024))


def members_that_come_twice_are_taken():
    d, s = {'type': DIR, 'mode': 0o750, 'uid': 5, 'mtime': 77}, {'type': SYM, 'linkname': 't'}
    dev = {'type': tarfile.BLKTYPE, 'devmajor': 4, 'devminor': 1}
    user = {**d, 'pax_headers': {'SCHILY.xattr.user.x': '1', 'SCHILY.xattr.user.y': '2'}}
    for member in (d, user, s, {'data': b''}, {'type': tarfile.FIFOTYPE}, dev):
        assert good(tar(('m', member), ('a', FILE), ('m', member))) == good(tar(('m', member), ('a', FILE)))
    out = good(tar(('.', d), ('m', d), ('m/a', FILE), ('./m', d), ('.', d)))
    assert out == good(tar(('.', d), ('m', d), ('m/a', FILE)))
    assert '5:6' in good(tar(('.', d), ('a', FILE), ('.', d)), '-u', '5', '-g', '6')
    link = {'type': LINK, 'linkname': 'a'}
    assert good(tar(('a', FILE), ('a', link), ('l', link), ('l', link))) == good(tar(('a', FILE), ('l', link)))
    for other in ({**d, 'mode': 0o700}, {**d, 'mtime': 78}, {**d, 'gid': 1}, user, {**s}, {'data': b''}):
        bad(': m: (duplicate entry|both a dir)', tar(('m', d), ('m', other)))
    bad(': m: duplicate', tar(('m', user), ('m', {**user, 'pax_headers': {'SCHILY.xattr.user.x': '1'}})))
    bad(': s: duplicate', tar(('s', s), ('s', {**s, 'linkname': 'u'})))
    bad(': v: duplicate', tar(('v', dev), ('v', {**dev, 'devminor': 2})))
    bad(': a: duplicate', tar(('a', FILE), ('a', FILE)))


def newc(*members):
    out = b''
    for name, mode, inode, links, data in (*members, ('TRAILER!!!', 0, 0, 1, b'')):
        head = b'070701' + b''.join(b'%08X' % v for v in (inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0,
                                                          len(name) + 1, 0)) + name.encode() + b'\0'
        out += head.ljust(-(-len(head) // 4) * 4, b'\0') + data.ljust(-(-len(data) // 4) * 4, b'\0')
    return out.ljust(-(-len(out) // 512) * 512, b'\0')


def inode_0_of_cpio_is_no_inode():
    out = good(newc(('a', 0o100644, 0, 2, b'x'), ('b', 0o100644, 0, 2, b'yy'), ('d', 0o40755, 0, 2, b''),
                    ('e', 0o40755, 0, 2, b''), ('s', 0o120777, 0, 2, b'to'), ('t', 0o120777, 0, 2, b'other')))
    lines_of(out, '^inode /a .*nlink=1 .*size=1 ', '^inode /b .*nlink=1 .*size=2 ', '^inode /e ', ' -> to$',
             ' -> other$')
    out = good(newc(('a', 0o100644, 5, 2, b''), ('b', 0o100644, 5, 2, b'yy')))
    lines_of(out, '^inode /a .*nlink=2 .*size=2 ')


def inode_flags_are_taken():
    """Those that btrkit extract --tar and bsdtar write, as far as btrfs has them."""
    def flags(text, **more):
        return tar(('m', {**more, 'pax_headers': {'SCHILY.fflags': text}}))

    for text, number in (('sappnd', 32), ('schg', 16), ('nodump', 64), ('sync', 8), ('noatime', 128), ('dirsync', 256),
                         ('schg,sappnd,nodump', 112), ('securedeletion', 0), ('nocow', 0)):
        lines_of(good(flags(text, data=b'x')), rf'^inode /m .*flags={number} ')
        lines_of(good(flags(text, type=DIR)), rf'^inode /m .*flags={number} ')
    lines_of(good(flags('schg', type=SYM, linkname='t')), '^inode /m .*flags=0 ')
    lines_of(good(flags('schg', data=b'x'), '-c', '.'), '^inode /m .*flags=19 ')
    data = tar(('s', {'type': DIR}), ('m', {**FILE, 'pax_headers': {'SCHILY.fflags': 'schg'}}),
               ('s/l', {'type': LINK, 'linkname': 'm'}))
    lines_of(good(data, '-s', 's'), '^inode /s/l .*flags=16 ')


def images_of_containers_are_recognized():
    says = r'^-: standard input: contains images of containers, not their files: unpack it, .* --tar each, the lowest'
    digest = '0123456789abcdef' * 4
    for names in ((f'{digest}/layer.tar', 'manifest.json'), (f'{digest}.tar', f'{digest}.json', 'manifest.json'),
                  (f'sha256:{digest}', f'{digest}.tar.gz', 'manifest.json'),
                  ('manifest.json', f'blobs/sha256/{digest}'), ('./manifest.json', f'./{digest}/layer.tar'),
                  (f'blobs/sha256/{digest}', 'index.json', 'oci-layout')):
        bad(says, tar(*((name, FILE) for name in names)))
    for names in (('manifest.json', 'index.json'), ('oci-layout', 'layer.tar', f'{digest}/x'),
                  ('d/manifest.json', f'd/{digest}.tar')):
        good(tar(*((name, FILE) for name in names)))


def main():
    if source(tar(('a', FILE)))[2].find('without libarchive') >= 0:
        skip('needs libarchive')
    with tempfile.TemporaryDirectory() as folder:
        compressed_damage_is_found(trees_come_out_equal(folder))
    what_must_not_be_is_refused()
    attributes_are_checked()
    members_are_understood()
    absolute_paths_begin_at_the_top()
    links_have_the_mode_of_linux()
    global_headers_are_honoured()
    members_that_come_twice_are_taken()
    inode_0_of_cpio_is_no_inode()
    inode_flags_are_taken()
    images_of_containers_are_recognized()
    print(f'{compared} archives')
    return 0 if compared > 200 else 1


if __name__ == '__main__':
    sys.exit(main())
