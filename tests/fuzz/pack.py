#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes seeds for the fuzz targets from the image of a small filesystem.
Usage: pack.py BTRKIT IMAGE CORPUS NAME [--data]
       writes CORPUS/image/NAME (the primary superblock and every live tree block that can be found), CORPUS/super/NAME,
       and one item of each key type and size class that CORPUS/item does not have yet. With --data, file data is
       included, and inodes are marked as having no checksums, since mutated data would not match them"""
import os
import pathlib
import re
import struct
import subprocess
import sys

SUPER_AT = 65536
SUPER_SIZE = 4096
HEADER = 101
RECORD_MAX = 65536
DATA_MAX = 1 << 18
INODE_ITEM, EXTENT_DATA, CHUNK_ITEM, RAID_STRIPE = 1, 108, 228, 230
ITEM = struct.Struct("<QBQII")


def live_blocks(binary, image):
    """Return the logical addresses of the blocks that a dump visits, even if the dump fails."""
    dump = subprocess.run([binary, "dump-tree", image], capture_output=True, check=False)
    text = dump.stdout.decode(errors="replace")
    return {int(number) for number in re.findall(r"^(?:leaf|node|damaged block) (\d+) ", text, flags=re.M)}


def filled(fd):
    """Yield (start, end) of the parts of the image that are not holes."""
    at = 0
    while True:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        at = os.lseek(fd, start, os.SEEK_HOLE)
        yield start - start % 4096, at


def blocks(fd, nodesize, fsids, live):
    """Yield (offset on the device, bytes) of the first copy of each live block."""
    seen = set()
    for start, end in filled(fd):
        for offset in range(start, end, 4096):
            head = os.pread(fd, HEADER, offset)
            bytenr = int.from_bytes(head[48:56], "little")
            if head[32:48] in fsids and bytenr in live and bytenr not in seen and offset != SUPER_AT:
                seen.add(bytenr)
                yield offset, bytearray(os.pread(fd, nodesize, offset))


def items(block):
    """Yield (objectid, type, offset, slice of the data) of the items of a leaf."""
    if block[100]:
        return
    for slot in range(min(int.from_bytes(block[96:100], "little"), (len(block) - HEADER) // ITEM.size)):
        *key, offset, size = ITEM.unpack_from(block, HEADER + slot * ITEM.size)
        yield *key, slice(HEADER + offset, HEADER + offset + size)


def data_of(fd, leaves):
    """Yield (offset on the device, bytes) of the data extents of files; sets NODATASUM in the inodes."""
    chunks, extents = [], {}
    for block in leaves:
        for _, kind, offset, where in items(block):
            if kind == INODE_ITEM:
                block[where.start + 64] |= 1
            elif kind == CHUNK_ITEM:
                physical = struct.unpack_from("<Q", block, where.start + 56)[0]
                chunks.append((offset, struct.unpack_from("<Q", block, where.start)[0], physical))
            elif kind == EXTENT_DATA and where.stop - where.start == 53:
                logical, length = struct.unpack_from("<QQ", block, where.start + 21)
                extents[logical] = length
    left = DATA_MAX
    for logical, length in sorted(extents.items()):
        for start, size, physical in chunks:
            if logical and start <= logical < start + size and length <= min(left, RECORD_MAX):
                left -= length
                yield logical - start + physical, os.pread(fd, length, logical - start + physical)


def main(binary, path, corpus, name, *options):
    fd = os.open(path, os.O_RDONLY)
    corpus = pathlib.Path(corpus)
    superblock = os.pread(fd, SUPER_SIZE, SUPER_AT).ljust(SUPER_SIZE, b"\0")
    nodesize = int.from_bytes(superblock[148:152], "little")
    for kind in ("image", "super", "item"):
        (corpus / kind).mkdir(parents=True, exist_ok=True)
    (corpus / "super" / name).write_bytes(superblock)
    found = dict(blocks(fd, nodesize, (superblock[32:48], superblock[571:587]), live_blocks(binary, path)))
    for block in found.values():
        for objectid, kind, offset, where in items(block):
            seed = corpus / "item" / f"{kind:03d}-{(where.stop - where.start).bit_length()}"
            if not seed.exists():
                seed.write_bytes(bytes([2 | 16 | (32 if kind == RAID_STRIPE else 0)])
                                 + struct.pack("<QBQ", objectid, kind, offset) + block[where])
    records = [(SUPER_AT, superblock)]
    if "--data" in options:
        records += [(offset | 1, data) for offset, data in data_of(fd, found.values())]
    records += found.items()
    packed = b"".join(struct.pack("<QI", offset, len(data)) + data for offset, data in records)
    (corpus / "image" / name).write_bytes(packed)
    print(f"{name}: {len(records)} records, {len(packed)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
