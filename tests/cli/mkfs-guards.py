#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What mkfs refuses to write to, with and without -f, because it is in use: mounted, locked, swap, behind a loop
device."""
import contextlib
import fcntl
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time

import tool
from tool import BTRKIT, check_failure, digest, run

import image
from image import loop, mounted

SIZE = 200 << 20
refusals = 0


def refused(device, says, path=None):
    """@path: the file whose bytes must not change"""
    global refusals
    for args in ((), ('-f',), ('-f', '-K')):
        before = path and digest(path)
        said = check_failure('mkfs', device, run('mkfs', *args, device))
        assert says in said, f'{device}: {said!r} lacks {says!r}'
        assert not path or digest(path) == before, f'{device} {args}: refused, and yet changed'
        refusals += 1


def makes(*args):
    status, _, err = run('mkfs', '-f', '-q', *args)
    assert not status, f'{args}: {err}'


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
    """Linux lists such a filesystem under only one of its devices."""
    first, second = make_file(scratch, 'first.img'), make_file(scratch, 'second.img')
    with loop(first) as a, loop(second) as b:
        image.run(image.MKFS, '-q', '-f', '-m', 'raid1', '-d', 'raid1', a, b)
        image.run(image.BTRFS, 'device', 'scan', a, b)
        with mounted(a, folder):
            refused(b, 'in use by the kernel', second)
            refused(a, 'in use by the kernel', first)


def node(scratch, disk, number):
    """Make a device node for a partition, because containers may lack udev."""
    name = f'{os.path.basename(disk)}p{number}'
    with open(f'/sys/block/{os.path.basename(disk)}/{name}/dev', encoding='ascii') as f:
        major, minor = map(int, f.read().split(':'))
    path = os.path.join(scratch, name)
    os.mknod(path, 0o600 | stat.S_IFBLK, os.makedev(major, minor))
    return path


def has_node(disk, number):
    """Whether the kernel's device node exists, through which a part of the disk is found to be in use."""
    name = f'{os.path.basename(disk)}p{number}'
    with open(f'/sys/block/{os.path.basename(disk)}/{name}/dev', encoding='ascii') as f:
        major, minor = map(int, f.read().split(':'))
    try:
        return os.stat(f'/dev/{name}').st_rdev == os.makedev(major, minor)
    except OSError:
        return False


def accepts(spec, path, part):
    """Like makes(), and nothing outside of part (start, length) of the file changes."""
    before = [digest(path, 0, part[0]), digest(path, sum(part))]
    inside = digest(path, *part)
    makes(spec)
    assert digest(path, *part) != inside, f'{spec}: nothing made'
    assert [digest(path, 0, part[0]), digest(path, sum(part))] == before, f'{spec}: written outside of it'


def make_disk(scratch, name):
    """Make a disk image with two partitions, the second at 1 MiB + SIZE."""
    path = make_file(scratch, name, 2 * SIZE + (4 << 20))
    sectors = SIZE >> 9
    with open(path, 'r+b') as f:
        f.seek(446)
        for start in (2048, 2048 + sectors):
            f.write(struct.pack('<B3xB3xII', 0, 0x83, start, sectors))
        f.write(bytes(32) + b'\x55\xaa')
    return path


def add_partitions(device):
    """Add partitions explicitly: some kernels do not scan partition tables of loop devices."""
    if not os.path.exists(f'/sys/block/{os.path.basename(device)}/{os.path.basename(device)}p1'):
        for number, start in ((1, 2048), (2, 2048 + (SIZE >> 9))):
            image.run('addpart', device, str(number), str(start), str(SIZE >> 9))


