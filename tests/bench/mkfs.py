#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fill a filesystem from a directory, compared with mkfs.btrfs with the same options and with programs that only read
the directory: in turns, each into a new file, including the flush. Wall time is what counts; processor time is printed
too, because a busy machine affects it less. Then the size of images, compared with mkfs.btrfs --shrink, and peak
memory. BENCH_PAIRS: default 3; BENCH_ONLY: times, sizes or memory."""
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import pairs
import workloads
from pairs import image

PAIRS = int(os.environ.get('BENCH_PAIRS', '3'))
SHARE = '/usr/share'
MIB = 1 << 20
MEMORY_GOAL = 256 * MIB
INODE_GOAL = 64         # beyond that, for each inode


class Cost:
    """Costs of a run: wall and processor time in milliseconds, and memory."""

    def __init__(self, command, shell=False):
        start = time.perf_counter()
        child = subprocess.Popen(command, shell=shell, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        told = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        self.wall = (time.perf_counter() - start) * 1e3
        self.cpu = (used.ru_utime + used.ru_stime) * 1e3
        self.memory = used.ru_maxrss << 10
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f'{command}: exit {child.returncode}: {told.decode(errors="replace")}')


def path(whose):
    return os.path.join(pairs.FOLDER, f'fill-{whose}.img')


def remove():
    for whose in ('ours', 'theirs'):
        if os.path.exists(path(whose)):
            os.unlink(path(whose))


def into(whose, *command):
    """Return a function that makes a new image by a command."""
    def way():
        if os.path.exists(path(whose)):
            os.unlink(path(whose))
        return Cost([*command, path(whose)])
    return way


def ours(folder, *options):
    return into('ours', pairs.BTRKIT, 'mkfs', '-q', '--rootdir', folder, *options)


def theirs(folder, *options):
    return into('theirs', image.MKFS, '-q', '--rootdir', folder, *options)


def from_tar(folder):
    """Both processes of a pipe; processor time is their sum."""
    command = f'tar -C {folder} -cf - . | {pairs.BTRKIT} mkfs -q --tar - {path("ours")}'

    def way():
        if os.path.exists(path('ours')):
            os.unlink(path('ours'))
        return Cost(command, shell=True)
    return way


def command(*args):
    return lambda: Cost(args)


def median(costs, what):
    return statistics.median(getattr(each, what) for each in costs)


def shown(costs):
    walls = [each.wall for each in costs]
    return (f'{median(costs, "wall"):.0f} ms ({min(walls):.0f}-{max(walls):.0f}), processors '
            f'{median(costs, "cpu"):.0f} ms')


def compare(work, way, *peers):
    """Each peer is a name, a function, and the goal as a factor of its time, or None."""
    way()
    for _, peer, _ in peers:
        peer()
    mine, others = [], [[] for _ in peers]
    for _ in range(PAIRS):
        for (_, peer, _), costs in zip(peers, others):
            mine.append(way())
            costs.append(peer())
    memory = max(each.memory for each in mine) / MIB
    print(f'{work}: btrkit {shown(mine)}, memory {memory:.0f} MiB; load {os.getloadavg()[0]:.1f}')
    for (name, _, goal), costs in zip(peers, others):
        ratio = median(mine, 'wall') / median(costs, 'wall')
        verdict = f', goal {goal:.3f}: {"reached" if ratio <= goal else "not reached"}' if goal else ''
        print(f'    {name}: {shown(costs)}; ratio {ratio:.3f}, of processors '
              f'{median(mine, "cpu") / median(costs, "cpu"):.3f}{verdict}')
    sys.stdout.flush()


def size(work, folder, *options):
    """Both make minimal images, which is the default for ours."""
    ours(folder, *options)()
    theirs(folder, '--shrink', *options)()
    mine, other = os.path.getsize(path('ours')), os.path.getsize(path('theirs'))
    print(f'size, {work}{"".join(" " + each for each in options)}: {mine} bytes, mkfs.btrfs --shrink {other}, '
          f'ratio {mine / other:.3f}: {"smaller or equal" if mine <= other else "LARGER"}')
    sys.stdout.flush()


def times():
    many = workloads.empty_files(400000)
    compare('400,000 empty files', ours(many),
            ('tar cf /dev/null', command('tar', '-C', many, '-cf', '/dev/null', '.'), 2),
            ('mkfs.btrfs', theirs(many), 1 / 12))
    compare(SHARE, ours(SHARE), ('mkfs.btrfs', theirs(SHARE), 1 / 8))
    compare(f'tar of {SHARE} through a pipe', from_tar(SHARE),
            ('tar into cat', lambda: Cost(f'tar -C {SHARE} -cf - . | cat', shell=True), None))
    zstd = ('--compress', 'zstd:3')
    compare(f'{SHARE}, zstd:3', ours(SHARE, *zstd), ('mkfs.btrfs', theirs(SHARE, *zstd), 1 / 6))
    compare(f'{SHARE}, zstd:3, two threads', ours(SHARE, *zstd, '--threads', '2'),
            ('one processor, one thread',
             into('ours', 'taskset', '-c', '0', pairs.BTRKIT, 'mkfs', '-q', '--rootdir', SHARE, *zstd,
                  '--threads', '1'),
             1 / 1.8))
    compare('1,000,000 empty files', ours(workloads.empty_files(1000000)),
            ('250,000', ours(workloads.empty_files(250000)), 4 * 1.3))


def folder_of(name, files):
    """Make a directory with files of these names and sizes once; half of the data is compressible."""
    path = os.path.join(pairs.FOLDER, name)
    if os.path.exists(path):
        return path
    os.makedirs(f'{path}.part', exist_ok=True)
    rng = random.Random(1)
    for each, size in files:
        with open(f'{path}.part/{each}', 'wb') as f:
            for at in range(0, size, MIB):
                f.write((rng.randbytes(MIB // 2) + f'{each} at {at}\n'.encode() * (MIB >> 4))[:min(MIB, size - at)])
    os.rename(f'{path}.part', path)
    return path


def sizes():
    options = ((), ('-m', 'single'), ('--compress', 'zstd:3'), ('-n', '4k'), ('-n', '64k'),
               ('-n', '64k', '-m', 'single'))
    for name, folder in (('nothing', folder_of('nothing', ())),
                         ('ten files', folder_of('ten', [(f'file{i}', 1000 * i) for i in range(10)])),
                         ('man pages', '/usr/share/man'), (SHARE, SHARE),
                         ('400,000 empty files', workloads.empty_files(400000))):
        for each in options:
            size(name, folder, *each)


def memory():
    """Peak resident memory, also with a lot of data in one file."""
    large = folder_of('large', [('file', 4 << 30)])
    thousand = folder_of('thousand', [(f'file{i:03}', 4 * MIB) for i in range(1000)])
    million = workloads.empty_files(1000000)
    for name, folder, inodes, *options in (
            ('1,000,000 empty files', million, 1000000), ('the same', million, 1000000, '--verify'),
            ('a file of 4 GiB', large, 1), ('the same', large, 1, '--compress', 'zstd:3'),
            ('the same', large, 1, '--verify'),
            ('1,000 files of 4 MiB', thousand, 1000, '--compress', 'zstd:15'),
            ('the same', thousand, 1000, '--compress', 'zlib:9', '--threads', '8')):
        used, goal = ours(folder, *options)().memory, MEMORY_GOAL + INODE_GOAL * inodes
        print(f'memory, {name}{"".join(" " + each for each in options)}: {used / MIB:.0f} MiB, goal {goal / MIB:.0f}: '
              f'{"reached" if used <= goal else "not reached"}')
        sys.stdout.flush()


def main():
    os.makedirs(pairs.FOLDER, exist_ok=True)
    if not shutil.which(image.MKFS):
        sys.exit('needs mkfs.btrfs')
    try:
        for name, part in (('times', times), ('sizes', sizes), ('memory', memory)):
            if os.environ.get('BENCH_ONLY', name) == name:
                part()
    finally:
        remove()


if __name__ == '__main__':
    main()
