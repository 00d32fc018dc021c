#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices of filesystems that Linux uses too: devices that were not given are found, devices that do not belong
together are named in the message, and nothing is written to devices that are refused.

READ_FILES is the program that reads devices by the library. Exits with 77 if it cannot run.
"""
import contextlib
import ctypes
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import image
from image import BTRFS, MKFS, loops, run

import missing_device
from tool import crc32c, digest

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
BTRFSTUNE = os.environ.get('BTRFSTUNE', 'btrfstune')
READ_FILES = os.environ.get('READ_FILES', 'read-files')
M = 1 << 20
SIZE = 300 * M
checks = 0


def check(condition, what):
    global checks
    checks += 1
    assert condition, what


def btrkit(*args):
    done = subprocess.run([BTRKIT, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode()


def works(*args):
    status, out, err = btrkit(*args)
    check(status == 0, f'{args}: {err}')
    return out, err


def short(text):
    """Remove directories from paths, because messages truncate long paths at the front."""
    return re.sub(r'[^ :()=]*/', '', text)


def refused(says, *args, paths=()):
    """It must be refused in one line, with nothing written."""
    before = [digest(p) for p in paths]
    status, _, err = btrkit(*args)
    check(status == 1 and err.count('\n') == 1 and short(says) in short(err),
          f'{args}: exit {status}, {err!r} lacks {says!r}')
    check([digest(p) for p in paths] == before, f'{args}: refused, and yet changed')


def files(scratch, n, name='dev'):
    paths = [f'{scratch}/{name}{i + 1}.img' for i in range(n)]
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(SIZE)
    return paths


def mkfs(*args):
    """With features that allow a v1 cache; older versions do not know the block group tree."""
    try:
        run(MKFS, '-q', '-f', '-O', '^block-group-tree', *args)
    except RuntimeError:
        run(MKFS, '-q', '-f', *args)


def remove(*paths):
    for path in paths:
        os.unlink(path)


@contextlib.contextmanager
def mounted(devices, folder, options='rw'):
    named = ''.join(f',device={d}' for d in devices) if len(devices) > 1 else ''
    run('mount', '-t', 'btrfs', '-o', options + named, devices[0], folder)
    try:
        yield
    finally:
        run('umount', folder)


def fill(folder, seed):
    for i in range(20):
        with open(f'{folder}/{seed}-{i}', 'wb') as f:
            f.write(hashlib.sha256(b'%d %d' % (seed, i)).digest() * 2000)


def contents(folder):
    return sorted(digest(f'{folder}/{name}') for name in os.listdir(folder))


def read_all(scratch, *paths):
    """Read the files by the library."""
    out = f'{scratch}/out'
    os.mkdir(out)
    done = subprocess.run([READ_FILES, out, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = contents(out)
    run('rm', '-r', out)
    return found, done.stdout.decode()


def paths_of(*args):
    out, _ = works('list-devices', '--format=json', *args)
    found = [json.loads(line) for line in out.splitlines()][1:]
    return [d.get('path') for d in sorted(found, key=lambda d: d['devid'])]


class Library:
    """btrkit_fs_scan() alone, one source at a time."""

    def __init__(self):
        path = os.path.join(os.path.dirname(BTRKIT), '..', 'lib', 'libbtrkit.so')
        self.lib = ctypes.CDLL(path) if os.path.exists(path) else None

    def scan(self, device, source):
        io, count = ctypes.c_void_p(), ctypes.c_size_t()
        found, err = (ctypes.c_void_p * 16)(), (ctypes.c_ubyte * 4096)()
        check(not self.lib.btrkit_io_open(device.encode(), 0, ctypes.byref(io), err), 'open')
        ret = self.lib.btrkit_fs_scan(ctypes.byref(io), ctypes.c_size_t(1), source, found, ctypes.c_size_t(16),
                                      ctypes.byref(count), err)
        check(ret == 0, ret)
        self.lib.btrkit_io_close.argtypes = [ctypes.c_void_p]
        # The name follows the table of functions and the size.
        names = [ctypes.string_at(found[i] + 16).decode() for i in range(count.value)]
        for each in [*found[:count.value], io]:
            self.lib.btrkit_io_close(each)
        return sorted(names)


def each_command(scratch):
    """Each device finds the other one, but not with --noscan."""
    paths = files(scratch, 2)
    mkfs('-m', 'raid1', '-d', 'raid1', *paths)
    with loops(paths) as devices:
        works('edit', f'--device={devices[1]}', devices[0], 'mkdir', 'file')
        for name, before, after in missing_device.commands(devices[0]):
            check(missing_device.misses(btrkit(name, *before, '--noscan', *after)), f'{name} --noscan')
            check(not missing_device.misses(btrkit(name, *before, *after)), name)
    remove(*paths)


def discovery(scratch, folder):
    paths, library = files(scratch, 3), Library()
    mkfs('-m', 'raid1c3', '-d', 'raid1', *paths)
    # There is no search among files.
    check(paths_of(paths[0]) == [paths[0], None, None], 'files are guessed')
    with loops(paths) as devices:
        check(paths_of(devices[1]) == devices, paths_of(devices[1]))
        check(paths_of(paths[2]) == [*devices[:2], paths[2]], 'a file and devices')
        check(paths_of('--noscan', devices[1]) == [None, devices[1], None], 'found in spite of --noscan')
        check(paths_of('--noscan', f'--device={devices[0]}', devices[1]) == [*devices[:2], None], 'given')
        for args in (('list-chunks',), ('fiemap', '--all'), ('space-cache', 'status'), ('dump-tree',)):
            check('missing' not in works(*args, devices[0])[1], args)
            check('are missing, 2 of 3: ' in btrkit(*args, '--noscan', devices[0])[2], args)
        check('missing' not in works('map-logical', devices[0], '22020096')[1], 'map-logical')
        check('are missing' in btrkit('map-logical', '--noscan', devices[0], '22020096')[2], 'map-logical')
        if library.lib:
            check(library.scan(devices[0], 4) == sorted(devices[1:]), 'by all devices')
            check(library.scan(devices[0], 1) == [], 'it is not mounted')
            os.environ['BLKID_FILE'] = f'{scratch}/cache'
            check(library.scan(devices[0], 2) == [], 'the cache is empty')
            subprocess.run(['blkid', '-c', f'{scratch}/cache', *devices], stdout=subprocess.DEVNULL, check=False)
            check(library.scan(devices[0], 2) == sorted(devices[1:]), library.scan(devices[0], 2))
            # The cache is not trusted: that device now contains something else.
            with open(paths[2], 'r+b') as f:
                f.seek(65536)
                was = f.read(4096)
                f.seek(65536)
                f.write(bytes(4096))
            run('blockdev', '--flushbufs', devices[2])
            check(library.scan(devices[0], 2) == [devices[1]], 'the cache is old')
            with open(paths[2], 'r+b') as f:
                f.seek(65536)
                f.write(was)
            run('blockdev', '--flushbufs', devices[2])
            del os.environ['BLKID_FILE']
        with mounted(devices, folder):
            check(not library.lib or library.scan(devices[0], 1) == sorted(devices[1:]), 'what the kernel has')
            check(paths_of(devices[2]) == devices, 'mounted')
            refused('in use by the kernel', 'space-cache', 'convert', '--to=v1', devices[0])
        twice(scratch, paths, devices)
        works('space-cache', 'convert', '--to=v1', devices[2])
        with mounted(devices, folder):
            pass
        run(BTRFS, 'check', devices[0])
    remove(*paths)


def twice(scratch, paths, devices):
    """A copy of a device is present as another device, or as a file."""
    copy = f'{scratch}/copy.img'
    run('cp', '--sparse=always', paths[1], copy)
    with loops([copy]) as (other,):
        for args in (('list-devices', devices[0]), ('space-cache', 'convert', '--to=v1', devices[0])):
            refused('device 2 was found twice: ', *args, paths=[*paths, copy])
        refused('device 2 is given twice: ', 'list-devices', f'--device={devices[1]}', f'--device={other}', devices[0])
        # The third device may belong to either. If all are given, they are used.
        for args in (('list-devices',), ('edit',)):
            refused('device 2 was found twice: ', *args, f'--device={other}', devices[0],
                    *(('mkdir', 'lost') if args == ('edit',) else ()), paths=[*paths, copy])
        check(paths_of(f'--device={other}', f'--device={devices[2]}', devices[0]) == [devices[0], other, devices[2]],
              'the copy')
        check(paths_of('--noscan', f'--device={other}', devices[0]) == [devices[0], other, None], 'the copy alone')
        check(paths_of('--noscan', f'--device={devices[1]}', devices[0]) == [*devices[:2], None], 'the other')
    # Writing to the copy would involve the devices of the original.
    refused('device 2 was found twice: ', 'edit', copy, 'mkdir', 'lost', paths=[*paths, copy])
    # The same bytes under another device name are not a copy.
    with loops([devices[1]]) as (upper,):
        check(paths_of(devices[0])[1] in (devices[1], upper), 'a loop device on a loop device')
    remove(copy)


def seeds(scratch, folder):
    seed, sprout, other = files(scratch, 3)
    mkfs(seed)
    mkfs(other)
    with loops([seed]) as devices, mounted(devices, folder):
        fill(folder, 1)
    run(BTRFSTUNE, '-f', '-S', '1', seed)
    run(BTRFSTUNE, '-f', '-S', '1', other)
    refused('writing is not supported: seed device', 'space-cache', 'convert', '--to=v1', seed, paths=[seed])
    with loops([seed, sprout]) as devices:
        run('mount', '-t', 'btrfs', devices[0], folder)
        try:
            run(BTRFS, 'device', 'add', '-f', devices[1], folder)
            run('mount', '-o', 'remount,rw', folder)
            fill(folder, 2)
            os.unlink(f'{folder}/1-3')
            want = contents(folder)
            # The kernel lists the seed device too.
            run('sync', '-f', folder)
            check(paths_of(devices[1]) == devices, 'the seed of a mounted filesystem')
        finally:
            run('umount', folder)
    for pair in ((seed, sprout), (sprout, seed)):
        check(read_all(scratch, *pair)[0] == want, 'other files than Linux has')
        refused('writing is not supported: filesystem on a seed device', 'space-cache', 'convert', '--to=v1',
                f'--device={pair[1]}', pair[0], paths=[seed, sprout])
    ours = works('dump-tree', *image.compat(), sprout, seed)[0].splitlines()[1:]
    with loops([seed, sprout]) as devices:
        run(BTRFS, 'device', 'scan', devices[0])
        theirs = run(BTRFS, 'inspect-internal', 'dump-tree', devices[1]).decode().splitlines()[1:]
    check(ours == theirs, 'dump-tree')
    fsid = re.search(r'^fsid\s+(\S+)', works('dump-super', seed)[0], re.M)[1]
    _, said = works('list-devices', sprout)
    check(f'device 1 of the seed filesystem {fsid} is missing' in said, said)
    check('device 1 is missing, 1 of 2: ' in said, said)
    refused('is not device 1 of the filesystem', 'list-devices', f'--device={other}', sprout)
    remove(seed, sprout, other)


def super_field(path, offset, change):
    """Modify a number in all superblocks of a filesystem with crc32c."""
    with open(path, 'r+b') as f:
        for at in (65536, 64 * M):
            f.seek(at)
            data = bytearray(f.read(4096))
            value = change(int.from_bytes(data[offset:offset + 8], 'little'))
            data[offset:offset + 8] = value.to_bytes(8, 'little')
            data[:4] = crc32c(data[32:]).to_bytes(4, 'little')
            f.seek(at)
            f.write(data)


def changed_fsids(scratch, folder):
    for option in (['-m'], ['-M', '12345678-1234-4234-9234-123456789abc']):
        paths = files(scratch, 2)
        mkfs('-m', 'raid1', '-d', 'raid1', *paths)
        with loops(paths) as devices:
            with mounted(devices, folder):
                fill(folder, 3)
                want = contents(folder)
            run(BTRFSTUNE, '-f', *option, devices[0])
        check(read_all(scratch, *paths)[0] == want, 'other files than Linux has')
        works('space-cache', 'convert', '--to=v1', f'--device={paths[0]}', paths[1])
        with loops(paths) as devices:
            run(BTRFS, 'check', '--check-data-csum', devices[1])
            with mounted(devices, folder):
                check(contents(folder) == want, 'other files than before')
        # Linux does not mount it, and it is not read.
        super_field(paths[1], 0x38, lambda flags: flags | 1 << 36)
        refused(f'{paths[1]}: not supported: unfinished change of the metadata uuid', 'list-devices',
                f'--device={paths[1]}', paths[0], paths=paths)
        with loops(paths) as devices:
            done = subprocess.run(['mount', '-t', 'btrfs', '-o', f'device={devices[1]}', devices[0], folder],
                                  stderr=subprocess.PIPE, check=False)
            check(done.returncode, 'Linux mounts it')
        remove(*paths)


def temporary_fsids(scratch, folder):
    """Linux mounts a copy under a temporary fsid, so mounted filesystems are recognized by their device."""
    paths, second = files(scratch, 3), f'{folder}-2'
    mkfs(paths[0])
    for path in paths[1:]:
        run('cp', '--sparse=always', paths[0], path)
    os.makedirs(second, exist_ok=True)
    with loops(paths) as devices, mounted(devices[:1], folder):
        done = subprocess.run(['mount', '-t', 'btrfs', devices[1], second], stderr=subprocess.PIPE, check=False)
        if done.returncode:
            print(f'no temporary fsids: {done.stderr.decode().strip()}')
            remove(*paths)
            return
        try:
            names = [n for n in os.listdir('/sys/fs/btrfs') if os.path.exists(f'/sys/fs/btrfs/{n}/temp_fsid')]
            check(any(open(f'/sys/fs/btrfs/{n}/temp_fsid', encoding='ascii').read().strip() == '1' for n in names),
                  'Linux knows no temporary fsid')
            for i in range(2):
                refused('in use by the kernel', 'space-cache', 'convert', '--to=v1', devices[i])
                refused(f'it backs {devices[i]}', 'space-cache', 'convert', '--to=v1', paths[i])
                works('list-devices', devices[i])
            works('space-cache', 'convert', '--to=v1', devices[2])
            run(BTRFS, 'check', devices[2])
        finally:
            run('umount', second)
    remove(*paths)


def stale(scratch, folder):
    """A device that missed a commit by Linux."""
    paths = files(scratch, 2)
    mkfs('-m', 'raid1', '-d', 'raid1', *paths)
    with loops(paths) as devices:
        with mounted(devices, folder):
            fill(folder, 4)
    with loops(paths[:1]) as devices, mounted(devices, folder, 'rw,degraded'):
        fill(folder, 5)
        os.unlink(f'{folder}/4-3')
        want = contents(folder)
    for pair in (paths, paths[::-1]):
        found, said = read_all(scratch, *pair)
        check(found == want and 'note device 2 is stale: it has generation' in said, said)
        refused(f'device 2 ({paths[1]}) is stale', 'space-cache', 'convert', '--to=v1', f'--device={pair[1]}', pair[0],
                paths=paths)
    remove(*paths)


def bad(scratch):
    """Other filesystems, duplicates, too small and read-only devices."""
    paths, others = files(scratch, 2), files(scratch, 1, 'other')
    mkfs('-m', 'raid1', *paths)
    mkfs(*others)
    convert = ('space-cache', 'convert', '--to=v1')
    for command in (('list-devices',), convert):
        for device, says in ((others[0], f'different filesystems: {paths[0]} of '), (paths[0], '')):
            refused(says, *command, f'--device={device}', paths[0], paths=paths + others)
    link = f'{scratch}/link.img'
    os.link(paths[1], link)
    refused(f'device 2 is given twice: {paths[1]} and {link}', 'list-devices', f'--device={paths[1]}',
            f'--device={link}', paths[0], paths=paths)
    refused(f'{link}: is given twice', *convert, f'--device={paths[1]}', f'--device={link}', paths[0], paths=paths)
    refused('is given twice', *convert, f'--device={paths[0]}', paths[0], paths=paths)
    remove(link)
    with loops(paths, '-r') as devices:
        refused('Read-only file system', *convert, *(f'--device={d}' for d in devices[1:]), devices[0], paths=paths)
        refused('Read-only file system', 'mkfs', '-f', devices[0], paths=paths)
    os.truncate(paths[1], SIZE - 4096)
    refused(f'device of {SIZE - 4096} bytes, but the filesystem uses {SIZE}', *convert, f'--device={paths[1]}',
            paths[0], paths=paths)
    os.truncate(paths[1], 60000)
    refused(f'{paths[1]}: not a btrfs filesystem: only 60000 bytes', 'list-devices', f'--device={paths[1]}', paths[0],
            paths=paths)
    refused('', 'mkfs', '-f', paths[1], paths=paths)
    remove(*paths, *others)


def underneath(scratch, folder):
    """Devices that are truncated and rewritten while they are read: there is a result or an error, but never a
    crash."""
    paths = files(scratch, 2)
    mkfs('-m', 'raid0', '-d', 'raid0', *paths)
    with loops(paths) as devices, mounted(devices, folder):
        for seed in range(10):
            fill(folder, seed)
    stop, kept = threading.Event(), []
    for path in paths:
        with open(path, 'rb') as f:
            kept.append(f.read(40 * M))

    def disturb():
        turn = 0
        while not stop.is_set():
            turn += 1
            path, what = paths[turn // 4 % 2], turn % 4
            if what == 0:
                os.truncate(path, (turn * 7919 % 280 + 1) * M)
            elif what == 1:
                os.truncate(path, SIZE)
            else:
                with open(path, 'r+b') as f:
                    if what == 2:
                        f.write(kept[turn // 4 % 2])
                    f.seek(turn * 104729 % 40 * M)
                    f.write(os.urandom(M))
    thread = threading.Thread(target=disturb)
    thread.start()
    statuses = []
    try:
        for i in range(10000):
            # Some fail, sooner or later.
            if i >= 120 and 1 in statuses:
                break
            args = (('dump-tree', paths[0], paths[1]), ('fiemap', '--all', f'--device={paths[1]}', paths[0]),
                    ('space-cache', 'status', f'--device={paths[1]}', paths[0]),
                    ('list-chunks', f'--device={paths[1]}', paths[0]))[i % 4]
            status, _, err = btrkit(*args)
            check(status in (0, 1) and (not status or err.splitlines()[-1].startswith('btrkit ')), (args, status, err))
            statuses.append(status)
    finally:
        stop.set()
        thread.join()
    remove(*paths)
    check(statuses.count(1), 'nothing was met')
    return statuses.count(1), len(statuses)


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-devices-') as scratch:
        folder = f'{scratch}/mnt'
        os.mkdir(folder)
        each_command(scratch)
        discovery(scratch, folder)
        seeds(scratch, folder)
        changed_fsids(scratch, folder)
        temporary_fsids(scratch, folder)
        stale(scratch, folder)
        bad(scratch)
        failed, readings = underneath(scratch, folder)
    print(f'{checks} checks; of {readings} readings of what changed underneath {failed} failed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
