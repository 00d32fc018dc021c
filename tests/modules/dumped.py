# SPDX-License-Identifier: LGPL-2.1-or-later
"""Owners of tree blocks and data extents, from the trees that btrfs-progs dumps."""
import re
from dataclasses import dataclass, field

from image import BTRFS, run

# Patterns that start with a newline are several times faster on a long text than those with ^.
SECTION = re.compile(r'\n(?:\S.* tree key \((\S+) ROOT_ITEM (\S+)\) ?|(root|chunk|log root) tree)$', re.M)
BLOCK = re.compile(r'\n(?=(?:node|leaf) \d+ (?:level \d+ )?items )')
HEAD = re.compile(r'(node|leaf) (\d+) (?:level (\d+) )?items')
POINTER = re.compile(r'\n\tkey \((\S+) (\S+) (\S+)\) block (\d+) gen')
EXTENT = re.compile(r'\n\t+(?:extent|prealloc) data disk byte (\d+) nr (\d+)')
ORPHAN = re.compile(r'\n\titem \d+ key \(ORPHAN ORPHAN_ITEM \d+\)')
ROOT = re.compile(r'\n\titem \d+ key \((\S+) ROOT_ITEM (\S+)\).*\n.*\n.* refs (\d+)\n'
                  r'\t+drop(?:_progress)? key \((\S+) (\S+) (\S+)\) (?:drop_)?level (\d+)')
TREES = {'FS_TREE': 5, 'DATA_RELOC_TREE': 'data-relocation'}
# For keys in file trees.
OBJECTIDS = {'ORPHAN': -5 % 2 ** 64}
TYPES = {'INODE_ITEM': 1, 'INODE_REF': 12, 'INODE_EXTREF': 13, 'XATTR_ITEM': 24, 'VERITY_DESC_ITEM': 36,
         'VERITY_MERKLE_ITEM': 37, 'ORPHAN_ITEM': 48, 'DIR_LOG_ITEM': 60, 'DIR_LOG_INDEX': 72, 'DIR_ITEM': 84,
         'DIR_INDEX': 96, 'EXTENT_DATA': 108}
FILESYSTEM = 'filesystem'


@dataclass
class Block:
    level: int
    children: list = field(default_factory=list)     # key and address
    extents: list = field(default_factory=list)      # address and length
    orphans: int = 0


def label(objectid, offset):
    """Name of the owner, as du prints it; for a log tree, what it is the log of."""
    if objectid in ('TREE_RELOC', 'TREE_LOG'):
        kind = 'relocation' if objectid == 'TREE_RELOC' else 'log'
        return f'{kind}:{TREES.get(offset, offset)}'
    return int(objectid) if objectid.isdigit() else TREES.get(objectid, FILESYSTEM)


def key(objectid, kind, offset):
    return OBJECTIDS.get(objectid) or int(objectid), TYPES[kind], int(offset, 0)


def parse(text):
    """Return the blocks of a tree, the root first."""
    blocks = {}
    for part in BLOCK.split(text)[1:]:
        _, address, level = HEAD.match(part).groups()
        block = blocks[int(address)] = Block(int(level or 0))
        if level:
            block.children = [(found[:3], int(found[3])) for found in POINTER.findall(part)]
        else:
            # Most leaves have neither, and are large.
            if ' data disk byte ' in part:
                block.extents = [(int(start), int(length)) for start, length in EXTENT.findall(part) if int(start)]
            if '(ORPHAN ' in part:
                block.orphans = len(ORPHAN.findall(part))
    return blocks


class Dumped:
    """What each owner refers to: `blocks` and `extents` map addresses to owners; `orphans` and `logs`, by owner."""

    def __init__(self, path):
        text = '\n' + run(BTRFS, 'inspect-internal', 'dump-tree', path).decode(errors='surrogateescape')
        self.blocks, self.extents, self.orphans = {}, {}, {}
        self.logs = {}      # blocks, and extents with their lengths
        marks = list(SECTION.finditer(text)) + [None]
        dropping = {}
        for mark, following in zip(marks, marks[1:]):
            objectid, offset, other = mark.groups()
            part = text[mark.end():following.start() if following else len(text)]
            if other == 'root':
                for found in ROOT.findall(part):
                    if found[2] == '0' and found[3] != '0':
                        dropping[label(*found[:2])] = key(*found[3:6]), int(found[6])
            owner = label(objectid, offset) if objectid else 'log:' if other == 'log root' else FILESYSTEM
            blocks = parse(part)
            if owner in dropping:
                blocks = left(blocks, next(iter(blocks)), *dropping[owner])
            self.take(owner, blocks)
        self.dropping = set(dropping)

    def take(self, owner, blocks):
        if isinstance(owner, str) and owner.startswith('log:'):
            self.logs[owner[4:]] = set(blocks), {x for block in blocks.values() for x in block.extents}
            return
        self.orphans[owner] = sum(block.orphans for block in blocks.values())
        for address, block in blocks.items():
            self.blocks.setdefault(address, set()).add(owner)
            for start, _ in block.extents:
                self.extents.setdefault(start, set()).add(owner)


def left(blocks, at, progress, lowest):
    """What is left of a tree whose deletion has reached a key, in a node of that level."""
    block, found = blocks[at], {at: blocks[at]}
    if block.level < lowest or not block.level:
        return whole(blocks, at)
    for i, (first, child) in enumerate(block.children):
        following = block.children[i + 1][0] if i + 1 < len(block.children) else None
        if key(*first) >= progress:
            found.update(whole(blocks, child))
        elif block.level > lowest and (following is None or key(*following) > progress):
            found.update(left(blocks, child, progress, lowest))
    return found


def whole(blocks, at):
    found = {at: blocks[at]}
    for _, child in blocks[at].children:
        found.update(whole(blocks, child))
    return found
