#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Directories whose inodes and INODE_REF items are lost, with the leaf that has them: whoever walks enters them by the
entries of their parents, and whoever names files goes through them.

BTRKIT is the program under test.
"""
import json
import os
import re
import struct
import tarfile
import tempfile

from lost_leaves import copy, edit, leaves, lose, number
from tool import crc32c, run

DIRS, FILES = 12, 80
LOST = 3, 7


def name(j):
    """A long name, so that the entries of a directory need several leaves."""
    return f'name-{j:03}-' + 'x' * 150


def make(path):
    """Files each of which has a name in every directory, and directories below these."""
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    with open(f'{path}.host', 'wb') as f:
        f.write(b'inline')
    assert run('mkfs', '-q', '-m', 'single', path)[0] == 0
    script = [f'put {path}.host file-{j:03}' for j in range(FILES)]
    script += [f'mkdir dir-{k:02}' for k in range(DIRS)]
    script += [f'ln file-{j:03} dir-{k:02}/{name(j)}' for k in range(DIRS) for j in range(FILES)]
    script += [f'mkdir dir-{k:02}/below' for k in range(DIRS)] + [f'mkdir dir-{k:02}/below/last' for k in range(DIRS)]
    edit(path, script)


def lose_directories(path):
    """Lose the leaves with the inodes and references of some directories, and return their numbers."""
    inodes = [number(path, f'dir-{k:02}') for k in LOST]
    for inode in inodes:
        leaf = next(leaf for leaf in leaves(path) if f'key ({inode} INODE_REF ' in leaf)
        assert f'key ({inode} INODE_ITEM ' in leaf and 'DIR_INDEX' not in leaf.split(f'key ({inode} INODE_REF')[1]
        lose(path, leaf)
    return inodes


def walks(whole, path):
    copy(whole, path)
    wanted = run('ls', '-R', path)
    assert wanted[::2] == (0, '')
    gone = lose_directories(path)
    status, out, err = run('ls', '-R', path)
    assert status == 1 and out == wanted[1], err
    for inode in gone:
        assert f'; whether directory {inode} has this name alone is not known, tree 5' in err, err
        assert f'; inode {inode} is missing, tree 5' in err, err
    assert err.count('\n') == 8, err
    target = f'{path}.out'
    os.mkdir(target)
    for args in ['-C', target], [f'--tar={path}.tar']:
        status, _, err = run('extract', *args, path)
        assert status == 1 and err.count('\n') == 8, err
    with tarfile.open(f'{path}.tar') as t:
        members = {m.name.rstrip('/'): m for m in t}
    for k in range(DIRS):
        mode = 0o700 if k in LOST else 0o755
        assert members[f'dir-{k:02}'].isdir() and members[f'dir-{k:02}'].mode == mode, k
        assert os.stat(f'{target}/dir-{k:02}').st_mode & 0o777 == mode, k
        assert members[f'dir-{k:02}/below/last'].isdir() and os.path.isdir(f'{target}/dir-{k:02}/below/last'), k
        for j in range(FILES):
            with open(f'{target}/dir-{k:02}/{name(j)}', 'rb') as f:
                assert f.read() == b'inline', (k, j)
            assert members[f'dir-{k:02}/{name(j)}'].islnk(), (k, j)


def forget_bytes(path, inode):
    """Set the count of bytes of an inode to 0, and correct the checksum of its leaf."""
    leaf = next(leaf for leaf in leaves(path) if f'key ({inode} INODE_ITEM 0)' in leaf)
    place = int(re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])[1])
    with open(path, 'r+b') as f:
        f.seek(place)
        block = bytearray(f.read(16384))
        for at in range(101, 101 + 25 * int(leaf.split()[2]), 25):
            number_of, kind = struct.unpack_from('<QB', block, at)
            if (str(number_of), kind) == (inode, 1):
                struct.pack_into('<Q', block, 101 + struct.unpack_from('<I', block, at + 17)[0] + 24, 0)
        struct.pack_into('<I', block, 0, crc32c(block[32:]))
        f.seek(place)
        f.write(block)


def paths(whole, path):
    """check, du --paths and list-subvolumes name what is below lost directories."""
    host = f'{path}.host'
    with open(host, 'wb') as f:
        f.write(b'data' * 20000)
    copy(whole, path)
    edit(path, [f'put {host} dir-{k:02}/below/last/data' for k in LOST]
         + [f'subvolume create dir-{k:02}/below/sub' for k in LOST] + [f'put {host} dir-{LOST[0]:02}/below/sub/in'])
    before = run('du', '--paths', '--format=json', path)
    assert before[::2] == (0, ''), before[2]
    inodes = [number(path, f'dir-{k:02}/below/last/data') for k in LOST]
    lose_directories(path)

    def named(answer):
        rows = [json.loads(line) for line in answer[1].splitlines()]
        return {row['path'] for row in rows if isinstance(row.get('path'), str)}
    after = run('du', '--paths', '--format=json', path)
    assert after[0] == 1 and named(after) == named(before), named(before) ^ named(after)
    wanted = {f'dir-{k:02}/below/sub' for k in LOST}
    status, out, err = run('list-subvolumes', '--format=json', path)
    assert wanted <= named((status, out)), (status, err)
    for inode in inodes:
        forget_bytes(path, inode)
    status, out, err = run('check', '--format=json', path)
    assert status and {f'dir-{k:02}/below/last/data' for k in LOST} <= named((status, out)), (out, err)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        whole = f'{scratch}/whole.img'
        make(whole)
        walks(whole, f'{scratch}/walks.img')
        paths(whole, f'{scratch}/paths.img')


if __name__ == '__main__':
    main()
