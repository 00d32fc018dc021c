#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Damage a filesystem in an image; DAMAGES describes each kind of damage. Checksums are updated, so that the damage
itself must be detected.    damages.py NAME IMAGE"""
import struct
import sys
from dataclasses import dataclass

SUPERS = (0x10000, 0x4000000, 0x4000000000)
HEADER, KEY, ITEM, POINTER = 101, 17, 25, 33
CHUNK_ITEM, ROOT_ITEM, EXTENT_DATA, EXTENT_ITEM, METADATA_ITEM, DIR_ITEM = 228, 132, 108, 168, 169, 84
INODE_REF, XATTR_ITEM, DIR_INDEX = 12, 24, 96
FIRST_FREE, DIR_HEAD = 256, 30  # first inode number of a tree; bytes before a name
ROOT_TREE, EXTENT_TREE, CHUNK_TREE, FS_TREE = 1, 2, 3, 5
DATA_RELOC_TREE = (1 << 64) - 9


def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


TABLE = list(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def u64(data, offset):
    return struct.unpack_from('<Q', data, offset)[0]


def u32(data, offset):
    return struct.unpack_from('<I', data, offset)[0]


class Filesystem:
    """Reads just enough to find a block and all its copies. For one device, with SINGLE and DUP."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = bytearray(f.read())
        self.path = path
        self.super = bytes(self.data[SUPERS[0]:SUPERS[0] + 4096])
        self.nodesize = u32(self.super, 0x94)
        self.chunks = []
        size = u32(self.super, 0xA0)
        array, at = self.super[0x32B:0x32B + size], 0
        while at < size:
            at += self._add_chunk(u64(array, at + 9), array[at + KEY:]) + KEY
        for key, item in self.items(u64(self.super, 0x58)):
            if key[1] == CHUNK_ITEM:
                self._add_chunk(key[2], item)

    def _add_chunk(self, logical, item):
        count = struct.unpack_from('<H', item, 44)[0]
        stripes = [u64(item, 48 + 32 * i + 8) for i in range(count)]
        self.chunks.append((logical, u64(item, 0), stripes))
        return 48 + 32 * count

    def copies(self, logical):
        for start, length, stripes in self.chunks:
            if start <= logical < start + length:
                return [stripe + logical - start for stripe in stripes]
        raise ValueError(f'{logical} is in no chunk')

    def block(self, logical):
        at = self.copies(logical)[0]
        return self.data[at:at + self.nodesize]

    def put(self, logical, block, which=None, checksum=True):
        if checksum:
            block[0:4] = struct.pack('<I', crc32c(block[32:]))
        for number, at in enumerate(self.copies(logical)):
            if which is None or number == which:
                self.data[at:at + self.nodesize] = block

    def children(self, block):
        return [u64(block, HEADER + i * POINTER + KEY) for i in range(u32(block, 96))]

    def items(self, logical):
        block = self.block(logical)
        if block[100]:
            for child in self.children(block):
                yield from self.items(child)
            return
        for i in range(u32(block, 96)):
            yield self.item(block, i)

    def item(self, block, i):
        at = HEADER + i * ITEM
        offset, size = struct.unpack_from('<II', block, at + KEY)
        return struct.unpack_from('<QBQ', block, at), bytes(block[HEADER + offset:HEADER + offset + size])

    def root(self, tree):
        if tree in (ROOT_TREE, CHUNK_TREE):
            return u64(self.super, 0x50 if tree == ROOT_TREE else 0x58)
        for key, item in self.items(u64(self.super, 0x50)):
            if key[:2] == (tree, ROOT_ITEM):
                return u64(item, 176)
        raise ValueError(f'no tree {tree}')

    def leaf(self, tree, number=0):
        """Return the logical address of a tree's leaf."""
        level = [self.root(tree)]
        while self.block(level[0])[100]:
            level = [child for logical in level for child in self.children(self.block(logical))]
        return level[number]

    def find(self, tree, kind, objectid=None):
        """Return leaf, slot, key and data of the first item of a type in a tree, optionally of one object."""
        number = 0
        while True:
            logical = self.leaf(tree, number)
            block = self.block(logical)
            for slot in range(u32(block, 96)):
                key, data = self.item(block, slot)
                if key[1] == kind and objectid in (None, key[0]):
                    return logical, slot, key, data
            number += 1

    def save(self):
        with open(self.path, 'wb') as f:
            f.write(self.data)


