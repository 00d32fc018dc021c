#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Create a million empty files with names of 24 bytes by 16 threads in 16 directories, in one transaction, on a
single-device filesystem with single profiles; Linux does the same on a loop device. The time includes the commit or the
sync. $BENCH_FILES: another number of files."""
import os
import statistics

import pairs
from pairs import image

FILES = int(os.environ.get('BENCH_FILES', '1000000'))
THREADS = 16
NAME = 24


def fresh(path):
    if os.path.exists(path):
        os.unlink(path)
    image.run('truncate', '-s', '20G', path)
    image.run(image.MKFS, '-q', '-m', 'single', '-d', 'single', path)


def ours(path):
    fresh(path)
    whole, made, committed = map(float, image.run(pairs.program('bench-create'), path, str(THREADS), str(FILES),
                                                  str(NAME)).split()[:3])
    return whole, made, committed


def linux(path, program):
    fresh(path)
    part = image.Image(path, None)
    part.mount('noatime')
    try:
        return float(image.run(program, 'create', part.mnt, str(THREADS), str(FILES), str(NAME)))
    finally:
        part.umount()


def main():
    pairs.skip_unless_possible()
    program = pairs.compiled('linux-files')
    path = os.path.join(pairs.FOLDER, 'create.img')
    times, theirs = [], []
    try:
        for _ in range(pairs.PAIRS):
            times.append(ours(path))
            theirs.append(linux(path, program))
        image.run(image.BTRFS, 'check', path)
        ours(path)
        image.run(image.BTRFS, 'check', path)
    finally:
        os.unlink(path)
    whole, made, committed = (statistics.median(each) for each in zip(*times))
    peer = statistics.median(theirs)
    print(f'create: {FILES / whole:.0f} files/s in {whole:.2f} s, {made:.2f} of it operations and {committed:.2f} the '
          f'commit, goal 500000: {"reached" if FILES / whole >= 500000 else "not reached"}; '
          f'Linux {FILES / peer:.0f} files/s in {peer:.2f} s, {peer / whole:.1f} times that, goal 8: '
          f'{"reached" if peer >= 8 * whole else "not reached"}')


if __name__ == '__main__':
    main()
