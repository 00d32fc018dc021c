#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Targets of `btrkit mkfs` for filling other than files that may grow.

Devices, parts of files and devices, several images of which Linux gets fewer. And what is left after failures: space
that is too small by any number of bytes, signals, source files that cannot be read completely.

    fill-targets.py [--only PATTERN]

BTRKIT is the program under test; BTRFS and MKFS are from btrfs-progs. Exits with 77 if it cannot run.
"""
import argparse
import contextlib
import fnmatch
import hashlib
import io
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile

import everything
import image
import several_devices
from image import BTRFS, MKFS, loop, mounted, run
from several_devices import BTRKIT, need

K, M = 1 << 10, 1 << 20
SUPERS = (64 * K, 64 * M)
MAGIC = b'_BHRfS_M'


class Place:
    """A tmpfs of adjustable size, and a source tree outside of it."""

    def __init__(self, scratch):
        self.scratch, self.tree, self.mnt, self.full = scratch, *(f'{scratch}/{n}' for n in ('tree', 'mnt', 'full'))
        for path in (self.mnt, self.full):
            os.mkdir(path)
        make_tree(self.tree)
        self.wanted = everything.listing(self.tree)
        makes('-r', self.tree, f'{scratch}/first')
        self.superblock = read_at(f'{scratch}/first', SUPERS[0], 4 * K)
        os.unlink(f'{scratch}/first')

    def limit(self, size):
        run('mount', '-o', f'remount,size={size or "1g"}', self.full)

    def used(self):
        st = os.statvfs(self.full)
        return (st.f_blocks - st.f_bfree) * st.f_frsize

    def exact(self):
        return int(run(BTRKIT, 'mkfs', '--size-only', '-r', self.tree, 'none'))

    def check(self, *devices, options='ro', check=True):
        """Linux finds the contents of the source."""
        if check:
            run(BTRFS, 'check', '--check-data-csum', devices[0])
        with mounted(devices[0], self.mnt, '-o', ','.join((options, *(f'device={d}' for d in devices)))):
            lines = everything.differences(everything.listing(self.mnt), self.wanted, ('atime',))
        need(not lines, 'not equal:\n' + '\n'.join(lines))
        return len(self.wanted)


def make_tree(top):
    rng = random.Random(6)
    for folder in ('usr/lib', 'var/log', 'etc'):
        os.makedirs(f'{top}/{folder}')
    for number in range(60):
        everything.write(f'{top}/usr/lib/{number}', rng.randbytes(rng.choice((0, 100, 3000, 4096, 70000, 300000))))
        everything.write(f'{top}/etc/{number}', b'line of text\n' * rng.randrange(200))
    with open(f'{top}/var/hole', 'wb') as f:
        f.truncate(M)
        f.seek(500000)
        f.write(b'in the middle')
    everything.write(f'{top}/usr/lib/bad', rng.randbytes(300 * K))
    os.link(f'{top}/etc/1', f'{top}/var/link')
    os.symlink('../etc/1', f'{top}/usr/symlink')
    os.setxattr(f'{top}/etc/2', 'user.name', b'value')
    os.chown(f'{top}/etc/3', 12, 34)
    os.chmod(f'{top}/etc/4', 0o4711)
    os.utime(f'{top}/etc/5', ns=(1, 1234567890123456789))


def mkfs(*args, **kwargs):
    """@return exit status, standard error"""
    done = subprocess.run([BTRKIT, 'mkfs', '-q', '-f', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **kwargs)
    need(not done.stdout, f'mkfs -q prints {done.stdout!r}')
    return done.returncode, done.stderr.decode()


def makes(*args):
    status, said = mkfs(*args)
    need(not status, f'{args}: exit {status}: {said}')


def told(says, status, said):
    need(status == 1 and re.fullmatch(r'btrkit mkfs: [^\n]*\n', said) and re.search(says, said),
         f'exit {status}, {said!r} does not say {says!r}')


def read_at(path, at, length):
    with open(path, 'rb') as f:
        return os.pread(f.fileno(), length, at)


def total(path, start=0):
    """Size of the filesystem according to its superblock."""
    block = read_at(path, start + SUPERS[0], 4 * K)
    need(block[0x40:0x48] == MAGIC, f'{path}: no superblock')
    return int.from_bytes(block[0x70:0x78], 'little')


def make_file(path, size):
    with open(path, 'wb') as f:
        f.truncate(size)
    return path


def no_filesystem(path, start=0):
    """It has no superblock, and blkid finds nothing."""
    for at in SUPERS:
        need(read_at(path, start + at + 0x40, 8) != MAGIC, f'{path}: there is a superblock at {at}')
    done = subprocess.run(['blkid', '-p', '-O', str(start), path], stdout=subprocess.PIPE, check=False)
    need(b'btrfs' not in done.stdout, f'blkid finds {done.stdout!r}')


def untouched_or_none(path, before):
    """If refused before the source was read, it is completely unchanged; otherwise it contains no filesystem."""
    if contents(path) != before:
        no_filesystem(path)


def contents(path):
    with open(path, 'rb') as f:
        return hashlib.file_digest(f, 'sha256').digest()


def device(place):
    """A device is used as a whole; with --shrink, as in mkfs.btrfs, only what is needed, and not more than mkfs.btrfs
    takes."""
    size, compared = 500 * M, 0
    path = make_file(f'{place.scratch}/device', size)
    with loop(path) as dev:
        makes(dev)
        for words, low, high in (((), size, size), (('-b', '300m'), 300 * M, 300 * M), (('--shrink',), M, 100 * M),
                                 (('--shrink', '-b', '300m'), M, 100 * M), (('-M',), size, size)):
            makes(*words, '-r', place.tree, dev)
            need(low <= total(dev) <= high, f'{words}: {total(dev)} bytes')
            compared += place.check(dev)
            with mounted(dev, place.mnt, '-o', 'rw'):
                run('rm', '-r', f'{place.mnt}/usr')
                if high > 100 * M:
                    everything.write(f'{place.mnt}/more', os.urandom(100 * M))
            run(BTRFS, 'check', '--check-data-csum', dev)
        makes('--shrink', '-r', place.tree, dev)
        ours = total(dev)
        run(MKFS, '-q', '-f', '--shrink', '-r', place.tree, dev)
        need(ours <= total(dev) < size, f'--shrink: {ours} bytes, mkfs.btrfs {total(dev)}')
        # Together with a new image file both get the size that is needed, or the device is too small.
        beside = f'{place.scratch}/beside'
        words = ('-d', 'raid1', '-m', 'raid1', '-r', place.tree, beside, dev)
        before = contents(dev)
        told('too small', *mkfs(*words))
        need(not os.path.lexists(beside), 'there is an image')
        untouched_or_none(dev, before)
        makes('--shrink', *words)
        with loop(beside) as other:
            compared += place.check(other, dev)
    return compared


def part(place):
    """A partition given by number or by offset, in a file or on a device; nothing around it is written to."""
    path, size, compared = make_file(f'{place.scratch}/disk', 480 * M), 200 * M, 0
    start = M + size
    with open(path, 'r+b') as f:
        for at, length in ((64 * K, M - 64 * K), (start - 100 * K, 100 * K), (start + size, 100 * K)):
            os.pwrite(f.fileno(), os.urandom(length), at)
    run('sfdisk', '-q', '--no-tell-kernel', path, input=b'start=1MiB, size=200MiB\nsize=200MiB\n')

    def around():
        return read_at(path, 0, M), read_at(path, start - 100 * K, 100 * K), read_at(path, start + size, 79 * M)

    before = around()
    for name, words in itertools.product(
            (f'{path}?partition=2', f'{path}?offset={start}&size={size}', 'DEVICE?partition=2'),
            ((), ('--shrink', '--compress', 'zstd'))):
        with loop(path) if name.startswith('DEVICE') else contextlib.nullcontext('') as dev:
            makes(*words, '-r', place.tree, name.replace('DEVICE', dev))
            need((total(path, start) == size) != bool(words), f'{name} {words}: {total(path, start)} bytes')
            need(around() == before, f'{name} {words}: written outside')
        with loop(path, '-o', str(start), '--sizelimit', str(size)) as inner:
            compared += place.check(inner)
        with open(path, 'r+b') as f:
            f.seek(start)
            f.write(bytes(100 * K))
    return compared


def attached(paths):
    volume = several_devices.Fresh('', len(paths), None)
    volume.paths = paths
    volume.attach()
    return volume


def copies(place):
    """Linux reads everything from as few images as the profile allows."""
    compared = 0
    for count, least, words in ((2, 1, ('-d', 'raid1', '-m', 'raid1')), (3, 1, ('-d', 'raid1c3', '-m', 'raid1c3')),
                                (4, 3, ('-d', 'raid10', '-m', 'raid1c4', '--compress', 'zstd')),
                                (2, 1, ('-M', '-d', 'raid1', '-m', 'raid1', '--csum', 'xxhash'))):
        paths = [f'{place.scratch}/copy{number}' for number in range(count)]
        makes(*words, '-r', place.tree, *paths)
        for some in itertools.combinations(paths, least):
            volume = attached(some)
            compared += place.check(*volume.loops, options='ro,degraded', check=False)
            volume.umount()
        volume = attached(paths)
        compared += place.check(*volume.loops)
        # The same with devices, each used as a whole.
        volume.umount()
        for path in paths:
            make_file(path, 300 * M)
        volume.attach()
        makes(*words, '-r', place.tree, *volume.loops)
        need(total(volume.loops[-1]) == count * 300 * M, f'{words}: {total(volume.loops[-1])} bytes')
        compared += place.check(*volume.loops)
        volume.remove()
    return compared


class Full:
    """An image on a filesystem whose free space is set by @room; None: plenty."""

    def __init__(self, place, where, room):
        self.place, self.path, self.room = place, f'{where}/image', room

    def begin(self, free, size, start, *others):
        """@size: previous size of the file, which contains the superblock of a filesystem; None: neither it nor the
        others exist
        """
        for path in (self.path, *others):
            if os.path.exists(path):
                os.unlink(path)
        self.room(None)
        if size:
            with open(make_file(self.path, size), 'r+b') as f:
                os.pwrite(f.fileno(), self.place.superblock, start + SUPERS[0])
        self.room(free)

    def fails(self, says, *args, keeps, start):
        """@keeps: the size that remains, None if the file must be removed"""
        told(says, *mkfs(*args))
        need(os.path.lexists(self.path) == (keeps is not None), f'{args}: {"gone" if keeps else "there"}')
        if keeps is not None:
            need(os.path.getsize(self.path) == keeps, f'{args}: {os.path.getsize(self.path)} bytes are left')
            no_filesystem(self.path, start)


def tmpfs(place):
    """Exactly the required space is enough, and any less is not."""
    full, tries, first = Full(place, place.full, place.limit), 0, f'{place.scratch}/first'
    path, sized, both = full.path, ('-b', '200m'), ('-d', 'raid1', '-m', 'raid1', first)
    for words, spec, size, keeps, start in (((), '', None, None, 0), ((), '', 300 * M, 0, 0),
                                            (sized, '', None, None, 0), (sized, '', 150 * M, 200 * M, 0),
                                            (('--compress', 'zstd', '--verify'), '', 300 * M, 0, 0),
                                            ((), f'?offset={M}&size={200 * M}', 300 * M, 300 * M, M),
                                            (both, '', None, None, 0), (both, '', 10 * M, 0, 0)):
        words = (*words, path + spec, '-r', place.tree)
        used = None
        # The first run has plenty of space, and may allocate more than needed in advance.
        for _ in range(2):
            full.begin(used, size, start, first)
            makes(*words)
            used = place.used()
        for less in (4 * K, 8 * K, 12 * K, 64 * K, M, used // 2, used - 64 * K):
            full.begin(used - less, size, start, first)
            full.fails('No space left on device', *words, keeps=keeps, start=start)
            need(first not in words or not os.path.exists(first), 'the other one is there')
            tries += 1
        full.begin(used, size, start)
        makes(*words)
        need(total(path, start), 'enough, and there is no filesystem')
        os.unlink(path)
    return tries


def ext4(place):
    """ext4 needs blocks for its own metadata."""
    host, where, filler = f'{place.scratch}/host', f'{place.scratch}/ext4', f'{place.scratch}/ext4/filler'
    os.mkdir(where)
    run('mkfs.ext4', '-q', '-m', '0', make_file(host, 60 * M))
    with loop(host) as dev, mounted(dev, where, '-o', 'rw'):
        def room(size):
            if os.path.exists(filler):
                os.unlink(filler)
            if not size:
                return
            image.sync(where)
            st = os.statvfs(where)
            run('fallocate', '-l', str(st.f_bavail * st.f_frsize - size), filler)

        full, tries = Full(place, where, room), 0
        used = 0
        for _ in range(2):
            full.begin(used and used + M, None, 0)
            makes(full.path, '-r', place.tree)
            used = os.stat(full.path).st_blocks * 512
        for size, keeps in ((None, None), (100 * M, 0)):
            for free in (used - 8 * K, used - M, used // 2, 64 * K, 4 * K):
                full.begin(free, size, 0)
                full.fails('No space left on device', full.path, '-r', place.tree, keeps=keeps, start=0)
                tries += 1
        full.begin(used + M, None, 0)
        makes(full.path, '-r', place.tree)
    return tries


def behind_a_device(place):
    """Lack of space behind a device is detected late: writes reach the backing file when they are flushed."""
    full, size, tries = Full(place, place.full, place.limit), 300 * M, 0
    full.begin(None, size, 0)
    with loop(full.path) as dev:
        makes('-r', place.tree, dev)
        used = place.used()
    for less in (4 * K, 8 * K, 64 * K, M, used // 2):
        full.begin(used - less, size, 0)
        with loop(full.path) as dev:
            full.fails('No space left on device|Input/output error', '-r', place.tree, dev, keeps=size, start=0)
            no_filesystem(dev)
        no_filesystem(full.path)
        tries += 1
    return tries


def small_device(place):
    path, tries = f'{place.scratch}/small', 0
    exact = place.exact()
    for size in (exact - 4 * K, exact - 64 * K, exact // 2, 5 * M, 2 * M, M, 512 * K, 128 * K):
        with open(make_file(path, size), 'r+b') as f:
            os.pwrite(f.fileno(), place.superblock, SUPERS[0])
        with loop(path) as dev:
            for words in ((), ('--shrink',)):
                before = contents(dev)
                told('too small', *mkfs(*words, '-r', place.tree, dev))
                untouched_or_none(dev, before)
        tries += 1
    with loop(make_file(path, exact)) as dev:
        makes('--shrink', '-r', place.tree, dev)
        need(total(dev) == exact, f'{total(dev)} bytes, {exact} were told')
        place.check(dev)
    return tries


def signals(place):
    """Interrupt while an archive is read, when the previous contents are gone already."""
    data, paths = io.BytesIO(), [f'{place.scratch}/held{number}' for number in range(2)]
    with tarfile.open(fileobj=data, mode='w') as tar:
        member = tarfile.TarInfo('file')
        member.size = 12 * M
        tar.addfile(member, io.BytesIO(random.Random(3).randbytes(member.size)))
    data, tries = data.getvalue(), 0
    for count, number in itertools.product((1, 2), (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        volume = attached([make_file(path, 300 * M) for path in paths[:count]])
        makes(*volume.loops)
        process = subprocess.Popen([BTRKIT, 'mkfs', '-q', '-f', '--tar', '-', *volume.loops], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # When this has been accepted, the work has begun.
        process.stdin.write(data[:8 * M])
        process.stdin.flush()
        process.send_signal(number)
        try:
            process.stdin.write(data[8 * M:])
        except BrokenPipeError:
            pass
        said = process.communicate(timeout=60)[1].decode()
        if number == signal.SIGKILL:
            need(process.returncode == -number and not said, f'{number}: exit {process.returncode}: {said}')
        else:
            told(f'interrupted: there is no filesystem on {"it" if count == 1 else "them"} now', process.returncode,
                 said)
        for dev in volume.loops:
            no_filesystem(dev)
        volume.remove()
        tries += 1
    return tries


def unreadable(place):
    """A source file that the host cannot read completely: here its data does not match its checksums."""
    path, new = f'{place.scratch}/source', f'{place.scratch}/new'
    makes('-r', place.tree, path)
    with open(f'{place.tree}/usr/lib/bad', 'rb') as f:
        piece = f.read()[200 * K:200 * K + 64]
    with open(path, 'r+b') as f:
        at = f.read().index(piece)
        os.pwrite(f.fileno(), bytes(64), at)
    with loop(path) as dev, mounted(dev, place.mnt):
        for words in ((), ('--compress', 'zstd'), ('--threads', '1')):
            told('bad: .*Input/output error', *mkfs(*words, '-r', place.mnt, new))
            need(not os.path.lexists(new), 'there is an image')
    return 3


WORK = (device, part, copies, tmpfs, ext4, behind_a_device, small_device, signals, unreadable)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN', help='parts with such names')
    args = parser.parse_args()
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    results = []
    with tempfile.TemporaryDirectory(prefix='btrkit-targets-') as scratch:
        with mounted('btrkit', scratch, '-t', 'tmpfs', '-o', 'noatime,size=8g'):
            place = Place(scratch)
            with mounted('btrkit', place.full, '-t', 'tmpfs', '-o', 'size=1g'):
                for work in WORK:
                    if fnmatch.fnmatch(work.__name__, args.only):
                        results.append(several_devices.attempt(work.__name__, work, place))
    failed = results.count(None)
    print(f'{sum(filter(None, results))} paths and failures, {failed} failed')
    return 1 if failed or not results else 0


if __name__ == '__main__':
    sys.exit(main())
