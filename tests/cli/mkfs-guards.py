#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What mkfs refuses to write to, -f or not, because it is in use: mounted, locked, swap, behind a loop device."""
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import struct
import sys
import tempfile

import tool
from tool import check_failure, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'kernel'))
import image  # noqa: E402

SIZE = 200 << 20
refusals = 0


def digest(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()


def refused(device, says, path=None):
    """@path: the file whose bytes must not change."""
    global refusals
    for args in ((), ('-f',), ('-f', '-K')):
        before = path and digest(path)
        said = check_failure('mkfs', device, run('mkfs', *args, device))
        assert says in said, f'{device}: {said!r} lacks {says!r}'
        assert not path or digest(path) == before, f'{device} {args}: refused, and yet changed'
        refusals += 1


def makes(device, *args):
    status, _, err = run('mkfs', '-f', '-q', *args, device)
    assert not status, f'{device}: {err}'


@contextlib.contextmanager
def loop(path, *options):
    device = image.run('losetup', '-f', '--show', *options, path).decode().strip()
    try:
        yield device
    finally:
        image.run('losetup', '-d', device)


@contextlib.contextmanager
def mounted(device, folder, *options):
    """Read-only if nothing else is said: Linux writes to what it mounts, even when nobody else does."""
    image.run('mount', *(options or ('-o', 'ro')), device, folder)
    try:
        yield
    finally:
        image.run('umount', folder)


def make_file(scratch, name, size=SIZE):
    path = os.path.join(scratch, name)
    with open(path, 'wb') as f:
        f.truncate(size)
    return path


def behind_a_loop_device(scratch):
    path = make_file(scratch, 'loop.img')
    makes(path)
    link = os.path.join(scratch, 'link.img')
    os.link(path, link)
    with loop(path, '-r') as device:
        for name in (path, link, f'{path}?offset=1m'):
            refused(name, f'it backs {device}', path)
        refused(device, 'Read-only file system', path)
    with loop(path) as device, loop(device) as upper:
        refused(device, f'it backs {upper}', path)
        makes(upper)
    with loop(path, '-o', '64m', '--sizelimit', '32m') as device:
        refused(path, f'it backs {device}', path)
    makes(path)


def mounts(scratch, folder):
    path = make_file(scratch, 'mount.img')
    with loop(path) as device:
        makes(device)
        with mounted(device, folder):
            refused(device, 'in use by the kernel', path)
            refused(path, f'it backs {device}', path)
        makes(device)
        with mounted(device, folder, '-o', 'rw'):
            refused(device, 'in use by the kernel')


def second_device(scratch, folder):
    """Linux tells of such a filesystem by one of its devices only."""
    first, second = make_file(scratch, 'first.img'), make_file(scratch, 'second.img')
    with loop(first) as a, loop(second) as b:
        image.run(image.MKFS, '-q', '-f', '-m', 'raid1', '-d', 'raid1', a, b)
        image.run(image.BTRFS, 'device', 'scan', a, b)
        with mounted(a, folder):
            refused(b, 'in use by the kernel', second)
            refused(a, 'in use by the kernel', first)
        image.run(image.BTRFS, 'device', 'scan', '--forget', a)
        image.run(image.BTRFS, 'device', 'scan', '--forget', b)


def node(scratch, disk, number):
    """A device file of a partition; there is no udev in every container."""
    name = f'{os.path.basename(disk)}p{number}'
    with open(f'/sys/block/{os.path.basename(disk)}/{name}/dev', encoding='ascii') as f:
        major, minor = map(int, f.read().split(':'))
    path = os.path.join(scratch, name)
    os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(major, minor))
    return path


def partitions(scratch, folder):
    path = make_file(scratch, 'disk.img', 2 * SIZE + (4 << 20))
    sectors = SIZE >> 9
    with open(path, 'r+b') as f:
        f.seek(446)
        for start in (2048, 2048 + sectors):
            f.write(struct.pack('<B3xB3xII', 0, 0x83, start, sectors))
        f.write(bytes(32) + b'\x55\xaa')
    with loop(path, '-P') as device:
        # Not every Linux reads partition tables; it can be told.
        if not os.path.exists(f'/sys/block/{os.path.basename(device)}/{os.path.basename(device)}p1'):
            for number, start in ((1, 2048), (2, 2048 + sectors)):
                image.run('addpart', device, str(number), str(start), str(sectors))
        first, second = (node(scratch, device, number) for number in (1, 2))
        makes(first)
        with mounted(first, folder):
            for spec in (device, f'{device}?partition=1', f'{device}?partition=2', first):
                refused(spec, 'in use by the kernel', path)
            makes(second)


