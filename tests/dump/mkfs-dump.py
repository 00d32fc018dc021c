#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare filesystems of `btrkit mkfs` and mkfs.btrfs by dump-tree and dump-super of btrfs-progs, for many options.

Nothing may differ except what canonical.py lists. btrfs check must find nothing, also with sector sizes that Linux
cannot mount here; sizes too small for one are too small for the other. Needs no root."""
import argparse
import random
import re
import subprocess
import sys
import tempfile

import canonical
import compare
from compare import BTRFS, BTRKIT, MKFS, Difference, must, run, thinned

from image import peer_options

FSID, DEVICE = 'abcdef01-2345-6789-abcd-ef0123456789', '11111111-2222-3333-4444-555555555555'
M, G, T = 1 << 20, 1 << 30, 1 << 40
FEATURES = ('^free-space-tree', '^block-group-tree', '^no-holes', '^skinny-metadata', '^extref')
ALL_OFF = ','.join(FEATURES)
PROFILES = {(): 109, ('-m', 'single'): 45, ('-d', 'dup'): 229, ('-m', 'single', '-d', 'dup'): 165}
# MiB that single trees with 64 KiB nodes need in addition: on the smallest filesystem of mkfs.btrfs, Linux cannot even
# make a directory.
LARGE_NODES = {('64k', ('-m', 'single')): 8, ('64k', ('-m', 'single', '-d', 'dup')): 8}
# Minimal number of devices.
RAID = {'raid0': 1, 'raid1': 2, 'raid1c3': 3, 'raid1c4': 4, 'raid10': 2, 'raid5': 2, 'raid6': 3}
MANY = 50
MIXED_DUP = ('-M', '-m', 'dup', '-d', 'dup')


def cases():
    for profiles, smallest in PROFILES.items():
        for size in (smallest * M, 300 * M, 300 * M + 12345, 639 * M, 641 * M, G, 2559 * M, 2560 * M, 4 * G,
                     10 * G - 4096, 10 * G, 20 * G, 49 * G, 50 * G, 50 * G + 4096, 60 * G, 10 * T):
            yield size, profiles
        for nodes in ('4k', '8k', '32k', '64k'):
            yield (smallest + LARGE_NODES.get((nodes, profiles), 0)) * M, ('-n', nodes, *profiles)
        for features in (*FEATURES, '^no-holes,^free-space-tree', ALL_OFF):
            yield smallest * M, ('-O', features, *profiles)
            yield G, ('-O', features, '-n', '4k', *profiles)
        for sectors in ('8k', '16k', '32k', '64k'):
            yield G, ('-s', sectors, *profiles)
            yield G, ('-s', sectors, '-n', '64k', '-O', ALL_OFF, *profiles)
    for size in (64 * M, 256 * M, G, 10 * G):
        yield size, ('-M',)
    yield 256 * M, ('-M', '-s', '16k', '-n', '16k')
    yield 300 * M, MIXED_DUP
    yield G, ('-b', '400m')
    yield G, ('-b', str(300 * M + 5000))
    yield G, ('-L', 'label')
    yield G, ('-L', 'x' * 255)
    yield G, ('-L', ' sp\u00e4ce ')


def several_cases():
    """Every profile on its minimal number of devices, on one more and on six; devices of different sizes; each
    checksum."""
    for name, smallest in RAID.items():
        for count in sorted({smallest, smallest + 1, 6}):
            yield (300 * M,) * count, ('-d', name, '-m', name)
            yield tuple(G + i * 70 * M for i in range(count)), ('-d', name)
            yield tuple((60 - i) * G + 12345 for i in range(count)), ('-m', name)
    for sums in ('xxhash', 'sha256', 'blake2', 'crc32c'):
        yield G, ('--csum', sums)
        yield (G, 2 * G, 3 * G), ('--csum', sums, '-m', 'raid1c3', '-n', '4k')
    for features in ('quota', 'squota', 'raid56,raid1c34', f'quota,{ALL_OFF}'):
        yield G, ('-O', features)
        yield (G, 300 * M), ('-O', features, '-n', '64k')
    yield (G, G, G), ()
    yield (G, 400 * M, 2 * G), ('-b', '500m', '-d', 'raid0')
    yield (G, G), ('-M',)
    yield (G, G), ('-M', '-d', 'raid1', '-m', 'raid1')
    yield (200 * M,) * 4, ('-M', '-d', 'raid10', '-m', 'raid10', '-s', '16k', '-n', '16k')
    # More devices than a chunk has stripes, and items for more than one leaf.
    yield (200 * M,) * 64, ('-d', 'raid0', '-m', 'raid10', '-n', '4k')
    yield (200 * M,) * 130, ('-d', 'raid6', '-m', 'raid1c4', '-n', '4k', '-O', ALL_OFF)


def random_case(rng):
    """Random sizes: both must refuse the same ones."""
    count = rng.choice((1, 2, 2, 3, 4, 5, 6, 9))
    largest = rng.choice((300, 1000, 5000, 100000, 10000000))
    sizes = tuple(rng.randrange(100, largest) * M + rng.choice((0, 0, 12345, 70 * 4096)) for _ in range(count))
    profiles = [name for name in ('single', 'dup', *RAID) if rng.randrange(4) == 0 or RAID.get(name, 1) <= count]
    options = ('-d', rng.choice(profiles), '-m', rng.choice(profiles), '-n', rng.choice(('4k', '16k', '64k')))
    if rng.randrange(6) == 0:
        options = ('-M', '-d', options[1], '-m', options[1])
    if rng.randrange(4) == 0:
        options += ('-O', rng.choice((*FEATURES, ALL_OFF, 'quota', 'squota')))
    return (sizes if count > 1 else sizes[0]), options


def make(path, size, *command):
    """@size: of a single device, or a tuple with the size of each device, of which @path is the first"""
    paths = devices(path, size)
    for each, its in zip(paths, size if isinstance(size, tuple) else (size,)):
        with open(each, 'wb') as f:
            f.truncate(its)
    return run(*command, *paths)


def devices(path, size):
    return [path, *(f'{path}.{number}' for number in range(2, len(size) + 1 if isinstance(size, tuple) else 0))]


def dumps(path, size=0):
    """Dump all trees, and the superblocks of each device."""
    paths = devices(path, size)
    tree = must(BTRFS, 'inspect-internal', 'dump-tree', *paths).decode()
    return tree, *(must(BTRFS, 'inspect-internal', 'dump-super', '-f', each).decode() for each in paths)


def same(theirs, ours, what):
    if theirs != ours:
        raise Difference(compare.first_difference(*('\n'.join(lines).encode() for lines in (theirs, ours)), what))
    return len(theirs)


def without_big_metadata(text):
    """Before 7.3, mkfs.btrfs sets this flag only if nodes are larger than 4096 bytes."""
    if not re.search(r'^nodesize\s+4096$', text, re.M):
        return text
    text = re.sub(r'\t\t\t  BIG_METADATA \|\n', '', re.sub(r' \|\n\t\t\t  BIG_METADATA \)', ' )', text))
    return re.sub(r'^(incompat_flags\s+)0x([0-9a-f]+)', lambda found: f'{found[1]}{int(found[2], 16) & ~0x20:#x}', text,
                  flags=re.M)


def compare_dumps(theirs, ours, given):
    # Before 6.19, mkfs.btrfs keeps free space items of block groups that it removed.
    leftovers = compare.progs_version() < (6, 19)
    if len(theirs) > MANY:
        return same(canonical.chunks_and_devices(theirs[0]), canonical.chunks_and_devices(ours[0]), 'chunks')
    lines = same(canonical.canonical_tree(canonical.mended(theirs[0]), given, leftovers),
                 canonical.canonical_tree(ours[0], given), 'dump-tree')
    for their, our in zip(theirs[1:], ours[1:]):
        if compare.progs_version() < (7, 3):
            their, our = without_big_metadata(their), without_big_metadata(our)
        lines += same(canonical.canonical_super(their, theirs[0], given),
                      canonical.canonical_super(our, ours[0], given), 'dump-super -f')
    return lines


def clean(path):
    done = run(BTRFS, 'check', path)
    if done.returncode or b'no error found' not in done.stdout + done.stderr:
        raise Difference(f'btrfs check: {done.stdout.decode()}{done.stderr.decode()}')


def refused(path, size, options, why):
    done = make(path, size, BTRKIT, 'mkfs', '-q', *options)
    if not done.returncode:
        raise Difference(f'is made, though mkfs.btrfs says {why.decode()}')
    return 0


def check(ours, theirs, size, options, uuids, may_fail=False):
    given = [FSID, DEVICE][:len(uuids) // 2]
    for path, command in ((theirs, (MKFS, '-q', '-f', *peer_options(options))),
                          (ours, (BTRKIT, 'mkfs', '-q', *options))):
        done = make(path, size, *command, *uuids)
        if done.returncode and may_fail and path == theirs:
            return refused(ours, size, options, done.stderr)
        if done.returncode or done.stdout:
            raise Difference(f'{" ".join(command)}: exit {done.returncode}: {done.stdout} {done.stderr}')
    # Given files, it looks at the first one only.
    if not isinstance(size, tuple):
        clean(ours)
    return compare_dumps(dumps(theirs, size), dumps(ours, size), given)


def limits():
    """Generate number of devices, options, and the smallest device size in bytes for mkfs.btrfs and for ours."""
    for profiles, size in PROFILES.items():
        for nodes in ('4k', '16k', '64k'):
            yield 1, ('-n', nodes, *profiles), size * M, (size + LARGE_NODES.get((nodes, profiles), 0)) * M
    for name, count in RAID.items():
        for options, size in ((('-d', name, '-m', name), 125), (('-d', name, '-m', 'single'), 101),
                              (('-m', name), 69), (('-M', '-d', name, '-m', name), 85)):
            yield count, options, size * M, size * M
    for count, name, size in ((1, 'single', 16 * M), (6, 'single', 16 * M), (1, 'dup', 157 * M),
                              (6, 'dup', 129 * M), (2, 'raid0', 72 * M + 3 * M // 16),
                              (6, 'raid0', 67 * M + 5 * M // 8), (3, 'raid1', 73 * M), (6, 'raid1', 65 * M),
                              (4, 'raid1c3', 73 * M), (5, 'raid1c4', 73 * M), (6, 'raid10', 67 * M + 5 * M // 8),
                              (3, 'raid5', 73 * M), (4, 'raid6', 73 * M), (6, 'raid6', 67 * M + 5 * M // 8)):
        yield count, ('-M', '-d', name, '-m', name), size, size


def smallest(path):
    """The same limit as mkfs.btrfs: both make a filesystem of this size, and neither with a sector less per device."""
    counted = 0
    for count, options, theirs, ours in thinned(limits(), 4):
        for size, program in ((theirs, (MKFS, '-q', '-f')), (ours, (BTRKIT, 'mkfs', '-q'))):
            for less, wanted in ((0, 0), (4096, 1)):
                done = make(path, (size - less,) * count, *program, *options)
                if done.returncode != wanted:
                    raise Difference(f'{program[0]} {" ".join(options)}: exit {done.returncode} with {count} devices '
                                     f'of {size} bytes less {less}: {done.stderr.decode()}')
                counted += 1
    return counted


def self_test(theirs, ours):
    """The comparison must notice a change of each kind of thing that must not differ."""
    tree, text = ours
    planted = [
        (r'bytes_used \d+', 'bytes_used 5'), (r'nbytes 16384', 'nbytes 4096'), (r'owner UUID_TREE', 'owner 77'),
        (r'mode 40755', 'mode 40700'), (r'type DATA', 'type METADATA'), (r'length 33554432', 'length 33550336'),
        (r'block group used \d+', 'block group used 4096'), (r'FREE_SPACE_EXTENT (\d+)\)', 'FREE_SPACE_EXTENT 4096)'),
        (r'(root_dirid 256 bytenr )\d+', r'\g<1>4096'), (r'backref root CSUM_TREE', 'backref root FS_TREE'),
        (r'otime [1-9]\d+', 'otime 0'), (r'generation_v2 \d+', 'generation_v2 0'),
        (r'(uuid )(?!0{8}|\w{8}-.*\nchunk)\w{8}', r'\g<1>00000001'),
        (r'dev_uuid \w{8}', 'dev_uuid 00000000'), (r'name: default', 'name: defaulu'), (r'itemsize 98', 'itemsize 99'),
        (r'stripe 1 devid 1 offset \d+', 'stripe 1 devid 1 offset 77'),
        (r'(?s)\titem 1 .*?(?=\titem 2)', ''),
    ]
    texts = [((tree, text), (re.sub(pattern, to, tree, count=1), text), pattern) for pattern, to in planted]
    texts += [((tree, text), (tree, re.sub(pattern, to, text, count=1)), pattern) for pattern, to in (
        (r'(\ntotal_bytes\s+)\d+', r'\g<1>5'), (r'(incompat_flags\s+0x)\w+', r'\g<1>1'),
        (r'(\nlabel\s+).*', r'\1other'),
        (r'(\nroot\s+)\d+', r'\g<1>4096'), (r'(backup_fs_root:\s+)\d+', r'\g<1>4096'),
        (r'(cache_generation\s+)0', r'\g<1>1'),
        (r'(dev_item.bytes_used\s+)\d+', r'\g<1>1'), (r'(csum_root:\s+\d+\s+gen: )\d+', r'\g<1>0'))]
    for good, bad, pattern in texts:
        if good == bad:
            raise AssertionError(f'{pattern} is not in the dump')
        try:
            compare_dumps(theirs, bad, ())
        except (Difference, ValueError, AttributeError):
            continue
        raise AssertionError(f'a planted difference was not seen: {pattern}')
    return len(texts)


def derived(ours, theirs):
    """With DETERMINISTIC_SEED=1, the same fsid gives the same UUIDs. Return their number."""
    if compare.progs_version() < (7, 3):
        return 0
    compare.ENV['DETERMINISTIC_SEED'] = '1'
    found = 0
    for size, given in ((300 * M, ()), (300 * M, ('--device-uuid', DEVICE)), ((300 * M,) * 3, ('-n', '4k'))):
        made = []
        for path, command in (theirs, [MKFS, '-q', '-f']), (ours, [BTRKIT, 'mkfs', '-q', '-f']):
            done = make(path, size, *command, '-U', FSID, *given)
            assert not done.returncode, done.stderr
            text = '\n'.join(dumps(path, size))
            made.append(sorted(set(re.findall(r'((?:\w+ )*\S*uuid)\s+([0-9a-f]{8}-\S+)', text))))
        found += same(*made, 'UUIDs')
    refused = [make(path, 300 * M, *command).returncode for path, command in (
        (theirs, [MKFS, '-q', '-f']), (ours, [BTRKIT, 'mkfs', '-q', '-f']))]
    assert refused == [1, 2], f'DETERMINISTIC_SEED without a fsid: {refused}'
    del compare.ENV['DETERMINISTIC_SEED']
    return found


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--random', type=int, default=0, metavar='N', help='as many more, of any kind')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def main():
    compare.need_peer()
    args = options()
    compare.ENV.pop('SOURCE_DATE_EPOCH', None)
    compare.ENV.pop('DETERMINISTIC_SEED', None)
    rng = random.Random(args.seed)
    failed, made, lines = [], 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = f'{scratch}/ours.img', f'{scratch}/theirs.img'
        lines += check(ours, theirs, 300 * M, (), ())
        planted = self_test(dumps(theirs), dumps(ours))
        fixed = thinned([*cases(), *several_cases()], 4) if not args.random else []
        for number, (size, given) in enumerate(fixed + [random_case(rng) for _ in range(args.random)]):
            uuids = [(), ('-U', FSID), ('-U', FSID, '--device-uuid', DEVICE)][number % 3]
            try:
                lines += check(ours, theirs, size, given, uuids, number >= len(fixed))
            except (Difference, RuntimeError, ValueError, subprocess.SubprocessError) as e:
                failed.append(f'{size} {" ".join(given)}: {e}')
            made += 1
        attempts, uuids = smallest(ours), derived(ours, theirs)
    print(*failed, sep='\n')
    print(f'compared {made} filesystems, {lines} lines of dumps, {attempts} attempts at the smallest size, '
          f'{uuids} derived UUIDs; {planted} planted differences; {len(failed)} failed')
    return 1 if failed or not lines else 0


if __name__ == '__main__':
    sys.exit(main())
