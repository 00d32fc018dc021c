#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""States that a power failure leaves while transactions are committed, a sample of those that crash-txn looks at: Linux
mounts each, finds in it what is in the committed state that it stands for, writes to it, and leaves a filesystem of
which `btrfs check` finds nothing. Where the primary superblock is torn `btrfs rescue super-recover` comes first, since
Linux reads no other.

    txn-crash-kernel.py COUNT [OPTION...]     the options are crash-txn's

CRASH_TXN is the program, IMAGES the folder of images, TXN_IMAGES the names of those that it needs.
"""
import collections
import concurrent.futures
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time

import image

CRASH, IMAGES, NAMES = os.environ['CRASH_TXN'], os.environ['IMAGES'], os.environ['TXN_IMAGES']
JOBS = 2
PRIMARY, FSID = 0x10000, 0x20


class Failure(Exception):
    pass


def contents(mnt):
    """A hash of names, and of kinds, sizes, xattrs and bytes: of very many files in a folder of every 20th."""
    digest = hashlib.blake2b()
    count = 0
    for folder, folders, names in os.walk(mnt):
        # Where a subvolume was below one that was snapshotted is a folder that is none.
        folders[:] = sorted(name for name in folders if os.lstat(os.path.join(folder, name)).st_ino != 2)
        digest.update(repr(sorted(names)).encode())
        names = sorted(names)[::20 if len(names) > 1000 else 1]
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            info = os.lstat(path)
            said = [os.path.relpath(path, mnt), info.st_mode, info.st_size, info.st_nlink]
            if stat.S_ISREG(info.st_mode):
                # What lies behind is holes and preallocated: nothing to read.
                with open(path, 'rb') as f:
                    said.append(hashlib.blake2b(f.read(16 << 20)).hexdigest())
            if stat.S_ISLNK(info.st_mode):
                said.append(os.readlink(path))
            else:
                said += [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]
            digest.update(repr(said).encode())
            count += 1
    return digest.hexdigest(), count


def check(path):
    done = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    if done.returncode or 'no error found' not in text:
        raise Failure(f'btrfs check: exit {done.returncode}:\n{text}')


def read(path):
    """What is in a committed state."""
    img = image.Image(path, None)
    try:
        return contents(img.mount(readonly=True))
    finally:
        img.umount()


def judge(path, torn, expected):
    """Mounted, read, written to, unmounted, checked. What is in it."""
    if torn:
        done = subprocess.run([image.BTRFS, 'rescue', 'super-recover', '-y', path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        # Of a superblock that was bad and is good now.
        if done.returncode != 2:
            raise Failure(f'super-recover: exit {done.returncode}: {done.stdout.decode(errors="replace")}')
    img = image.Image(path, None)
    try:
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        mnt = img.mount()
        found, count = contents(mnt)
        if found != expected:
            raise Failure('not what is in the committed state')
        with open(os.path.join(mnt, 'written'), 'wb') as f:
            f.write(b'w' * 100000)
            os.fsync(f.fileno())
        if subprocess.run(['umount', mnt], stderr=subprocess.DEVNULL, check=False).returncode:
            time.sleep(0.2)
        said = image.complaints([img.loop], since)
    finally:
        img.umount()
    if said:
        raise Failure('Linux says: ' + '\n'.join(said))
    check(path)
    return found, count


# Of those with one UUID Linux can have one mounted.
locks = collections.defaultdict(threading.Lock)


def attempt(folder, state, expected):
    name, torn, kind, holds = state
    path = os.path.join(folder, name)
    with open(path, 'rb') as f:
        f.seek(PRIMARY + FSID)
        fsid = f.read(16)
    try:
        with locks[fsid]:
            found, count = judge(path, torn == 'torn', expected) if torn != 'committed' else read(path)
    except (Failure, RuntimeError, OSError) as e:
        return f'{kind}, commit {holds}, {torn}: {e}', None, 0
    os.unlink(path)
    return None, found, count


def self_test(folder, committed):
    """What judges has to find fault with another state."""
    name, _, kind, _ = committed[0]
    path = os.path.join(folder, 'self-test.img')
    image.run('cp', '--sparse=always', os.path.join(folder, name), path)
    if not attempt(folder, ('self-test.img', 'whole', kind, '0'), 'another')[0]:
        raise Failure('a planted difference was not seen')
    os.unlink(path)


def spread(rows):
    """The kinds in turn: neighbours have different UUIDs."""
    place = collections.Counter()
    keys = []
    for row in rows:
        keys.append(place[row[2]])
        place[row[2]] += 1
    return [row for _, row in sorted(zip(keys, rows), key=lambda pair: pair[0])]


def run(scratch, wanted, options):
    sys.path.insert(0, IMAGES)
    import unpack
    images = [unpack.unpack(name, scratch, quick=True) for name in NAMES.split(',')]
    folder = os.path.join(scratch, 'states')
    os.mkdir(folder)
    print(image.run(CRASH, '--defect', '-1', *options, '--export', folder, wanted, *images).decode().splitlines()[-1])
    with open(os.path.join(folder, 'list'), encoding='ascii') as f:
        rows = [tuple(line.rstrip('\n').split('\t')) for line in f]
    committed = [row for row in rows if row[1] == 'committed']
    states = [row for row in rows if row[1] != 'committed']
    self_test(folder, committed)
    expected, failed, files = {}, [], 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for rows in spread(committed), spread(states):
            for row, result in zip(rows, pool.map(lambda row: attempt(folder, row, expected.get(row[2:])), rows)):
                error, found, count = result
                files += count
                if error:
                    failed.append(error)
                    print('FAIL', error, flush=True)
                elif row[1] == 'committed':
                    expected[row[2:]] = found
            if failed:
                break
    torn = sum(row[1] == 'torn' for row in states)
    print(f'compared {len(states)} states of {len({row[2] for row in states})} kinds, {torn} with a torn primary, with '
          f'{len(committed)} committed ones: {files} files read, {len(failed)} failed')
    return int(bool(failed) or not states or not torn)


def main(count, *options):
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-txn-crash-') as scratch:
        try:
            return run(scratch, count, options)
        finally:
            image.cleanup()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
