#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare dump-tree with a selection to a filter on the complete dump, for random selections of committed images.
Usage: dump-select.py [SELECTIONS [SEED]]"""
import dataclasses
import json
import os
import random
import re
import sys
import tempfile

import compare
from compare import BTRKIT, must, without_banner

IMAGES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'images')
NAMES = ('good-default', 'good-generations', 'good-levels', 'good-clones', 'good-log-tree', 'good-mixed')
MAX = (1 << 64) - 1

import unpack

OBJECTIDS = {name: number for number, name in enumerate(
    'ROOT_TREE EXTENT_TREE CHUNK_TREE DEV_TREE FS_TREE ROOT_TREE_DIR CSUM_TREE QUOTA_TREE UUID_TREE FREE_SPACE_TREE '
    'BLOCK_GROUP_TREE'.split(), 1)}
OBJECTIDS |= {'-1': MAX, 'DEV_ITEMS': 1, 'FIRST_CHUNK_TREE': 256, 'DEV_STATS': 0}
OBJECTIDS |= {name: MAX - n for n, name in enumerate(
    'BALANCE ORPHAN TREE_LOG LOG_FIXUP TREE_RELOC DATA_RELOC_TREE EXTENT_CSUM FREE_SPACE FREE_INO'.split(), 3)}
TYPES = {'INODE_ITEM': 1, 'INODE_REF': 12, 'INODE_EXTREF': 13, 'XATTR_ITEM': 24, 'ORPHAN_ITEM': 48, 'DIR_LOG_ITEM': 60,
         'DIR_LOG_INDEX': 72, 'DIR_ITEM': 84, 'DIR_INDEX': 96, 'EXTENT_DATA': 108, 'EXTENT_CSUM': 128, 'ROOT_ITEM': 132,
         'ROOT_BACKREF': 144, 'ROOT_REF': 156, 'EXTENT_ITEM': 168, 'METADATA_ITEM': 169, 'EXTENT_OWNER_REF': 172,
         'TREE_BLOCK_REF': 176, 'EXTENT_DATA_REF': 178, 'SHARED_BLOCK_REF': 182, 'SHARED_DATA_REF': 184,
         'BLOCK_GROUP_ITEM': 192, 'FREE_SPACE_INFO': 198, 'FREE_SPACE_EXTENT': 199, 'FREE_SPACE_BITMAP': 200,
         'DEV_EXTENT': 204, 'DEV_ITEM': 216, 'CHUNK_ITEM': 228, 'TEMPORARY_ITEM': 248, 'PERSISTENT_ITEM': 249,
         'UUID_KEY_SUBVOL': 251, 'UUID_KEY_RECEIVED_SUBVOL': 252, 'UNTYPED': 0}
EXTENT_TYPES = range(168, 185)


def number(word):
    return OBJECTIDS[word] if word in OBJECTIDS else int(word, 0)


@dataclasses.dataclass
class Item:
    key: tuple
    lines: list


@dataclasses.dataclass
class Block:
    bytenr: int
    level: int
    generation: int
    head: list
    items: list
    body: list


@dataclasses.dataclass
class Tree:
    heading: str
    id: int
    log: bool
    blocks: list

    @property
    def is_files(self):
        return self.id == 5 or 256 <= self.id <= MAX + 1 - 256


def parse(text):
    """Return the trees of a complete dump. Lines that begin with a tab belong to the item or node above."""
    trees, lines, log = [], text.split('\n'), False
    for line in lines[:-1]:
        start = re.match(r'(leaf|node) (\d+) (?:level (\d) )?items .* generation (\d+) owner', line)
        if start:
            kind, bytenr, level, generation = start.groups()
            trees[-1].blocks.append(Block(int(bytenr), int(level or 0), int(generation), [line], [], []))
        elif re.match(r'(leaf \d+ flags|node \d+ flags|fs uuid|chunk uuid) ', line):
            trees[-1].blocks[-1].head.append(line)
        elif line.startswith('\titem '):
            objectid, kind, offset = re.match(r'\titem \d+ key \((\S+) (\S+) (\S+)\) ', line).groups()
            trees[-1].blocks[-1].items.append(Item((number(objectid), TYPES[kind], number(offset)), [line]))
        elif line.startswith('\t'):
            block = trees[-1].blocks[-1]
            (block.items[-1].lines if block.items else block.body).append(line)
        elif re.match('(total bytes|bytes used|uuid) [0-9a-f-]+$', line):
            pass
        else:
            key = re.match(r'.* tree key \((\S+) (\S+) (\S+)\) $', line)
            log |= line == 'log root tree'
            ids = {'root tree': 1, 'chunk tree': 3, 'log root tree': MAX - 5}
            in_log = bool(key) and key.group(1) == 'TREE_LOG'
            trees.append(Tree(line, number(key.group(1)) if key else ids[line], in_log, []))
    return trees


@dataclasses.dataclass
class Selection:
    keys: list = None
    types: set = None
    inode: int = None
    bytenr: tuple = (0, MAX)
    generation: tuple = (0, MAX)
    level: tuple = (0, 7)
    dfs: bool = False
    extents: bool = False

    def options(self):
        words = ['--dfs'] if self.dfs else []
        for low, high in self.keys or ():
            words += ['--key', f'{low[0]},{low[1]},{low[2]}..{high[0]},{high[1]},{high[2]}']
        if self.types:
            words += ['--type', ','.join(map(str, self.types))]
        if self.inode is not None:
            words += ['--inode', str(self.inode)]
        if self.extents:
            words.append('--with-extents')
        for name, most in (('bytenr', MAX), ('generation', MAX), ('level', 7)):
            low, high = getattr(self, name)
            if (low, high) != (0, most):
                words += [f'--{name}', f'{low or ""}..{high if high < most else ""}']
        return words

    def picks(self):
        return self.keys or self.types or self.inode is not None

    def has_key(self, key):
        return ((not self.keys or any(low <= key <= high for low, high in self.keys)) and
                (not self.types or key[1] in self.types))

    def blocks_have(self, block):
        return all(low <= value <= high for (low, high), value in (
            (self.bytenr, block.bytenr), (self.generation, block.generation), (self.level, block.level)))


def covered(item, ranges):
    """Whether an item of the checksum tree covers any of the data."""
    line = item.lines[1]
    start, end = map(int, re.search(r'range start (\d+) end (\d+) ', line).groups())
    return any(start < high and low < end for low, high in ranges)


def data_of(trees, inode):
    """Return the extents of an inode in all subvolumes, adjacent ones merged."""
    found = set()
    for tree in trees:
        if not tree.is_files or tree.log:
            continue
        for block in tree.blocks:
            for item in block.items:
                place = re.search(r'data disk byte (\d+) nr (\d+)', '\n'.join(item.lines))
                if item.key[:2] == (inode, TYPES['EXTENT_DATA']) and place and int(place[1]):
                    found.add((int(place[1]), int(place[1]) + int(place[2])))
    merged = []
    for low, high in sorted(found):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def wants(sel, tree, key, item, data):
    if not sel.has_key(key):
        return False
    if sel.inode is None:
        return True
    if sel.extents and tree.id == 2 and not tree.log:
        return key[1] in EXTENT_TYPES and any(low <= key[0] < high for low, high in data)
    if sel.extents and tree.id == 7 and not tree.log:
        return key[1] == 128 and covered(item, data)
    return key[0] == sel.inode and (tree.is_files or tree.log)


def select(trees, sel):
    """Return the expected text."""
    out, data = [], data_of(trees, sel.inode) if sel.extents else []
    for tree in trees:
        shown = []
        for block in tree.blocks:
            if not sel.blocks_have(block):
                continue
            items = [each for each in block.items if wants(sel, tree, each.key, each, data)]
            if sel.picks() and (block.level or not items):
                continue
            shown += block.head + block.body
            for each in items:
                shown += each.lines
        if shown:
            out += [tree.heading] + shown
    return ''.join(line + '\n' for line in out)


def pair(rng, values):
    return tuple(sorted((rng.choice(values), rng.choice(values))))


def random_selection(rng, trees):
    blocks = [block for tree in trees for block in tree.blocks]
    keys = [item.key for block in blocks for item in block.items]
    inodes = sorted({key[0] for tree in trees if tree.is_files for block in tree.blocks for key in
                     (item.key for item in block.items)})
    sel = Selection(dfs=rng.random() < 0.3)
    if rng.random() < 0.5:
        sel.keys = [pair(rng, keys) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.3:
            sel.keys.append(((rng.choice(keys)[0], 0, 0), (MAX, 255, MAX)))
    if rng.random() < 0.4:
        sel.types = {rng.choice(keys)[1] for _ in range(rng.randint(1, 3))}
    if rng.random() < 0.3:
        sel.inode = rng.choice(inodes)
        sel.extents = rng.random() < 0.5
    if rng.random() < 0.2:
        sel.bytenr = pair(rng, [block.bytenr for block in blocks])
    if rng.random() < 0.25:
        sel.generation = pair(rng, [block.generation for block in blocks])
    if rng.random() < 0.2:
        sel.level = pair(rng, [0, 1, 2])
    return sel


def words():
    """Handwritten selections, in other forms than the random ones."""
    yield ['--key', '256'], ['--key', '256,0,0..256,255,-1']
    yield ['--key', '256,inode_item'], ['--key', '256,1,0..0x100,1,18446744073709551615']
    yield ['--key', '(256 INODE_ITEM 0)'], ['--key', '256,INODE_ITEM,0..256,INODE_ITEM,0']
    yield ['--key', '..255'], ['--key', '0..255,255']
    yield ['--key', 'extent_csum..'], ['--key', '-10,0,0..-1']
    yield ['--type', 'INODE_ITEM', '--type', 'dir_item'], ['--type', '84,1,84']
    yield ['--path', '/'], ['-t', '5', '--inode', '256']
    yield ['--level', '0', '-t', 'fs'], ['--level', '..0', '-t', 'FS_TREE']
    yield ['-t', '/'], ['-t', '5']


def places(path, bytenr):
    return [int(p) for p in re.findall(r'physical (\d+)', must(BTRKIT, 'map-logical', path, str(bytenr)).decode())]


def unread(path):
    """Blocks older than the selection are not read, so damage there does no harm. Tree roots must be read, and nothing
    is found without the chunk tree."""
    lines = [json.loads(line) for line in must(BTRKIT, 'dump-tree', '--format', 'json', path).splitlines()[1:]]
    roots = {line['bytenr'] for line in lines if line['kind'] == 'tree'}
    pointers = {(line['blockptr'], line['generation']) for line in lines if line['kind'] == 'pointer' and
                line['tree'] not in (1, 3) and line['blockptr'] not in roots}
    hurt, runs = 0, 0
    # Destroy more and more blocks.
    for generation in sorted({generation for _, generation in pointers})[1:]:
        ways = [['--generation', f'{generation}..', *more] for more in ([], ['--dfs'], ['--level', '0'])]
        wanted = [must(BTRKIT, 'dump-tree', *way, path) for way in ways]
        for bytenr in {bytenr for bytenr, other in pointers if other < generation}:
            for place in places(path, bytenr):
                with open(path, 'r+b') as f:
                    f.seek(place)
                    f.write(b'\xff' * 4096)
            pointers = {p for p in pointers if p[0] != bytenr}
            hurt += 1
        for way, want in zip(ways, wanted):
            have = compare.run(BTRKIT, 'dump-tree', *way, path)
            assert have.returncode == 0 and have.stdout == want, (path, way, have.stderr)
            runs += 1
    return hurt, runs


def main(count=25, seed=1):
    runs = lines = failed = empty = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            path = unpack.unpack(name, scratch, quick=True)
            rng = random.Random(f'{seed} {name}')
            whole = {dfs: parse(without_banner(must(BTRKIT, 'dump-tree', *(['--dfs'] if dfs else []), path)).decode())
                     for dfs in (False, True)}
            assert select(whole[False], Selection()), 'nothing was parsed'
            for _ in range(count):
                sel = random_selection(rng, whole[False])
                if not sel.picks() and sel == Selection(dfs=sel.dfs):
                    continue
                want = select(whole[sel.dfs], sel)
                have = without_banner(must(BTRKIT, 'dump-tree', *sel.options(), path)).decode()
                runs += 1
                lines += want.count('\n')
                empty += not want
                if want != have:
                    failed += 1
                    print(compare.first_difference(want.encode(), have.encode(), f'{name} {" ".join(sel.options())}'))
            for a, b in words():
                runs += 1
                one, other = (must(BTRKIT, 'dump-tree', *options, path) for options in (a, b))
                if one != other:
                    failed += 1
                    print(compare.first_difference(other, one, f'{name} {" ".join(a)}'))
            os.unlink(path)
        hurt = [unread(unpack.unpack(name, scratch, quick=True)) for name in ('good-generations', 'good-levels')]
        assert all(blocks > 3 for blocks, _ in hurt), hurt
    print(f'{sum(b for b, _ in hurt)} older blocks destroyed, which {sum(r for _, r in hurt)} selections do not read')
    print(f'{runs} selections, {empty} of nothing, {lines} lines compared, {failed} differ')
    return 0 if runs and lines and not failed else 1


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:])))
