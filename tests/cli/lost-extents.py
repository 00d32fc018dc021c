#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""cat and extract of files of which leaves of extents are lost, in all copies: what is behind is given, and exactly the
lost bytes are missing and named.

BTRKIT is the program under test.
"""
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from tool import BTRKIT, run

BLOCK = 4096
SPARSE, DENSE = 2000, 500  # extents


def block(k):
    return (b'%d;' % k * BLOCK)[:BLOCK]


def fill(folder):
    """A file of extents with holes between them, and one without holes, of extents that are not adjacent on disk."""
    os.makedirs(folder)
    with open(f'{folder}/sparse', 'wb') as f:
        for k in range(SPARSE):
            f.seek(2 * k * BLOCK)
            f.write(block(k))
        f.truncate((2 * SPARSE + 5) * BLOCK + 100)
    with open(f'{folder}/after', 'wb') as f:
        f.write(b'after')
    # Its space is used later.
    with open(f'{folder}/filler', 'wb') as f:
        f.write(b'filler' * (2 << 20))


def make(folder, path):
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', '--rootdir', folder, path)[0] == 0
    assert run('edit', path, 'rm', 'filler')[0] == 0
    dense = b''.join(block(k)[:BLOCK] for k in range(DENSE))
    script = ''
    for k in range(DENSE):
        with open(f'{path}.{k}', 'wb') as f:
            f.write(block(k))
    for k in reversed(range(DENSE)):
        script += f'write dense {k * BLOCK} {path}.{k}\n'
    with open(f'{path}.none', 'wb'):
        pass
    subprocess.run([BTRKIT, 'edit', path], input=f'put {path}.none dense\n{script}'.encode(), check=True)
    with open(f'{folder}/sparse', 'rb') as f:
        return {'sparse': f.read(), 'dense': dense}


def leaves(path, name, size):
    """The leaves that have nothing but extents of a file: their addresses, and the range of the file that is lost with
    them."""
    inode = re.match(r'\d+', run('ls', '-di', path, name)[1].decode())[0]
    found, before = [], None
    for text in re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]:
        keys = re.findall(r'item \d+ key \((\d+) (\w+) (\d+)\)', text)
        start = int(keys[0][2]) if keys[0][:2] == (inode, 'EXTENT_DATA') else size
        if before:
            found.append((*before, start))
        before = None
        if all(key[:2] == (inode, 'EXTENT_DATA') for key in keys):
            before = int(text.split()[0]), start
    return found


def lose(path, logical):
    places = re.findall(rb'physical (\d+)', run('map-logical', path, logical)[1])
    assert len(places) == 2, places
    with open(path, 'r+b') as f:
        for place in places:
            f.seek(int(place) + 4000)
            f.write(b'damage')


def check_lines(err, path, command, name, ranges):
    words = [f'btrkit {command}: {path}: {name}: bytes {start} to {end - 1} cannot be read: ' for start, end in ranges]
    lines = err.splitlines()
    assert len(lines) == len(words) and all(map(str.startswith, lines, words)), (err, words)


def check(path, scratch, name, whole, ranges):
    """@ranges of the file are lost."""
    left = bytearray(whole)
    for start, end in ranges:
        left[start:end] = bytes(end - start)
    first = ranges[0][0] if ranges else len(whole)
    status, out, err = run('cat', path, name, 'after')
    assert (status, out) == (bool(ranges), whole[:first] + b'after'), (status, len(out))
    # It stops at the first leaf that is lost, and does not look for others.
    assert err.count('\n') == bool(ranges), err
    if ranges:
        said = re.search(rf' {name}: bytes {first} to (\d+) cannot be read, --zeros goes on behind them: ', err)
        assert said and first < int(said[1]) < ranges[0][1], err
    status, out, err = run('cat', '--zeros', path, name, 'after')
    assert (status, out) == (bool(ranges), left + b'after'), (status, len(out))
    check_lines(err, path, 'cat', name, ranges)
    target = f'{scratch}/out'
    os.mkdir(target)
    status, out, err = run('extract', '-C', target, path, name)
    assert (status, out) == (bool(ranges), b''), (status, err)
    check_lines(err, path, 'extract', name, ranges)
    with open(f'{target}/{name}', 'rb') as f:
        assert f.read() == left, name
        for start, _ in ranges:
            assert os.lseek(f.fileno(), start, os.SEEK_HOLE) == start
    shutil.rmtree(target)
    status, out, err = run('extract', '--tar', '-', path, name)
    if 'libarchive' in err:
        return
    assert status == bool(ranges), (status, err)
    check_lines(err, path, 'extract', name, ranges)
    with tarfile.open(fileobj=io.BytesIO(out)) as archive:
        assert archive.extractfile(name).read() == left, name


def lost_leaves(path, scratch, files):
    """Leaves in the middle, then two more that are neighbours, then the last one."""
    for name in 'sparse', 'dense':
        check(path, scratch, name, files[name], [])
        all_leaves, ranges = leaves(path, name, len(files[name])), []
        assert len(all_leaves) > (6 if name == 'sparse' else 1), all_leaves
        chosen = [[5], [2, 3], [len(all_leaves) - 1]] if name == 'sparse' else [[0], [1]]
        for some in chosen:
            for number in some:
                lose(path, all_leaves[number][0])
            ranges.append((all_leaves[some[0]][1], all_leaves[some[-1]][2]))
            merged = []
            for start, end in sorted(ranges):
                if merged and merged[-1][1] == start:
                    start = merged.pop()[0]
                merged.append((start, end))
            check(path, scratch, name, files[name], merged)


def lost_data(path, scratch, files):
    """Single sectors, and sectors in a row, are lost likewise."""
    name, whole = 'big', bytes(i % 251 for i in range(3000000))
    with open(f'{path}.big', 'wb') as f:
        f.write(whole)
    assert run('edit', path, 'put', f'{path}.big', name)[0] == 0
    row = run('fiemap', '--format=tsv', path, name)[1].split(b'\t')
    place = re.search(rb'physical (\d+)', run('map-logical', path, row[3].decode())[1])
    sectors = [0, 7, 8, 9, 254, 255, 256, 257, len(whole) // BLOCK]
    with open(path, 'r+b') as f:
        for n in sectors:
            f.seek(int(place[1]) + n * BLOCK + 17)
            f.write(b'damage')
    ranges = [(0, BLOCK), (7 * BLOCK, 10 * BLOCK), (254 * BLOCK, 258 * BLOCK), (sectors[-1] * BLOCK, len(whole))]
    check(path, scratch, name, whole, ranges)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        path = f'{scratch}/fs.img'
        fill(f'{scratch}/folder')
        files = make(f'{scratch}/folder', path)
        lost_leaves(path, scratch, files)
        lost_data(path, scratch, files)


main()
