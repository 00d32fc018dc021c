#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""On a filesystem of 256 MB where a large file has left 2 MB free, 8 threads create files of 2 KiB until there is no
space, and then remove them all, round after round; Linux does the same on a copy. Finally Linux mounts our filled
filesystem and removes every file."""
import os
import re
import statistics

import pairs
from pairs import image

ROUNDS = int(os.environ.get('BENCH_ROUNDS', '10'))
THREADS = 8
BYTES = 2048
LEFT = 2 << 20
# Earlier results: number of reservations in ten rounds by latency in milliseconds: below 1, from 1, from 2 and so on.
SEED = {'before tickets': (345330, 17221, 3506, 212, 17777, 7125, 1974, 136, 3),
        'with tickets': (311844, 11123, 10103, 8669, 10802, 20079, 18015, 1485, 175),
        'its change': (321168, 10620, 9099, 6488, 17000, 12495, 3525, 54, 0)}


def make(part):
    """Fill all data space except for a little."""
    image.run('truncate', '-s', '256M', part.path)
    image.run(image.MKFS, '-q', '-f', part.path)
    part.mount('noatime')
    with open(f'{part.mnt}/big', 'wb') as f:
        size, step = 0, 1 << 20
        while step >= 4096:
            try:
                os.posix_fallocate(f.fileno(), size, step)
                size += step
            except OSError:
                step //= 2
        os.ftruncate(f.fileno(), size - LEFT)
        os.fsync(f.fileno())
    part.umount()


def counted(said):
    return [int(files) for files in re.findall(r'(\d+) files:', said)]


def seconds(said, what):
    return [float(s) for s in re.findall(rf'([\d.]+) s (?:and \d+ commits |and \d+ )?to {what}', said)]


def again(said):
    """Removals for which Linux had no space before a commit."""
    return sum(int(n) for n in re.findall(r'(\d+) again', said))


def commits(said):
    """Commits for filling, and for removing."""
    return ([int(n) for n in re.findall(r'and (\d+) commits to fill', said)],
            [int(n) for n in re.findall(r'and (\d+) to remove', said)])


def latencies(said):
    """Our reservations by latency, as in SEED."""
    rows = [0] * 9
    for nanoseconds, count in re.findall(r'(\d+) ns +(\d+)', said):
        # A bucket of 2^20 ns begins slightly above a millisecond.
        rows[min(max(int(nanoseconds).bit_length() - 20, 0), 8)] += int(count)
    return rows


def linux(path, program, *what):
    part = image.Image(path, None)
    uuid = image.run('blkid', '-p', '-s', 'UUID', '-o', 'value', path).decode().strip()
    part.mount('noatime')
    try:
        with open(f'/sys/fs/btrfs/{uuid}/commit_stats', encoding='ascii') as f:
            before = int(f.readline().split()[1])
        if program:
            said = image.run(program, 'fill', part.mnt, *what).decode()
        else:
            said = image.run('rm', '-r', *(f'{part.mnt}/d{i}' for i in range(THREADS))).decode()
        with open(f'/sys/fs/btrfs/{uuid}/commit_stats', encoding='ascii') as f:
            return said, int(f.readline().split()[1]) - before
    finally:
        part.umount()


def copied(source, path):
    image.run('cp', '--sparse=always', '--reflink=never', source, path)
    return path


def main():
    pairs.skip_unless_possible()
    program = pairs.compiled('linux-files')
    source = pairs.made('fill.img', make)
    path = os.path.join(pairs.FOLDER, 'filling.img')
    arguments = (str(THREADS), str(ROUNDS), str(BYTES))
    try:
        said = image.run(pairs.program('bench-fill'), copied(source, path), *arguments).decode()
        image.run(image.BTRFS, 'check', path)
        theirs, their_commits = linux(copied(source, path), program, *arguments)
        # A completely filled filesystem for Linux to clear.
        image.run(pairs.program('bench-fill'), copied(source, path), str(THREADS), '0', str(BYTES), 'full')
        image.run(image.BTRFS, 'check', path)
        linux(path, None)
        image.run(image.BTRFS, 'check', path)
    finally:
        os.unlink(path)
    print(said)
    files, peer = counted(said), counted(theirs)
    filled, removed = commits(said)
    print(f'files: median {statistics.median(files)}, least {min(files)}; Linux {statistics.median(peer)}, '
          f'least {min(peer)}')
    for what in ('fill', 'remove'):
        ours, linuxs = (statistics.median(seconds(each, what)) for each in (said, theirs))
        print(f'to {what}: {ours:.2f} s, Linux {linuxs:.2f} s, ratio {ours / linuxs:.3f}')
    print(f'removals that Linux had no space for until it was synced: {again(theirs)}')
    print(f'commits of a round: {max(filled)} to fill, {max(removed)} to remove; Linux {their_commits / ROUNDS:.0f}')
    print('reservations that took from so many ms on: btrkit; ' + '; '.join(SEED))
    for row, each in enumerate(zip(latencies(said), *SEED.values())):
        print(f'{(1 << row) >> 1:5} ' + ' '.join(f'{count:9}' for count in each))
    print('Linux mounted the full one and removed every file')


if __name__ == '__main__':
    main()