def partitions(scratch, folder):
    path, at = make_disk(scratch, 'disk.img'), (1 << 20) + SIZE
    with loop(path, '-P') as device:
        add_partitions(device)
        first, second = (node(scratch, device, number) for number in (1, 2))
        makes(first)
        if not has_node(device, 2):
            print('no device files of partitions: their parts of a disk are not tried')
            with mounted(first, folder):
                refused(f'{device}?partition=2', 'in use by the kernel', path)
            return
        with mounted(first, folder):
            for spec in (device, f'{device}?partition=1', f'{device}?offset=1m&size=110m', f'{device}?offset=1m',
                         first):
                refused(spec, 'in use by the kernel', path)
            # Through the file, another check refuses them.
            for spec in (path, f'{path}?offset=1m', f'{path}?offset=64k&size=210m', f'{path}?partition=1'):
                refused(spec, f'it backs {device}', path)
            for spec in (second, f'{device}?partition=2', f'{device}?offset={at}&size={SIZE}',
                         f'{device}?offset={at + 4096}&size=110m', f'{path}?partition=2',
                         f'{path}?offset={at}&size=110m'):
                accepts(spec, path, (at, SIZE))
            # Readers must not see stale cached contents.
            makes(f'{path}?partition=2')
            uuid = image.run('blkid', '-p', '-o', 'value', '-s', 'UUID', second)
            assert uuid == image.run('blkid', '-p', '-o', 'value', '-s', 'UUID', '-O', str(at), path), uuid
        with mounted(second, folder):
            refused(f'{path}?partition=2', f'it backs {device}p2', path)
            makes(f'{path}?partition=1')
        with loop(second) as upper:
            for spec in (second, f'{device}?partition=2', f'{path}?partition=2', f'{path}?offset={at + SIZE - 4096}'):
                refused(spec, 'it backs', path)
            makes(first)
            makes(f'{path}?partition=1')
            makes(upper)
            with mounted(upper, folder):
                makes(first)
                refused(upper, 'in use by the kernel', path)
                refused(second, f'it backs {upper}', path)


def parts_of_a_file(scratch, folder):
    """Loop devices with an offset and a size limit, several on one file."""
    path = make_file(scratch, 'parts.img', 3 * SIZE)
    low, high = f'{path}?size={SIZE}', f'{path}?offset={2 * SIZE}&size={SIZE}'
    with loop(path, '-o', str(SIZE), '--sizelimit', str(SIZE)) as device:
        makes(device)
        with mounted(device, folder, '-o', 'rw'):
            for spec in (path, f'{path}?offset={SIZE}', f'{path}?offset={SIZE + 4096}&size=110m',
                         f'{path}?size={SIZE + 1}', f'{path}?offset={2 * SIZE - 1}'):
                refused(spec, f'it backs {device}')
            makes(low)
            makes(high)
            accepts(low, path, (0, SIZE))
            with open(f'{folder}/file', 'wb') as f:
                f.write(os.urandom(1 << 20))
        assert not os.system(f'{image.BTRFS} check {device} >{scratch}/out 2>&1'), 'the middle one is damaged'
        # One device over the first part and one over the whole file show the same bytes, and either may be mounted.
        with loop(path, '--sizelimit', str(SIZE)) as first, loop(path) as whole:
            makes(first)
            with mounted(first, folder):
                refused(whole, f'it backs {first}', path)
                refused(first, 'in use by the kernel', path)
                makes(device)
            with mounted(whole, folder):
                refused(first, f'it backs {whole}', path)
    with loop(path, '-o', str(2 * SIZE)) as device:
        makes(low)
        for spec in (high, path):
            refused(spec, f'it backs {device}', path)
        # If the file grew, the device would see the new part.
        refused(f'{path}?offset={3 * SIZE - 4096}', f'it backs {device}', path)
    # Two parts of one file can be two devices.
    makes(low, high)
    status, _, err = run('mkfs', '-f', '-q', low, f'{path}?offset={SIZE - 4096}&size={SIZE}')
    assert status == 1 and 'another program holds a lock on it' in err, err


def nested(scratch, folder):
    """A loop device over a loop device with an offset: all lower layers are recognized."""
    path = make_file(scratch, 'nested.img', 2 * SIZE + (8 << 20))
    with loop(path, '-o', '4m') as lower, loop(lower, '-o', str(SIZE)) as upper:
        makes(upper)
        with mounted(upper, folder):
            for spec in (lower, f'{lower}?offset={SIZE}', path, f'{path}?offset={SIZE + (5 << 20)}'):
                refused(spec, 'it backs', path)
            makes(f'{lower}?size={SIZE}')
            with loop(path, '--sizelimit', str(SIZE)) as other:
                makes(other)
            with loop(path, '-o', str(SIZE)) as other:
                refused(other, f'it backs {upper}', path)


