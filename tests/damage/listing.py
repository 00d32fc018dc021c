#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit fiemap` on filesystems of which one tree block after the other is lost, in all copies: each file is listed
that does not need the block, others in part, and of no row is more said than is known. Then on one with an invalid
extent in one file.

    listing.py IMAGES NAME...

BTRKIT is the program under test."""
import json
import re
import subprocess
import sys
import tempfile

from damages import CHUNK_TREE, EXTENT_DATA, EXTENT_TREE, FIRST_FREE, HEADER, INODE_REF, ITEM, KEY, ROOT_TREE, u32, u64
from usage import BTRKIT, Trees, overwrite, reach

INODE_ITEM, INODE_EXTREF = 1, 13
SHARED, MAYBE_SHARED = 0x2000, 0x40000000


def fiemap(path, *args):
    done = subprocess.run([BTRKIT, 'fiemap', '--noscan', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith(f'btrkit fiemap: {path}: ') for line in lines), lines
    assert done.returncode == bool(lines), (done.returncode, lines)
    return done.stdout.splitlines(), lines


def by_file(rows):
    files = {}
    for row in rows:
        root, inode, _ = row.split(b'\t', 2)
        files.setdefault((int(root), int(inode)), []).append(row)
    return files


def listed(path):
    """The rows of each file, which are the same in every format, and the errors."""
    rows, lines = fiemap(path, '-av', '--format=tsv', path)
    objects, same = fiemap(path, '-av', '--format=json', path)
    objects = [row for row in map(json.loads, objects) if 'lost_from' not in row]
    assert same == lines and len(objects) == (len(rows) + 1 if rows or not lines else 0), (lines, objects)
    text, same = fiemap(path, '-av', path)
    assert same == lines
    # A file of which only some rows are listed has no number of extents.
    begun = sum(line.startswith(b'File size of ') for line in text)
    ended = sum(line.endswith((b' extent found', b' extents found')) for line in text)
    files = by_file(rows)
    assert begun >= len(files) and begun - len(lines) <= ended <= begun and (lines or ended == len(files)), text
    return files, lines


def facts(trees):
    """Of each subvolume: what was found of each inode: its items, their blocks, and the inode of its first parent."""
    found = {}
    for tree, root in trees.roots(None):
        if tree != 5 and not 256 <= tree < 1 << 63:
            continue
        inodes = found.setdefault(tree, {})
        stack = [(root, ())]
        while stack:
            logical, above = stack.pop()
            above += (logical,)
            children, items = trees.node(logical)
            stack += [(child, above) for child in reversed(children)]
            for key, data in items:
                if key[1] in (INODE_ITEM, INODE_REF, INODE_EXTREF, EXTENT_DATA):
                    blocks, parents, extents = inodes.setdefault(key[0], (set(), [], set()))
                    blocks.update(above)
                    if key[1] == INODE_REF:
                        parents.append(key[2])
                    if key[1] == EXTENT_DATA and data[20]:
                        extents.add(u64(data, 21))
    return found


def needs(inodes, inode):
    """All blocks that the rows of a file come from, except for those of the extent tree."""
    needed = set(inodes[inode][0])
    while inodes[inode][1] and inodes[inode][1][0] != FIRST_FREE:
        inode = inodes[inode][1][0]
        needed |= inodes[inode][0]
    return needed


def by_block(rows):
    """Address and flags of each block, since other rows are merged if it is not known what is shared; the last row of
    all; and the path."""
    found = {}
    for row in rows:
        _, _, logical, physical, length, flags, path = row.split(b'\t')
        for at in range(0, int(length), 4096):
            found[int(logical) + at] = int(physical) + at, int(flags, 16) & ~1, path
    return found, int(rows[-1].split(b'\t')[5], 16) & 1


def check_sharing(logical, whole, files):
    """Each row is as it was, or says of which extents it is not known whether they are shared. Returns the number of
    such files."""
    unknown = 0
    for file, rows in files.items():
        (found, last), (wanted, whole_last) = by_block(rows), by_block(whole[file])
        assert found.keys() == wanted.keys() and last == whole_last == 1, (logical, file, rows)
        for at, (physical, flags, path) in wanted.items():
            if found[at][1] & MAYBE_SHARED:
                flags = flags & ~SHARED | MAYBE_SHARED
            assert found[at] == (physical, flags, path), (logical, file, rows)
        unknown += any(flags & MAYBE_SHARED for _, flags, _ in found.values())
    return unknown


def check_parts(logical, whole, files):
    """Of files that need the lost block, some rows are there, perhaps without the path."""
    for file, rows in files.items():
        found, wanted = by_block(rows)[0], by_block(whole[file])[0]
        for at, (physical, flags, path) in found.items():
            assert (physical, path or wanted[at][2]) == wanted[at][::2], (logical, file, rows)
            assert flags in (wanted[at][1], wanted[at][1] & ~SHARED | MAYBE_SHARED), (logical, file, rows)


def check(trees, logical, whole, known, has):
    files, lines = listed(trees.path)
    if has & {CHUNK_TREE, ROOT_TREE}:
        check_sharing(logical, whole, files)
    elif EXTENT_TREE in has:
        assert files.keys() == whole.keys(), (logical, whole.keys() ^ files.keys())
        several = [re.search(r'; whether \d+ extents? of (\d+) files (?:is|are) shared', line) for line in lines]
        said = sum(int(each[1]) if each else 1 for each in several)
        assert said == check_sharing(logical, whole, files) and (not lines or len(lines) < said or said == 1), lines
    else:
        wanted = {(tree, inode) for tree, inode in whole if logical not in needs(known[tree], inode)}
        assert files.keys() >= wanted and all(whole[file] == files[file] for file in wanted), logical
        check_parts(logical, whole, {file: rows for file, rows in files.items() if file not in wanted})
        assert bool(lines) == bool(has & known.keys()), (has, lines)


def each_block(path):
    trees = Trees(path)
    known, (whole, lines) = facts(trees), listed(path)
    assert whole and not lines
    trees_of = {}
    for tree, (blocks, _) in reach(trees, None).items():
        for logical in blocks:
            trees_of.setdefault(logical, set()).add(tree)
    for logical, has in trees_of.items():
        block = bytes(trees.block(logical))
        overwrite(trees, logical, bytes(trees.nodesize))
        check(trees, logical, whole, known, has)
        overwrite(trees, logical, block)
    return len(trees_of)


def invalid_extent(path):
    """The last extent of a file between others is of no type."""
    trees = Trees(path)
    whole, _ = listed(path)
    files = [file for file in whole if file[0] == 5]
    bad = next(file for file in files[1:] if len(whole[file]) > 1)
    logical = trees.root(5)
    block = trees.block(logical)
    while block[100]:
        keys = [u64(block, HEADER + i * 33) for i in range(u32(block, 96))]
        logical = trees.children(block)[max(i for i, key in enumerate(keys) if not i or key <= bad[1])]
        block = trees.block(logical)
    slot = max(i for i in range(u32(block, 96)) if trees.item(block, i)[0][:2] == (bad[1], EXTENT_DATA))
    block[HEADER + u32(block, HEADER + slot * ITEM + KEY) + 20] = 9
    trees.put(logical, block)
    trees.save()
    files, lines = listed(path)
    assert files == {file: rows for file, rows in whole.items() if file != bad}, bad
    name = whole[bad][0].split(b'\t')[6].decode()
    assert len(lines) == 1 and lines[0].startswith(f'btrkit fiemap: {path}: {name}: '), lines
    paths = [whole[file][0].split(b'\t')[6].decode() for file in list(files)[:2]]
    good = fiemap(path, path, *paths)
    for args in [], ['--format=tsv'], ['--format=json'], ['--owners']:
        good, rows = fiemap(path, *args, path, *paths), fiemap(path, *args, path, paths[0], name, paths[1])
        assert not good[1] and rows[1] == lines, (args, rows)
        if args != ['--owners']:
            assert rows[0] == good[0], (args, rows, good)


def main(images, *names):
    sys.path.insert(0, images)
    import unpack
    for name in names:
        with tempfile.TemporaryDirectory(prefix='btrkit-listing-') as folder:
            path = unpack.unpack(name, folder, quick=True)
            number = each_block(path)
            if name == names[0]:
                invalid_extent(path)
        print(f'{name}: {number} tree blocks, each lost once')


if __name__ == '__main__':
    main(*sys.argv[1:])