def poke(fs, logical, offset, data):
    block = fs.block(logical)
    block[offset:offset + len(data)] = data
    fs.put(logical, block)


def poke_item(fs, tree, kind, offset, data, objectid=None):
    logical, slot, _, _ = fs.find(tree, kind, objectid)
    at = u32(fs.block(logical), HEADER + slot * ITEM + KEY)
    poke(fs, logical, HEADER + at + offset, data)


def rename_tree(fs, tree, new):
    """The tree is a single leaf, and its root item keeps its place in the order."""
    leaf = fs.leaf(tree)
    logical, slot, _, _ = fs.find(ROOT_TREE, ROOT_ITEM, tree)
    poke(fs, leaf, 88, u64_bytes(new))
    poke(fs, logical, HEADER + slot * ITEM, u64_bytes(new))


def poke_supers(fs, offset, data, which=(0, 1, 2), checksum=True):
    for at in [SUPERS[i] for i in which]:
        if at + 4096 <= len(fs.data):
            fs.data[at + offset:at + offset + len(data)] = data
            if checksum:
                fs.data[at:at + 4] = struct.pack('<I', crc32c(fs.data[at + 32:at + 4096]))


def swap_keys(fs):
    logical = fs.leaf(FS_TREE)
    block = fs.block(logical)
    a, b = HEADER + ITEM, HEADER + 2 * ITEM
    block[a:a + KEY], block[b:b + KEY] = block[b:b + KEY], block[a:a + KEY]
    fs.put(logical, block)


