#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures say what can be done about them, on the same line. Usage: next-steps.py IMAGES"""
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import image
import unpack
from tool import run

M = 1 << 20
checks = 0


def says(words, *args):
    """The command fails with one line that ends with these words."""
    global checks
    status, _, err = run(*args)
    assert status and err.count('\n') == 1 and err.endswith(words + '\n'), (args, status, err)
    checks += 1


def no_superblock(scratch):
    path = f'{scratch}/empty.img'
    with open(path, 'wb') as f:
        f.truncate(100 * M)
    what = 'not a btrfs filesystem; no superblock was found at 64 KiB, 64 MiB or 256 GiB: blkid tells what it has'
    for args in (['ls', path], ['check', path], ['dump-tree', path], ['edit', path, 'mkdir', 'a'], ['du', path]):
        says(what, *args)
    says('not a btrfs filesystem', 'ls', f'{path}?offset=1m')


def gpt(path, sector, places):
    """A disk of this size of sectors, with a GUID partition table: ranges of sectors by their number."""
    size = os.path.getsize(path) // sector
    kind = bytes.fromhex('af3dc60f838472478e793d69d8477de4')
    entries = bytearray(128 * 128)
    for number, (first, last) in places.items():
        struct.pack_into('<16s16sQQQ', entries, (number - 1) * 128, kind, bytes([number]) * 16, first, last, 0)

    def header(own, other, table):
        fields = bytearray(struct.pack('<8sIIIIQQQQ16sQIII', b'EFI PART', 0x10000, 92, 0, 0, own, other, 40, size - 40,
                                       b'disk' * 4, table, 128, 128, zlib.crc32(entries)))
        struct.pack_into('<I', fields, 16, zlib.crc32(fields))
        return fields
    blocks = len(entries) // sector
    with open(path, 'r+b') as f:
        f.seek(446)
        f.write(struct.pack('<B3sB3sII', 0, b'\0\2\0', 0xee, b'\xff' * 3, 1, size - 1))
        f.seek(510)
        f.write(b'\x55\xaa')
        for at, data in ((1, header(1, size - 1, 2)), (2, entries), (size - 1 - blocks, entries),
                         (size - 1, header(size - 1, 1, size - 1 - blocks))):
            f.seek(at * sector)
            f.write(data)


