#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that Linux made are overwritten by `btrkit mkfs --undo` and restored by `btrkit undo`: the bytes are
identical, btrfs check accepts them and Linux mounts them. Changes by Linux in between are detected, and Linux
recognizes an unfinished undo."""
import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

import image
from image import BTRFS, Image, loops, run

from tool import digest

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
M = 1 << 20
checks = 0


def check(condition, what):
    global checks
    checks += 1
    assert condition, what


def refused(says, *args):
    result = subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = result.stderr.decode()
    check(result.returncode == 1 and not result.stdout and said.count('\n') == 1 and says in said, f'{args}: {said!r}')


@contextlib.contextmanager
def mounted(device, folder, options='rw'):
    run('mount', '-o', options, device, folder)
    try:
        yield
    finally:
        run('umount', folder)


def listing(folder):
    """Contents of each file."""
    return {os.path.relpath(os.path.join(top, name), folder): digest(os.path.join(top, name))
            for top, _, names in os.walk(folder) for name in names}


def fill(folder):
    for i in range(300):
        os.makedirs(f'{folder}/{i % 7}', exist_ok=True)
        with open(f'{folder}/{i % 7}/{i}', 'wb') as f:
            f.write(os.urandom(1000 * i))
    run(BTRFS, 'subvolume', 'snapshot', folder, f'{folder}/snapshot')
    for i in range(0, 300, 3):
        os.unlink(f'{folder}/{i % 7}/{i}')


def there_and_back(target, path, file):
    """@path: the file behind the device"""
    before = digest(path)
    run(BTRKIT, 'mkfs', '-q', '-f', '--undo', file, target)
    check(digest(path) != before, 'mkfs changed nothing')
    run(BTRFS, 'check', target)
    run(BTRKIT, 'undo', file, target)
    check(digest(path) == before, f'{target}: other bytes than before')
    os.unlink(file)


def comes_back(scratch, options):
    made = Image(f'{scratch}/image', '300M')
    made.mkfs(*options)
    fill(made.mount())
    made.umount()
    files = listing(made.mount(readonly=True))
    made.umount()
    there_and_back(made.path, made.path, f'{scratch}/file')
    with loops([made.path]) as (device,):
        there_and_back(device, made.path, f'{scratch}/file')
    run(BTRFS, 'check', '--check-data-csum', made.path)
    check(listing(made.mount()) == files and len(files) > 400, f'{len(files)} files, not those of before')
    made.umount()
    made.remove()


def used_since(scratch, folder):
    """A writing mount is detected, a read-only one leaves no trace; a device in use is refused."""
    made, file = Image(f'{scratch}/image', '300M'), f'{scratch}/file'
    made.mkfs()
    with loops([made.path]) as (device,):
        with mounted(device, folder):
            refused('in use by the kernel', 'mkfs', '-f', '--undo', f'{folder}/file', device)
            check(not os.path.exists(f'{folder}/file'), 'an undo file of nothing')
        before = digest(made.path)
        run(BTRKIT, 'mkfs', '-q', '-f', '--undo', file, device)
        with mounted(device, folder, 'ro'):
            check(os.listdir(folder) == [], 'files in a new filesystem')
            refused('in use by the kernel', 'undo', file, device)
        refused('it backs', 'undo', file, made.path)
        run(BTRKIT, 'undo', file, device)
        check(digest(made.path) == before, 'other bytes than before')
        os.unlink(file)
        run(BTRKIT, 'mkfs', '-q', '-f', '--undo', file, device)
        with mounted(device, folder):
            # Otherwise Linux might find nothing to commit.
            os.mkdir(f'{folder}/used')
        used = digest(made.path)
        refused('the device has changed since', 'undo', file, device)
        check(digest(made.path) == used, 'refused, and yet changed')
        os.unlink(file)
    made.remove()


def discarded(scratch, folder):
    """Linux discards freed space without writing a superblock: undo would restore holes, so this must be detected."""
    for options, name in (((), 'file'), (('-m', 'single'), 'small'), (('-M',), 'file')):
        made, file = Image(f'{scratch}/image', '300M'), f'{scratch}/undo'
        made.mkfs(*options)
        with open(f'{made.mount()}/{name}', 'wb') as f:
            f.write(os.urandom(100 if name == 'small' else 20 * M))
        made.umount()
        before = digest(made.path)
        for trim in (False, True):
            run(BTRKIT, 'edit', '--undo', file, made.path, 'rm', f'/{name}')
            with loops([made.path]) as (device,):
                # A read-write mount may remove empty block groups immediately.
                with mounted(device, folder, 'ro'):
                    if trim:
                        run('fstrim', folder)
            if trim:
                refused('the device has changed since', 'undo', file, made.path)
            else:
                run(BTRKIT, 'undo', file, made.path)
                check(digest(made.path) == before, 'other bytes than before')
            os.unlink(file)
        made.remove()


def mark(path, file):
    """The mark that undo writes first."""
    with open(file, 'rb') as f:
        ident = f.read(32)[16:]
    with open(path, 'r+b') as f:
        for offset in (65536, 64 * M):
            sector = bytearray(512)
            sector[32:72] = ident + offset.to_bytes(8, 'little') + bytes(8) + b'btrkUNDO'
            text = b'An undo of this device is unfinished. Run btrkit undo again.\n'
            sector[256:256 + len(text)] = text
            f.seek(offset)
            f.write(sector)


def unfinished(scratch, folder):
    """No program recognizes it as a filesystem."""
    made, file = Image(f'{scratch}/image', '300M'), f'{scratch}/file'
    made.mkfs()
    before = digest(made.path)
    run(BTRKIT, 'mkfs', '-q', '-f', '--undo', file, made.path)
    mark(made.path, file)
    with loops([made.path]) as (device,):
        for command in (['mount', '-t', 'btrfs', device, folder], [BTRFS, 'check', device],
                        [BTRFS, 'rescue', 'super-recover', '-y', device], ['blkid', '-p', device]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            check(done.returncode, f'{command}: {done.stdout}')
    refused('an undo is unfinished', 'dump-tree', made.path)
    run(BTRKIT, 'undo', file, made.path)
    check(digest(made.path) == before, 'other bytes than before')
    run(BTRFS, 'check', made.path)
    os.unlink(file)
    made.remove()


class Error(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_ubyte * 4096)]


def on_itself(scratch, folder):
    """A program that takes no lock, and a file in the filesystem that it overwrites."""
    mkfs = shutil.which('mkfs.ext4') or shutil.which('mkfs.ext4', path='/usr/sbin:/sbin')
    path = os.path.join(os.path.dirname(BTRKIT), '..', 'lib', 'libbtrkit.so')
    if not mkfs or not os.path.exists(path):
        return
    made, library, err = Image(f'{scratch}/image', '100M'), ctypes.CDLL(path), Error()
    run(mkfs, '-q', '-F', made.path)
    io, undo = ctypes.c_void_p(), ctypes.c_void_p()
    with loops([made.path]) as (device,), mounted(device, folder):
        check(not library.btrkit_io_open(device.encode(), 1, ctypes.byref(io), ctypes.byref(err)), 'open')

        def put_undo(file):
            return library.btrkit_io_undo(ctypes.byref(io), 1, file.encode(), 0, ctypes.byref(undo), ctypes.byref(err))
        ret = put_undo(f'{folder}/file')
        check(ret == -22 and b'is on the device itself' in bytes(err.bytes), ret)
        check(not os.path.exists(f'{folder}/file'), 'an undo file of nothing')
        check(not put_undo(f'{scratch}/file'), 'a file that lies elsewhere')
        library.btrkit_io_close.restype = ctypes.c_void_p
        library.btrkit_io_close(undo)
    made.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        sys.exit(77)
    print(f'undo of {BTRKIT}')
    with tempfile.TemporaryDirectory() as scratch:
        folder = f'{scratch}/mnt'
        os.mkdir(folder)
        for options in ((), ('-n', '4k', '-m', 'single', '-d', 'dup'), ('-M',)):
            comes_back(scratch, options)
        used_since(scratch, folder)
        discarded(scratch, folder)
        unfinished(scratch, folder)
        on_itself(scratch, folder)
    print(f'{checks} checks')


if __name__ == '__main__':
    sys.exit(main())
