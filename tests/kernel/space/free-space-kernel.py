#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare free space trees of Linux with ours.

    free-space-kernel.py [SCENARIO...]

Linux fragments filesystems and makes free space trees for them. (a) We build the tree from the extent tree, and get the
same; also for a tree that Linux has maintained for a while. (b) `btrkit space-cache convert`, on the filesystem before
Linux made its tree, gives the same items for each data block group, and (c) all gaps between extents; Linux mounts it
without rebuilding the tree, continues, and `btrfs check` finds nothing. (d) Extents are freed and allocated in our
transactions and by Linux in turn, until groups have switched to bitmaps and back.

BTRKIT, FREE_SPACE and FREE_SPACE_EDIT are the programs under test. Exits with 77 if it cannot run.
"""
import atexit
import collections
import ctypes
import os
import random
import subprocess
import sys
import tempfile
import time

import image

BTRKIT = os.environ['BTRKIT']
FREE_SPACE = os.environ['FREE_SPACE']
EDIT = os.environ['FREE_SPACE_EDIT']
K, M = 1 << 10, 1 << 20
SECTOR = 4 * K
count = collections.Counter()
opened = set()
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


def sync(path):
    """Sync only the filesystem that contains the file."""
    fd = os.open(path, os.O_RDONLY)
    try:
        if libc.syncfs(fd):
            raise OSError(ctypes.get_errno(), 'syncfs')
    finally:
        os.close(fd)


class Pieces:
    """A file of consecutive extents, each allocated by a separate call, so that each can be freed separately."""

    def __init__(self, path):
        self.open(path)
        self.pieces = []    # (offset, length)
        self.end = 0

    def open(self, path):
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        opened.add(self.fd)

    def _call(self, mode, offset, length):
        if libc.fallocate(self.fd, mode, offset, length):
            raise OSError(ctypes.get_errno(), 'fallocate')

    def add(self, *lengths):
        for length in lengths:
            self._call(0, self.end, length)
            self.pieces.append((self.end, length))
            self.end += length

    def free(self, wanted):
        """Free those with wanted(number); punching part of an extent would free nothing."""
        for number, piece in enumerate(self.pieces):
            if piece and wanted(number):
                self._call(3, *piece)
                self.pieces[number] = None

    def sync(self):
        sync(self.path)

    def close(self):
        opened.remove(self.fd)
        os.close(self.fd)


@atexit.register
def close_all():
    """After a failure an open file would keep its filesystem mounted."""
    for fd in opened:
        os.close(fd)


def fragment(mnt, rng, files=5000):
    """Sparse and dense holes of many sizes."""
    path = os.path.join(mnt, 'pieces')
    pieces = Pieces(path)
    pieces.add(*(SECTOR * rng.choice((1, 1, 1, 2, 3, 8, 33)) for _ in range(6000)))
    pieces.add(*[rng.choice((64 * K, M))] * 60)
    pieces.sync()
    pieces.free(lambda n: n < 2000 and n % 2)
    pieces.free(lambda n: 2000 <= n < 4000 and rng.random() < 0.3)
    pieces.free(lambda n: n >= 4000 and rng.random() < 0.2)
    pieces.close()
    fill(mnt, 24 * M, files)


def fill(mnt, size, files):
    """A file in large extents, and small files that leave holes among the tree blocks."""
    with open(os.path.join(mnt, 'large'), 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, size)
    folder = os.path.join(mnt, 'small')
    os.mkdir(folder)
    for n in range(files):
        with open(os.path.join(folder, f'{n:05}'), 'wb') as f:
            f.write(bytes(n % 300))
    sync(mnt)
    for n in range(files):
        if n // 32 % 2:
            os.unlink(os.path.join(folder, f'{n:05}'))


def fill_up(mnt, rng):
    """Full to the last byte, except for the fragmented part."""
    fragment(mnt, rng, 500)
    size = 256 * M
    with open(os.path.join(mnt, 'rest'), 'wb') as f:
        while size >= SECTOR:
            try:
                os.posix_fallocate(f.fileno(), os.fstat(f.fileno()).st_size, size)
            except OSError:
                size //= 2
    sync(mnt)


def go_between(fs, rng):
    """Holes above the high threshold, more and more of which are joined until a group is between both thresholds, then
    below."""
    path = 'between'
    pieces = Pieces(os.path.join(fs.mount('space_cache=v2'), path))
    pieces.add(*[SECTOR] * 4000)
    pieces.sync()
    pieces.free(lambda n: n % 2)
    for _ in range(40):
        pieces.close()
        fs.umount()
        left = sum(1 for piece in pieces.pieces if piece)
        found = left < 500 and compared('build', fs.path)
        if left < 100 or (found and found['groups of another form by history']):
            break
        pieces.open(os.path.join(fs.mount('space_cache=v2'), path))
        pieces.free(lambda n: rng.random() < (0.12 if found else 0.5))
    os.unlink(os.path.join(fs.mount('space_cache=v2'), path))
    fs.umount()
    compared('build', fs.path)


def edit(fs, rng):
    """Our transactions and Linux in turn change a file with many extents."""
    path = os.path.join(fs.mount('space_cache=v2'), 'edited')
    pieces = Pieces(path)
    pieces.add(*[SECTOR] * 4000)
    pieces.sync()
    inode = os.fstat(pieces.fd).st_ino
    pieces.close()
    fs.umount()
    bitmaps = compared('build', fs.path)['groups of bitmaps']
    for steps in (('second', 'free:30'), ('both:40', 'add:1500', 'both:30'), ('free:80', 'free:90', 'free:95'),
                  ('add:3000', 'second')):
        for step in steps:
            counted('edit', EDIT, fs.path, str(inode), step)
            now = compared('build', fs.path)['groups of bitmaps']
            count['edit: groups that went to bitmaps'] += max(now - bitmaps, 0)
            count['edit: groups that went to extents'] += max(bitmaps - now, 0)
            bitmaps = now
            compared('inverse', fs.path)
        check(fs.path)
        goes_on(fs, rng, listen='second' in steps)
        bitmaps = compared('build', fs.path)['groups of bitmaps']


def nothing(_mnt, _rng):
    pass


NONE = ('-O', '^free-space-tree,^block-group-tree')
# mkfs options, size, the cache beforehand, and the work.
SCENARIOS = {
    '16k': ((*NONE,), '3G', 'nospace_cache', fragment),
    '4k': (('-n', '4096', *NONE), '1000M', 'nospace_cache', fragment),
    '64k': (('-n', '65536', *NONE), '1100M', 'nospace_cache', fragment),
    'v1': ((*NONE,), '1500M', 'space_cache=v1', fragment),
    'full': ((*NONE,), '450M', 'nospace_cache', fill_up),
    'mixed': (('--mixed', '-n', '4096', *NONE), '256M', 'nospace_cache', fragment),
    'no-skinny': (('-n', '4096', '-O', '^skinny-metadata,^free-space-tree,^block-group-tree'), '700M',
                  'nospace_cache', fragment),
    'group-tree': ((), '1G', 'space_cache=v2', fragment),
    'new': ((*NONE,), '1G', 'nospace_cache', nothing),
    'between-4k': (('-n', '4096'), '800M', None, go_between),
    'between-16k': ((), '800M', None, go_between),
    'between-64k': (('-n', '65536'), '800M', None, go_between),
    'edit-4k': (('-n', '4096'), '1500M', None, edit),
    'edit-16k': (('-O', '^block-group-tree'), '1500M', None, edit),
    'edit-64k': (('-n', '65536'), '1500M', None, edit),
    'edit-mixed': (('--mixed', '-n', '4096', '-O', '^block-group-tree'), '1500M', None, edit),
}


def counted(prefix, *args):
    """The counts that a program printed."""
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    expect(done.returncode == 0, *args, done.stderr.decode())
    found = {}
    for line in done.stdout.decode().splitlines():
        name, number = line.rsplit(' ', 1)
        found[name] = int(number)
        count[f'{prefix}: {name}'] += int(number)
    return found


def compared(how, *paths):
    return counted(how, FREE_SPACE, how, *paths)


def check(path):
    done = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    expect(done.returncode == 0 and 'no error found' in text, text)
    count['btrfs check'] += 1


def refused(lines):
    words = ('rebuild', 'clearing free space', 'creating free space', 'free space tree', 'free space cache', 'error',
             'corrupt', 'warn', 'lost', 'mismatch', 'incorrect', 'disabling')
    return [line for line in lines if any(word in line.lower() for word in words)
            and not line.endswith(('enabling free space tree', 'using free-space-tree',
                                   'using free space tree', 'enabling disk space caching'))]


def go_on(fs, rng):
    """Linux mounts the filesystem as it is, writes, and frees. Returns its messages."""
    mnt = fs.mount()
    device = os.path.basename(fs.loop)
    rest, path = os.path.join(mnt, 'rest'), os.path.join(mnt, 'goes-on')
    if os.path.exists(rest):
        # The filesystem is full: deleting a file is the only thing that works.
        os.unlink(rest)
        sync(mnt)
    pieces = Pieces(path)
    pieces.add(*(SECTOR * rng.choice((1, 2, 5)) for _ in range(300)))
    pieces.sync()
    pieces.free(lambda n: n % 3)
    pieces.sync()
    pieces.close()
    os.unlink(path)
    fs.umount()
    return fs.log.lines(device)


def goes_on(fs, rng, listen=False):
    """Linux must not complain about the free space tree after our changes, and must leave a consistent filesystem.

    With many mounts at a time some messages are suppressed; with @listen it is tried several times."""
    spare = fs.copy(fs.path + '.spare')
    for chances in (3, 2, 1, 0) if listen else (0,):
        said = go_on(fs, rng)
        expect(not refused(said), *refused(said))
        if all(any(words in line for line in said) for words in ('first mount', 'last unmount')):
            count['mounts by Linux after ours that were heard'] += 1
            break
        if chances:
            time.sleep(5)
            image.run('cp', '--sparse=always', spare.path, fs.path)
    spare.remove()
    check(fs.path)
    compared('inverse', fs.path)
    count['mounts by Linux after ours'] += 1


def compare_ours(before, linux, rng, cache):
    """(b) and (c)"""
    done = subprocess.run([BTRKIT, 'space-cache', 'convert', before.path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    expect(done.returncode == 0, done.stdout.decode(errors='replace'))
    found = compared('same', linux.path, before.path)
    # Only with v1 something was freed before or after, so only then forms may depend on history.
    expect(cache == 'space_cache=v1' or not found['groups of another form by history'], found)
    compared('inverse', before.path)
    check(before.path)
    goes_on(before, rng, listen=cache == 'space_cache=v1')


def run_scenario(folder, name, seed):
    options, size, cache, work = SCENARIOS[name]
    rng = random.Random(f'{seed} {name}')
    fs = image.Image(os.path.join(folder, 'fs.img'), size)
    fs.mkfs(*(image.peer_options(options) if options else options))
    if not cache:
        work(fs, rng)
        fs.remove()
        return
    work(fs.mount(cache), rng)
    fs.umount()
    before = fs.copy(os.path.join(folder, 'before.img')) if cache != 'space_cache=v2' else None
    fs.mount('clear_cache,space_cache=v2')
    fs.umount()
    compared('build', fs.path)
    compared('inverse', fs.path)
    if before:
        compare_ours(before, fs, rng, cache)
        before.remove()
    fs.remove()


WANTED = ('groups', 'ranges', 'bitmaps', 'groups of bitmaps', 'groups of extents', 'empty groups', 'full groups',
          'mixed groups', 'groups of metadata', 'groups of bitmaps with a short one', 'groups between the thresholds',
          'groups of another form by history', 'items')
WANTED_OF_EDITS = ('extents freed', 'extents allocated', 'changes of form', 'groups that went to bitmaps',
                   'groups that went to extents')
WANTED_OF_OURS = ('groups', 'ranges', 'bitmaps', 'items')


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    names = sys.argv[1:] or list(SCENARIOS)
    seed = image.seed()
    print(f'seed {seed}')
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for name in names:
            print(name, flush=True)
            run_scenario(folder, name, seed)
    for what, n in sorted(count.items()):
        print(f'{n} {what}')
    wanted = [f'build: {what}' for what in WANTED] + [f'edit: {what}' for what in WANTED_OF_EDITS]
    wanted += [f'same: {what}' for what in WANTED_OF_OURS] + ['mounts by Linux after ours that were heard']
    lacking = [what for what in wanted if not count[what]]
    if lacking and not sys.argv[1:]:
        print('nothing was compared of:', *lacking, sep='\n  ')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
