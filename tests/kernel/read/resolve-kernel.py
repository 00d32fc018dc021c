#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""On filesystems of random plans, with snapshots and clones: `btrkit logical-resolve` and `btrkit fiemap --owners`
report the same files as LOGICAL_INO_V2 of Linux, with and without offsets; `btrkit inode-resolve` reports every path
under which Linux shows an inode.

    resolve-kernel.py [--plans N] [--seed N]

BTRKIT is the program under test; MKFS is from btrfs-progs. Exits with 77 if it cannot run.
"""
import argparse
import collections
import ctypes
import fcntl
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import image
import ops
import plan

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
LOGICAL_INO_V2, IGNORE_OFFSET = 0xC038943B, 1
INLINE = 0x200
ADDRESSES, INODES = 60, 40
count = collections.Counter()


class Failure(Exception):
    pass


def need(condition, *what):
    if not condition:
        raise Failure(' '.join(map(str, what)))
    count['checks'] += 1


def ask_linux(fd, address, flags):
    """{(root, inode, offset)}, or None if Linux finds nothing."""
    size = 1 << 20
    answer = ctypes.create_string_buffer(size)
    args = bytearray(struct.pack('=QQ24xQQ', address, size, flags, ctypes.addressof(answer)))
    try:
        fcntl.ioctl(fd, LOGICAL_INO_V2, args)
    except OSError:
        return None
    _, missing, values, lost = struct.unpack_from('=IIII', answer)
    need(not missing and not lost, 'the answer is too long')
    found = struct.unpack_from(f'={values}Q', answer, 16)
    return {(root, inode, offset) for inode, offset, root in zip(found[::3], found[1::3], found[2::3])}


def btrkit(*args):
    return subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def rows(done):
    return [json.loads(line) for line in done.stdout.decode().splitlines()[1:]]


def compare_address(path, address, flags, wanted):
    options = ['-o'] if flags else []
    done = btrkit('logical-resolve', '-P', *options, path, str(address))
    found = re.findall(rb'^inode (\d+) offset (\d+) root (\d+)$', done.stdout, re.M)
    found = [(int(root), int(inode), int(offset)) for inode, offset, root in found]
    if wanted is None:
        need(done.returncode == 1 and not done.stdout and done.stderr.count(b'\n') == 1, address, done)
        count['refused'] += 1
        return
    need(not done.returncode and found == sorted(wanted), f'{address}, -o {bool(flags)}: {found} {done.stderr}, Linux',
         sorted(wanted))
    count['references'] += len(found)


def compare_paths(path, address, wanted, names):
    """Without -P: all names of all files."""
    expected = sorted(name for root, inode, _ in wanted for name in names[root, inode])
    done = btrkit('logical-resolve', path, str(address))
    lines = [line for line in done.stdout.decode().splitlines() if not line.startswith('inode ')]
    need(not done.returncode and sorted(lines) == expected, f'{address}: {lines} {done.stderr}, Linux {expected}')
    found = sorted(row['path'] for row in rows(btrkit('logical-resolve', '--format', 'json', path, str(address)))
                   if 'path' in row)
    need(found == expected, f'{address} as JSON: {found}, Linux {expected}')
    count['paths'] += len(expected)


def names_of(mnt):
    """{(root, inode): paths}, from a walk through the mounted filesystem."""
    names = collections.defaultdict(list)
    for folder, _, files in os.walk(mnt):
        # The placeholder of a nested subvolume in a snapshot has no inode.
        if os.lstat(folder).st_ino == 2:
            continue
        root = ops.root_id(folder)
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            names[root, os.lstat(path).st_ino].append(os.path.relpath(path, mnt) if path != mnt else '')
    return names


def compare_inode(path, root, inode, wanted):
    done = btrkit('inode-resolve', '--subvol', str(root), path, str(inode))
    need(not done.returncode and sorted(done.stdout.decode().splitlines()) == sorted(wanted),
         f'inode {inode} of {root}: {done}, Linux {wanted}')
    count['inodes'] += 1


def compare_owners(path, wanted):
    """Compare the row of each extent with Linux's references to the whole extent."""
    for row in rows(btrkit('fiemap', '-a', '--owners', '--format', 'json', path)):
        found = [(ref['root'], ref['inode'], ref['offset']) for ref in row['owners']]
        if row['flags'] & INLINE:
            need(not found, row)
        elif (row['physical'], IGNORE_OFFSET) in wanted:
            need(found == sorted(wanted[row['physical'], IGNORE_OFFSET]), row, 'Linux',
                 sorted(wanted[row['physical'], IGNORE_OFFSET]))
            count['owners'] += len(found)
    listed = btrkit('fiemap', '-a', '--owners', '--format', 'tsv', path).stdout.decode().splitlines()
    need({len(row.split('\t')) for row in listed} == {10}, 'columns')


