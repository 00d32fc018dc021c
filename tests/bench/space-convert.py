#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Convert filesystems without a free space tree, compared with `btrfstune --convert-to-free-space-tree` and Linux,
which mounts with clear_cache,space_cache=v2 and unmounts. Each run uses a fresh copy, whose contents are in the page
cache and on disk beforehand; the time includes writing everything to disk.

    space-convert.py [NAME...]      huge-v1 extents fifty-tb fifty-tb-empty fifty-tb-two
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pairs
import workloads
from pairs import image

BTRFSTUNE_GOAL, LINUX_GOAL, MEMORY_GOAL = 1 / 10, 1 / 2, 64 << 20


def copied(sources, paths):
    """Copy with the same holes, to disk and into the page cache."""
    for source, path in zip(sources, paths):
        image.run('cp', '--sparse=always', '--reflink=never', source, path)
        flush(path)


def flush(path):
    with open(path, 'r+b') as f:
        os.fsync(f.fileno())


def ours(*command):
    """Return a function that gives the arguments of a btrkit command."""
    return lambda devices: (pairs.BTRKIT, *command, *(f'--device={each}' for each in devices[1:]), devices[0])


def tune(devices):
    """btrfstune finds the other devices itself."""
    return image.BTRFSTUNE, '--convert-to-free-space-tree', devices[0]


class Process:
    """A way: a command and the flush. Records the peak memory, which cannot be less than that of this process. Several
    devices become loop devices, because btrfstune does not find files."""

    def __init__(self, sources, paths, command):
        self.sources, self.paths, self.command, self.peak = sources, paths, command, 0

    def __call__(self):
        copied(self.sources, self.paths)
        with contextlib.nullcontext(self.paths) if len(self.paths) == 1 else image.loops(self.paths) as devices:
            return self.timed(devices) * 1e3

    def timed(self, devices):
        start = time.perf_counter()
        command = self.command(devices)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        for device in devices:
            flush(device)
        spent = time.perf_counter() - start
        if child.returncode:
            raise RuntimeError(f'{" ".join(command)}: exit {child.returncode}: {said.decode(errors="replace")}')
        self.peak = max(self.peak, usage.ru_maxrss << 10)
        return spent


class Mounted:
    """A way: mount and unmount."""

    def __init__(self, sources, paths):
        self.sources, self.paths = sources, paths

    def __call__(self):
        copied(self.sources, self.paths)
        folder = tempfile.mkdtemp(prefix='btrkit-bench-')
        try:
            with image.loops(self.paths) as loops:
                options = ['clear_cache,space_cache=v2,nodiscard', *(f'device={loop}' for loop in loops)]
                start = time.perf_counter()
                image.run('mount', '-t', 'btrfs', '-o', ','.join(options), loops[0], folder)
                image.run('umount', folder)
                for loop in loops:
                    flush(loop)
                return (time.perf_counter() - start) * 1e3
        finally:
            os.rmdir(folder)


def lines(*command):
    """One line at a time: memory of this process would be counted for its child processes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        yield from child.stdout
    if child.returncode:
        raise RuntimeError(f'{" ".join(command)}: exit {child.returncode}')


def counts(paths):
    """Return the number of block groups, of those with bitmaps, and the sum of extent counts in all FREE_SPACE_INFO
    items."""
    groups = bitmaps = ranges = 0
    for line in lines(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'free-space', *paths):
        found = re.search(rb'free space info extent count (\d+) flags (\d+)', line)
        if found:
            groups += 1
            bitmaps += found[2] != b'0'
            ranges += int(found[1])
    if not groups:
        raise RuntimeError(f'{paths}: no free space tree')
    return groups, bitmaps, ranges


def check(results, spent):
    """Compare what each program made."""
    for who, paths in results.items():
        groups, bitmaps, ranges = counts(paths)
        print(f'    free space tree of {who}: {groups} block groups, {bitmaps} of them in bitmaps, {ranges} ranges')
    # Fails if the trees are inconsistent.
    for last in lines(*ours('space-cache', 'status', '--format=json')(results['btrkit'])):
        pass
    groups, extents = (json.loads(last)['summary'][what] for what in ('groups', 'extents'))
    size = sum(os.stat(path).st_size for path in results['btrkit'])
    print(f'    {size / 1e12:.1f} TB, {groups} block groups, {extents} extents: '
          f'{spent * 1e6 / (groups + extents):.0f} ns for each of both', flush=True)


def measure(name, sources):
    results = {who: [f'{source}.{who}' for source in sources] for who in ('btrkit', 'btrfstune', 'Linux')}
    try:
        way = Process(sources, results['btrkit'], ours('space-cache', 'convert'))
        tuning = Process(sources, results['btrfstune'], tune)
        linux = Mounted(sources, results['Linux'])
        spent = pairs.compare(f'space-convert {name}', way, {'btrfstune': tuning, 'Linux': linux}, BTRFSTUNE_GOAL,
                              LINUX_GOAL)
        print(f'    peak memory: btrkit {way.peak / 1e6:.1f} MB, goal {MEMORY_GOAL / 1e6:.1f} MB: '
              f'{"reached" if way.peak <= MEMORY_GOAL else "not reached"}; btrfstune {tuning.peak / 1e6:.1f} MB')
        check(results, spent)
    finally:
        for path in sum(results.values(), []):
            if os.path.exists(path):
                os.unlink(path)


HERE = {'huge-v1': workloads.huge, 'extents': workloads.extents}
XFS = {'fifty-tb': workloads.fifty, 'fifty-tb-empty': workloads.fifty_empty}
SEVERAL = {'fifty-tb-two': workloads.fifty_on_two}


def main():
    pairs.skip_unless_possible()
    if not shutil.which(image.BTRFSTUNE):
        sys.exit('needs btrfstune')
    chosen = sys.argv[1:] or [*HERE, *XFS, *SEVERAL]
    for name in chosen:
        if name in HERE:
            measure(name, [pairs.made(f'{name}.img', HERE[name])])
    if set(chosen) & {*XFS, *SEVERAL}:
        with pairs.Xfs('xfs.img') as folder:
            for name in chosen:
                if name in XFS:
                    measure(name, [pairs.made(os.path.join(folder, f'{name}.img'), XFS[name])])
                elif name in SEVERAL:
                    measure(name, pairs.made_folder(os.path.join(folder, name), SEVERAL[name]))


if __name__ == '__main__':
    main()
