#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write a large file sequentially, by the library into an image and by Linux into a mounted one, in turns: uncompressed
and with zstd:3. The time includes the commit or the sync.

    write.py [MIB]
"""
import os
import statistics
import sys

import pairs
from pairs import image


def ours(path, mib, compression):
    return image.run(pairs.program('bench-write'), path, str(mib), str(compression))


def linux(path, mib, options):
    part = image.Image(path, None)
    part.mount(options)
    try:
        return image.run(pairs.program('bench-write'), '-f', os.path.join(part.mnt, 'big'), str(mib))
    finally:
        part.umount()


def main():
    pairs.skip_unless_possible()
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    os.makedirs(pairs.FOLDER, exist_ok=True)
    path = os.path.join(pairs.FOLDER, 'write.img')
    for name, compression, options in (('uncompressed', 0, ''), ('zstd:3', 3, 'compress-force=zstd:3')):
        times = ([], [])
        for _ in range(pairs.PAIRS):
            for side, run in enumerate((lambda: ours(path, mib, compression), lambda: linux(path, mib, options))):
                made = image.Image(path, f'{mib + 2048}M')
                made.mkfs()
                times[side].append([float(x) for x in run().split()])
                made.remove()
        a, b = ([statistics.median(column) for column in zip(*side)] for side in times)
        print(f'{name}, {mib} MiB: btrkit {a[0]:.2f} s ({mib / a[0]:.0f} MiB/s; commit {a[1]:.2f}), Linux {b[0]:.2f} s '
              f'({mib / b[0]:.0f} MiB/s; sync {b[1]:.2f}), ratio {b[0] / a[0]:.2f}; load {os.getloadavg()[0]:.1f}')


main()
