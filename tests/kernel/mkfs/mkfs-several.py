#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems of `btrkit mkfs` on several devices, of every profile and checksum: Linux mounts, fills and scrubs them
without complaints; btrfs check finds nothing; the library reads every file as Linux does.

    mkfs-several.py [--deep] [--only PATTERN] [--part I/N] [--list]

BTRKIT and READ_FILES are the programs under test; BTRFS is from btrfs-progs. Exits with 77 if it cannot run.
"""
import os
import re
import subprocess
import sys
import tempfile
import uuid

import several_devices
from image import BTRFS, run
from several_devices import BTRKIT, PROFILES, Fresh, need

# Devices; mkfs options; mount options. Every profile on its minimal number of devices.
ROWS = [
    (1, ('-d', 'single', '-m', 'single'), ''),
    (1, ('-d', 'dup', '-m', 'dup', '--csum', 'xxhash'), 'compress=zstd'),
    (1, ('-d', 'raid0', '-m', 'raid0', '--csum', 'sha256', '-n', '4k'), ''),
    (2, ('-d', 'raid1', '-m', 'raid1', '--csum', 'blake2'), ''),
    (3, ('-d', 'raid1c3', '-m', 'raid1c3', '-n', '64k'), ''),
    (4, ('-d', 'raid1c3', '-m', 'raid1c4', '--csum', 'sha256'), ''),
    (2, ('-d', 'raid10', '-m', 'raid10', '--csum', 'xxhash'), ''),
    (2, ('-d', 'raid5', '-m', 'raid5', '--csum', 'blake2'), ''),
    (3, ('-d', 'raid6', '-m', 'raid6'), ''),
    # On more devices.
    (2, (), ''),
    (6, ('-d', 'raid0', '-m', 'raid0', '--csum', 'xxhash'), 'compress=zstd'),
    (4, ('-d', 'raid10', '-m', 'raid10', '--csum', 'blake2', '-n', '4k'), ''),
    (3, ('-d', 'raid5', '-m', 'raid5', '-O', 'squota'), 'compress=lzo'),
    (5, ('-d', 'raid6', '-m', 'raid6', '-n', '64k'), ''),
    (1, ('-M',), ''),
    (2, ('-M', '-d', 'raid1', '-m', 'raid1', '-O', 'quota'), ''),
]
NODES = ((), ('-n', '4k'), ('-n', '64k'))
MOUNTS = ('', 'compress=zstd', '', 'compress-force=lzo', 'compress=zlib')


def deep_rows():
    for number, (count, given) in enumerate(several_devices.matrix()):
        yield count, (*given, *NODES[number % 3]), MOUNTS[number % 5]
    for number, (count, given) in enumerate(several_devices.mixed_matrix()):
        yield count, given, MOUNTS[number % 5]
    for number, (name, smallest) in enumerate(PROFILES.items()):
        yield smallest + 1, ('-d', name), ''
        yield smallest + 1, ('-m', name), ''
        both = ('-d', name, '-m', name)
        yield 5, (*both, '-O', '^free-space-tree'), ''
        yield 4, (*both, '-O', '^skinny-metadata,^no-holes'), ''
        yield 4, (*both, '-O', ('quota', 'squota')[number % 2]), ''


def check(row, scratch, rng):
    """@return number of compared files"""
    count, given, options = row
    # On a single device two copies need space before anything is freed.
    volume = Fresh(scratch, count, '300M' if count > 1 else '600M')
    volume.mkfs(*given)
    volume.attach()
    volume.check()
    mnt = volume.mount(options)
    several_devices.need_profiles(mnt, count, given)
    several_devices.fill(mnt, rng)
    several_devices.count_again(mnt, given)
    several_devices.scrub(mnt)
    volume.unmount()
    volume.check()
    wanted = several_devices.manifest(volume.mount(readonly=True))
    volume.unmount()
    several_devices.read_back(volume, scratch, wanted)
    volume.remove()
    return len(wanted)


def on_loops(scratch):
    """Made on loop devices: Linux knows all of them when the first is mounted, even without udev."""
    volume = Fresh(scratch, 3)
    volume.attach()
    fsid = str(uuid.uuid4())
    run(BTRKIT, 'mkfs', '-q', '-d', 'raid0', '-U', fsid, *volume.loops)
    volume.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
    run('mount', '-t', 'btrfs', volume.loops[0], volume.mnt)
    text = run(BTRFS, 'filesystem', 'show', volume.mnt).decode()
    need(f'uuid: {fsid}\n' in text and all(re.search(rf'path {loop}$', text, re.M) for loop in volume.loops), text)
    run('umount', volume.mnt)
    os.rmdir(volume.mnt)
    volume.mnt = None
    # A UUID may be reused when overwriting the same filesystem, but not while another filesystem has it.
    run(BTRKIT, 'mkfs', '-q', '-f', '-U', fsid, *volume.loops)
    others = [f'{scratch}/other{i}.img' for i in range(2)]
    for path in others:
        run('truncate', '-s', '300M', path)
    done = subprocess.run([BTRKIT, 'mkfs', '-q', '-U', fsid, *others], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    need(done.returncode == 1 and re.fullmatch(rb'btrkit mkfs: the filesystem on /dev/loop\d+ has that UUID\n',
                                               done.stderr), done.stderr)
    need(not any(os.stat(path).st_blocks for path in others), 'refused, and yet written to')
    run(BTRKIT, 'mkfs', '-q', '-U', fsid, others[0])
    volume.remove()
    for path in others:
        os.unlink(path)


def busy(scratch):
    """If one of several devices is mounted, mkfs refuses and writes nothing to the others."""
    volume, other = Fresh(scratch, 2), f'{scratch}/other.img'
    volume.mkfs()
    volume.attach()
    volume.mount()
    run('truncate', '-s', '300M', other)
    for first in (0, 1):
        devices = [other, volume.loops[1]] if first else [volume.loops[1], other]
        done = subprocess.run([BTRKIT, 'mkfs', '-q', '-f', *devices], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        need(done.returncode == 1 and f'{volume.loops[1]}: in use' in done.stderr.decode(), done.stderr)
        need(not os.stat(other).st_blocks, 'refused, and yet written to')
    volume.unmount()
    volume.remove()
    os.unlink(other)


if __name__ == '__main__':
    sys.exit(several_devices.main(__doc__, ROWS, deep_rows, check, (on_loops, busy)))
