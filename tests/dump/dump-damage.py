#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Destroy tree blocks of committed images, one at a time with all copies: everything that is not below the block must
be dumped as before, and the damage must be reported in its place. Also root items with invalid fields: their trees are
shown as long as their address is valid. Usage: dump-damage.py [BLOCKS [SEED]]: number of blocks per image, 0 for all"""
import importlib
import json
import os
import random
import re
import struct
import sys
import tempfile

from compare import BTRKIT, must, run, without_banner
from tool import crc32c

select = importlib.import_module('dump-select')
NAMES = ('good-default', 'good-generations', 'good-levels', 'good-log-tree', 'good-mixed')


def places_of(path, bytenr):
    """Return the offsets of its copies in the image."""
    text = must(BTRKIT, 'map-logical', path, str(bytenr)).decode()
    return [int(found) for found in re.findall(r'physical (\d+)', text)]


def trees_of(path, *options):
    return select.parse(without_banner(must(BTRKIT, 'dump-tree', *options, path)).decode())


def below(tree, bytenr):
    """Return the block and everything below it in the tree."""
    pointers = {block.bytenr: [int(n) for n in re.findall(r' block (\d+) gen ', '\n'.join(block.body))]
                for block in tree.blocks}
    lost, todo = set(), [bytenr] if bytenr in pointers else []
    while todo:
        at = todo.pop()
        lost.add(at)
        todo += pointers[at]
    return lost


def expected(trees, bytenr):
    """Return the text without what is lost, and how often the block must be reported."""
    out, told, gone = [], 0, set()
    for tree in trees:
        key = re.search(r'key \(.*\)', tree.heading)
        if key and key[0] in gone:
            continue
        lost = below(tree, bytenr)
        told += bool(lost)
        out.append(tree.heading)
        for block in tree.blocks:
            if block.bytenr not in lost:
                out += block.head + block.body
                for item in block.items:
                    out += item.lines
            elif tree.id in (1, select.MAX - 5):
                gone |= {re.search(r'key \(.*?\)', item.lines[0])[0] for item in block.items if item.key[1] == 132}
    return out, told


def problems(path, trees, block, dfs):
    bytenr = block.bytenr
    done = run(BTRKIT, 'dump-tree', *(['--dfs'] if dfs else []), path)
    text = done.stdout.decode()
    said = done.stderr.decode()
    if done.returncode != 1 or not 1 <= said.count('\n') <= 1 + len(re.findall(r'^damaged ', text, re.M)):
        yield f'exit {done.returncode}: {said!r}'
    if f'block {bytenr}' not in said:
        yield f'{said!r} does not name it'
    lines = without_banner(done.stdout).decode().split('\n')[:-1]
    if any(line.startswith('damaged chunks') for line in lines):
        # Chunks on the way to other blocks are lost.
        if not any(block in tree.blocks for tree in trees if tree.id == 3):
            yield 'chunks are damaged'
        return
    want, told = expected(trees, bytenr)
    have = [line for line in lines if not re.match('(damaged block|\tcopy) ', line)]
    if text.count(f'\ndamaged block {bytenr} ') < told or text.count('\ndamaged block ') > told + 1:
        yield f'told {text.count(chr(10) + "damaged block ")} times, not {told}'
    if have != want:
        at = next((i for i, (a, b) in enumerate(zip(want, have)) if a != b), min(len(want), len(have)))
        yield f'{len(want)} lines wanted, {len(have)} there: {want[at:at + 3]} {have[at:at + 3]}'


def hurt(path, places, rng, size):
    """Return the previous contents."""
    old = []
    with open(path, 'r+b') as f:
        for place in places:
            f.seek(place)
            old.append((place, f.read(size)))
            f.seek(place)
            half = old[-1][1][:size // 2]
            f.write(rng.choice((bytes(size), rng.randbytes(size), half + bytes(size // 2 - 1) + b'x')))
    return old


def change_root(path, block, item, offset, value):
    """Write a number into an item of the root tree, with a valid checksum."""
    where = re.search(r'itemoff (\d+) ', item.lines[0])[1]
    for place in places_of(path, block.bytenr):
        with open(path, 'r+b') as f:
            f.seek(place)
            data = bytearray(f.read(16384))
            struct.pack_into('<Q', data, 101 + int(where) + offset, value)
            data[:4] = struct.pack('<I', crc32c(data[32:]))
            f.seek(place)
            f.write(data)


def roots(scratch):
    """The root item of the file tree: unknown flags, and an invalid address."""
    path = select.unpack.unpack('good-default', scratch, quick=True)
    heading = 'fs tree key (FS_TREE ROOT_ITEM 0) '
    block, item = next((b, i) for t in trees_of(path) if t.id == 1 for b in t.blocks for i in b.items
                       if i.key[:2] == (5, 132))
    whole = must(BTRKIT, 'dump-tree', path).decode()
    change_root(path, block, item, 208, 4)
    refused = run(BTRKIT, 'dump-tree', path)
    shown = refused.stdout.decode().replace('flags 0x4(none)', 'flags 0x0(none)')
    assert refused.returncode == 1 and b'unknown root flags 0x4' in refused.stderr, refused.stderr
    assert shown == whole and heading in whole and '\ntotal bytes' in whole, 'a tree whose item is refused is not shown'
    told = [json.loads(line) for line in run(BTRKIT, 'dump-tree', '--format', 'json', path).stdout.splitlines()[1:]]
    assert [line['what'] for line in told if line['kind'] == 'damage'] == ['item', 'root'], told
    change_root(path, block, item, 176, 12345)
    lost = run(BTRKIT, 'dump-tree', path)
    text = lost.stdout.decode()
    assert lost.returncode == 1 and re.search(r'\ndamaged root item .*FS_TREE ROOT_ITEM 0', text), lost.stderr
    assert heading not in text and '\ntotal bytes' not in text, 'a tree that lies nowhere'


def main(count=12, seed=1):
    tried = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        roots(scratch)
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            rng = random.Random(f'{seed} {name}')
            path = select.unpack.unpack(name, scratch, quick=True)
            size = 4096 if name == 'good-mixed' else int(re.search(
                rb'nodesize\s+(\d+)', must(BTRKIT, 'dump-super', path))[1])
            whole = {dfs: trees_of(path, *(['--dfs'] if dfs else [])) for dfs in (False, True)}
            blocks = list({block.bytenr: block for tree in whole[False] for block in tree.blocks}.values())
            nodes = [block for block in blocks if block.level]
            chosen = blocks if not count else rng.sample(blocks, min(count, len(blocks))) + nodes[:count]
            for block in chosen:
                places = places_of(path, block.bytenr)
                old = hurt(path, places, rng, size)
                dfs = rng.random() < 0.5
                found = list(problems(path, whole[dfs], block, dfs)) if places else ['no place']
                tried += 1
                failed += bool(found)
                for each in found:
                    print(f'{name}: block {block.bytenr} level {block.level}: {each}')
                with open(path, 'r+b') as f:
                    for place, data in old:
                        f.seek(place)
                        f.write(data)
            assert trees_of(path) == whole[False], 'not put back'
            os.unlink(path)
    print(f'{tried} blocks destroyed, {failed} dumps not as they should be')
    return 0 if tried and not failed else 1


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:])))
