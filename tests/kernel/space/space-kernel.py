#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that Linux made and fragmented, with the v1 cache, the free space tree, and none: `btrkit space-cache
status` finds that every cache agrees with the extent tree, and reports the same for each block group as an independent
reader here, based on `btrfs inspect-internal dump-tree`. Then caches are damaged, which must be detected.

Arguments are names of scenarios; without any, all are run; --deep uses more files. Exits with 77 if it cannot run.
"""
import collections
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import image

from tool import Super, crc32c

BTRKIT = os.environ['BTRKIT']
SECTOR = 4096
SUPERS = (1 << 16, 1 << 26, 1 << 38)
HEADER = 101
DEEP = '--deep' in sys.argv
NAMED = [name for name in sys.argv[1:] if name != '--deep']
count = collections.Counter()


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


def status(path):
    """Return exit status, groups by start, leftovers, summary, and standard error."""
    done = subprocess.run([BTRKIT, 'space-cache', 'status', '--format', 'json', path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    summary = rows[-1].get('summary') if rows else None
    groups = {row['logical']: row for row in rows[1:] if 'used' in row}
    return done.returncode, groups, [row for row in rows if 'leftover' in row], summary, done.stderr.decode()


class Dump:
    """Trees as dumped by btrfs-progs, with access to the bytes on disk."""

    def __init__(self, path):
        self.path = path
        self.chunks = []
        for _, _, key, body in self.items('chunk'):
            if key[1] == 'CHUNK_ITEM':
                length = int(re.search(r'length (\d+)', body).group(1))
                stripes = [int(n) for n in re.findall(r'stripe \d+ devid \d+ offset (\d+)', body)]
                self.chunks.append((int(key[2]), length, stripes))

    def items(self, tree):
        """Generate (leaf, offset of the item's bytes in it, key, body)."""
        text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', tree, self.path).decode()
        leaf = None
        for part in re.split(r'^(?=leaf \d+ items|node \d+ level|\titem \d+ key)', text, flags=re.M):
            found = re.match(r'leaf (\d+) items', part)
            if found:
                leaf = int(found.group(1))
            found = re.match(r'\titem (\d+) key \((\S+) (\S+) (\S+?)\) itemoff (\d+) itemsize (\d+)', part)
            if found:
                slot, *key = found.groups()[:4]
                yield (leaf, int(slot)), (HEADER + int(found.group(5)), int(found.group(6))), key, part

    def physical(self, logical):
        return [stripe + logical - start for start, length, stripes in self.chunks if start <= logical < start + length
                for stripe in stripes]

    def read(self, logical, size):
        with open(self.path, 'rb') as f:
            f.seek(self.physical(logical)[0])
            return f.read(size)

    def write(self, logical, data, copies=2):
        with open(self.path, 'r+b') as f:
            for at in self.physical(logical)[:copies]:
                f.seek(at)
                f.write(data)

    def supers(self, start):
        """Ranges of a group that are occupied by superblocks."""
        length, stripes = next((length, stripes) for at, length, stripes in self.chunks if at == start)
        return sorted({(start + s - p, min(start + s - p + 65536, start + length)) for s in SUPERS for p in stripes
                       if 0 <= s - p < length})


def free_by_extents(dump, nodesize):
    """Free ranges of every group, from the extent tree."""
    used = collections.defaultdict(list)
    starts = sorted(dump.chunks)
    groups = iter(starts)
    start, length, _ = next(groups)
    for _, _, key, _ in dump.items('extent'):
        if key[1] in ('EXTENT_ITEM', 'METADATA_ITEM'):
            at, size = int(key[0]), nodesize if key[1] == 'METADATA_ITEM' else int(key[2])
            while at >= start + length:
                start, length, _ = next(groups)
            used[start].append((at, at + size))
    free = {}
    for start, length, _ in starts:
        edges = [start, *itertools.chain.from_iterable(used[start]), start + length]
        free[start] = [(a, b) for a, b in zip(edges[::2], edges[1::2]) if a < b]
    return free


def without(ranges, holes):
    for hole in holes:
        cut = [((a, min(b, hole[0])), (max(a, hole[1]), b)) for a, b in ranges]
        ranges = [(a, b) for pair in cut for a, b in pair if a < b]
    return ranges


def joined(ranges):
    result = []
    for a, b in sorted(ranges):
        if result and result[-1][1] == a:
            result[-1] = (result[-1][0], b)
        else:
            result.append((a, b))
    return result


def free_by_tree(dump):
    """Map (start, length) of each INFO to (form, extent count, free ranges), from the free space tree."""
    groups = {}
    for (leaf, _), (offset, size), key, body in dump.items('free-space'):
        at, length = int(key[0]), int(key[2])
        if key[1] == 'FREE_SPACE_INFO':
            found = re.search(r'extent count (\d+) flags (\d+)', body)
            groups[at, length] = ('bitmaps' if int(found.group(2)) else 'extents', int(found.group(1)), [])
            ranges = groups[at, length][2]
        elif key[1] == 'FREE_SPACE_EXTENT':
            ranges.append((at, at + length))
        else:
            bits = int.from_bytes(dump.read(leaf + offset, size), 'little')
            text = f'{bits:0{size * 8}b}'[::-1]
            ranges += [(at + m.start() * SECTOR, at + m.end() * SECTOR) for m in re.finditer('1+', text)]
    return {key: (form, total, joined(ranges)) for key, (form, total, ranges) in groups.items()}


def compare(path, nodesize, cache):
    """Compare every block group. Returns the dump, and the free ranges from the extent tree."""
    code, groups, leftovers, summary, said = status(path)
    expect(code == 0 and not said, path, code, said, [g for g in groups.values() if 'different' in str(g)][:3])
    dump = Dump(path)
    free = free_by_extents(dump, nodesize)
    expect(list(free) == list(groups) and summary['groups'] == len(free), 'other block groups')
    tree = free_by_tree(dump) if cache == 'v2' else {}
    expect(summary['in_use'] == cache and (cache == 'none' or summary['valid']), summary)
    if cache == 'v2':
        root = next(body for _, _, key, body in dump.items('root') if key[:2] == ['FREE_SPACE_TREE', 'ROOT_ITEM'])
        expect(summary['v2']['bytes'] == int(re.search(r' bytes_used (\d+)', root).group(1)), summary)
    expect({(row['logical'], row['length']) for row in leftovers if row['leftover'] == 'v2'} ==
           {key for key in tree if key[0] not in free}, leftovers)
    for start, ranges in free.items():
        g = groups[start]
        expect(g['free_bytes'] == sum(b - a for a, b in ranges) == g['length'] - g['used'], g)
        expect(g['free_ranges'] == len(ranges), g)
        count['groups'] += 1
        count['ranges'] += len(ranges)
        count['empty groups'] += not g['used']
        count['full groups'] += not g['free_bytes']
        if cache == 'v2':
            form, total, told = tree[start, g['length']]
            expect(told == ranges and total == len(ranges), 'dump-tree differs by itself', g)
            expect(g['v2'] == {'form': form, 'free_bytes': g['free_bytes'], 'free_ranges': total,
                               'verdict': 'equal'}, g)
            count[f'groups of v2 {form}'] += 1
        if cache == 'v1' and 'v1' in g and g['v1']['verdict'] != 'ignored':
            ranges = without(ranges, dump.supers(start))
            expect(g['v1']['verdict'] == 'equal' and g['v1']['free_ranges'] == len(ranges), g)
            expect(g['v1']['free_bytes'] == sum(b - a for a, b in ranges), g)
            kind = 'with bitmaps' if g['v1']['num_bitmaps'] else 'without bitmaps' if ranges else 'without entries'
            count[f'groups of v1 {kind}'] += 1
    return dump, free


def fragment(mnt, rng, files=9000 if DEEP else 3000):
    """Create small files, delete every other one, fill some of the gaps again, and repeat."""
    for turn in range(3):
        for k in range(files):
            with open(f'{mnt}/f{turn}-{k}', 'wb') as f:
                f.write(b'x' * rng.choice((4096, 4096, 8192, 20000, 3)))
        image.sync(mnt)
        for k in range(0, files, 2):
            os.unlink(f'{mnt}/f{turn}-{k}')
        image.sync(mnt)


def fill(mnt, rng):
    """Fill until there is no space: some groups are completely full."""
    fragment(mnt, rng, 500)
    full = False
    for size in (1 << 26, 1 << 20, SECTOR):
        try:
            for k in range(1000):
                with open(f'{mnt}/big{size}-{k}', 'wb') as f:
                    os.posix_fallocate(f.fileno(), 0, size)
        except OSError:
            full = True
    expect(full, 'there is space left')
    count['filesystems filled'] += 1
    image.sync(mnt)


def few(mnt, rng):
    """Few ranges, in more groups than mkfs makes."""
    fragment(mnt, rng, 40)
    with open(f'{mnt}/big', 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, 30 << 20)
    fragment(mnt, rng, 20)


V2, V1 = ('-O', 'free-space-tree'), ('-O', '^free-space-tree,^block-group-tree')
SCENARIOS = {
    'v2-16k': ('v2', (*V2, '-n', '16384'), '2G', fragment),
    'v2-4k': ('v2', (*V2, '-n', '4096'), '2G', fragment),
    'v2-64k': ('v2', (*V2, '-n', '65536'), '2G', fragment),
    'v2-bgt': ('v2', ('-O', 'free-space-tree,block-group-tree'), '2G', fragment),
    'v2-mixed': ('v2', (*V2, '-M', '-n', '4096'), '600M', fragment),
    'v2-full': ('v2', V2, '400M', fill),
    'v2-few': ('v2', (*V2, '-m', 'single'), '2G', few),
    'v2-new': ('v2', V2, '1G', None),
    'v1-16k': ('v1', (*V1, '-n', '16384'), '2G', fragment),
    'v1-4k': ('v1', (*V1, '-n', '4096'), '2G', fragment),
    'v1-64k': ('v1', (*V1, '-n', '65536'), '2G', fragment),
    'v1-mixed': ('v1', (*V1, '-M', '-n', '4096'), '600M', fragment),
    'v1-full': ('v1', V1, '2G', fill),
    'v1-few': ('v1', (*V1, '-m', 'single'), '2G', few),
    'v1-converted': ('v1', (*V1, '-n', '16384'), '2G', fragment),
    'none': ('none', (*V1, '-n', '16384'), '1G', few),
}


def damaged(dump, what, verdict, code=1):
    """The damage must be found."""
    got, groups, _, summary, said = status(dump.path)
    found = [g.get(summary['in_use'], {}).get('verdict') for g in groups.values()]
    expect(verdict in found or verdict is None, what, found)
    expect(got == code, what, 'exit', got, said)
    expect(code == 0 or (said.count('\n') == 1 and 'contradicts the extent tree' in said), what, said)
    expect(bool(summary['contradictions']) == bool(code), what)
    count['damages found'] += 1


def damage_block(dump, leaf, size, change, what, verdict, **how):
    """Change a tree block, with and without a valid checksum, check, and restore it."""
    good = dump.read(leaf, size)
    for sign in (True, False):
        block = bytearray(good)
        change(block)
        if sign:
            block[:4] = crc32c(bytes(block[32:])).to_bytes(4, 'little')
        dump.write(leaf, block)
        damaged(dump, f'{what}, signed {sign}', verdict if sign else 'damaged', **how)
        # With one damaged copy, the other one is used.
        if not sign and len(dump.physical(leaf)) > 1:
            dump.write(leaf, good)
            dump.write(leaf, block, copies=1)
            damaged(dump, f'{what}, in one copy', 'equal', code=0)
    dump.write(leaf, good)


def damage_v2(dump, nodesize):
    def add(offset, n, size=8):
        def change(block):
            value = int.from_bytes(block[offset:offset + size], 'little') + n
            block[offset:offset + size] = value.to_bytes(size, 'little')
        return change

    seen = set()
    groups = {start for start, _, _ in dump.chunks}
    form = None
    for (leaf, slot), (offset, size), key, body in list(dump.items('free-space')):
        if key[1] == 'FREE_SPACE_INFO':
            form = None if int(key[0]) not in groups else 'bitmaps' if 'flags 1' in body else 'extents'
        if not form or (form, key[1]) in seen:
            continue
        # After shortening, the key must still be in order.
        if key[1] == 'FREE_SPACE_EXTENT' and int(key[2]) < 2 * SECTOR:
            continue
        seen.add((form, key[1]))
        key_at = HEADER + 25 * slot
        if key[1] == 'FREE_SPACE_INFO':
            damage_block(dump, leaf, nodesize, add(offset, 1, 4), f'count of {form}', 'damaged')
            damage_block(dump, leaf, nodesize, add(key_at + 9, SECTOR), f'length of INFO of {form}', 'damaged')
        elif key[1] == 'FREE_SPACE_EXTENT':
            damage_block(dump, leaf, nodesize, add(key_at + 9, -SECTOR), 'a range too short', 'different')
        else:
            bits = dump.read(leaf + offset, size)
            # A free sector, inside of a range that is split by this, or at its end: so the extent count may or may not
            # be right.
            byte = next(i for i, b in enumerate(bits) if b)
            damage_block(dump, leaf, nodesize, add(offset + byte, -(bits[byte] & -bits[byte]), 1), 'a bit', None)
    return seen


def first_bitmap(dump, where, entries):
    """Return the start of the first bitmap of a cache, and its page."""
    at, number, start = 4 * len(where) + 8, 0, None
    page = dump.read(where[0], SECTOR)
    for _ in range(entries):
        if at + 17 > SECTOR:
            at, number = 0, number + 1
            page = dump.read(where[number], SECTOR)
        if page[at + 16] == 2 and start is None:
            start = int.from_bytes(page[at:at + 8], 'little')
        at += 17
    return start, number + 1


def damage_v1(dump, free):
    """Change pages of the caches, with extents and with bitmaps."""
    lengths = {start: length for start, length, _ in dump.chunks}

    def is_used(address):
        return any(start <= address < start + lengths[start] and not any(a <= address < b for a, b in ranges)
                   for start, ranges in free.items())

    files, inodes = collections.defaultdict(list), []
    for _, _, key, body in dump.items('root'):
        if key[:2] == ['FREE_SPACE', 'UNTYPED']:
            found = re.search(r'location key \((\d+) .*entries (\d+) bitmaps (\d+)', body, flags=re.S)
            inodes.append(tuple(map(int, found.groups())))
        elif key[1] == 'EXTENT_DATA':
            found = re.search(r'disk byte (\d+) nr (\d+)', body)
            files[int(key[0])].append((int(key[2]), *map(int, found.groups())))
    tried = set()
    for inode, entries, bitmaps in inodes:
        if not entries or bool(bitmaps) in tried:
            continue
        tried.add(bool(bitmaps))
        extents = files[inode]
        where = [at + k for _, at, size in extents for k in range(0, size, SECTOR)]
        first = dump.read(where[0], SECTOR)
        sums = 4 * len(where)

        def page_change(number, change, resum):
            good = dump.read(where[number], SECTOR)
            page = bytearray(good)
            change(page)
            dump.write(where[number], page)
            if resum:
                head = bytearray(dump.read(where[0], SECTOR))
                value = crc32c(bytes(page[0 if number else sums:]))
                head[4 * number:4 * number + 4] = value.to_bytes(4, 'little')
                dump.write(where[0], head)
            return good

        def tried_on(number, change, what, verdict):
            for resum in (True, False):
                good = page_change(number, change, resum)
                code = 1 if resum and verdict == 'different' else 0
                damaged(dump, f'v1 of inode {inode}: {what}, sum {resum}', verdict if resum else 'ignored', code)
                dump.write(where[number], good)
                dump.write(where[0], first)

        def shorter(page):
            at = sums + 8
            size = int.from_bytes(page[at + 8:at + 16], 'little')
            if page[at + 16] == 1 and size > SECTOR:
                page[at + 8:at + 16] = (size - SECTOR).to_bytes(8, 'little')
            else:
                page[at] ^= 1

        def other_generation(page):
            page[sums] ^= 1

        kind = first[sums + 8 + 16], int.from_bytes(first[sums + 16:sums + 24], 'little')
        tried_on(0, shorter, 'first entry', 'different' if kind[0] == 1 and kind[1] > SECTOR else 'ignored')
        tried_on(0, other_generation, 'generation of the page', 'ignored')
        if bitmaps:
            def moved(page):
                """Mark a free sector as used and a used one as free, so that the number of bits stays the same."""
                bits = int.from_bytes(page, 'little')
                spot = next(k for k in range(8 * SECTOR) if bits >> k & 1)
                other = next(k for k in range(8 * SECTOR) if is_used(start + k * SECTOR))
                page[:] = (bits ^ 1 << spot ^ 1 << other).to_bytes(SECTOR, 'little')

            start, number = first_bitmap(dump, where, entries)
            tried_on(number, moved, 'bits of a bitmap', 'different')
    return tried


def damage_super(dump, cache):
    """If the superblock does not declare a cache as valid, it is not used, whatever it contains."""
    changed = Super(dump.path)
    good = bytes(changed.data)
    if cache == 'v2':
        changed.put(Super.COMPAT_RO, changed.get(Super.COMPAT_RO) & ~2)
    else:
        changed.put(555, changed.get(555) - 1)
    changed.write()
    code, _, _, summary, said = status(dump.path)
    expect(code == 0 and not summary['valid'] and 'why' in summary, summary, said)
    changed.data[:] = good
    changed.write()
    count['damages found'] += 1


def make(path, name, seed):
    cache, options, size, work = SCENARIOS[name]
    fs = image.Image(path, size)
    fs.mkfs(*options)
    rng = random.Random(f'{seed} {name}')
    how = {'v1': 'space_cache=v1', 'v2': 'space_cache=v2', 'none': 'nospace_cache'}[cache]
    if name == 'v1-converted':
        # From v1 to v2 by Linux, and back.
        few(fs.mount('space_cache=v2'), rng)
        fs.umount()
        compare(path, 16384, 'v2')
        fs.mount('clear_cache,space_cache=v1')
        fs.umount()
    if work:
        work(fs.mount(how), rng)
        fs.umount()
    return fs, cache


def run_scenario(path, name, seed):
    fs, cache = make(path, name, seed)
    with open(path, 'rb') as f:
        f.seek(0x10000 + 148)
        nodesize = int.from_bytes(f.read(4), 'little')
    if cache == 'none':
        code, groups, _, summary, _ = status(path)
        cache = summary['in_use']
        expect(code == 0 and groups and (cache == 'none' or not summary['valid']), summary)
        count['groups'] += len(groups)
        fs.remove()
        return
    dump, free = compare(path, nodesize, cache)
    if name in ('v2-16k', 'v2-4k', 'v2-few'):
        count['kinds of v2 items damaged'] += len(damage_v2(dump, nodesize))
        damage_super(dump, cache)
    if name in ('v1-16k', 'v1-few'):
        count['kinds of v1 caches damaged'] += len(damage_v1(dump, free))
        damage_super(dump, cache)
    expect(status(path)[0] == 0, 'not put back')
    fs.remove()


WANTED = ('groups', 'ranges', 'empty groups', 'full groups', 'groups of v2 bitmaps', 'groups of v2 extents',
          'groups of v1 with bitmaps', 'groups of v1 without bitmaps', 'groups of v1 without entries', 'damages found',
          'kinds of v2 items damaged', 'kinds of v1 caches damaged')


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    seed = image.seed()
    print(f'seed {seed}')
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for name in NAMED or SCENARIOS:
            print(name, flush=True)
            run_scenario(os.path.join(folder, 'fs.img'), name, seed)
    for what, n in sorted(count.items()):
        print(f'{n} {what}')
    lacking = [what for what in WANTED if not count[what]]
    if lacking and not NAMED:
        print('nothing was tried of:', *lacking, sep=' ')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
