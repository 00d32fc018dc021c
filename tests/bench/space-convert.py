#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Converts filesystems without a free space tree, beside `btrfstune --convert-to-free-space-tree` and Linux, which is
mounted with clear_cache,space_cache=v2 and unmounted. Each run is of a fresh copy, whose bytes are in the page cache
and on disk before; the time ends when what was written is on disk too.

    space-convert.py [NAME...]      huge-v1 extents fifty-tb fifty-tb-empty
"""
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


def copied(source, path):
    """With the same holes; on disk and in the page cache."""
    image.run('cp', '--sparse=always', '--reflink=never', source, path)
    with open(path, 'rb') as f:
        os.fsync(f.fileno())


def flush(path):
    with open(path, 'r+b') as f:
        os.fsync(f.fileno())


class Process:
    """A way: a command and the flush. Its greatest memory is kept; no less can be seen than this one has itself."""

    def __init__(self, source, path, *command):
        self.source, self.path, self.command, self.peak = source, path, command, 0

    def __call__(self):
        copied(self.source, self.path)
        start = time.perf_counter()
        with subprocess.Popen((*self.command, self.path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
            said = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        flush(self.path)
        spent = time.perf_counter() - start
        if child.returncode:
            raise RuntimeError(f'{" ".join(self.command)}: exit {child.returncode}: {said.decode(errors="replace")}')
        self.peak = max(self.peak, usage.ru_maxrss << 10)
        return spent * 1e3


class Mounted:
    """A way: mounted and unmounted."""

    def __init__(self, source, path):
        self.source, self.path = source, path

    def __call__(self):
        copied(self.source, self.path)
        loop = image.run('losetup', '-f', '--show', self.path).decode().strip()
        folder = tempfile.mkdtemp(prefix='btrkit-bench-')
        try:
            start = time.perf_counter()
            image.run('mount', '-t', 'btrfs', '-o', 'clear_cache,space_cache=v2,nodiscard', loop, folder)
            image.run('umount', folder)
            flush(self.path)
            spent = time.perf_counter() - start
        finally:
            subprocess.run(['losetup', '-d', loop], check=False)
            os.rmdir(folder)
        return spent * 1e3


def lines(*command):
    """One at a time: a process that this one starts seems to need what this one did."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        yield from child.stdout
    if child.returncode:
        raise RuntimeError(f'{" ".join(command)}: exit {child.returncode}')


def counts(path):
    """Block groups, those told by bitmaps, and the sum of the extent counts of all FREE_SPACE_INFOs."""
    groups = bitmaps = ranges = 0
    for line in lines(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'free-space', path):
        found = re.search(rb'free space info extent count (\d+) flags (\d+)', line)
        if found:
            groups += 1
            bitmaps += found[2] != b'0'
            ranges += int(found[1])
    if not groups:
        raise RuntimeError(f'{path}: no free space tree')
    return groups, bitmaps, ranges


def measure(name, source):
    ours, tune, linux = (f'{source}.{who}' for who in ('ours', 'btrfstune', 'linux'))
    try:
        way = Process(source, ours, pairs.BTRKIT, 'space-cache', 'convert')
        tuning = Process(source, tune, image.BTRFSTUNE, '--convert-to-free-space-tree')
        spent = pairs.compare(f'space-convert {name}', way, {'btrfstune': tuning, 'Linux': Mounted(source, linux)},
                              BTRFSTUNE_GOAL, LINUX_GOAL)
        print(f'    peak memory: btrkit {way.peak / 1e6:.1f} MB, goal {MEMORY_GOAL / 1e6:.1f} MB: '
              f'{"reached" if way.peak <= MEMORY_GOAL else "not reached"}; btrfstune {tuning.peak / 1e6:.1f} MB')
        for who, path in (('btrkit', ours), ('btrfstune', tune), ('Linux', linux)):
            groups, bitmaps, ranges = counts(path)
            print(f'    free space tree of {who}: {groups} block groups, {bitmaps} of them in bitmaps, {ranges} ranges')
        # Fails if the trees contradict each other.
        for last in lines(pairs.BTRKIT, 'space-cache', 'status', '--format', 'json', ours):
            pass
        groups, extents = (json.loads(last)['summary'][what] for what in ('groups', 'extents'))
        print(f'    {os.stat(ours).st_size / 1e12:.1f} TB, {groups} block groups, {extents} extents: '
              f'{spent * 1e6 / (groups + extents):.0f} ns for each of both', flush=True)
    finally:
        for path in (ours, tune, linux):
            if os.path.exists(path):
                os.unlink(path)


HERE = {'huge-v1': workloads.huge, 'extents': workloads.extents}
XFS = {'fifty-tb': workloads.fifty, 'fifty-tb-empty': workloads.fifty_empty}


def main():
    pairs.skip_unless_possible()
    if not shutil.which(image.BTRFSTUNE):
        sys.exit('needs btrfstune')
    chosen = sys.argv[1:] or [*HERE, *XFS]
    for name in chosen:
        if name in HERE:
            measure(name, pairs.made(f'{name}.img', HERE[name]))
    if set(chosen) & set(XFS):
        with pairs.Xfs('xfs.img') as folder:
            for name in chosen:
                if name in XFS:
                    measure(name, pairs.made(os.path.join(folder, f'{name}.img'), XFS[name]))


if __name__ == '__main__':
    main()
