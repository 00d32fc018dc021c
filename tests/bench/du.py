#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tells who has which space: `btrkit du` beside compsize on a filesystem with 30 snapshots, both with all in the page
cache. Then filesystems of $BENCH_EXTENTS data extents (20 million if not set; a minute and a GB of disk for five) and
of a quarter: time for each tree block, and the memory that the process took, for which there is a bound."""
import json
import os
import shutil
import subprocess
import tempfile
import time

import pairs
import workloads
from pairs import image

EXTENTS = int(os.environ.get('BENCH_EXTENTS', '20000000'))
MIB = 1 << 20


def beside_compsize(path):
    if not shutil.which('compsize'):
        print('du beside compsize: skipped, there is no compsize')
        return
    with tempfile.TemporaryDirectory(prefix='btrkit-du-') as mnt:
        image.run('mount', '-o', 'loop,ro', path, mnt)
        try:
            pairs.compare('du of 31 subvolumes', pairs.process(pairs.BTRKIT, 'du', '--format', 'tsv', path),
                          {'compsize': pairs.process('compsize', mnt)}, 1 / 50)
        finally:
            image.run('umount', mnt)


def run(path):
    """Seconds of the clock, and bytes of memory."""
    start = time.perf_counter()
    process = subprocess.Popen([pairs.BTRKIT, 'du', '--format', 'tsv', path], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f'du {path}: {status}')
    return time.perf_counter() - start, used.ru_maxrss << 10


def measure(extents):
    """Seconds for a tree block."""
    path = pairs.made(f'du-{extents}.img', lambda part: workloads.many_extents(part, extents))
    rows = image.run(pairs.BTRKIT, 'du', '--format', 'json', path).splitlines()
    total = json.loads(rows[-1])['total']['referenced']
    runs = sorted(run(path) for _ in range(pairs.PAIRS))
    seconds, memory = runs[len(runs) // 2]
    bound = 24 * total['extents'] + 16 * total['blocks'] + 128 * MIB
    print(f'du of {total["extents"]} data extents: {seconds:.2f} s ({runs[0][0]:.2f}-{runs[-1][0]:.2f}), '
          f'{seconds / total["blocks"] * 1e6:.2f} us for each of {total["blocks"]} tree blocks; memory '
          f'{memory / MIB:.0f} MiB, goal {bound / MIB:.0f}: {"reached" if memory <= bound else "not reached"}',
          flush=True)
    return seconds / total['blocks']


pairs.skip_unless_possible()
beside_compsize(pairs.made('many-snapshots.img', workloads.many_snapshots))
small, large = measure(EXTENTS // 4), measure(EXTENTS)
print(f'time for a tree block, of the larger to the smaller: {large / small:.2f}, goal 1.30: '
      f'{"reached" if large <= 1.3 * small else "not reached"}')
