#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Crash states of commits, a sample of those that crash-txn examines: Linux mounts each, finds the contents of the
committed state that it stands for, writes to it, and leaves a filesystem in which `btrfs check` finds nothing. A torn
primary superblock is restored from its mirror first, because Linux reads no other. With several devices, as many as the
profile allows are removed first, in turn, and the same is done with a copy of the rest.

    txn-crash-kernel.py COUNT [OPTION...]     options are passed to crash-txn

CRASH_TXN is the program, IMAGES the directory of images, TXN_IMAGES the names of those that it needs.
"""
import collections
import concurrent.futures
import hashlib
import itertools
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

import image
import volumes

from tool import crc32c

CRASH, IMAGES, NAMES = os.environ['CRASH_TXN'], os.environ['IMAGES'], os.environ['TXN_IMAGES']
JOBS = 2
PRIMARY, MIRROR = 0x10000, 0x4000000
FSID, BYTENR, GENERATION = 0x20, 0x30, 0x48


# Kinds in which deletions may be unfinished.
IN_STEPS = ('large files', 'a large file', 'a subvolume deleted in steps')
found_orphans = collections.Counter()


class Failure(Exception):
    pass


class Devices(volumes.Volume):
    """Devices of one filesystem, in files, some of which may be missing."""

    def __init__(self, paths):
        self.paths, self.path, self.loops, self.loop, self.mnt = paths, paths[0], [], None, None

    def leave(self):
        """Unmount; the devices stay attached."""
        if subprocess.run(['umount', self.mnt], stderr=subprocess.DEVNULL, check=False).returncode:
            time.sleep(0.2)
            image.run('umount', self.mnt)


def contents(mnt):
    """Hash names, types, sizes, xattrs and contents; in very large directories only of every 20th file."""
    digest = hashlib.blake2b()
    count = 0
    for folder, folders, names in os.walk(mnt):
        # Skip placeholders of nested subvolumes in snapshots.
        folders[:] = sorted(name for name in folders if os.lstat(os.path.join(folder, name)).st_ino != 2)
        digest.update(repr(sorted(names)).encode())
        names = sorted(names)[::20 if len(names) > 1000 else 1]
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            info = os.lstat(path)
            said = [os.path.relpath(path, mnt), info.st_mode, info.st_size, info.st_nlink, info.st_uid, info.st_gid,
                    info.st_rdev, info.st_mtime_ns, info.st_ctime_ns, info.st_blocks]
            if stat.S_ISREG(info.st_mode):
                # The rest is holes and preallocation.
                with open(path, 'rb') as f:
                    said.append(hashlib.blake2b(f.read(16 << 20)).hexdigest())
            if stat.S_ISLNK(info.st_mode):
                said.append(os.readlink(path))
            else:
                said += [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]
            digest.update(repr(said).encode())
            count += 1
    return digest.hexdigest(), count


def check(device, *options):
    done = subprocess.run([image.BTRFS, 'check', *options, device], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    text = done.stdout.decode(errors='replace')
    if done.returncode or 'no error found' not in text:
        raise Failure(f'btrfs check: exit {done.returncode}:\n{text}')


def read(paths):
    """Contents of a committed state."""
    volume = Devices(paths)
    try:
        return contents(volume.mount(readonly=True))
    finally:
        volume.umount()


def orphans(volume):
    """Count orphan items, which Linux removes when it mounts."""
    # Values of xattrs may be printed as they are.
    return image.run(image.BTRFS, 'inspect-internal', 'dump-tree', *volume.paths).count(b'key (ORPHAN ORPHAN_ITEM')


def check_state(paths, expected, missing, kind):
    """Mount, read, write, unmount and check."""
    volume = Devices(paths)
    several = len(paths) + missing > 1
    in_steps = kind.startswith(IN_STEPS)
    left = orphans(volume) if in_steps else 0
    try:
        mnt = volume.mount('degraded' if missing else '')
        found, count = contents(mnt)
        if found != expected:
            raise Failure('not what is in the committed state')
        if kind.startswith('full of'):
            # If all groups are full Linux cannot create files, but it must be able to remove existing ones.
            os.unlink(os.path.join(mnt, 'fill'))
            for name in os.listdir(os.path.join(mnt, 'other')):
                os.unlink(os.path.join(mnt, 'other', name))
        else:
            with open(os.path.join(mnt, 'written'), 'wb') as f:
                f.write(b'w' * 100000)
                os.fsync(f.fileno())
        if in_steps:
            image.wait_for_cleaner(mnt)
        volume.leave()
        # Without `degraded` Linux refuses to mount if a device is missing, so that message is expected. And if
        # everything is full, there is no space for the UUID scan.
        said = [line for line in volume.log.complaints(*volume.loops) if not line.endswith(' is missing')
                and not (kind.startswith('full of') and 'btrfs_uuid_scan_kthread failed -28' in line)]
        if said:
            raise Failure('Linux says: ' + '\n'.join(said))
        if left and orphans(volume):
            raise Failure('Linux leaves an orphan')
        found_orphans.update({kind: left})
        if not missing or not kind.startswith('raid6'):
            check(volume.loops[0], *(['--check-data-csum'] if several else []))
            return count
    finally:
        volume.umount()
    # With raid6, btrfs check cannot read without all devices, on any filesystem.
    try:
        if count + 1 != contents(volume.mount('degraded', readonly=True))[1]:
            raise Failure('another number of files after it was mounted')
    finally:
        volume.umount()
    return count


def field(path, offset, length):
    with open(path, 'rb') as f:
        f.seek(PRIMARY + offset)
        return f.read(length)


def is_torn(path):
    """Whether the primary superblock is invalid, so that Linux would not recognize the device."""
    text = subprocess.run([image.BTRFS, 'inspect-internal', 'dump-super', path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout
    return not re.search(rb'^csum\t.*\[match\]', text, re.M)


def recover(path, several):
    """Restore the primary superblock, the only one that Linux reads."""
    if several:
        # super-recover would open the filesystem with the superblocks of all other devices.
        with open(path, 'r+b') as f:
            f.seek(MIRROR)
            block = bytearray(f.read(4096))
            block[BYTENR:BYTENR + 8] = PRIMARY.to_bytes(8, 'little')
            block[:32] = crc32c(block[32:]).to_bytes(32, 'little')
            f.seek(PRIMARY)
            f.write(block)
        return
    done = subprocess.run([image.BTRFS, 'rescue', 'super-recover', '-y', path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    # 2: a bad superblock was found and repaired.
    if done.returncode != 2:
        raise Failure(f'super-recover: exit {done.returncode}: {done.stdout.decode(errors="replace")}')


# Linux can mount only one filesystem per UUID at a time.
locks = collections.defaultdict(threading.Lock)
State = collections.namedtuple('State', 'name devices spare torn kind commit')


class Checks:
    """The contents of the committed states, by kind and generation; compares other states with them."""

    def __init__(self, folder):
        self.folder, self.expected, self.generations = folder, {}, {}
        self.checked, self.removed = collections.Counter(), collections.Counter()  # by kind

    def paths(self, state):
        count = int(state.devices)
        return [os.path.join(self.folder, state.name + (f'-{i + 1}' if count > 1 else '') + '.img')
                for i in range(count)]

    def newest(self, state, paths):
        """The contents expected on these devices."""
        return self.expected[state.kind, max(field(path, GENERATION, 8)[::-1] for path in paths)]

    def degraded(self, state, paths):
        """Check with some devices removed, preferably those with a torn superblock."""
        spare, number = int(state.spare), int(state.name)
        torn = [path for path in paths if is_torn(path)]
        if not spare or len(torn) > spare:
            return 0
        sets = list(itertools.combinations(paths, spare))
        lost = torn or sets[number % len(sets)]
        left = []
        for path in paths:
            if path not in lost:
                left.append(path + '.left')
                image.run('cp', '--sparse=always', path, left[-1])
        count = check_state(left, self.newest(state, left), len(lost), state.kind)
        for path in left:
            os.unlink(path)
        self.removed[state.kind] += 1
        return count

    def whole(self, state, paths):
        torn = [path for path in paths if is_torn(path)]
        for path in torn:
            recover(path, len(paths) > 1)
        expected = self.newest(state, paths)
        if expected != self.expected[state.kind, self.generations[state.kind, state.commit]]:
            raise Failure('the newest superblock is not that of the commit')
        return check_state(paths, expected, 0, state.kind)

    def attempt(self, state):
        """@return the complaint, or None; number of files read"""
        paths = self.paths(state)
        try:
            with locks[field(paths[-1], FSID, 16)]:
                if state.torn == 'committed':
                    generation = field(paths[0], GENERATION, 8)[::-1]
                    self.generations[state.kind, state.commit] = generation
                    self.expected[state.kind, generation], count = read(paths)
                else:
                    count = self.degraded(state, paths) + self.whole(state, paths)
                    self.checked[state.kind] += 1
        except (Failure, RuntimeError, OSError) as e:
            return f'{state.kind}, commit {state.commit}, {state.torn}: {e}', 0
        for path in paths:
            os.unlink(path)
        return None, count


def self_test(folder, committed):
    """The comparison must notice another state."""
    checks = Checks(folder)
    state = committed[0]
    other = state._replace(name='0000', torn='whole', spare='0')
    for path, copy in zip(checks.paths(state), checks.paths(other)):
        image.run('cp', '--sparse=always', path, copy)
    generation = field(path, GENERATION, 8)[::-1]
    checks.generations[state.kind, state.commit] = generation
    checks.expected[state.kind, generation] = 'another'
    if 'not what' not in (checks.attempt(other)[0] or ''):
        raise Failure('a planted difference was not seen')


def spread(rows):
    """Interleave the kinds: neighbours have different UUIDs."""
    place = collections.Counter()
    keys = []
    for row in rows:
        keys.append(place[row.kind])
        place[row.kind] += 1
    return [row for _, row in sorted(zip(keys, rows), key=lambda pair: pair[0])]


def run(scratch, wanted, options):
    sys.path.insert(0, IMAGES)
    import unpack
    images = [unpack.unpack(name, scratch, quick=True) for name in NAMES.split(',')]
    folder = os.path.join(scratch, 'states')
    os.mkdir(folder)
    print(image.run(CRASH, '--defect', '-1', *options, '--export', folder, wanted, *images).decode().splitlines()[-1])
    with open(os.path.join(folder, 'list'), encoding='ascii') as f:
        rows = [State(*line.rstrip('\n').split('\t')) for line in f]
    committed = [row for row in rows if row.torn == 'committed']
    states = [row for row in rows if row.torn != 'committed']
    # A state may be its commit, or the one before.
    possible = {(row.kind, int(row.commit) - before) for row in states for before in (0, 1)}
    committed = [row for row in committed if (row.kind, int(row.commit)) in possible]
    self_test(folder, committed)
    checks, failed, files = Checks(folder), 0, 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for rows in spread(committed), spread(states):
            for error, count in pool.map(checks.attempt, rows):
                files += count
                if error:
                    failed += 1
                    print('FAIL', error, flush=True)
            if failed:
                break
    for kind, number in checks.checked.items():
        print(f'{kind}: {number} states checked by Linux, {checks.removed[kind]} also with devices removed')
    torn = sum(row.torn == 'torn' for row in states)
    print(f'compared {len(states)} states of {len({row.kind for row in states})} kinds, {torn} with a torn primary, '
          f'{checks.removed.total()} also with devices removed, with {len(committed)} committed ones: '
          f'{files} files read, {found_orphans.total()} orphans taken away, {failed} failed')
    spares = any(int(row.spare) for row in states)
    return int(bool(failed) or not states or not torn or (spares and not checks.removed.total()))


def main(count, *options):
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with image.committed(), tempfile.TemporaryDirectory(prefix='btrkit-txn-crash-') as scratch:
        try:
            return run(scratch, count, options)
        finally:
            image.cleanup()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
