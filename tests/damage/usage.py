#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit du` on filesystems that have lost one tree block after the other, in all copies, by zeros or a flipped bit:
what is not below the block is reported as before, the lost block is named with its owners, and the exit status is 1.
The expected numbers are computed here from the remaining trees.

    usage.py IMAGES NAME...

BTRKIT is the program under test."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from damages import (CHUNK_TREE, EXTENT_DATA, EXTENT_ITEM, EXTENT_TREE, HEADER, KEY, METADATA_ITEM, ROOT_ITEM,
                     ROOT_TREE, Filesystem, poke, u32, u64)

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
DATA_RELOC_TREE = 2 ** 64 - 9
NAMED = 3


class Trees(Filesystem):
    def __init__(self, path):
        super().__init__(path)
        self.known = {}

    def node(self, logical):
        """Return the children and items of a block."""
        if logical not in self.known:
            block = self.block(logical)
            self.known[logical] = ((self.children(block), []) if block[100] else
                                   ([], [self.item(block, i) for i in range(u32(block, 96))]))
        return self.known[logical]

    def below(self, logical, lost):
        """Generate each block from here down with its items; the lost block has none."""
        children, items = ([], []) if logical == lost else self.node(logical)
        yield logical, items
        for child in children:
            yield from self.below(child, lost)

    def roots(self, lost):
        yield ROOT_TREE, self.root(ROOT_TREE)
        yield CHUNK_TREE, self.root(CHUNK_TREE)
        for _, items in self.below(self.root(ROOT_TREE), lost):
            for key, item in items:
                if key[1] == ROOT_ITEM:
                    yield key[0], u64(item, 176)

    def described(self, lost):
        """Return the tree blocks in the extent tree; None without it."""
        root = dict(self.roots(lost)).get(EXTENT_TREE)
        return root and {key[0] for _, items in self.below(root, lost) for key, _ in items
                         if key[1] in (EXTENT_ITEM, METADATA_ITEM)}


def is_owner(tree):
    return tree in (5, DATA_RELOC_TREE) or 256 <= tree < 1 << 63


def reach(trees, lost):
    """Map each tree to its blocks and data extents {address: length}."""
    found = {}
    for tree, root in trees.roots(lost):
        blocks, extents = found.setdefault(tree, (set(), {}))
        for logical, items in trees.below(root, lost):
            blocks.add(logical)
            if is_owner(tree):
                extents.update((u64(item, 21), u64(item, 29)) for key, item in items
                               if key[1] == EXTENT_DATA and item[20] and u64(item, 21))
    return found


def reckon(trees, lost, whole):
    """Return what du must report: metadata and data, referenced and exclusive, for each owner. @whole: reach() without
    loss"""
    answer, found = {}, reach(trees, lost)
    owners = {tree: of for tree, of in found.items() if is_owner(tree)}
    for tree, (blocks, extents) in owners.items():
        others = [of for other, of in owners.items() if other != tree]
        alone = blocks.difference(*(of[0] for of in others))
        own = extents.keys() - set().union(*(of[1] for of in others))
        answer[tree] = (len(blocks) * trees.nodesize, sum(extents.values()), len(alone) * trees.nodesize,
                        sum(extents[one] for one in own))
    # For the other trees, du counts the blocks in the extent tree; if that is damaged, also those found in the trees.
    known, everything = trees.described(lost), trees.described(None)
    blocks = set().union(*(of[0] for tree, of in whole.items() if not is_owner(tree))) & (known or set())
    if known != everything:
        blocks |= set().union(*(of[0] for tree, of in found.items() if not is_owner(tree)))
    size = len(blocks) * trees.nodesize
    answer['filesystem'] = (size, 0, size, 0)
    return answer