def truncate(fs):
    """Truncate inside the first copy of the root tree's root node, before the second copy."""
    del fs.data[min(fs.copies(fs.root(ROOT_TREE))) + fs.nodesize // 2:]


def zero_one_copy(fs):
    logical = fs.leaf(FS_TREE)
    fs.put(logical, bytearray(fs.nodesize), which=0, checksum=False)


def flip_checksum(fs):
    logical = fs.leaf(FS_TREE)
    block = fs.block(logical)
    block[0] ^= 0x55
    fs.put(logical, block, checksum=False)


def nothing_there(fs):
    fs.put(fs.leaf(FS_TREE), bytearray(fs.nodesize), checksum=False)


def u64_bytes(value):
    return struct.pack('<Q', value)


def leaf_header(offset, data):
    return lambda fs: poke(fs, fs.leaf(FS_TREE), offset, data)


@dataclass
class Damage:
    what: str
    do: callable
    source: str = 'good-default'
    works: bool = False         # the damaged block has a good copy


TALL = 'good-generations'
TALL_TREE = 256


def tall(offset, make):
    return lambda fs: poke(fs, fs.root(TALL_TREE), HEADER + offset, make(fs))


def tall_leaf(offset, data):
    return lambda fs: poke(fs, fs.leaf(TALL_TREE, 1), offset, data)


DAMAGES = {
    'bad-super-primary': Damage('the checksum of the first superblock is wrong; its mirror is good',
                                lambda fs: poke_supers(fs, 0x48, b'\x77', (0,), False), works=True),
    'bad-super-all': Damage('the checksums of all superblocks are wrong',
                            lambda fs: poke_supers(fs, 0x48, b'\x77', checksum=False)),
    'bad-super-root-level': Damage('the level of the root tree is 9', lambda fs: poke_supers(fs, 0xC6, b'\x09')),
    'bad-super-nodesize': Damage('nodes of 12345 bytes', lambda fs: poke_supers(fs, 0x94, struct.pack('<I', 12345))),
    'bad-super-array-size': Damage('sys_chunk_array is larger than its room',
                                   lambda fs: poke_supers(fs, 0xA0, struct.pack('<I', 0x7FFFFFFF))),
    'bad-super-array-stripes': Damage('the chunk in sys_chunk_array has 60000 stripes',
                                      lambda fs: poke_supers(fs, 0x32B + KEY + 44, struct.pack('<H', 60000))),
    'bad-truncated': Damage('the image ends within a node of the root tree', truncate),
    'bad-one-copy': Damage('the first copy of a node is zero; the second is good', zero_one_copy, works=True),
    'bad-node-zero': Damage('both copies of a node are zero', nothing_there),
    'bad-checksum': Damage('the checksum of a node is wrong in both copies', flip_checksum),
    'bad-fsid': Damage('a node of another filesystem', leaf_header(32, bytes(range(16)))),
    'bad-bytenr': Damage('a node with another block address in its header', leaf_header(48, u64_bytes(0x1234000))),
    'bad-generation': Damage('a child of another generation than its parent says', tall_leaf(80, u64_bytes(3)), TALL),
    'bad-owner': Damage('a leaf of a subvolume with the extent tree as its owner',
                        leaf_header(88, u64_bytes(EXTENT_TREE))),
    'bad-level': Damage('the root of a subvolume has another level than its root item says',
                        lambda fs: poke(fs, fs.root(TALL_TREE), 100, b'\x02'), TALL),
    'bad-item-count': Damage('more items than a leaf has room for', leaf_header(96, struct.pack('<I', 5000))),
    'bad-no-items': Damage('a leaf below a node has no items', tall_leaf(96, bytes(4)), TALL),
    'bad-key-order': Damage('two keys of a leaf are exchanged', swap_keys),
    'bad-item-past-leaf': Damage('an item begins past the end of its leaf',
                                 leaf_header(HEADER + ITEM + KEY, struct.pack('<I', 0x00FFFF00))),
    'bad-item-size': Damage('an item is larger than what is left of its leaf',
                            leaf_header(HEADER + 2 * ITEM + KEY + 4, struct.pack('<I', 0xFFFFFFF0))),
    'bad-pointer-cycle': Damage('a node points to itself', tall(KEY, lambda fs: u64_bytes(fs.root(TALL_TREE))), TALL),
    'bad-pointer-far': Damage('a node points to where no chunk is', tall(KEY, lambda fs: u64_bytes(1 << 50)), TALL),
    'bad-pointer-unaligned': Damage('a node points between blocks',
                                    tall(KEY, lambda fs: u64_bytes(fs.leaf(TALL_TREE) + 12345)), TALL),
    'bad-pointer-key': Damage('the key of a pointer is not the first key of the child',
                              tall(POINTER, lambda fs: u64_bytes(257)), TALL),
    'bad-chunk-stripes': Damage('a chunk with 0 stripes',
                                lambda fs: poke_item(fs, CHUNK_TREE, CHUNK_ITEM, 44, b'\0\0')),
    'bad-root-level': Damage("the level in a tree's root item is 200",
                             lambda fs: poke_item(fs, ROOT_TREE, ROOT_ITEM, 238, b'\xc8')),
    'bad-extent-type': Damage('a file extent of type 9',
                              lambda fs: poke_item(fs, FS_TREE, EXTENT_DATA, 20, b'\x09')),
    'bad-dir-name': Damage('the name of a directory item is longer than the item',
                           lambda fs: poke_item(fs, FS_TREE, DIR_ITEM, 27, b'\xff\x7f')),
    'bad-compressed-nothing': Damage('a compressed extent of no bytes',
                                     lambda fs: poke_item(fs, FS_TREE, EXTENT_DATA, 8, bytes(8)), 'good-compressed'),
    'bad-empty-name': Damage("a file's only name is empty", lambda fs: poke_item(
        fs, FS_TREE, INODE_REF, 8, bytes(2), 257), 'good-compressed'),
    'bad-last-tree': Damage('a tree with the highest possible objectid',
                            lambda fs: rename_tree(fs, DATA_RELOC_TREE, (1 << 64) - 1)),
    'bad-inline-ref': Damage('a back reference of an unknown type in an extent item',
                             lambda fs: poke_item(fs, EXTENT_TREE, METADATA_ITEM, 24, b'\x07')),
}


def apply(name, path):
    fs = Filesystem(path)
    before = bytes(fs.data)
    DAMAGES[name].do(fs)
    if fs.data == before:
        raise ValueError(f'{name} changed nothing')
    fs.save()


if __name__ == '__main__':
    apply(*sys.argv[1:])