def holders(scratch):
    """A device opened exclusively, as by device-mapper or md."""
    path = make_file(scratch, 'held.img')
    with loop(path) as device:
        makes(device)
        fd = os.open(device, os.O_RDONLY | os.O_EXCL)
        try:
            refused(device, 'in use by the kernel', path)
            refused(path, f'it backs {device}', path)
        finally:
            os.close(fd)
        makes(device)


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


@contextlib.contextmanager
def locked_by_another(device):
    """A shared lock of a process that starts nothing."""
    code = 'import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print(1, flush=True); input()'
    with subprocess.Popen([sys.executable, '-c', code, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        try:
            assert held.stdout.readline() == b'1\n'
            yield
        finally:
            held.communicate(b'\n')


def locks(scratch):
    """A lock of another program is respected, one of a caller is not: that is how systemd-repart (first) and `udevadm
    lock` start mkfs."""
    path = make_file(scratch, 'lock.img')
    with loop(path) as device:
        with locked_by_another(device):
            refused(device, 'another program holds a lock', path)
        makes(device)
        command = [BTRKIT, 'mkfs', '-f', '-q', device]
        for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            with open(device, 'rb') as f:
                fcntl.flock(f, kind)
                started = time.monotonic()
                makes(device)
                assert time.monotonic() - started < 3, 'it waited for its caller'
        callers = [['flock', device], ['flock', '-s', device], ['flock', '-o', device],
                   ['flock', device, 'nice', 'env'],
                   ['sh', '-c', 'exec 9<"$0"; flock 9; "$@"', device]]
        if shutil.which('udevadm') and b'lock' in subprocess.run(['udevadm', '--help'], capture_output=True,
                                                                 check=False).stdout:
            callers.append(['udevadm', 'lock', f'--device={device}'])
        for caller in callers:
            with open(path, 'r+b') as f:
                f.write(bytes(1 << 20))
            status, _, err = run(*caller[1:], *command, binary=caller[0])
            assert not status, f'{caller}: {err}'
            assert not run('dump-super', device)[0], f'{caller}: nothing was made'
        with locked_by_another(device):
            before = digest(path)
            status, _, err = run('-s', device, *command, binary='flock')
            assert status == 1 and 'another program holds a lock' in err and digest(path) == before, err


def discards(scratch):
    """On a loop device, a discard makes a hole in its file."""
    path, at = make_file(scratch, 'discard.img'), 150 << 20
    with loop(path) as device:
        with open(f'/sys/block/{os.path.basename(device)}/queue/discard_max_bytes', encoding='ascii') as f:
            can = int(f.read())
        for option, kept in (('-K', True), ('-q', not can)):
            with open(device, 'r+b') as f:
                f.seek(at)
                f.write(b'kept' * 1024)
            makes(option, device)
            with open(path, 'rb') as f:
                f.seek(at)
                assert (f.read(4) == b'kept') == kept, (option, can)


def rotates(scratch):
    """A non-rotational disk is reported, with a warning that it may keep only one copy of DUP data."""
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
    """There is no warning for sector sizes that Linux reports as supported."""
    path, sizes = make_file(scratch, 'sizes.img'), os.path.join(scratch, 'sizes')
    with open(sizes, 'w', encoding='ascii') as f:
        f.write('4096 8192 32768\n')
    # Nothing about / is changed: in a chroot it need not be a mount point.
    command = ('mount --make-private /sys && '
               f'mount --bind {sizes} /sys/fs/btrfs/features/supported_sectorsizes && exec "$@"')
    for size in (4096, 8192, 16384, 32768, 65536):
        status, _, err = run('-m', '--propagation', 'unchanged', 'sh', '-c', command, 'sh', tool.BTRKIT, 'mkfs', '-q',
                             '-f', '-s', size, path, binary='unshare')
        known = size in (4096, 8192, 32768, os.sysconf('SC_PAGESIZE'))
        assert not status and ('page size' in err) != known, (size, err)


def full_disk(folder):
    """With less and less space, nothing is written and the file keeps its contents."""
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
        parts_of_a_file(scratch, folder)
        nested(scratch, folder)
        holders(scratch)
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
