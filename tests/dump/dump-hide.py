#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""--hide-names: plant user-defined names and data wherever possible, and search for them in the complete output of
dump-tree and dump-super: literally, escaped, and as hexadecimal digits. Without --hide-names each must be found."""
import io
import json
import sys
import tarfile
import tempfile
import zlib

from tool import run

LONG = 'planted-long-' + 'x' * 200
PLANTED = {
    'label': 'planted-label', 'file': 'planted-file', 'folder': 'planted-folder', 'hard link': 'planted-second-name',
    'symlink': 'planted-link', 'target': 'planted/target', 'xattr name': 'user.planted-xattr',
    'xattr value': 'planted-value', 'inline data': 'planted-contents', 'long name': LONG,
    'odd name': 'planted odd \udcff\tname', 'subvolume': 'planted-subvolume', 'snapshot': 'planted-snapshot',
    'edited name': 'planted-by-edit', 'edited value': 'planted-edit-value', 'device node': 'planted-node',
}
TREE = [[], ['--dfs', '--csum-items', '--csum-headers'], ['-R'], ['-t', 'root'], ['-t', '5']]
SUPER = [[], ['-f'], ['-fa'], ['-s', '1']]


def archive(path):
    p = PLANTED
    with tarfile.open(path, 'w', format=tarfile.PAX_FORMAT, errors='surrogateescape') as tar:
        def add(name, kind=tarfile.REGTYPE, data=b'', target='', xattrs=()):
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), target
            info.pax_headers = {f'SCHILY.xattr.{k}': v for k, v in xattrs}
            tar.addfile(info, io.BytesIO(data))
        add(p['folder'], tarfile.DIRTYPE)
        add(p['subvolume'], tarfile.DIRTYPE)
        add(p['file'], data=p['inline data'].encode() * 3, xattrs=[(p['xattr name'], p['xattr value'])])
        add(f'{p["folder"]}/{p["hard link"]}', tarfile.LNKTYPE, target=p['file'])
        add(p['symlink'], tarfile.SYMTYPE, target=p['target'])
        add(p['odd name'], data=b'1')
        add(p['device node'], tarfile.FIFOTYPE)
        # Enough long names in one directory to need an INODE_EXTREF.
        for i in range(40):
            add(f'{p["folder"]}/{i:02}{LONG}', tarfile.LNKTYPE, target=p['file'])


def make(folder, *options):
    image, tar = f'{folder}/hide.img', f'{folder}/files.tar'
    archive(tar)
    code, _, err = run('mkfs', '-f', '-q', '-n', '4k', '--free', '200m', '-L', PLANTED['label'], '--tar', tar,
                       '--subvol', 'rw:' + PLANTED['subvolume'], *options, image)
    assert code == 0, err
    value = f'{folder}/value'
    with open(value, 'w', encoding='ascii') as f:
        f.write(PLANTED['edited value'])
    for words in (['subvolume', 'snapshot', PLANTED['subvolume'], PLANTED['snapshot']],
                  ['put', value, PLANTED['edited name']],
                  ['setxattr', 'user.more', PLANTED['edited value'], PLANTED['edited name']]):
        code, _, err = run('edit', image, *words)
        assert code == 0, err
    return image


def forms(planted):
    raw = planted.encode('utf-8', 'surrogateescape')
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield json.dumps(planted)[1:-1].encode()
    yield raw.replace(b' ', b'\\ ').replace(b'\t', b'\\t').replace(b'\xff', b'\\377')


def outputs(image, *hide):
    for form in ('text', 'json'):
        for options in TREE:
            code, out, err = run('dump-tree', *hide, '--format', form, *options, image)
            assert code == 0 and out, err
            yield f'dump-tree {form} {options}', out
        for options in SUPER:
            code, out, err = run('dump-super', *hide, '--format', form, *options, image)
            assert code == 0 and out, err
            yield f'dump-super {form} {options}', out


def members(value, name):
    """Generate all values with their member names."""
    if isinstance(value, dict):
        for k, v in value.items():
            if k in name:
                yield v
            yield from members(v, name)
    elif isinstance(value, list):
        for v in value:
            yield from members(v, name)


def compressed(folder):
    """Compressed inline data hides its contents, but anyone could decompress it."""
    image = make(folder, '--compress', 'zlib')
    code, out, err = run('dump-tree', '--format', 'json', '-t', '5', image)
    assert code == 0, err
    lines = [json.loads(line) for line in out.decode().splitlines()]
    found = [d for line in lines if line.get('item', {}).get('compression') == 1
             for d in members(line, {'inline_data'})]
    text = PLANTED['inline data'].encode() * 3
    assert any(zlib.decompress(bytes.fromhex(d)) == text for d in found), found
    code, out, err = run('dump-tree', '--hide-names', '--format', 'json', image)
    hidden = [d for line in out.decode().splitlines()
              for d in members(json.loads(line), {'inline_data', 'data', 'name', 'string', 'label'})]
    assert len(hidden) > 50 and set(hidden) == {'HIDDEN'}, set(hidden)
    for d in found:
        assert d.encode() not in out
    return len(hidden)


def main():
    with tempfile.TemporaryDirectory(prefix='btrkit-hide-') as folder:
        image = make(folder)
        lacking, looked = set(PLANTED), 0
        for _, out in outputs(image):
            lacking -= {what for what in lacking if any(form in out for form in forms(PLANTED[what]))}
        assert not lacking, f'not found although nothing is hidden: {lacking}'
        for command, out in outputs(image, '--hide-names'):
            for what, planted in PLANTED.items():
                for form in forms(planted):
                    assert form not in out, f'{command}: {what} is there as {form}'
                    looked += 1
            assert b'planted' not in out.lower() and b'planted'.hex().encode() not in out, command
            assert b'HIDDEN' in out or '-R' in command, command
        hidden = compressed(folder)
    print(f'{len(PLANTED)} planted, looked for {looked} times; {hidden} members of JSON are hidden')
    return 0


sys.exit(main())