def data_addresses(path, rng):
    """Addresses in extents, at their edges and between them."""
    listed = btrkit('fiemap', '-a', '--format', 'tsv', path).stdout.decode(errors='replace').splitlines()
    rows_ = sorted({tuple(map(int, row.split('\t')[3:5])) for row in listed if row.split('\t')[3] != '0'})
    for physical, length in rng.sample(rows_, min(ADDRESSES, len(rows_))):
        yield from {physical, physical + rng.randrange(length), physical + length - 1, physical + length}
    need(rows_, 'no extents')


def run(seed, scratch):
    mkfs, mount = plan.shape(seed)
    rng = random.Random(seed)
    img = image.Image(os.path.join(scratch, f'{seed}.img'))
    img.mkfs(*mkfs)
    img.mount(mount)
    work = plan.Plan(img.mnt, seed)
    work.weights['balance'] = 0
    # More names for an inode than fit into one item, and nested subvolumes.
    work.run(700)
    ops.subvolume(f'{img.mnt}/outer')
    ops.subvolume(f'{img.mnt}/outer/inner')
    os.makedirs(f'{img.mnt}/outer/inner/d/e')
    ops.write(f'{img.mnt}/outer/inner/d/e/file', 0, ops.incompressible(8192))
    for k in range(600):
        os.link(f'{img.mnt}/outer/inner/d/e/file', f'{img.mnt}/outer/inner/d/{k:03}' + 'l' * 100)
    ops.snapshot(f'{img.mnt}/outer/inner', f'{img.mnt}/outer/again')
    ops.sync(img.mnt)
    img.umount()
    img.mount(mount + ',ro' if mount else 'ro')
    names = names_of(img.mnt)
    addresses = sorted(set(data_addresses(img.path, rng)))
    with ops.opened_dir(img.mnt) as fd:
        wanted = {(at, flags): ask_linux(fd, at, flags) for at in addresses for flags in (0, IGNORE_OFFSET)}
    img.umount()
    for (address, flags), found in wanted.items():
        compare_address(img.path, address, flags, found)
    compare_owners(img.path, wanted)
    for address in rng.sample(addresses, min(20, len(addresses))):
        if wanted[address, 0]:
            compare_paths(img.path, address, wanted[address, 0], names)
    linked = max(names, key=lambda place: len(names[place]))
    for root, inode in {linked, *rng.sample(sorted(names), min(INODES, len(names)))}:
        compare_inode(img.path, root, inode, names[root, inode])
    need(btrkit('inode-resolve', img.path, '99999').returncode == 1, 'an inode that is not there')
    img.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plans', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    failed = 0
    for seed in range(args.seed, args.seed + args.plans):
        with tempfile.TemporaryDirectory(prefix='btrkit-resolve-') as scratch:
            try:
                run(seed, scratch)
            except (Failure, OSError, RuntimeError) as e:
                print(f'seed {seed}: {e}')
                failed += 1
            finally:
                image.cleanup()
    print(f'compared {count["references"]} references, {count["owners"]} of rows, {count["paths"]} paths and '
          f'{count["inodes"]} inodes with Linux; {count["refused"]} addresses without data; {failed} failed')
    return 1 if failed or not (count['references'] and count['owners'] and count['refused']) else 0


if __name__ == '__main__':
    sys.exit(main())
