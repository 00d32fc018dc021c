#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The smallest filesystems of `btrkit mkfs`, of every profile: Linux mounts each, and there is space for a directory,
small files and a megabyte of data; btrfs check finds nothing.

    mkfs-smallest.py [--deep]

BTRKIT is the program under test; BTRFS is from btrfs-progs. Exits with 77 if it cannot run.
"""
import errno
import importlib
import os
import sys
import tempfile

import image
import volumes

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../dump'))
limits = importlib.import_module('mkfs-dump').limits

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
# Without --deep, every STEP-th limit, and those that differ from mkfs.btrfs.
STEP = 5


def write(path, size, pieces=1):
    with open(path, 'wb') as f:
        for _ in range(pieces):
            f.write(os.urandom(size))
            os.fsync(f.fileno())


def again(mnt, change, *args):
    """Linux may find no space while blocks that a commit frees are still in use, including those of the first mount,
    which may not have been committed when the first directory is created."""
    for tries in range(3, -1, -1):
        try:
            return change(*args)
        except OSError as e:
            if e.errno != errno.ENOSPC or not tries:
                raise
            image.run('sync', '-f', mnt)
    return None


def fill(mnt):
    again(mnt, os.mkdir, f'{mnt}/folder')
    for number in range(30):
        again(mnt, write, f'{mnt}/folder/{number}', 1500)
    again(mnt, write, f'{mnt}/data', 65536, 16)
    image.run('sync', '-f', mnt)


def check(scratch, count, options, size):
    volume = volumes.Volume(scratch, count, str(size))
    try:
        image.run(BTRKIT, 'mkfs', '-q', *options, *volume.paths)
        mnt = volume.mount()
        fill(mnt)
        if not image.unmount(mnt, volume.devices()):
            raise RuntimeError('it cannot be unmounted')
        image.run(image.BTRFS, 'check', '--check-data-csum', volume.loops[0])
    finally:
        volume.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    failed = counted = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-smallest-') as scratch:
        for number, (count, options, theirs, ours) in enumerate(limits()):
            if '--deep' not in sys.argv and number % STEP and theirs == ours:
                continue
            counted += 1
            try:
                image.unless_wedged(check, scratch, count, options, ours)
            except (RuntimeError, OSError) as e:
                failed += 1
                print(f'{count} devices of {ours} bytes, {" ".join(options)}: {type(e).__name__}: {e}')
    print(f'{counted} smallest filesystems, {failed} failed')
    return 1 if failed or counted < 10 else 0


if __name__ == '__main__':
    sys.exit(main())
