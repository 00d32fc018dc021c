#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check two filesystems, one with a large file and its snapshot and one with 30 snapshots, and compare with btrfs
check, in turns and with a warm page cache: time, processor time and peak memory. Neither program reads file data here;
on a third filesystem, of 1.5 GB, both do. Usage: check.py [IMAGE]..., to use other images, without their data."""
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

import pairs
import workloads
from pairs import image

# Limits relative to the peer's time and memory.
TIME, DATA_TIME, MEMORY = 1 / 8, 1, 1 / 2


def once(*args):
    """Return seconds, processor seconds, and maximal memory in bytes. There must be no findings."""
    start = time.perf_counter()
    with subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f'{" ".join(args)}: exit {process.returncode}')
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss << 10


def compare(work, path, ours=(), theirs=(), goal=TIME):
    ways = {'btrkit': (pairs.BTRKIT, 'check', *ours, path), 'btrfs check': (image.BTRFS, 'check', *theirs, path)}
    runs = {name: [] for name in ways}
    for _ in range(pairs.PAIRS):
        for name, args in ways.items():
            # Run once unmeasured, because the peer's run may have evicted the image from the page cache.
            once(*args)
            runs[name].append(once(*args))
    for what, at, unit, word, most in (('time', 0, 1e-3, 'ms', goal), ('processor', 1, 1e-3, 'ms', goal),
                                       ('memory', 2, 1 << 20, 'MiB', MEMORY)):
        values = {name: [run[at] / unit for run in each] for name, each in runs.items()}
        ratio = statistics.median(values['btrkit']) / statistics.median(values['btrfs check'])
        print(f'{work}, {what}: ' +
              ', '.join(f'{name} {statistics.median(each):.1f} {word} ({min(each):.1f}-{max(each):.1f})'
                        for name, each in values.items()) +
              f', ratio {ratio:.3f}, goal {most:.3f}: {"reached" if ratio <= most else "not reached"}')
    sys.stdout.flush()


def made(name, make):
    """In another process: otherwise the memory used here would be counted for all child processes."""
    child = multiprocessing.Process(target=pairs.made, args=(name, make))
    child.start()
    child.join()
    return pairs.made(name, make)


def main(*paths):
    data = not paths
    if data:
        pairs.skip_unless_possible()
        paths = (made('snap.img', workloads.snapshot_extents),
                 made('many-snapshots.img', workloads.many_snapshots))
    print(f'{image.run(image.BTRFS, "--version").decode().splitlines()[0]}, {len(os.sched_getaffinity(0))} processors, '
          f'load {os.getloadavg()[0]:.1f}')
    for path in paths:
        compare(os.path.basename(path).removesuffix('.img'), path)
    if data:
        path = made('scan.img', workloads.blocks_and_data)
        compare('data', path, ('--data',), ('--check-data-csum',), DATA_TIME)


if __name__ == '__main__':
    main(*sys.argv[1:])
