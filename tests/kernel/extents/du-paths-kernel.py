#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare `btrkit du --paths` with Linux on filesystems made by random plans, and on some made by hand.

- Each directory of the mounted filesystem is listed, and no other; total and exclusive bytes equal those of `btrfs
  filesystem du`, and the set shared bytes those of `btrfs filesystem du -s`. The latter counts a file with several
  names in each directory given, so it is not used if the first name is elsewhere. The sums of FIEMAP results are
  compared everywhere.
- Linux deletes directories on a copy: the data block groups shrink exactly as reported.

    du-paths-kernel.py [--plans N] [--seed N] [--only PATTERN]

BTRKIT is the program under test; BTRFS and MKFS are from btrfs-progs. Exits with 77 if it cannot run.
"""
import argparse
import fcntl
import fnmatch
import json
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import types

import image
import ops
import plan
from image import BTRFS, Image, run
from scenarios import leaves_partly_shared

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
OPERATIONS = 600
DELETIONS = 5
FIEMAP, LAST, SKIPPED, SHARED = 0xc020660b, 0x1, 0x206, 0x2000
EMPTY_SUBVOLUME = 2 # inode number of the placeholder for a nested subvolume in a snapshot
counts = dict.fromkeys(('directories', 'summaries', 'elsewhere', 'set shared', 'deletions', 'freed', 'freed partly'), 0)


class Difference(Exception):
    pass


def need(condition, *what):
    if not condition:
        raise Difference(' '.join(map(str, what)))


def equal(ours, theirs, what):
    need(ours == theirs, f'{what}: {ours}, Linux says {theirs}')


def du(path, *args):
    lines = [json.loads(line) for line in run(BTRKIT, 'du', '--noscan', '--format=json', *args, path).splitlines()]
    return {row['path']: row for row in lines[1:]}


# Results from Linux

def fiemap(path):
    """The extents of a file: address, length, whether it is shared."""
    start, extents = 0, []
    with ops.Opened(path, os.O_RDONLY) as fd:
        while True:
            buf = bytearray(struct.pack('=QQIIII', start, 2 ** 64 - 1 - start, 0, 0, 100, 0) + bytes(100 * 56))
            fcntl.ioctl(fd, FIEMAP, buf)
            found = struct.unpack_from('=I', buf, 20)[0]
            for i in range(found):
                logical, physical, length, flags = struct.unpack_from('=QQQ16xI', buf, 32 + i * 56)
                start = logical + length
                if not flags & SKIPPED:
                    extents.append((physical, length, bool(flags & SHARED)))
                if flags & LAST:
                    return extents
            if not found:
                return extents


def union(ranges):
    covered, total = 0, 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, covered))
        covered = max(covered, end)
    return total


class Walk:
    """Walk all directories in the order of Linux, and sum up what is below each. A file counts where it is met
    first."""

    def __init__(self, mnt):
        self.found = {}     # path to (total, unshared, set shared)
        self.order = []
        self.elsewhere = set()  # directories that contain a file whose first name is elsewhere
        self.first = {}
        self.walk(mnt, '/', ())

    def walk(self, path, name, above):
        above += (name,)
        self.order.append(name)
        total, unshared, ranges = 0, 0, []
        with os.scandir(path) as entries:
            entries = list(entries)
        for entry in entries:
            s = os.lstat(entry.path)
            below = name.rstrip('/') + '/' + entry.name
            if stat.S_ISDIR(s.st_mode) and s.st_ino != EMPTY_SUBVOLUME:
                more = self.walk(entry.path, below, above)
            elif stat.S_ISREG(s.st_mode):
                more = self.file(entry.path, (s.st_dev, s.st_ino), above)
            else:
                continue
            total, unshared, ranges = total + more[0], unshared + more[1], ranges + more[2]
        self.found[name] = total, unshared, union(ranges)
        return total, unshared, ranges

    def file(self, path, key, above):
        if key in self.first:
            self.elsewhere |= set(above) - set(self.first[key])
            return 0, 0, []
        self.first[key] = above
        extents = fiemap(path)
        return (sum(length for _, length, _ in extents), sum(length for _, length, shared in extents if not shared),
                [(start, start + length) for start, length, shared in extents if shared])


def filesystem_du(mnt, paths, *options):
    """Map paths to total, exclusive and, where it is printed, set shared."""
    text = run(BTRFS, 'filesystem', 'du', '--raw', *options, *(mnt + path for path in paths)).decode()
    found = {}
    for total, exclusive, shared, path in re.findall(r'^ *(\d+) +(\d+) +(\d+|-)  (.*)$', text, re.M):
        path = '/' + os.path.relpath(path, mnt) if path.rstrip('/') != mnt else '/'
        found[path] = (int(total), int(exclusive), *([] if shared == '-' else [int(shared)]))
    return found


def check_listing(path):
    ours = du(path, '--paths')
    mounted = Image(path, None)
    mnt = mounted.mount(readonly=True)
    try:
        walk = Walk(mnt)
        equal(list(ours), walk.order, 'directories')
        lines = filesystem_du(mnt, ['/'])
        alone = [name for name in ours if name not in walk.elsewhere]
        summaries = {}
        for i in range(0, len(alone), 100):
            summaries.update(filesystem_du(mnt, alone[i:i + 100], '-s'))
    finally:
        mounted.umount()
    equal(len(summaries), len(alone), 'summaries')
    for name, row in ours.items():
        said = row['total'], row['unshared'], row['set_shared']
        equal(said, walk.found[name], f'FIEMAP of {name}')
        equal(said[:2], lines[name][:2], f'the line of {name}')
        counts['directories'] += 1
        counts['set shared'] += bool(row['set_shared']) and row['set_shared'] != row['total'] - row['unshared']
        if name in walk.elsewhere:
            counts['elsewhere'] += 1
        else:
            equal(said, summaries[name], f'the summary of {name}')
            counts['summaries'] += 1
    for depth in 0, 1:
        equal(du(path, f'--paths={depth}'), {name: row for name, row in ours.items() if row['depth'] <= depth},
              f'--paths={depth}')
    return ours


def used_data(mnt):
    """Bytes used in data block groups; None if they contain metadata too."""
    text = run(BTRFS, 'filesystem', 'df', '--raw', mnt).decode()
    found = re.findall(r'^Data(\+Metadata)?,.* used=(\d+)', text, re.M)
    need(found, f'block groups: {text}')
    return None if found[0][0] else sum(int(used) for _, used in found)


def check_deletion(path, row):
    name = row['path']
    copy = Image(path, None).copy(path + '.copy')
    mnt = copy.mount('noatime')
    try:
        for line in run(BTRFS, 'subvolume', 'list', mnt).decode().splitlines():
            run(BTRFS, 'property', 'set', '-ts', f'{mnt}/{line.split(" path ", 1)[1]}', 'ro', 'false')
        image.wait_for_cleaner(mnt)
        before = used_data(mnt)
        if name == '/':
            run('find', mnt, '-mindepth', '1', '-delete')
        else:
            run('rm', '-r', mnt + name)
        image.wait_for_cleaner(mnt)
        after = used_data(mnt)
    finally:
        copy.remove()
    if before is None:
        return
    equal(row['frees'], before - after, f'deleting {name}')
    counts['deletions'] += 1
    counts['freed'] += bool(row['frees'])
    counts['freed partly'] += 0 < row['frees'] < row['total']


def check(path, rng):
    ours = check_listing(path)
    some = [name for name, row in ours.items() if row['frees']]
    chosen = rng.sample(some, min(len(some), DELETIONS)) + rng.sample(list(ours), 1)
    for name in dict.fromkeys(chosen):
        check_deletion(path, ours[name])


# The filesystems

class Plan(plan.Plan):
    """Files move between directories and have several names in them; directories and subvolumes move too."""

    def __init__(self, mnt, seed):
        super().__init__(mnt, seed)
        self.weights.update(snapshot=4, subvolume=1.2, punch=8, dedupe=6, rename=8, link=8, unlink=3, move=3)

    def somewhere(self, tree):
        directory = self.rng.choice(['', 'd1/', 'd1/d2/', 'd1/d2/d3/', 'd1/d4/', 'd5/', 'd5/d1/'])
        os.makedirs(self.path(tree, directory), exist_ok=True)
        self.serial += 1
        return f'{directory}n{self.serial}'

    def rename(self):
        tree, name = self.any_file()
        new = self.somewhere(tree)
        os.rename(self.path(tree, name), self.path(tree, new))
        self.trees[tree] ^= {name, new}
        return tree, name, new

    def link(self):
        tree, name = self.any_file()
        new = self.somewhere(tree)
        os.link(self.path(tree, name), self.path(tree, new))
        self.trees[tree].add(new)
        return tree, name, new

    def move(self):
        """Move a directory within its subvolume."""
        tree = self.tree()
        self.serial += 1
        source = self.rng.choice(['d1/d2', 'd5', 'd1/d4', 'd5/d1'])
        new = f'{self.rng.choice(["", "d1/", "d5/d1/"])}m{self.serial}'
        os.rename(self.path(tree, source), self.path(tree, new))
        moved = {name for name in self.trees[tree] if name.startswith(source + '/')}
        self.trees[tree] = self.trees[tree] - moved | {new + name[len(source):] for name in moved}
        return tree, source, new


def random_plan(seed):
    mkfs, mount = plan.shape(seed)

    def fill(mnt):
        done = Plan(mnt, seed).run(OPERATIONS)
        need(sum(done.values()) - done['refused'] > OPERATIONS // 2, f'too many operations were refused: {done}')
    return f'random-{seed}', mkfs, mount, fill


def by_hand(mnt):
    """Subvolumes nested below each other's directories, older ones in younger ones; names of one file before and
    after."""
    def data(path, blocks):
        ops.write(f'{mnt}/{path}', 0, ops.incompressible(blocks * 4096, blocks))

    for name in ('old', 'young'):
        ops.subvolume(f'{mnt}/{name}')
    for name in ('a', 'a/b', 'a/b/c', 'young/in', 'young/in/deep', 'empty'):
        os.mkdir(f'{mnt}/{name}')
    os.rename(f'{mnt}/old', f'{mnt}/young/in/deep/old')
    ops.subvolume(f'{mnt}/young/in/deep/old/inner')
    data('a/b/c/f', 20)
    os.link(f'{mnt}/a/b/c/f', f'{mnt}/a/g')
    os.link(f'{mnt}/a/g', f'{mnt}/empty/h')
    # Its name comes last in its directory, but a walk meets its contents first.
    os.mkdir(f'{mnt}/first')
    os.rename(f'{mnt}/a/b', f'{mnt}/first/b')
    for number in range(300):
        os.link(f'{mnt}/a/g', f'{mnt}/first/a-name-that-takes-some-room-for-itself-{number}')
    data('young/in/deep/old/inner/x', 30)
    data('young/in/deep/old/y', 40)
    ops.sync(mnt)
    ops.clone(f'{mnt}/young/in/deep/old/y', 0, 81920, f'{mnt}/young/in/z', 0)
    ops.clone(f'{mnt}/young/in/deep/old/inner/x', 8192, 65536, f'{mnt}/a/z', 0)
    ops.clone(f'{mnt}/first/b/c/f', 0, 40960, f'{mnt}/first/b/z', 4096)
    ops.snapshot(f'{mnt}/young/in/deep/old', f'{mnt}/a/snap', readonly=True)
    ops.snapshot(f'{mnt}/young', f'{mnt}/young/in/snap')
    ops.fallocate(f'{mnt}/young/in/p', 0, 1 << 20)
    ops.fallocate(f'{mnt}/young/in/q', 4096, 1 << 20, ops.KEEP_SIZE)
    ops.write(f'{mnt}/young/in/p', 8192, ops.incompressible(50000))
    ops.punch(f'{mnt}/young/in/deep/old/y', 4096, 40960)


def large(mnt):
    """A file and directories with more leaves than a thread holds at a time, in each of two subvolumes."""
    ops.subvolume(f'{mnt}/sub')
    os.mkdir(f'{mnt}/sub/dir')
    with ops.Opened(f'{mnt}/sub/dir/file', os.O_RDWR | os.O_CREAT) as fd:
        os.posix_fallocate(fd, 0, 64 << 20)
        for offset in range(0, 64 << 20, 8192):
            os.pwrite(fd, b'data', offset)
    os.mkdir(f'{mnt}/sub/many')
    for i in range(4000):
        os.makedirs(f'{mnt}/sub/many/{i}')
        if not i % 500:
            ops.write(f'{mnt}/sub/many/{i}/file', 0, ops.incompressible(5000))
    ops.sync(mnt)
    ops.snapshot(f'{mnt}/sub', f'{mnt}/snap')
    ops.clone(f'{mnt}/sub/dir/file', 8192, 16 << 20, f'{mnt}/outside', 0)
    ops.punch(f'{mnt}/snap/dir/file', 1 << 20, 20 << 20)


def partly_shared(mnt):
    """Extents whose only reference counts items in shared leaves and in others."""
    leaves_partly_shared(types.SimpleNamespace(mnt=mnt))


def filesystems(args):
    made = [random_plan(args.seed + i) for i in range(args.plans)]
    made += [('large', ('-n', '4096'), '', large), ('by-hand', ('-n', '4096'), '', by_hand),
             ('partly-shared', ('-n', '4096'), '', partly_shared),
             ('by-hand-large', (), 'compress-force=zstd', by_hand)]
    return [one for one in made if fnmatch.fnmatch(one[0], f'*{args.only}*')]


def make(folder, mkfs, mount, fill):
    made = Image(os.path.join(folder, 'fs.img'), '1G')
    made.mkfs(*mkfs)
    mnt = made.mount(','.join(part for part in (mount, 'noatime') if part))
    fill(mnt)
    image.wait_for_cleaner(mnt)
    made.umount()
    return made.path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN')
    parser.add_argument('--plans', type=int, default=5)
    parser.add_argument('--seed', type=int, default=int(time.time()) % 1000000 * 100, help='of the first plan')
    parser.add_argument('--keep', action='store_true', help='the images of what failed')
    args = parser.parse_args()
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    failed = []
    for name, mkfs, mount, fill in filesystems(args):
        folder, start, error = tempfile.mkdtemp(prefix='btrkit-du-'), time.monotonic(), None
        try:
            check(make(folder, mkfs, mount, fill), random.Random(f'{args.seed} {name}'))
        except (Difference, RuntimeError, OSError, subprocess.SubprocessError) as e:
            error = f'{type(e).__name__}: {e}'
            failed.append(name)
        finally:
            image.cleanup()
        if not (error and args.keep):
            shutil.rmtree(folder)
        print(f'{"FAIL" if error else "ok"} {name} ({time.monotonic() - start:.1f} s), mkfs {" ".join(mkfs) or "-"}, '
              f'mount {mount or "-"}{": " + error[:2000] if error else ""}', flush=True)
    print(f'random plans from seed {args.seed}: compared', ', '.join(f'{n} {what}' for what, n in counts.items()))
    if args.only == '*' and not failed:
        need(all(counts.values()), f'nothing was compared of something: {counts}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
