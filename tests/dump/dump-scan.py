#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree --scan compared with an independent search of the image, and --raw with its bytes, also for damaged
blocks."""
import importlib
import json
import random
import re
import struct
import sys
import tempfile

from compare import BTRKIT, must, run, without_banner

select = importlib.import_module('dump-select')
places_of = importlib.import_module('dump-damage').places_of
FOUND = re.compile(r'device (\d+) at (\d+): block (\d+) generation (\d+) owner (\S+) level (\d) items (\d+)\n')


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


def crc32c(data, table=tuple(crc_table())):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def search(data, nodesize):
    """Return offset, address, generation, level and number of items of each block with a valid checksum."""
    fsid, at = data[65536 + 32:65536 + 48], 0
    while at + nodesize <= len(data):
        block = data[at:at + nodesize]
        if (block[32:48] == fsid and block[64:72] != b'_BHRfS_M' and
                crc32c(block[32:]) == struct.unpack_from('<I', block)[0]):
            bytenr, = struct.unpack_from('<Q', block, 48)
            generation, _, items, level = struct.unpack_from('<QQIB', block, 80)
            yield at, bytenr, generation, level, items
            at += nodesize
        else:
            at += 4096


def scanned(path, *options):
    text = must(BTRKIT, 'dump-tree', '--scan', *options, path).decode()
    return [(int(place), int(bytenr), int(generation), int(level), int(items))
            for _, place, bytenr, generation, _, level, items in FOUND.findall(text)]


def raw_bytes(text, size):
    """Reassemble the bytes from the lines of --raw."""
    data, at, same = bytearray(), None, False
    for line in text.split('\n'):
        if line == '*':
            same = True
        found = re.match(r'([0-9a-f]{5})  ((?:[0-9a-f]{2} ){1,17})', line + ' ')
        if not found:
            continue
        at = int(found[1], 16)
        if same:
            data += bytes(data[-16:]) * ((at - len(data)) // 16)
        same = False
        assert at == len(data), (at, len(data), line)
        data += bytes.fromhex(found[2])
    if same:
        data += bytes(data[-16:]) * ((size - len(data)) // 16)
    return bytes(data)


def main():
    compared = blocks = hurt = 0
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        for name in ('good-generations', 'good-mixed', 'good-default'):
            path = select.unpack.unpack(name, scratch, quick=True)
            with open(path, 'rb') as f:
                data = f.read()
            nodesize = int(re.search(rb'\nnodesize\s+(\d+)', must(BTRKIT, 'dump-super', path))[1])
            want = list(search(data, nodesize))
            have = scanned(path)
            assert have == want and want, (name, len(have), len(want))
            compared += len(want)
            lines = [json.loads(line) for line in
                     must(BTRKIT, 'dump-tree', '--scan', '--format', 'json', path).decode().splitlines()[1:]]
            assert [(each['physical'], each['bytenr'], each['generation'], each['level'], each['nritems'])
                    for each in lines] == want
            # Filters leave the matching blocks.
            generation = rng.choice(want)[2]
            assert scanned(path, '--generation', f'{generation}..') == [each for each in want if each[2] >= generation]
            assert scanned(path, '--level', '1') == [each for each in want if each[3] == 1]
            dumped = must(BTRKIT, 'dump-tree', '--scan', '--dump', path).decode()
            trees = select.parse(without_banner(must(BTRKIT, 'dump-tree', path)).decode())
            for block in {block.bytenr: block for tree in trees for block in tree.blocks}.values():
                assert '\n'.join(block.head) in dumped
                for i, place in enumerate(places_of(path, block.bytenr)):
                    assert any(each[:2] == (place, block.bytenr) for each in have), block.bytenr
                    text = must(BTRKIT, 'dump-tree', '--raw', str(block.bytenr), '--copy', str(i + 1), path).decode()
                    assert raw_bytes(text, nodesize) == data[place:place + nodesize], (name, block.bytenr)
                    assert re.match(rf'block {block.bytenr} copy {i + 1} on device 1 at {place}\n', text), text[:80]
                    blocks += 1
            # With any contents a block is shown, and of a leaf at least the header.
            leaf = rng.choice([block for tree in trees for block in tree.blocks if not block.level and block.items])
            place = places_of(path, leaf.bytenr)[0]
            for _ in range(30):
                bad = bytearray(data[place:place + nodesize])
                for _ in range(rng.randint(1, 20)):
                    bad[rng.randrange(rng.choice((101, 101 + 25 * len(leaf.items), nodesize)))] = rng.choice(
                        (0, 1, 127, 255, rng.randrange(256)))
                with open(path, 'r+b') as f:
                    f.seek(place)
                    f.write(bad)
                done = run(BTRKIT, 'dump-tree', '--raw', str(leaf.bytenr), path)
                assert done.returncode == 0 and not done.stderr, done.stderr
                shown = re.findall(r'\n0[0-9a-f]{4}  ((?:[0-9a-f]{2} )+)', done.stdout.decode())[:3]
                assert bytes.fromhex(''.join(shown))[:32] == bad[:32]
                hurt += 1
            # Without the trees that point to blocks, all remaining blocks are found.
            for tree in (1, 3):
                root = next(each.blocks[0].bytenr for each in trees if each.id == tree)
                for place in places_of(path, root):
                    with open(path, 'r+b') as f:
                        f.seek(place + 200)
                        f.write(b'damage')
            with open(path, 'rb') as f:
                assert scanned(path) == list(search(f.read(), nodesize))
    for bad in (['--raw', '5'], ['--copy', '1'], ['--scan', '--path', 'x'], ['--scan', '-b', '4096'], ['--dump'],
                ['--raw', '4096', '--hide-names']):
        done = run(BTRKIT, 'dump-tree', *bad, '/dev/null')
        assert done.returncode == (1 if bad == ['--raw', '5'] else 2), (bad, done)
    print(f'{compared} blocks found, {blocks} shown as they are, {hurt} damaged')
    return 0 if compared and blocks and hurt else 1


if __name__ == '__main__':
    sys.exit(main())
