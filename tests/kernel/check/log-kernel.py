#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Log trees written by Linux: after each of many random operations and an fsync, the image as a crash would leave it
must have no errors, including data; and neither must the result of replaying some of the logs by Linux.

BTRKIT is the command, $SEED another seed. `--rounds N` runs more; arguments select forms. Exits with 77 if it cannot
run.
"""
import errno
import os
import random
import subprocess
import sys
import tempfile

import image
import ops

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
K = 1 << 10
REPLAYED = 4  # number of replays per form

# mkfs.btrfs options, mount options.
FORMS = {
    'default': ((), ''),
    'small nodes': (('-n', '4k'), ''),
    'compressed': ((), 'compress-force=zstd'),
    'holes': (('-O', '^no-holes'), 'compress=lzo'),
    'no checksums': ((), 'nodatasum'),
    'mixed': (('-M',), 'max_inline=0'),
    'sha256': (('-n', '4k', '--csum', 'sha256'), 'compress=zlib'),
}


class Plan:
    """Random operations below a directory. Impossible ones are skipped."""

    def __init__(self, mnt, rng):
        self.mnt, self.rng, self.count = mnt, rng, 0
        self.held = []
        ops.subvolume(f'{mnt}/sub')
        self.folders = [mnt, f'{mnt}/sub', f'{mnt}/a', f'{mnt}/sub/b']
        for folder in self.folders[2:]:
            os.mkdir(folder)
        for folder in self.folders:
            for i in range(8):
                ops.write(f'{folder}/f{i}', 0, self.bytes(self.rng.choice((10, 3000, 20000, 200000))))
        ops.sync(mnt)

    def bytes(self, size):
        """Half of it is zeros, so it is compressible."""
        return ops.incompressible(size - size // 2, self.rng.randrange(1000)) + bytes(size // 2)

    def folder(self):
        return self.rng.choice(self.folders)

    def file(self, folder=None):
        return f'{folder or self.folder()}/f{self.rng.randrange(12)}'

    def pair(self):
        """Usually within one subvolume."""
        inside = self.rng.random() < 0.5
        folders = [f for f in self.folders if f.startswith(f'{self.mnt}/sub') == inside]
        return self.file(self.rng.choice(folders)), self.file(self.rng.choice(folders))

    def at(self):
        return self.rng.randrange(0, 60) * 4 * K

    def length(self):
        return self.rng.randrange(1, 16) * 4 * K

    def write(self):
        size = self.rng.choice((7, 1000, 4096, 9000, 65536, 150000))
        ops.write(self.file(), self.rng.choice((0, self.at(), self.at() + 100)), self.bytes(size))

    def direct(self):
        with ops.Opened(self.file(), os.O_RDWR | os.O_CREAT | os.O_SYNC) as fd:
            os.pwrite(fd, self.bytes(8192), self.at())

    def truncate(self):
        os.truncate(self.file(), self.rng.choice((0, 5, self.at(), self.at() + 77)))

    def punch(self):
        ops.punch(self.file(), self.at(), self.length())

    def prealloc(self):
        ops.fallocate(self.file(), self.at(), self.length(), self.rng.choice((0, ops.KEEP_SIZE)))

    def zero(self):
        ops.fallocate(self.file(), self.at(), self.length(), ops.ZERO_RANGE)

    def clone(self):
        source, dest = self.pair()
        ops.clone(source, self.at(), self.length(), dest, self.at())

    def clone_whole(self):
        source, dest = self.pair()
        ops.clone(source, 0, 0, dest, 0)

    def rename(self):
        os.rename(*self.pair())

    def link(self):
        os.link(*self.pair())

    def links(self):
        source, _ = self.pair()
        self.count += 1
        for i in range(40):
            os.link(source, f'{os.path.dirname(source)}/{"l" * 200}{self.count}-{i}')

    def unlink(self):
        os.unlink(self.file())

    def unlink_open(self):
        path = self.file()
        self.held.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        os.pwrite(self.held[-1], self.bytes(30000), 0)
        os.unlink(path)
        os.fsync(self.held[-1])

    def tmpfile(self):
        self.held.append(os.open(self.folder(), os.O_RDWR | os.O_TMPFILE, 0o644))
        os.pwrite(self.held[-1], self.bytes(30000), 0)
        os.fsync(self.held[-1])

    def symlink(self):
        os.symlink('x' * self.rng.randrange(1, 250), self.file())

    def fifo(self):
        """Not where another operation opens it and would block."""
        os.mkfifo(f'{self.folder()}/p{self.rng.randrange(6)}')

    def many(self):
        folder = self.folder()
        for i in range(60):
            self.count += 1
            ops.write(f'{folder}/n{self.count}', 0, b'x' * i * 50)
        ops.fsync(folder)

    def few(self):
        folder = self.folder()
        for name in os.listdir(folder):
            if name.startswith(('n', 'l')) and self.rng.random() < 0.5:
                os.unlink(f'{folder}/{name}')
        ops.fsync(folder)

    def mkdir(self):
        path = f'{self.folder()}/d{self.rng.randrange(6)}'
        os.mkdir(path)
        if len(self.folders) < 12:
            self.folders.append(path)
        ops.write(f'{path}/f0', 0, self.bytes(5000))

    def move_folder(self):
        """Only an empty directory can replace another one; this keeps the known names valid."""
        if not self.folders[4:]:
            return
        folder = self.rng.choice(self.folders[4:])
        new = f'{os.path.dirname(folder)}/d{self.rng.randrange(6)}'
        os.rename(folder, new)
        self.folders = [new + f[len(folder):] if f == folder or f.startswith(f'{folder}/') else f
                        for f in self.folders if f != new]

    def xattr(self):
        os.setxattr(self.file(), f'user.{self.rng.randrange(9)}', b'v' * self.rng.randrange(1, 2000))

    def no_xattr(self):
        path = self.file()
        for name in os.listxattr(path):
            os.removexattr(path, name)

    def nocow(self):
        path = self.file()
        if os.path.lexists(path):
            os.unlink(path)
        ops.nocow(path)
        ops.write(path, 0, self.bytes(50000))
        ops.fsync(path)
        ops.write(path, 8192, self.bytes(8192))

    def mode(self):
        os.chmod(self.file(), self.rng.randrange(0o400, 0o777) | 0o600)

    def commit(self):
        if self.rng.random() < 0.3:
            ops.sync(self.mnt)

    def many_extents(self):
        with ops.Opened(self.file()) as fd:
            for i in range(self.rng.randrange(50, 200)):
                os.pwrite(fd, self.bytes(4096), i * 8192)
            os.fsync(fd)

    CHOICES = (write, write, write, direct, truncate, punch, prealloc, zero, clone, clone, clone_whole, rename, rename,
               link, links, unlink, unlink_open, tmpfile, symlink, fifo, many, few, mkdir, move_folder, xattr, no_xattr,
               nocow, mode, commit, many_extents)

    def step(self):
        try:
            self.rng.choice(self.CHOICES)(self)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EEXIST, errno.EINVAL, errno.EXDEV, errno.ENOTEMPTY, errno.EISDIR,
                               errno.ENOTDIR, errno.EPERM, errno.EOPNOTSUPP, errno.ENODATA, errno.ELOOP, errno.EMLINK,
                               errno.ENXIO):
                raise

    def fsync(self):
        path = self.file() if self.rng.random() < 0.8 else self.folder()
        if os.path.isfile(path) or os.path.isdir(path):
            ops.fsync(path)

    def close(self):
        for fd in self.held:
            os.close(fd)


def clean(what, path):
    done = subprocess.run([BTRKIT, 'check', '--data', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    said = done.stdout.decode(errors='replace')
    lines = [line for line in said.splitlines()[:-1] if not line.startswith('BTR-SPACE-LEFTOVER ')]
    if done.returncode or lines:
        keep = os.environ.get('LOG_KEEP')
        if keep:
            image.run('cp', '--sparse=always', path, keep)
        raise AssertionError(f'{what}: {said}')


def replay(path):
    """The result of Linux's replay must have no errors either."""
    copy = image.Image(path, size=None)
    copy.mount()
    complaints = copy.log.complaints(copy.loop)
    copy.umount()
    assert not complaints, complaints
    assert not copy.log_root()
    clean(f'{path}, replayed', path)
    copy.remove()