def swap(scratch):
    path = make_file(scratch, 'swap.img')
    if not shutil.which('mkswap') or not shutil.which('swapon'):
        return
    with loop(path) as device:
        image.run('mkswap', device)
        image.run('swapon', device)
        try:
            refused(device, 'in use by the kernel', path)
        finally:
            image.run('swapoff', device)


def locks(scratch):
    path = make_file(scratch, 'lock.img')
    with loop(path) as device:
        with open(device, 'rb') as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            refused(device, 'another program holds a lock', path)
        makes(device)


def discards(scratch):
    """A loop device turns a discard into a hole of its file."""
    path, at = make_file(scratch, 'discard.img'), 150 << 20
    with loop(path) as device:
        with open(f'/sys/block/{os.path.basename(device)}/queue/discard_max_bytes', encoding='ascii') as f:
            can = int(f.read())
        for option, kept in (('-K', True), ('-q', not can)):
            with open(device, 'r+b') as f:
                f.seek(at)
                f.write(b'kept' * 1024)
            makes(device, option)
            with open(path, 'rb') as f:
                f.seek(at)
                assert (f.read(4) == b'kept') == kept, (option, can)


def rotates(scratch):
    """A disk that does not rotate is told, and that it may keep one copy of data that is DUP."""
    path = make_file(scratch, 'ssd.img', 300 << 20)
    with loop(path) as device:
        switch = f'/sys/block/{os.path.basename(device)}/queue/rotational'
        with open(switch, encoding='ascii') as f:
            before = f.read()
        for number, answer in ((0, 'yes'), (1, 'no')):
            with open(switch, 'w', encoding='ascii') as f:
                f.write(str(number))
            status, out, err = run('mkfs', '-f', '-d', 'dup', device)
            assert not status and f'SSD detected:       {answer}\n'.encode() in out, (number, out, err)
            assert (err.count('\n') == 1 and 'only one copy' in err) if answer == 'yes' else not err, (number, err)
        with open(switch, 'w', encoding='ascii') as f:
            f.write(before)


def sector_sizes(scratch):
    """No word about those that Linux says it takes."""
    path, sizes = make_file(scratch, 'sizes.img'), os.path.join(scratch, 'sizes')
    with open(sizes, 'w', encoding='ascii') as f:
        f.write('4096 8192 32768\n')
    command = f'mount --bind {sizes} /sys/fs/btrfs/features/supported_sectorsizes && exec "$@"'
    for size in (4096, 8192, 16384, 32768, 65536):
        status, _, err = run('-m', 'sh', '-c', command, 'sh', tool.BTRKIT, 'mkfs', '-q', '-f', '-s', size, path,
                             binary='unshare')
        known = size in (4096, 8192, 32768, os.sysconf('SC_PAGESIZE'))
        assert not status and ('page size' in err) != known, (size, err)


def full_disk(folder):
    """There is too little room, by less each time: nothing is written, and what the file held is there as before."""
    failures = 0
    for size in range(256, 6144, 256):
        with mounted('none', folder, '-t', 'tmpfs', '-o', f'size={size}k'):
            path = make_file(folder, 'fs.img')
            with open(path, 'r+b') as f:
                f.seek(65536)
                f.write(b'what there was' * 100)
            before = digest(path)
            result = run('mkfs', path)
            if not result[0]:
                break
            failures += 1
            said = check_failure('mkfs', path, result)
            assert 'No space left on device' in said, said
            assert digest(path) == before
    assert failures > 2 and not result[0], (failures, result)
    return failures


def main():
    reason = image.missing()
    if reason:
        tool.skip(reason)
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, 'mnt')
        os.mkdir(folder)
        behind_a_loop_device(scratch)
        mounts(scratch, folder)
        second_device(scratch, folder)
        partitions(scratch, folder)
        swap(scratch)
        locks(scratch)
        discards(scratch)
        rotates(scratch)
        if shutil.which('unshare'):
            sector_sizes(scratch)
        failures = full_disk(folder)
    print(f'{refusals} refusals, {failures} full disks')


if __name__ == '__main__':
    sys.exit(main())
