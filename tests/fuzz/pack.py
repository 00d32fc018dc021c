#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes seeds for the fuzz targets from the image of a small filesystem.
Usage: pack.py BTRKIT IMAGE CORPUS NAME
       writes CORPUS/image/NAME (every live tree block and the primary superblock), CORPUS/super/NAME, and one item of
       each key type and size class that CORPUS/item does not have yet"""
import pathlib
import re
import struct
import subprocess
import sys

SUPER_AT = 65536
SUPER_SIZE = 4096
HEADER = 101
RAID_STRIPE = 230
ITEM = struct.Struct("<QBQII")


def live_blocks(binary, image):
    """Logical addresses of the blocks that a dump visits."""
    text = subprocess.run([binary, "dump-tree", image], capture_output=True, check=True).stdout.decode(errors="replace")
    return {int(number) for number in re.findall(r"^(?:leaf|node) (\d+) ", text, flags=re.M)}


def blocks(image, nodesize, fsid, live):
    """(offset on the device, bytes) of the first copy of each live block."""
    seen = set()
    for offset in range(0, len(image) - nodesize + 1, 4096):
        head = image[offset:offset + HEADER]
        bytenr = int.from_bytes(head[48:56], "little")
        if head[32:48] == fsid and bytenr in live and bytenr not in seen and offset != SUPER_AT:
            seen.add(bytenr)
            yield offset, image[offset:offset + nodesize]
    if seen != live:
        sys.exit(f"pack.py: found {len(seen)} of {len(live)} live blocks")


def items(block):
    """(key and offsets, bytes) of a leaf's items."""
    if block[100]:
        return
    for slot in range(int.from_bytes(block[96:100], "little")):
        objectid, kind, key_offset, offset, size = ITEM.unpack_from(block, HEADER + slot * ITEM.size)
        yield struct.pack("<QBQ", objectid, kind, key_offset), block[HEADER + offset:HEADER + offset + size]


def main(binary, path, corpus, name):
    image = pathlib.Path(path).read_bytes()
    corpus = pathlib.Path(corpus)
    superblock = image[SUPER_AT:SUPER_AT + SUPER_SIZE]
    nodesize = int.from_bytes(superblock[148:152], "little")
    fsid = superblock[32:48]
    for kind in ("image", "super", "item"):
        (corpus / kind).mkdir(parents=True, exist_ok=True)
    (corpus / "super" / name).write_bytes(superblock)
    packed = [struct.pack("<QI", SUPER_AT, SUPER_SIZE) + superblock]
    for offset, block in blocks(image, nodesize, fsid, live_blocks(binary, path)):
        packed.append(struct.pack("<QI", offset, len(block)) + block)
        for key, data in items(block):
            seed = corpus / "item" / f"{key[8]:03d}-{len(data).bit_length()}"
            if not seed.exists():
                seed.write_bytes(bytes([2 | 16 | (32 if key[8] == RAID_STRIPE else 0)]) + key + data)
    (corpus / "image" / name).write_bytes(b"".join(packed))
    print(f"{name}: {len(packed)} records, {sum(map(len, packed))} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
