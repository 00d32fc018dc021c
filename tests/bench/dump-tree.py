#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dump all trees of the fiemap-snapshot filesystem, compared with btrfs-progs: to /dev/null and to a file, partly, and
as JSON; dump a filesystem of a quarter of that size; and scan a device for blocks. Usage: dump-tree.py [WHAT]..."""
import hashlib
import os
import subprocess
import sys
import time

import pairs
import workloads
from pairs import image

os.environ['TZ'] = 'UTC'
WHAT = sys.argv[1:] or ['text', 'file', 'part', 'json', 'growth', 'scan']
PEER = (image.BTRFS, 'inspect-internal', 'dump-tree')
OURS = (pairs.BTRKIT, 'dump-tree')
MEMORY = 64 << 10   # KiB


def warm(*args):
    """Run a whole process with its image, the last argument, in the page cache; output to /dev/null."""
    return pairs.warm(args[-1], pairs.process(*args))


def into(file, *args):
    """The same with output to a new file."""
    def way():
        with open(file, 'wb') as out:
            start = time.perf_counter()
            subprocess.run(args, stdout=out, check=True)
            return (time.perf_counter() - start) * 1e3
    return pairs.warm(args[-1], way)


def memory(*args):
    """Peak memory of a process in KiB."""
    with subprocess.Popen(args, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f'{args} failed')
    return usage.ru_maxrss


def blocks_of(path):
    return image.run(*OURS, path).count(b'\nfs uuid ')


pairs.skip_unless_possible()
path = pairs.made('snap.img', workloads.snapshot_extents)
# First, while this process is still small: otherwise Linux would count its memory for child processes.
most = max(memory(*OURS, *form, path) for form in ((), ('--format', 'json'), ('--csum-items', '--dfs')))
sums = []
for command in ((*PEER, path), (*OURS, path)):
    text = image.run(*command)
    size = len(text)
    sums.append(hashlib.sha256(memoryview(text)[text.index(b'\n'):]).digest())
    del text
if sums[0] != sums[1]:
    raise RuntimeError('the texts differ')
peer = {'btrfs-progs': warm(*PEER, path)}
if 'text' in WHAT:
    pairs.compare(f'dump-tree, {size / 1e6:.0f} MB of text', warm(*OURS, path), peer, 1 / 8)
    print(f'    memory: {most} KiB, goal {MEMORY}: {"reached" if most <= MEMORY else "not reached"}')
if 'file' in WHAT:
    file = os.path.join(pairs.FOLDER, 'dump.out')
    pairs.compare('to a file', into(file, *OURS, path), {'btrfs-progs': into(file, *PEER, path)}, 1 / 8)
    os.unlink(file)
if 'part' in WHAT:
    pairs.compare('--inode 256', warm(*OURS, '--inode', '256', path), peer, 1 / 200)
    pairs.compare('--key of 10 MB of a file', warm(
        *OURS, '--key', '257,EXTENT_DATA,20000000000..257,EXTENT_DATA,20010000000', path), peer, 1 / 200)
if 'json' in WHAT:
    pairs.compare('--format json', warm(*OURS, '--format', 'json', path), {'text': warm(*OURS, path)}, 2)
if 'growth' in WHAT:
    quarter = pairs.made('snap-quarter.img', lambda part: workloads.snapshot_extents(part, 10))
    n, m = blocks_of(path), blocks_of(quarter)
    pairs.compare(f'{n} blocks beside {m}', lambda: warm(*OURS, path)() / n,
                  {'time of a block': lambda: warm(*OURS, quarter)() / m}, 1.3)
if 'scan' in WHAT:
    device = pairs.made('scan.img', workloads.blocks_and_data)
    dd = pairs.process('dd', f'if={device}', 'of=/dev/null', 'bs=1M', 'status=none')
    pairs.compare(f'--scan of {os.stat(device).st_size / 1e9:.1f} GB', warm(*OURS, '--scan', device),
                  {'dd': pairs.warm(device, dd)}, 1.2)
