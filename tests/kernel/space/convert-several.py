#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Convert filesystems of mkfs.btrfs on several devices, of every profile and checksum, by `btrkit space-cache convert`.

They start with a v1 cache that Linux made, and are converted to the free space tree, to v1, to none, and to the tree
again. Each time Linux mounts without rebuilding a cache unless it must, reads all files unchanged, writes, deletes and
scrubs; btrfs check finds nothing; the cache agrees with the extent tree. Finally the library reads every file.

    convert-several.py [--deep] [--only PATTERN] [--part I/N] [--list]

BTRKIT and READ_FILES are the programs under test; MKFS and BTRFS are from btrfs-progs. Exits with 77 if it cannot run.
"""
import json
import os
import re
import sys

import ops
import several_devices
from image import run
from several_devices import BTRKIT, K, M, PROFILES, Fresh, need

# The size of block groups depends on the devices: Linux makes no v1 cache for small ones, and the bitmaps of large ones
# take several tree blocks.
SIZE = '10G'
WITHOUT_V2 = ('-O', '^free-space-tree,^block-group-tree')
OPTIONS = {'v1': 'space_cache=v1', 'v2': 'space_cache=v2', 'none': 'nospace_cache'}

# Devices; mkfs options; targets of the conversions in order. Every profile on its minimal number of devices.
ROWS = [
    (1, ('-d', 'single', '-m', 'single', '--csum', 'sha256'), 'v2 none'),
    (1, ('-d', 'dup', '-m', 'dup'), 'v2 v1'),
    (1, ('-d', 'raid0', '-m', 'raid0', '--csum', 'blake2'), 'v2 v1'),
    (2, ('-d', 'raid1', '-m', 'raid1', '--csum', 'xxhash'), 'v2 none v2'),
    (3, ('-d', 'raid1c3', '-m', 'raid1c3', '--csum', 'sha256'), 'v2 v1'),
    (4, ('-d', 'raid1c4', '-m', 'raid1c4', '--csum', 'blake2'), 'none v2'),
    (2, ('-d', 'raid10', '-m', 'raid10', '-n', '4k'), 'v2 v1 v2'),
    (2, ('-d', 'raid5', '-m', 'raid5', '--csum', 'xxhash'), 'v2 v1'),
    (3, ('-d', 'raid6', '-m', 'raid6', '-n', '64k'), 'v2 none v2'),
    (3, ('-M', '-d', 'raid1', '-m', 'raid1'), 'v2 v1'),
]
NODES = ((), ('-n', '4k'), ('-n', '64k'))
WAYS = ('v2 v1', 'v2 none v2', 'none v2')
ALL = 'v2 v1 none v2'


def deep_rows():
    for number, (count, given) in enumerate(several_devices.matrix()):
        yield count, (*given, *NODES[number % 3]), WAYS[number // 2 % 3]
    for number, (count, given) in enumerate(several_devices.mixed_matrix()):
        yield count, given, WAYS[number % 3]
    for name, smallest in PROFILES.items():
        yield smallest + 1, ('-d', name, '-m', 'raid1'), ALL
        yield max(smallest, 2), ('-d', 'raid1', '-m', name), ALL


class Converted(Fresh):
    def __init__(self, folder, count):
        super().__init__(folder, count, SIZE)
        self.wanted, self.compared = {}, 0

    def space_cache(self, *args):
        return run(BTRKIT, 'space-cache', *args, *(f'--device={loop}' for loop in self.loops[1:]),
                   self.loops[0]).decode()

    def need_cache(self, kind):
        """The cache in use must be valid, and agree with the extent tree in every group that has one."""
        now = json.loads(self.space_cache('status', '--format=json').splitlines()[-1])['summary']
        need(now['in_use'] == kind and now.get('valid', True) and not now['contradictions'], f'status {now}')
        if kind == 'v2':
            need(now['v2']['equal'] == now['groups'] and not now['v2']['leftovers'], f'status {now}')
        elif kind == 'v1':
            # The remaining groups are small.
            need(now['v1']['equal'] and now['v1']['equal'] + now['v1']['absent'] == now['groups'], f'status {now}')
        for other in {'v1', 'v2'} - {kind}:
            need(now[other]['absent'] == now['groups'] and not now[other]['leftovers'], f'status {now}')

    def use(self, rng, turn):
        """Write, and delete about half of the files. The large file does not fit into a small block group."""
        names = [f'{self.mnt}/turn{turn}-{k}' for k in range(60)]
        for name in names:
            with open(name, 'wb') as f:
                f.write(rng.randbytes(rng.choice((100, 4 * K, 20 * K, 70 * K))))
        ops.write(f'{self.mnt}/large{turn}', 0, ops.incompressible(9 * M, turn))
        ops.sync(self.mnt)
        old = [f'{self.mnt}/{name}' for name in os.listdir(self.mnt) if name.startswith(('little', 'turn', 'large'))]
        for name in rng.sample(sorted(old), len(old) // 2):
            os.unlink(name)

    def linux(self, kind, rng, turn):
        """Mount with the default options, which must use the chosen cache."""
        mnt = self.mount()
        with open('/proc/mounts', encoding='utf-8') as f:
            mounted = next(line.split()[3].split(',') for line in f if line.split()[1] == mnt)
        need({'v1': 'space_cache', 'v2': 'space_cache=v2', 'none': 'nospace_cache'}[kind] in mounted, mounted)
        # Scrub immediately: what the conversion wrote is soon replaced.
        several_devices.scrub(mnt)
        anew = [said for said in self.log.lines(*self.loops)
                if re.search('(creating|rebuilding|clearing) free space tree', said)]
        need(not anew, f'Linux says: {anew}')
        several_devices.need_equal(several_devices.manifest(mnt), self.wanted, 'Linux')
        self.compared += len(self.wanted)
        self.use(rng, turn)
        self.wanted = several_devices.manifest(mnt)
        self.unmount()
        self.check()
        self.need_cache(kind)


def pieces(mnt):
    """Free space in 2,000 fragments."""
    with ops.Opened(f'{mnt}/pieces') as fd:
        ops.fallocate_each(fd, ((k * 8 * K, 8 * K) for k in range(4000)))
        ops.fallocate_each(fd, ((k * 8 * K, 8 * K) for k in range(0, 4000, 2)), ops.PUNCH_HOLE | ops.KEEP_SIZE)
    ops.sync(mnt)


def check(row, scratch, rng):
    """@return number of compared files"""
    count, given, kinds = row
    volume = Converted(scratch, count)
    volume.mkfs_peer(*given, *WITHOUT_V2)
    volume.attach()
    mnt = volume.mount(OPTIONS['v1'])
    several_devices.need_profiles(mnt, count, given)
    several_devices.fill(mnt, rng)
    pieces(mnt)
    volume.wanted = several_devices.manifest(mnt)
    volume.unmount()
    volume.need_cache('v1')
    for turn, kind in enumerate(kinds.split()):
        said = volume.space_cache('convert', '--to', kind)
        need(said, 'convert says nothing')
        # Linux itself makes a v1 cache when it mounts.
        if kind != 'v1':
            volume.need_cache(kind)
        volume.check()
        volume.linux(kind, rng, turn)
    # Check what Linux wrote over ours.
    several_devices.scrub(volume.mount())
    volume.unmount()
    several_devices.read_back(volume, scratch, volume.wanted)
    volume.remove()
    return volume.compared + len(volume.wanted)


if __name__ == '__main__':
    sys.exit(several_devices.main(__doc__, ROWS, deep_rows, check))
