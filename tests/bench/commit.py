#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cost of free space accounting in a commit when block groups over 50 TB are dirty: preallocated extents in each of
50,000 block groups are freed and allocated again, in transactions of various sizes, with a free space tree and without
any cache. For comparison, Linux frees the same extents, with the tree, without, and with the v1 cache: the time of the
sync, and the commit time from its own statistics, which excludes what happens before other writers are blocked. v1
writes 256 KiB for each group, so it is limited to the first 5 TB.

    commit.py [TERABYTES_OF_V1]
"""
import os
import sys
import time

import pairs
import workloads
import ops
from pairs import image

GIB = workloads.GIB
EXTENTS = ((500,), (500, 'early'), (5000,), (5000, 'early'), (0,), (0, 'early'))


def ours(path):
    for how in EXTENTS:
        said = image.run(pairs.program('bench-space-commit'), path, *map(str, how)).decode()
        for line in said.splitlines():
            print(f'    btrkit, {"references run before the commit, " if "early" in how else ""}{line}', flush=True)
    image.run(pairs.BTRKIT, 'space-cache', 'status', path)


def commit_stats(uuid):
    """Return the number of commits since the mount, and their total milliseconds."""
    with open(f'/sys/fs/btrfs/{uuid}/commit_stats', encoding='ascii') as f:
        said = dict(line.split() for line in f)
    return int(said['commits']), int(said['total_commit_ms'])


def linux(path, options, terabytes):
    part = image.Image(path, None)
    part.mount(f'{options},nodiscard')
    try:
        uuid = image.run('blkid', '-p', '-s', 'UUID', '-o', 'value', path).decode().strip()
        ops.sync(part.mnt)
        commits, spent = commit_stats(uuid)
        start = time.perf_counter()
        for i in range(terabytes):
            with ops.Opened(f'{part.mnt}/big{i}') as fd:
                ops.fallocate_each(fd, ((k * GIB, GIB // 2) for k in range(1000)), ops.PUNCH_HOLE | ops.KEEP_SIZE)
        freed = time.perf_counter()
        ops.sync(part.mnt)
        synced = time.perf_counter()
        count, total = commit_stats(uuid)
    finally:
        part.umount()
    print(f'    Linux, {options}: about {1000 * terabytes} groups dirtied: freed in {(freed - start) * 1e3:.0f} ms, '
          f'sync {(synced - freed) * 1e3:.0f} ms; {count - commits} commits, {total - spent} ms by its own count',
          flush=True)


def copied(source, folder, work, *args):
    path = os.path.join(folder, 'commit.img')
    try:
        image.run('cp', '--sparse=always', '--reflink=never', source, path)
        work(path, *args)
    finally:
        if os.path.exists(path):
            os.unlink(path)


def main():
    pairs.skip_unless_possible()
    v1 = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with pairs.Xfs('xfs.img') as folder:
        none = pairs.made(os.path.join(folder, 'fifty-tb.img'), workloads.fifty)
        tree = pairs.made(os.path.join(folder, 'fifty-tb-v2.img'), lambda part: workloads.to_v2(none, part))
        print('commit, free space tree')
        copied(tree, folder, ours)
        copied(tree, folder, linux, 'space_cache=v2', 50)
        print('commit, no cache')
        copied(none, folder, ours)
        copied(none, folder, linux, 'nospace_cache', 50)
        print('commit, v1 cache')
        copied(none, folder, linux, 'space_cache=v1', v1)


if __name__ == '__main__':
    main()