def partitions(scratch):
    """A disk in a file, with sectors of either size: partitions are found, and the one with a filesystem is named."""
    for sector in (512, 4096):
        path = f'{scratch}/disk.img'
        with open(path, 'wb') as f:
            f.truncate(300 * M)
        gpt(path, sector, {1: (M // sector, 2 * M // sector - 1), 3: (10 * M // sector, 250 * M // sector - 1)})
        says('it has a partition table, and none of its partitions is one', 'ls', path)
        status, _, err = run('mkfs', '-q', '-f', f'{path}?partition=3')
        assert not status, err
        says('not a btrfs filesystem; its partition 3 is one: add ?partition=3', 'ls', path)
        says('not a btrfs filesystem; its partition 3 is one: add ?partition=3', 'edit', path, 'mkdir', 'a')
        says('not a btrfs filesystem', 'ls', f'{path}?partition=1')
        says('no partition 2', 'ls', f'{path}?partition=2')
        status, out, err = run('dump-super', f'{path}?partition=3')
        assert not status and re.search(rb'^total_bytes\s+%d$' % (240 * M), out, re.M), (sector, out, err)
        with open(path, 'rb') as f:
            f.seek(10 * M + 65600)
            assert f.read(8) == b'_BHRfS_M', f'{sector}: it lies elsewhere'


def damaged(scratch):
    log = unpack.unpack('good-log-tree', scratch)
    for args in (['edit', log, 'mkdir', 'a'], ['space-cache', 'convert', '--to=v1', log]):
        says('log tree; mount it once, then Linux replays what was synced last, and unmount it', *args)
    bad = unpack.unpack('bad-generation', scratch)
    says('btrkit dump-tree -R lists them, and --backup N uses one', 'dump-tree', bad)
    says('mount -o ro,rescue=usebackuproot shows it', 'fiemap', '-a', bad)
    status, _, err = run('extract', '--tar=/dev/null', bad)
    lines = err.splitlines()
    assert status == 1 and lines[0].count('its parent says') and len(lines) == 3, lines
    assert '23 names without index were found' in lines[1], lines
    assert lines[2].endswith(f'{bad}: an older state may be whole: mount -o ro,rescue=usebackuproot shows it'), lines
    says('; no mirror is valid either: btrkit dump-super -fa shows them', 'ls', unpack.unpack('bad-super-all', scratch))
    owner = unpack.unpack('bad-owner', scratch)
    says('; btrkit check lists all damage', 'tree-stats', owner)
    says('; btrkit check lists all damage', 'dump-tree', unpack.unpack('bad-fsid', scratch))
    cut = unpack.unpack('bad-truncated', scratch)
    for args in ['ls', cut], ['dump-tree', cut], ['stat', cut, '.'], ['extract', '--tar=/dev/null', cut]:
        says('; the device is shorter than its filesystem: copy the whole of it', *args)


def stale(scratch):
    paths = [f'{scratch}/{name}.img' for name in 'ab']
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(200 * M)
    assert not run('mkfs', '-q', '-f', '-d', 'raid1', '-m', 'raid1', *paths)[0]
    with open(paths[1], 'rb') as f:
        before = f.read()
    assert not run('edit', f'--device={paths[1]}', paths[0], 'mkdir', 'a')[0]
    with open(paths[1], 'wb') as f:
        f.write(before)
    says('the filesystem has 2; mount it with all devices and run btrfs scrub, or write without it by --degraded',
         'edit', f'--device={paths[1]}', paths[0], 'mkdir', 'b')
    says('all are needed for writing; give each device with --device, or write without them by --degraded', 'edit',
         paths[0], 'mkdir', 'b')
    says('a device is missing, device 2; give each device with --device, or write without them by --degraded',
         'space-cache', 'clear', 'v1', '--dry-run', paths[0])
    status, out, err = run('ls', f'--device={paths[1]}', paths[0])
    assert not status and out == b'a\n' and err.count('\n') == 1, (status, out, err)
    said = 'device 2 is stale: it has generation 1, the filesystem 2; mount it with all devices and run btrfs scrub\n'
    assert err.endswith(said), err
    # How a command gets the other devices.
    for words, args in (('give each device with --device', ['ls', '--noscan', paths[0]]),
                        ('give all devices', ['dump-tree', '--noscan', paths[0]]),
                        ('attach all devices, which are found then (an image file by losetup)',
                         ['diff', '--noscan', '--from=fs', '--to=fs', paths[0]])):
        status, out, err = run(*args)
        assert not status and err.endswith(f': device 2 is missing, 1 of 2: all chunks can be read; {words}\n'), err
        assert err.count('\n') == 1, err


def found(code, words, *args):
    """The line of this code, of which check has one, ends with these words."""
    global checks
    status, out, err = run('check', *args)
    lines = [line for line in out.decode().splitlines() if line.startswith(code + ' ')]
    assert len(lines) == 1 and lines[0].endswith(words), (args, status, out, err)
    checks += 1


def stale_profiles(scratch):
    """What a scrub can repair on a stale device, by the profiles of its chunks."""
    paths = [f'{scratch}/{name}.img' for name in 'cde']
    scrub = '; mount it with all devices and run btrfs scrub'
    one, lost = f'{scrub}, which cannot repair its data (%s): no other device given has that', \
        '; no other device given has its metadata (%s), so Linux may refuse it: btrkit extract copies what can be read'
    for data, metadata, words in (('raid1', 'raid1', scrub), ('raid10', 'raid1c3', scrub), ('raid5', 'raid1', scrub),
                                  ('raid0', 'raid1', one % 'RAID0'), ('dup', 'raid1', one % 'DUP'),
                                  ('raid1', 'raid0', lost % 'RAID0'), ('raid0', 'raid0', lost % 'RAID0'),
                                  ('dup', 'raid0', lost % 'RAID0, DUP')):
        used = paths if data in ('raid10', 'raid5') else paths[:2]
        for path in used:
            with open(path, 'wb') as f:
                f.truncate(400 * M)
        status, _, err = run('mkfs', '-q', '-f', '-d', data, '-m', metadata, *used)
        assert not status, err
        # DUP chunks are on the device with the most room.
        chunks = run('list-chunks', *used)[1].decode().split('chunk ')
        one_devices = {stripe.split()[3] for chunk in chunks if 'DATA|DUP' in chunk
                       for stripe in chunk.splitlines()[1:]}
        old = int(one_devices.pop()) - 1 if one_devices else 1
        devices = [f'--device={path}' for path in used[1:]]
        with open(used[old], 'rb') as f:
            before = f.read()
        status, _, err = run('edit', *devices, used[0], 'mkdir', 'a')
        assert not status, err
        with open(used[old], 'wb') as f:
            f.write(before)
        found('BTR-SUPER-STALE', words, *used)
        without = ', or write without it by --degraded' if words == scrub else ''
        says(words[2:] + without, 'edit', *devices, used[0], 'mkdir', 'b')
        err = run('check', *used)[2]
        assert err.endswith(words + '\n'), err
    found('BTR-DEVICE-MISSING', '; give it with --device', '--noscan', paths[0])


def writers(scratch):
    """What writes, or says what it would write, refuses missing and stale devices in one line, and writes nothing."""
    paths = [f'{scratch}/{name}.img' for name in 'ghi']
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(200 * M)
    assert not run('mkfs', '-q', '-f', '-d', 'raid1c3', '-m', 'raid1c3', '-O', '^bgt', *paths)[0]
    old = [read(path) for path in paths]
    assert not run('edit', *(f'--device={path}' for path in paths[1:]), paths[0], 'mkdir', 'a')[0]
    new = [read(path) for path in paths]
    give = 'give each device with --device, or write without them by --degraded'
    scrub = 'mount it with all devices and run btrfs scrub, or write without it by --degraded'
    for given, are_old, words in (([1], [], give), ([], [], give), ([1, 2], [1], scrub), ([1, 2], [2], scrub),
                                  ([1, 2], [1, 2], scrub), ([1], [1], give), ([1, 2], [0], scrub)):
        for i, path in enumerate(paths):
            with open(path, 'wb') as f:
                f.write((old if i in are_old else new)[i])
        before = [read(path) for path in paths]
        more = [f'--device={paths[i]}' for i in given] + [paths[0]]
        undo = f'{scratch}/kept.undo'
        for args in (['edit', *more, 'mkdir', 'b'], ['edit', f'--undo={undo}', *more, 'mkdir', 'b'],
                     *(['space-cache', 'convert', f'--to={form}', *dry, *more] for form in ('v1', 'v2', 'none')
                       for dry in ([], ['--dry-run'])),
                     *(['space-cache', 'clear', form, *dry, *more] for form in ('v1', 'v2')
                       for dry in ([], ['--dry-run']))):
            says(words, *args)
            assert not os.path.exists(undo), args
        assert [read(path) for path in paths] == before


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def old_mirror(scratch):
    path = f'{scratch}/old.img'
    with open(path, 'wb') as f:
        f.truncate(200 * M)
    assert not run('mkfs', '-q', '-f', path)[0]
    with open(path, 'r+b') as f:
        old = os.pread(f.fileno(), 4096, 64 * M)
        assert not run('edit', path, 'mkdir', 'a')[0]
        os.pwrite(f.fileno(), old, 64 * M)
    found('BTR-SUPER-OLD', '; Linux writes it with its next commit', path)


def mounted(scratch):
    if os.geteuid():
        return
    path = f'{scratch}/mounted.img'
    with open(path, 'wb') as f:
        f.truncate(200 * M)
    assert not run('mkfs', '-q', '-f', path)[0]
    made = image.Image(path, None)
    made.mount()
    try:
        words = 'in use by the kernel (mounted, or part of another device); unmount it first'
        says(f'{words}, or give --force', 'check', made.loop)
        says(words, 'edit', made.loop, 'mkdir', 'a')
        subprocess.run(['sync', '-f', made.mnt], check=True)
        assert not run('check', '--force', made.loop)[0]
    finally:
        made.umount()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for test in (no_superblock, partitions, damaged, stale, stale_profiles, writers, old_mirror, mounted):
            test(scratch)
    print(f'{checks} failures with a next step')
    return 0


if __name__ == '__main__':
    sys.exit(main())
