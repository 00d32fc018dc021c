#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ranges of btrkit_used_ranges() are all that Linux needs, on filesystems of every profile.

The example copy-used copies them to devices of zeros and to devices of garbage: Linux mounts the result, reads all
files, scrubs every copy and all parity without errors, and btrfs check finds nothing.

COPY_USED is the example. Exits with 77 if it cannot run."""
import os
import re
import sys

import image
import several_devices

COPY_USED = os.environ.get('COPY_USED', 'copy-used')
M = 1 << 20

# Devices, mkfs.btrfs options, mount options.
ROWS = [
    (1, ('-d', 'single', '-m', 'single'), ''),
    (1, ('-d', 'dup', '-m', 'dup'), 'compress=zstd'),
    (3, ('-d', 'raid0', '-m', 'raid1'), ''),
    (3, ('-d', 'raid5', '-m', 'raid1c3'), ''),
    (4, ('-d', 'raid6', '-m', 'raid6'), 'compress=zstd'),
]


def deep_rows():
    yield from ROWS
    yield from ((1, ('-M', '-d', 'single', '-m', 'single'), ''), (2, ('-d', 'single', '-m', 'raid1'), ''))
    for name in several_devices.PROFILES:
        yield 4, ('-d', name, '-m', name, '-n', '4k' if name == 'raid10' else '64k'), ''


class Copy(several_devices.Fresh):
    """The devices to copy to."""

    def __init__(self, folder, of, garbage):
        os.mkdir(folder)
        super().__init__(folder, len(of.paths), str(os.path.getsize(of.paths[0])))
        for path in self.paths if garbage else ():
            size = os.path.getsize(path)
            with open(path, 'wb') as f:
                for _ in range(size // M):
                    f.write(os.urandom(1 << 10) * (1 << 10))


def check_copy(volume, folder, garbage, wanted):
    copy = Copy(folder, volume, garbage)
    pairs = [path for pair in zip(volume.paths, copy.paths) for path in pair]
    copied = int(re.fullmatch(r'(\d+) bytes\n', image.run(COPY_USED, *pairs).decode()).group(1))
    taken = sum(os.stat(path).st_blocks * 512 for path in copy.paths)
    several_devices.need(garbage or taken <= copied + M, f'{copied} bytes were copied, which take {taken}')
    copy.attach()
    several_devices.need_equal(several_devices.manifest(copy.mount(readonly=True)), wanted, 'Linux')
    copy.unmount()
    copy.check()
    several_devices.scrub(copy.mount())
    copy.unmount()
    copy.check()
    copy.remove()
    return copied


def check(row, scratch, rng):
    count, given, options = row
    volume = several_devices.Fresh(scratch, count, '256M')
    volume.mkfs_peer(*given)
    volume.attach()
    several_devices.fill(volume.mount(options), rng)
    wanted = several_devices.manifest(volume.mnt)
    volume.unmount()
    image.detach(*volume.loops)
    volume.loops = []
    for garbage in (False, True):
        check_copy(volume, f'{scratch}/{"garbage" if garbage else "zeros"}', garbage, wanted)
    volume.remove()
    return len(wanted)


if __name__ == '__main__':
    sys.exit(several_devices.main(__doc__, ROWS, deep_rows, check))
