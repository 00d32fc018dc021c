#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Load the free space of all block groups of a fragmented filesystem from the free space tree, from the v1 cache and
from the extent tree, compared with Linux, which loads all of it for FITRIM. That is called with a minimal length so
large that nothing is discarded, and again when everything is loaded; the difference is the time for loading."""
import fcntl
import os
import struct
import sys
import time

import pairs
import workloads
from pairs import image

FITRIM = 0xC0185879
SMALLEST = 1 << 30      # of the block groups that Linux must load; excludes the few smaller ones


def trim(mnt):
    fd = os.open(mnt, os.O_RDONLY)
    try:
        start = time.perf_counter()
        fcntl.ioctl(fd, FITRIM, struct.pack('=QQQ', 0, (1 << 64) - 1, SMALLEST))
        return (time.perf_counter() - start) * 1e3
    finally:
        os.close(fd)


class Linux:
    """Measure with a read-only mount for each run."""

    def __init__(self, path, options):
        self.path, self.options = path, options

    def __call__(self):
        mounted = image.Image(self.path, None)
        try:
            mounted.mount(self.options, readonly=True)
            return trim(mounted.mnt) - trim(mounted.mnt)
        finally:
            mounted.umount()


def main():
    pairs.skip_unless_possible()
    for name, make in (('extents', workloads.extents), ('huge-v1', workloads.huge)):
        v1 = pairs.made(f'{name}.img', make)
        v2 = pairs.made(f'{name}-v2.img', lambda part, v1=v1: workloads.to_v2(v1, part))
        for source, path, options in (('tree', v2, 'space_cache=v2'), ('cache', v1, 'space_cache=v1'),
                                      ('extents', v1, 'nospace_cache')):
            # Groups without a cache are loaded from the extent tree.
            command = (pairs.program('bench-space-load'), path, 'extents' if source == 'extents' else 'any')
            print(image.run(*command).decode().split(';')[0])
            pairs.compare(f'load {name} from {source}', pairs.reported(*command), {'Linux': Linux(path, options)})
            sys.stdout.flush()


if __name__ == '__main__':
    main()