def du(path):
    done = subprocess.run([BTRKIT, 'du', '--noscan', '--format=json', path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    told = {}
    for row in map(json.loads, done.stdout.splitlines()[1:]):
        if 'owner' in row:
            name = {'filesystem': 'filesystem', 'data-relocation': DATA_RELOC_TREE}.get(row['owner'], row.get('id'))
            told[name] = (row['referenced']['metadata'], row['referenced']['data'], row['exclusive']['metadata'],
                          row['exclusive']['data'])
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith(f'btrkit du: {path}: ') for line in lines), lines
    return done.returncode, told, lines


def check_lines(lines, lost, has):
    """@has: the trees that contain the lost block"""
    assert f', block {lost}, ' in lines[0], (lost, lines)
    if len(has) == 1:
        assert f', tree {has[0]}, ' in lines[0], (has, lines)
    else:
        named = re.search(r'; of trees ([\d, ]+?)(?: and (\d+) more)?, block', lines[0])
        assert named and named[1] == ', '.join(map(str, has[:NAMED])), (has, lines)
        assert int(named[2] or 0) == max(0, len(has) - NAMED), (has, lines)
    # If it was in the root tree, trees that are missing are also listed, without naming the block again.
    assert sum(f', block {lost}, ' in line for line in lines) == 1, lines
    assert has[0] == ROOT_TREE or len(lines) == 1, lines


def check(trees, lost, whole):
    code, told, lines = du(trees.path)
    has = sorted(tree for tree, of in whole.items() if lost in of[0])
    if has[0] == CHUNK_TREE:
        assert code == 1 and not told and len(lines) == 1 and f', tree {CHUNK_TREE}, ' in lines[0], (code, lines)
        return
    assert told == reckon(trees, lost, whole), (lost, told, reckon(trees, lost, whole))
    # The contents of the other trees are not needed.
    needed = has[0] in (ROOT_TREE, EXTENT_TREE) or is_owner(has[0])
    assert code == needed and bool(lines) == needed, (lost, has, code, lines)
    if needed:
        check_lines(lines, lost, has)


def overwrite(trees, logical, block):
    with open(trees.path, 'r+b') as f:
        for at in trees.copies(logical):
            f.seek(at)
            f.write(block)


def each_block(path):
    trees = Trees(path)
    whole = reach(trees, None)
    code, told, lines = du(path)
    assert not code and not lines and told == reckon(trees, None, whole), (code, lines, told)
    lost = sorted(set().union(*(of[0] for of in whole.values())))
    levels = set()
    for i, logical in enumerate(lost):
        block = bytes(trees.block(logical))
        levels |= {(tree, block[100]) for tree, of in whole.items() if logical in of[0]}
        at = 50 + i * 77 % (trees.nodesize - 100)
        overwrite(trees, logical, bytes(trees.nodesize) if i % 2 else
                  block[:at] + bytes([block[at] ^ 1 << i % 8]) + block[at + 1:])
        check(trees, logical, whole)
        overwrite(trees, logical, block)
    return len(lost), levels


def nowhere(path):
    """A pointer to an address without a tree block: it is missing in the extent tree and unreadable, but reported
    once."""
    trees = Trees(path)
    owned = (key[0] for key, _ in trees.items(trees.root(ROOT_TREE)) if key[1] == ROOT_ITEM and is_owner(key[0]))
    root = next((trees.root(tree) for tree in owned if trees.block(trees.root(tree))[100]), None)
    if not root:
        return
    start, length, _ = trees.chunks[-1]
    poke(trees, root, HEADER + KEY, struct.pack('<Q', start + length - trees.nodesize))
    trees.save()
    code, _, lines = du(path)
    assert code == 1 and len(lines) == 1 and 'tree block is missing in the extent tree' in lines[0], (code, lines)


def main(images, *names):
    sys.path.insert(0, images)
    import unpack
    seen = set()
    for name in names:
        with tempfile.TemporaryDirectory(prefix='btrkit-usage-') as folder:
            path = unpack.unpack(name, folder, quick=True)
            number, levels = each_block(path)
            nowhere(path)
        print(f'{name}: {number} tree blocks, each lost once')
        seen |= levels
    wanted = {(ROOT_TREE, 0), (ROOT_TREE, 1), (EXTENT_TREE, 0), (EXTENT_TREE, 1), (CHUNK_TREE, 0)}
    assert wanted <= seen and {0, 1, 2} <= {level for tree, level in seen if is_owner(tree)}, seen


if __name__ == '__main__':
    main(*sys.argv[1:])
