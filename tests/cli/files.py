#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ls, stat and cat: output formats, refusals, damaged files.

BTRKIT is the program under test.
"""
import json
import os
import re
import struct
import subprocess
import tempfile

import damages
import unpack
from tool import BTRKIT, check_failure, make_filesystem, run

NOW = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'


def fill(folder):
    """Sizes from 1 to 300000 bytes, names that must be escaped, and every file type that can be made without root."""
    os.makedirs(f'{folder}/dir/below/deep')
    for name, text in ((b'dir/b', b'b'), (b'dir/a\n\\\xff', b'ab'), (b'dir/below/deep/c', b'abc')):
        with open(os.path.join(os.fsencode(folder), name), 'wb') as f:
            f.write(text)
    os.symlink('to\nnowhere', f'{folder}/dir/link')
    os.mkfifo(f'{folder}/dir/pipe')
    os.chmod(f'{folder}/dir/pipe', 0o620)
    os.chmod(f'{folder}/dir/b', 0o4751)
    os.chmod(f'{folder}/dir/below', 0o1757)
    os.link(f'{folder}/dir/b', f'{folder}/dir/below/b')
    os.utime(f'{folder}/dir/b', ns=(10 ** 9 + 5, -10 ** 9 + 7))


def text(*args):
    status, out, err = run(*args)
    assert (status, err) == (0, ''), (args, status, err)
    return out.decode()


def lists(path):
    assert text('ls', path) == text('ls', path, '/') == 'big\ndir\n'
    names = 'a\\n\\\\\\377\nb\nbelow\nlink\npipe\nsmall\n'
    assert text('ls', path, 'dir') == text('ls', path, '//dir/.//') == names
    assert text('ls', path, 'dir/b') == 'dir/b\n' and text('ls', '-d', path, 'dir', 'big') == 'big\ndir\n'
    assert text('ls', '-d', path) == '.\n'
    # Names are escaped there too, so they add no lines and no control characters.
    extents, name = text('fiemap', '-a', path), 'dir/a\\n\\\\\\377'
    assert f'\nFile size of {name} is 2 (1 block' in extents and f'\n{name}: 1 extent found\n' in extents, extents
    # Non-directories come first; with several arguments each directory has a heading.
    assert text('ls', path, 'dir/below', 'dir/b', 'dir/below/deep') == (
        'dir/b\n\ndir/below:\nb\ndeep\n\ndir/below/deep:\nc\n')
    assert text('ls', '-R', path) == (f'.:\nbig\ndir\n\ndir:\n{names}\ndir/below:\nb\ndeep\n\ndir/below/deep:\nc\n')
    owner = f'{os.getuid()} {os.getgid()}'
    lines = text('ls', '-l', path, 'dir').splitlines()
    forms = [rf'-rw-r--r-- 1 {owner} +2 {NOW} a.*', rf'-rwsr-x--x 2 {owner} +1 1969-12-31 23:59:59 b',
             rf'drwxr-xrwt 1 {owner} +\d+ {NOW} below', rf'lrwxrwxrwx 1 {owner} +10 {NOW} link -> to\\nnowhere',
             rf'prw--w---- 1 {owner} +0 {NOW} pipe', rf'-rw-r--r-- 1 {owner} +6 {NOW} small']
    assert len(lines) == len(forms) and all(map(re.fullmatch, forms, lines)), lines
    numbered = text('ls', '-i', path, 'dir').splitlines()
    inodes = {row['path']: row['inode'] for row in map(json.loads, text('ls', '-R', '--format', 'json',
                                                                        path).splitlines()[1:])}
    assert numbered[1].split() == [str(inodes['dir/b']), 'b'], numbered
    assert inodes['dir/b'] == inodes['dir/below/b'] and 'dir/a\n\\\udcff' in inodes, inodes


def states(path):
    lines = text('stat', path, '/dir/b').splitlines()
    assert lines[0] == '  File: /dir/b' and lines[1] == '  Type: regular file', lines
    assert lines[2] == '  Size: 1  Bytes: 1  Links: 2', lines
    assert lines[4] == f'Access: (4751/-rwsr-x--x)  Uid: {os.getuid()}  Gid: {os.getgid()}', lines
    assert re.fullmatch(r'Modify: 1969-12-31 23:59:59\.00000000[07] \+0000', lines[6]), lines  # mkfs may drop it
    assert lines[-1] == ('Extents: inline 1, regular 0, holes 0, prealloc 0; compressed 0; bytes on disk 1, shared 0')
    assert text('stat', path, 'dir/link').startswith('  File: dir/link -> to\\nnowhere\n  Type: symbolic link\n')
    assert text('stat', path, '/').startswith('  File: /\n  Type: directory\n')
    row = json.loads(text('stat', '--format', 'json', path, '/dir/./b').splitlines()[1])
    assert (row['path'], row['mtime']['sec'], row['mode']) == ('dir/b', -1, 0o104751), row


def refusals(path):
    for command in 'ls', 'stat', 'cat', 'extract', 'fiemap':
        for empty in ((path, 'big', ''), ('--subvol', '', path, 'big')):
            status, out, err = run(command, *empty)
            assert (status, out, 'empty path' in err) == (2, b'', True), (command, status, out, err)
    for command, *args in (('ls', '-l'), ('stat',), ('cat',)):
        result = run(command, *args, path, 'nothing')
        assert check_failure(command, path, (*result[:1], b'', result[2])) == 'no such file or directory: nothing'
        assert '999' in check_failure(command, path, run(command, *args, '--subvol', '999', path, 'big'))
        check_failure(command, '/dev/null/x', run(command, '/dev/null/x', 'big'))
        for bad in ((), ('--nothing', path, 'big'), ('--subvol',)):
            status, out, err = run(command, *bad)
            assert status == 2 and not out and err.count('\n') == 1, (command, bad, status, out, err)
    assert run('stat', path)[0] == run('cat', path)[0] == 2
    assert run('ls', '-Rd', path)[0] == 2 and run('cat', '--format', 'json', path, 'big')[0] == 2
    # The other files are still printed.
    status, out, err = run('cat', path, 'dir/b', 'none', 'dir', 'dir/small', 'dir/link')
    assert (status, out) == (1, b'bsmall\n') and [line.partition(f'{path}: ')[2] for line in err.splitlines()] == [
        'no such file or directory: none', 'dir: not a regular file', 'no such file or directory: dir/link'], (out, err)
    status, out, err = run('ls', path, 'none', 'dir/b', 'big')
    assert (status, out) == (1, b'big\ndir/b\n') and err.count('\n') == 1, (out, err)
    status, out, err = run('stat', path, 'none', 'dir/b')
    assert status == 1 and out.startswith(b'  File: dir/b\n') and err.count('\n') == 1, (out, err)
    with open('/dev/full', 'wb') as full:
        for args in (('ls', path), ('stat', path, 'dir'), ('cat', path, 'big')):
            status, _, err = run_to(full, *args)
            assert status == 1 and 'No space left' in err and err.count('\n') == 1, (args, err)


def run_to(stdout, *args):
    done = subprocess.run([BTRKIT, *args], stdout=stdout, stderr=subprocess.PIPE,
                          check=False)
    return done.returncode, None, done.stderr.decode()


def damaged(path):
    """Of a damaged file, everything before the bad sector is printed, then the error, then the next file."""
    row = json.loads(text('fiemap', '--format', 'json', path, 'big').splitlines()[1])
    place = re.search(r'physical (\d+)', text('map-logical', path, str(row['physical'])))
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 40 * 4096 + 17)
        f.write(b'damage')
    big = bytes(i % 251 for i in range(300000))
    status, out, err = run('cat', path, 'big', 'dir/small')
    assert (status, out) == (1, big[:40 * 4096] + b'small\n'), (status, len(out))
    assert check_failure('cat', path, (status, b'', err)).startswith(
        'big: bytes 163840 to 167935 cannot be read, --zeros goes on behind them: data checksum mismatch'), err


def not_taken_along(path):
    """The directory that stands for a nested subvolume in a snapshot is listed, and a path through it gets a precise
    error."""
    script = b'subvolume create a\nsubvolume create a/b\nsubvolume snapshot a taken\n'
    subprocess.run([BTRKIT, 'edit', path], input=script, check=True)
    assert text('ls', '-i', path, 'taken') == '2 b\n'
    for command in 'ls', 'stat', 'cat', 'extract', 'fiemap':
        for to in 'taken/b', 'taken/b/x':
            assert check_failure(command, path, run(command, path, to)) == (
                f'b is an empty placeholder for a subvolume that the snapshot does not include: {to}')


def slashes(path):
    """A path that ends in a slash or a dot must be a directory."""
    for command, *options in (('ls',), ('ls', '-d'), ('stat',), ('cat',), ('fiemap',),
                              ('extract', '--tar', '/dev/null')):
        for to, how in (('dir/b/', ()), ('dir/b//.', ()), ('dir/b/x', ()), ('dir/link/', ('--no-dereference',)),
                        ('dir/b/x/y', ())):
            status, out, err = run(command, *how, *options, path, to)
            said = check_failure(command, path, (status, b'' if command == 'stat' else out, err))
            assert said == f'{to}: Not a directory', (command, to, said)
        status, out, err = run(command, *options, path, 'dir/link/')
        assert status == 1 and err.endswith(': no such file or directory: dir/link/\n'), (command, err)
    assert text('ls', path, 'dir/below/') == text('ls', path, '/dir/./below/.') == 'b\ndeep\n'


def behind_damage(scratch):
    """Of a directory with 5000 names, one lost leaf takes none from ls and extract, since the other kind of item has
    them, too; they say what is missing, and how names were found."""
    folder, path, out = f'{scratch}/many', f'{scratch}/many.img', f'{scratch}/out'
    os.makedirs(f'{folder}/d')
    os.mkdir(out)
    for k in range(5000):
        with open(f'{folder}/d/name-{k:04}', 'wb') as f:
            f.write(b'%d' % k)
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '-m', 'single', '--rootdir', folder, path)[0] == 0
    leaves = re.split(r'(?m)^leaf (?=\d+ items)', text('dump-tree', '-t', '5', path))[1:]
    inner = [leaf for leaf in leaves if leaf.count(' DIR_INDEX ') == leaf.count('\titem ')]
    leaf = inner[len(inner) // 2]
    lost = re.findall(r'name: (name-\d+)', leaf)
    indexes = [int(n) for n in re.findall(r'key \(\d+ DIR_INDEX (\d+)\)', leaf)]
    assert len(inner) > 10 and 100 < len(lost) < 400, (len(inner), len(lost))
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')
    missing = f'DIR_INDEX items {indexes[0]} to {indexes[-1]} are missing'
    found = f', {len(lost)} names without index were found by DIR_ITEM'
    for words in ('ls',), ('ls', '-R'):
        status, listed, err = run(*words, path, 'd')
        names = re.findall(r'name-\d+', listed.decode())
        assert status == 1 and err.count('\n') == 2 and missing in err and found in err, err
        assert f'{found}; none is missing' in err, err
        assert names == [f'name-{k:04}' for k in range(5000)], len(names)
    status, _, err = run('extract', '-C', out, path)
    assert status == 1 and err.count('\n') == 2 and missing in err and f'{found}; none is missing' in err, err
    assert sorted(os.listdir(f'{out}/d')) == names, len(os.listdir(f'{out}/d'))
    for name in names:
        with open(f'{out}/d/{name}', 'rb') as f:
            assert f.read() == b'%d' % int(name[5:]), name
    # With the leaf of some DIR_ITEM items, too, names of which both are lost are found by INODE_REF.
    leaf = [leaf for leaf in leaves if leaf.count(' DIR_ITEM ') == leaf.count('\titem ')][3]
    others = re.findall(r'name: (name-\d+)', leaf)
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')
    both = set(lost) & set(others)
    assert both and set(others) - both
    status, listed, err = run('ls', path, 'd')
    assert status == 1 and set(re.findall(r'name-\d+', listed.decode())) == set(names), err
    found = f', {len(lost) - len(both)} names without index were found by DIR_ITEM, {len(both)} by INODE_REF; none is'
    assert found in err and err.count('\n') == 3, err
    status, _, err = run('extract', '--tar=/dev/null', path, 'd')
    assert status == 1 and found in err, err
    # A path goes by the other kind of item, if one of them is there.
    for name in (set(others) - both).pop(), (set(lost) - both).pop():
        assert run('cat', path, f'd/{name}')[:2] == (0, b'%d' % int(name[5:])), name
    assert run('cat', path, f'd/{both.pop()}')[0] == 1


def logged(folder):
    """With a log tree, files may be newer in Linux: print a notice, which is no failure. Other commands are silent."""
    path = unpack.unpack('good-log-tree', folder, quick=True)
    for command, *args in (('ls',), ('stat', '.'), ('fiemap', '-a'), ('extract', '--tar', '/dev/null'),
                           ('inode-resolve', '256')):
        status, _, err = run(command, path, *args)
        assert status == 0 and 'log tree' in err and err.count('\n') == 1, (command, args, status, err)
    for command in 'list-subvolumes', 'du', 'check':
        assert run(command, path)[::2] == (0, ''), command


def short_inline(folder):
    """Inline data that decompresses to fewer bytes than the item says, which Linux does not read either."""
    path = unpack.unpack('good-compressed', folder, quick=True)
    fs = damages.Filesystem(path)
    real = damages.u64(fs.find(damages.FS_TREE, damages.EXTENT_DATA, 260)[3], 8)
    damages.poke_item(fs, damages.FS_TREE, damages.EXTENT_DATA, 8, struct.pack('<Q', real + 100), 260)
    fs.save()
    says = f'inline data of {real + 100} bytes decompresses to {real}, '
    for command, *options in ('cat',), ('extract', '--tar', '/dev/null'):
        status, _, err = run(command, *options, path, 'zlib-small')
        assert status and says in err, (command, status, err)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        path = f'{scratch}/fs.img'
        os.umask(0o022)
        fill(f'{scratch}/folder')
        make_filesystem(path, f'{scratch}/folder')
        lists(path)
        states(path)
        refusals(path)
        slashes(path)
        not_taken_along(path)
        logged(scratch)
        behind_damage(scratch)
        short_inline(scratch)
        damaged(path)


main()
