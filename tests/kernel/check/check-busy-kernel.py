#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Crash states of a busy filesystem must have no errors: files are written, truncated, cloned, renamed, removed and
fsynced, subvolumes come and go, with balance, defragmentation and quotas. The image is on XFS, which clones it between
two requests. Usage: check-busy-kernel.py [SECONDS [FORM]...], for each form. BTRKIT is the program under test; $SEED is
the random seed, but threads make each run different."""
import errno
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import image
import ops
from image import run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
K, M = 1 << 10, 1 << 20
SIZE = '700M'
SUBVOLUMES, FILES, THREADS = 4, 60, 4

# mkfs.btrfs options, mount options, and what else runs.
FORMS = {
    'default': ((), '', ()),
    'compressed': (('-n', '4k'), 'compress-force=zstd', ()),
    'v1': (('-O', '^free-space-tree,^block-group-tree,^no-holes'), 'space_cache=v1', ()),
    'mixed': (('-M',), 'autodefrag', ()),
    'nodatacow': (('-n', '64k'), 'nodatacow', ()),
    'quota': ((), '', ('quota',)),
    'simple quota': ((), '', ('simple',)),
    'balance': (('-m', 'single'), 'discard=async', ('balance',)),
}
# Errors that concurrent operations can cause.
BESIDE = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOSPC, errno.EDQUOT, errno.EBUSY, errno.EINVAL,
          errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.EPERM, errno.EROFS, errno.ENOTCONN, errno.ECANCELED,
          errno.ETXTBSY, errno.EOPNOTSUPP, errno.EINPROGRESS, errno.EXDEV, errno.ENAMETOOLONG, errno.ELOOP)


class Busy:
    def __init__(self, mnt, number):
        self.mnt, self.rng = mnt, random.Random(image.seed() * 1000 + number)
        self.number, self.done = number, 0

    def subvolume(self):
        return f'{self.mnt}/s{self.rng.randrange(SUBVOLUMES)}'

    def path(self):
        return f'{self.subvolume()}/d{self.rng.randrange(3)}/f{self.rng.randrange(FILES)}'

    def offset(self):
        return self.rng.choice((0, 1, 3000, 4 * K, self.rng.randrange(2 * M), self.rng.randrange(500) * 4 * K))

    def write(self):
        n = self.rng.choice((1, 100, 2000, 4 * K, 10000, 128 * K, self.rng.randrange(1, 400 * K)))
        data = ops.incompressible(n, self.rng.randrange(1000)) if self.rng.random() < 0.5 else bytes((self.number,)) * n
        ops.write(self.path(), self.offset(), data, sync=self.rng.random() < 0.3)

    def fsync(self):
        path = self.path()
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self):
        os.truncate(self.path(), self.offset())

    def fallocate(self):
        ops.fallocate(self.path(), self.offset(), self.rng.randrange(1, M), self.rng.choice((0, ops.KEEP_SIZE)))

    def punch(self):
        ops.punch(self.path(), self.offset(), self.rng.randrange(1, 300 * K))

    def clone(self):
        ops.clone(self.path(), self.rng.randrange(100) * 4 * K, self.rng.randrange(1, 30) * 4 * K, self.path(),
                  self.rng.randrange(300) * 4 * K)

    def rename(self):
        os.rename(self.path(), self.path())

    def link(self):
        subvolume = self.subvolume()
        os.link(f'{subvolume}/d0/f{self.rng.randrange(FILES)}', f'{subvolume}/d1/f{self.rng.randrange(FILES)}')

    def symlink(self):
        os.symlink('x' * self.rng.randrange(1, 3000), self.path())

    def unlink(self):
        os.unlink(self.path())

    def xattr(self):
        os.setxattr(self.path(), f'user.{self.rng.randrange(5)}', b'v' * self.rng.randrange(2000))

    def nocow(self):
        path = f'{self.subvolume()}/d2/n{self.rng.randrange(10)}'
        if not os.path.exists(path):
            ops.write(path, 0, b'')
            ops.nocow(path)
        ops.write(path, self.offset(), ops.incompressible(50 * K), sync=self.rng.random() < 0.5)

    def many(self):
        folder = f'{self.subvolume()}/m{self.number}.{self.rng.randrange(2)}'
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                os.unlink(f'{folder}/{name}')
            os.rmdir(folder)
            return
        os.mkdir(folder)
        for i in range(self.rng.randrange(300)):
            ops.write(f'{folder}/{i}', 0, b'%d' % i)
        ops.fsync(folder)

    def unnamed(self):
        fd = os.open(self.subvolume(), os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, ops.incompressible(self.rng.randrange(1, 200 * K)))
        os.fsync(fd)
        time.sleep(0.05)
        os.close(fd)

    def snapshot(self):
        to = f'{self.mnt}/snap{self.rng.randrange(6)}'
        if os.path.exists(to):
            ops.delete_subvolume(to)
        else:
            ops.snapshot(self.subvolume(), to, readonly=self.rng.random() < 0.5)

    def commit(self):
        ops.sync(self.mnt)

    def work(self, until):
        ways = ([self.write] * 10 + [self.fsync] * 4 + [self.truncate, self.fallocate, self.punch, self.unlink,
                self.clone, self.rename, self.link, self.xattr] * 2 + [self.symlink, self.nocow, self.many,
                self.unnamed, self.snapshot, self.commit])
        while time.monotonic() < until:
            try:
                self.rng.choice(ways)()
            except OSError as e:
                if e.errno not in BESIDE:
                    raise
            self.done += 1


def ask(*args):
    """Run btrfs; it may fail if there is nothing to do."""
    subprocess.run([image.BTRFS, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def balance(mnt, until):
    while time.monotonic() < until:
        ask('balance', 'start', '--full-balance', mnt)
        time.sleep(0.3)


def groups(mnt):
    """Assign higher-level qgroups while nothing else runs: Linux miscounts groups whose members change during the
    assignment, and sometimes commits wrong counts if they are rescanned during changes, which `btrfs check` reports
    too."""
    for i in range(SUBVOLUMES):
        ask('qgroup', 'create', f'1/{i % 2}', mnt)
        ask('qgroup', 'assign', f'0/{256 + i}', f'1/{i % 2}', mnt)
    ask('quota', 'rescan', '-w', mnt)
    ops.sync(mnt)


class Thread(threading.Thread):
    """Records the exception that ended it."""
    failed = None

    def run(self):
        try:
            super().run()
        except Exception as e:  # pylint: disable=broad-except
            self.failed = e


# Leftovers of mkfs.btrfs 6.2, and superblock copies that were not all written yet.
LEFT = ('BTR-SPACE-LEFTOVER ', 'BTR-SUPER-OLD ', 'BTR-SUPER-NEW ')


def clean(name, path, state):
    done = subprocess.run([BTRKIT, 'check', '--data', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    said = done.stdout.decode(errors='replace')
    lines = said.splitlines()
    fine = done.returncode in (0, 4) and lines[-1].startswith('checked ') and all(
        line.startswith(LEFT) for line in lines[:-1])
    if not fine and 'KEEP' in os.environ:
        run('cp', '--reflink=never', '--sparse=always', path, os.environ['KEEP'])
    assert fine, f'{name}, state {state}: {said}'
    return int(lines[-1].split()[1])


def one(name, folder, seconds):
    options, mount, beside = FORMS[name]
    img = image.Image(f'{folder}/{name.replace(" ", "-")}.img', SIZE)
    states, blocks, logs = 0, 0, 0
    try:
        img.mkfs_newer(*options)
        # At the first mount Linux scans all UUIDs, and may re-add the one of a subvolume that was deleted meanwhile: a
        # leftover, which check reports. The scan is complete after unmounting.
        img.mount(mount)
        img.umount()
        mnt = img.mount(mount)
        if 'quota' in beside or 'simple' in beside:
            ops.quota(mnt, simple='simple' in beside)
        for i in range(SUBVOLUMES):
            ops.subvolume(f'{mnt}/s{i}')
            for j in range(3):
                os.mkdir(f'{mnt}/s{i}/d{j}')
        if 'quota' in beside or 'simple' in beside:
            groups(mnt)
        until = time.monotonic() + seconds
        workers = [Busy(mnt, i) for i in range(THREADS)]
        threads = [Thread(target=worker.work, args=(until,)) for worker in workers]
        if 'balance' in beside:
            threads.append(Thread(target=balance, args=(mnt, until)))
        for thread in threads:
            thread.start()
        rng = random.Random(image.seed())
        copy = f'{folder}/copy.img'
        while time.monotonic() < until:
            time.sleep(rng.random() * 0.5)
            run('cp', '--reflink=always', img.path, copy)
            states += 1
            logs += image.Image(copy, None).log_root() != 0
            blocks += clean(name, copy, states)
        for thread in threads:
            thread.join()
            if thread.failed:
                raise thread.failed
        img.umount()
        blocks += clean(name, img.path, 'in the end')
        print(f'{name}: {states} states, {logs} with a log, {blocks} tree blocks, '
              f'{sum(worker.done for worker in workers)} operations')
        return states
    finally:
        img.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    seconds = float(sys.argv[1]) if sys.argv[1:] else 4
    states = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-busy-') as folder:
        run('truncate', '-s', '8G', f'{folder}/xfs.img')
        run('mkfs.xfs', '-q', '-m', 'reflink=1', f'{folder}/xfs.img')
        os.mkdir(f'{folder}/xfs')
        with image.loop(f'{folder}/xfs.img') as device, image.mounted(device, f'{folder}/xfs', '-o', 'nouuid'):
            for name in sys.argv[2:] or FORMS:
                states += one(name, f'{folder}/xfs', seconds)
    print(f'{states} states, no errors')
    return 0


if __name__ == '__main__':
    sys.exit(main())
