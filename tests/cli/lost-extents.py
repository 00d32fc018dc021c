#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""cat, extract and fiemap of files of which leaves of extents are lost, in all copies: what is behind is given, and
exactly the lost bytes are missing and named.

BTRKIT is the program under test.
"""
import io
import json
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
    """The leaves that begin with an extent of a file: their addresses, and the range of the file that is lost with
    them."""
    inode = re.match(r'\d+', run('ls', '-di', path, name)[1].decode())[0]
    found, before = [], None
    for text in re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]:
        keys = re.findall(r'item \d+ key \((\d+) (\w+) (\d+)\)', text)
        start = int(keys[0][2]) if keys[0][:2] == (inode, 'EXTENT_DATA') else size
        if before:
            found.append((*before, start))
        before = None
        if keys[0][:2] == (inode, 'EXTENT_DATA'):
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


def rows_of(path, *args):
    """The rows of a listing, without the flag of the last row, and its lost ranges, with the standard error."""
    status, out, err = run('fiemap', '--format=json', *args[:-1], path, *args[-1:])
    found, lost = [], []
    for row in map(json.loads, out.splitlines()[1:]):
        if 'lost_from' in row:
            lost.append((row['lost_from'], row['lost_from'] + row['length'], len(found)))
        else:
            found.append((row['inode'], row['logical'], row['physical'], row['length'], row['flags']))
    assert status == bool(err), (status, err)
    return found, lost, err


def check_rows(path, name, before, ranges, leaves_lost):
    """Of the listing @before, exactly the rows in lost leaves are missing."""
    wanted = [row for row in before if not any(start <= row[1] < end for start, end in ranges)]
    for option in [name], ['-a', '']:
        if option[1:]:
            done = run('fiemap', '-a', '--format=json', path)
            mine = [json.loads(line) for line in done[1].splitlines()[1:] if f'"path":"{name}"'.encode() in line]
            found = [(row['inode'], row['logical'], row['physical'], row['length'], row['flags']) for row in mine
                     if 'lost_from' not in row]
            lost, err = [(row['lost_from'], row['lost_from'] + row['length']) for row in mine if 'lost_from' in row], ''
            assert done[0] == 1 and all(f'extents of bytes {start} to {end - 1} are missing' in done[2]
                                        for start, end in lost), done[2]
        else:
            found, lost, err = rows_of(path, name)
            assert [len([row for row in found if row[1] < start]) for start, _, _ in lost] == [n for *_, n in lost]
            lost = [some[:2] for some in lost]
            assert err.count('\n') == leaves_lost, err
            assert all(f'; extents of bytes {start} to {end - 1} are missing' in err for start, end in lost), err
        assert len(lost) == leaves_lost, (lost, leaves_lost)
        covered = sorted(lost)
        assert covered[0][0] == ranges[0][0] and covered[-1][1] == ranges[-1][1], (covered, ranges)
        assert all(any(start <= one[0] and one[1] <= end for start, end in ranges) for one in covered), covered
        # The last row that is known is not called the last one if the end is lost.
        last = [] if ranges[-1][1] < before[-1][1] else [(*row[:4], row[4] & ~1) for row in wanted[-1:]]
        assert found == wanted[:len(wanted) - len(last)] + last, (name, option, len(found), len(wanted))
    status, out, err = run('stat', '--format=json', path, name)
    assert status == 1 and err.count('\n') == leaves_lost, err
    assert all(f'; extents of bytes {start} to {end - 1} are missing' in err for start, end in covered), err
    extents = json.loads(out.splitlines()[1])['extents']
    assert extents['regular'] == len(wanted) and extents['shared_bytes'] == 0, extents
    for form in 'text', 'tsv':
        status, out, err = run('fiemap', f'--format={form}', path, name)
        assert status == 1 and err.count('\n') == leaves_lost and b'extents found' not in out, err


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
    """Leaves in the middle, then two more that are neighbours, then the last one, with what follows the file there."""
    for name in 'dense', 'sparse':
        check(path, scratch, name, files[name], [])
        before, lost, _ = rows_of(path, name)
        assert len(before) == {'sparse': SPARSE, 'dense': DENSE}[name] and not lost
        count = 0
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
            count += len(some)
            check(path, scratch, name, files[name], merged)
            check_rows(path, name, before, merged, count)


def lost_inodes(folder, path):
    """Of a leaf of small files, all inodes that are missing are named. Each file is listed that is not among them."""
    os.makedirs(folder)
    for k in range(400):
        with open(f'{folder}/{k}', 'wb') as f:
            f.write(b'%d' % k * 200)
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', '--rootdir', folder, path)[0] == 0
    before = {row[0] for row in rows_of(path, '-a', '--noscan')[0]}
    texts = re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]
    keys = [re.findall(r'item \d+ key \((\d+) (\w+) (\d+)\)', text) for text in texts]
    n = next(i for i in range(len(texts) // 2, len(texts)) if len(keys[i - 1]) > 2)
    lose(path, int(texts[n].split()[0]))
    first = int(keys[n][0][0]) + (keys[n][0][1] != 'INODE_ITEM')
    last = int(keys[n + 1][0][0]) - (keys[n + 1][0][1] == 'INODE_ITEM')
    found, lost, err = rows_of(path, '-a', '--noscan')
    assert err.count('\n') == 1 and f'; inodes {first} to {last} are missing' in err, (err, first, last)
    assert last - first > 5 and {row[0] for row in found} >= before - set(range(first - 1, last + 1)), (first, last)
    assert not {row[0] for row in found} & set(range(first, last + 1))
    assert len(lost) == (keys[n][0][1] in ('INODE_REF', 'EXTENT_DATA'))


def lost_extent_tree(path, folder):
    """All rows are there without leaves of the extent tree, and without its root; what is not known is said."""
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', '--rootdir', folder, path)[0] == 0
    assert run('edit', path, 'clone', 'sparse', 'copy')[0] == 0
    before = rows_of(path, 'sparse')[0]
    texts = re.split(r'(?m)^(?:leaf|node) (?=\d+ )', run('dump-tree', '-t', '2', path)[1].decode())[1:]
    inner = [text.split()[0] for text in texts if text.count('\titem ') == text.count(' EXTENT_ITEM ') > 0]
    assert len(inner) > 2 and all(row[4] & 0x2000 for row in before), len(inner)
    for block, some in ((inner[1], True), (texts[0].split()[0], False)):
        lose(path, block)
        found, _, err = rows_of(path, 'sparse')
        assert [row[:4] for row in found] == [row[:4] for row in before], len(found)
        maybe = [row for row in found if row[4] & 0x40000000]
        assert maybe and not any(row[4] & 0x2000 for row in maybe) and some == (len(maybe) < len(found)), len(maybe)
        assert all(row[4] & 0x2000 for row in found if row not in maybe)
        assert err.count('\n') == 1 and f'; whether {len(maybe)} extents are shared is not known' in err, err
        assert run('fiemap', path, 'sparse')[1].count(b'maybe_shared') == len(maybe)
        assert [row for row in rows_of(path, '-a', '--noscan')[0] if row[0] == before[0][0]] == found


def owners_of(path, *args):
    """The owners of the extent at each offset, and the standard error."""
    status, out, err = run('fiemap', '--owners', '--format=json', *args[:-1], path, *args[-1:])
    rows = map(json.loads, out.splitlines()[1:])
    assert status == bool(err), (status, err)
    return {(row['inode'], row['logical']): sorted((owner['root'], owner['inode'], owner['offset'])
                                                   for owner in row['owners'])
            for row in rows if 'lost_from' not in row}, err


def lost_owners(path, folder):
    """With --owners, a file is listed to its end although leaves are lost that say who refers to its extents: first one
    of the other file that does, then one of the extent tree, then the whole extent tree. One line says of how many
    extents something is missing."""
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', '--rootdir', folder, path)[0] == 0
    assert run('edit', path, 'clone', 'sparse', 'copy')[0] == 0
    before, err = owners_of(path, 'sparse')
    assert len(before) == SPARSE and all(len(owners) == 2 for owners in before.values()) and not err, err
    of_copy = [leaf for leaf in leaves(path, 'copy', 2 * SPARSE * BLOCK) if leaf[2] - leaf[1] > 100 * BLOCK][2]
    lose(path, of_copy[0])
    found, err = owners_of(path, 'sparse')
    # The extent tree names the other file and the offset, so only where the range ends there is not known.
    count = sum(of_copy[1] <= offset < of_copy[2] for _, offset in before)
    assert found == before and count > 20, (len(found), count)
    assert err.count('\n') == 1 and f'; owners of {count} extents are missing' in err, (err, count)
    assert re.search(r'; inode \d+ of subvolume 5 refers to the extent, but which of its bytes do is not', err), err
    assert run('fiemap', '--owners', path, 'sparse')[1].count(b'\troot ') == 2 * SPARSE
    texts = re.split(r'(?m)^(?:leaf|node) (?=\d+ )', run('dump-tree', '-t', '2', path)[1].decode())[1:]
    inner = [text.split()[0] for text in texts if text.count('\titem ') == text.count(' EXTENT_ITEM ') > 0]
    for block, some in ((inner[1], True), (texts[0].split()[0], False)):
        lose(path, block)
        found, err = owners_of(path, 'sparse')
        none = [key for key in found if not found[key]]
        assert list(found) == list(before) and none and some == (len(none) < len(found)), (len(found), len(none))
        assert all(found[key] == before[key] for key in found if key not in none)
        said = re.search(r'; owners of (\d+) extents are missing', err)
        assert err.count('\n') == 2 and int(said[1]) >= len(none), (err, len(none))
        everything, err = owners_of(path, '-a', '--noscan')
        assert {key: owners for key, owners in everything.items() if key in before} == found, err


def lost_data(path, scratch):
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
        lost_data(path, scratch)
        lost_leaves(path, scratch, files)
        lost_extent_tree(path, f'{scratch}/folder')
        lost_owners(path, f'{scratch}/folder')
        lost_inodes(f'{scratch}/small', path)


main()
