#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check a filesystem with very many data extents, $BENCH_EXTENTS (default 20 million), with tables in memory and in a
file, and compare with btrfs check, which gets ten minutes. Memory has a limit that depends on the contents of the
filesystem; with a file, only memory that is not backed by a file counts. Creating the filesystem takes Linux some
minutes the first time, and 5 GB; `du.py` uses the same one."""
import json
import os
import subprocess
import sys
import time

import pairs
import workloads
from pairs import image

EXTENTS = int(os.environ.get('BENCH_EXTENTS', '20000000'))
MIB = 1 << 20
# Bytes per extent or tree block, and for the program.
EACH, REST = 64, 128 * MIB
# For the part of the tables that may stay in memory.
SPILL = 64 * MIB
PEER_SECONDS = 600


def memory_of(process):
    """Bytes that are not backed by a file."""
    with open(f'/proc/{process.pid}/status', encoding='ascii') as f:
        return next((int(line.split()[1]) << 10 for line in f if line.startswith('RssAnon')), 0)


def run(*args):
    """Return seconds, processor seconds, maximal memory in bytes, and the output."""
    start, most = time.perf_counter(), 0
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            most = max(most, memory_of(process))
            if time.perf_counter() - start > PEER_SECONDS:
                process.kill()
            time.sleep(0.01)
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 0:
        raise RuntimeError(f'{" ".join(args)}: exit {process.returncode}')
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, most, said, process.returncode


def tell(name, measured, bound):
    seconds, processor, memory, _, code = measured
    line = f'    {name}: {seconds:.1f} s{" until it was ended" if code else ""}, of processors {processor:.1f} s, '
    line += f'{memory / MIB:.0f} MiB'
    if bound:
        line += f', bound {bound / MIB:.0f}: {"reached" if memory <= bound else "not reached"}'
    print(line, flush=True)


def main():
    pairs.skip_unless_possible()
    path = pairs.made(f'du-{EXTENTS}.img', lambda part: workloads.many_extents(part, EXTENTS))
    # This also brings the image into the page cache.
    rows = map(json.loads, run(pairs.BTRKIT, 'check', '--json', path)[3].splitlines())
    summary = next(row for row in rows if row.get('kind') == 'summary')
    blocks, extents = summary['blocks'], summary['extents']
    print(f'check of {extents} data extents, {blocks} tree blocks, load {os.getloadavg()[0]:.1f}')
    tell('in memory', run(pairs.BTRKIT, 'check', path), EACH * (extents + blocks) + REST)
    tell('in a file', run(pairs.BTRKIT, 'check', '--memory', str(SPILL), '--spill', pairs.FOLDER, path), SPILL + REST)
    tell('btrfs check', run(image.BTRFS, 'check', path), 0)


if __name__ == '__main__':
    sys.exit(main())