def one(name, folder, rounds):
    options, mount = FORMS[name]
    rng = random.Random(f'{image.seed()} {name}')
    form = image.Image(f'{folder}/image', '512M')
    logs, kept = 0, []
    form.mkfs(*options)
    plan = Plan(form.mount(f'commit=600{"," if mount else ""}{mount}'), rng)
    try:
        for number in range(rounds):
            for _ in range(rng.randrange(1, 6)):
                plan.step()
            plan.fsync()
            copy = form.copy(f'{folder}/copy{number}')
            clean(f'{name}, round {number}', copy.path)
            logs += bool(copy.log_root())
            if copy.log_root() and len(kept) < REPLAYED and rng.random() < 0.2:
                kept.append(copy.path)
            else:
                copy.remove()
    finally:
        plan.close()
    form.umount()
    clean(f'{name}, unmounted', form.path)
    for path in kept:
        replay(path)
    assert logs > rounds // 4, f'{name}: {logs} of {rounds} have a log'
    return logs, len(kept)


def main(args):
    why = image.missing()
    if why:
        print(why)
        return 77
    rounds = int(args[args.index('--rounds') + 1]) if '--rounds' in args else 60
    names = [a for a in args if a in FORMS] or FORMS
    logs = replayed = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix='btrkit-log-') as folder:
            found, again = one(name, folder, rounds)
            logs += found
            replayed += again
    print(f'{logs} logs in {len(names)} forms of filesystems, no errors; {replayed} replayed by Linux')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
