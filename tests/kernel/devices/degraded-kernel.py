#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Write filesystems of every profile with redundancy without some of their devices. Linux must mount what is left, read
every byte of it and write to it; then it gets the stale devices back, repairs them by scrub, and everything is there.

With --deep, every row is run. Exits with 77 if it cannot run.
"""
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile

import contents
import image
import ops
import volumes
from image import BTRFS, run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
K, M = 1 << 10, 1 << 20

# data, metadata, devices, missing devices, mkfs options
ROWS = [
    ('raid1', 'raid1', 2, (1,), ()),
    ('raid1c3', 'raid1c3', 3, (1, 3), ('--csum', 'xxhash')),
    ('raid5', 'raid5', 3, (2,), ()),
    ('raid6', 'raid6', 4, (1, 4), ('-n', '64k')),
]
DEEP = [
    ('raid1', 'raid1', 2, (2,), ('-M',)),
    ('raid1', 'raid1', 3, (2,), ('-n', '4k')),
    ('raid1c4', 'raid1c4', 4, (1, 2, 4), ('-O', '^free-space-tree,^block-group-tree')),
    ('raid10', 'raid10', 4, (3,), ()),
    ('raid6', 'raid1c3', 4, (2, 3), ('--csum', 'sha256')),
]


def need(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))


class Part(volumes.Volume):
    """Some devices of a volume, mounted degraded if others are missing."""

    def __init__(self, paths):
        super().__init__(os.path.dirname(paths[0]), 1, None)
        self.paths, self.path = list(paths), paths[0]


def digests(top):
    """The contents of every file, by path."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = f'{folder}/{name}'
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, 'rb') as f:
                found[os.path.relpath(path, top)] = hashlib.sha256(f.read()).digest()
    return found


def edit(paths, script, *options):
    devices = [f'--device={path}' for path in paths[1:]]
    return subprocess.run([BTRKIT, 'edit', '--noscan', *options, *devices, paths[0]], input=script,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def states(paths):
    found = []
    for path in paths:
        with open(path, 'rb') as f:
            found.append(hashlib.file_digest(f, 'sha256').digest())
    return found


def check(paths, missing):
    devices = [f'--device={path}' for path in paths[1:]]
    done = subprocess.run([BTRKIT, 'check', '--data', '--noscan', *devices, paths[0]], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    found = [line for line in done.stdout.decode().splitlines() if line.startswith('BTR-')]
    need(len(found) == missing and all(line.startswith('BTR-DEVICE-MISSING ') for line in found), found, done.stderr)


def btrfs_check(paths):
    with image.loops(paths, '-r') as loops:
        done = subprocess.run([BTRFS, 'check', loops[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
    need(not done.returncode and b'no error found' in done.stdout, done.stdout.decode(errors='replace'))


def scrub(mnt):
    """@return the number of errors that Linux corrected; there must not be others"""
    done = subprocess.run([BTRFS, 'scrub', 'start', '-B', '-R', mnt], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    said = done.stdout.decode()
    counts = {name: int(n) for name, n in re.findall(r'(\w+_errors): (\d+)', said)}
    need(counts and not counts['uncorrectable_errors'], said)
    return counts['corrected_errors']


class Row:
    def __init__(self, row, scratch):
        data, meta, devices, missing, mkfs = row
        self.name = f'{data}/{meta} on {devices} without {missing}'
        self.scratch, self.rng, self.two_strips = scratch, random.Random(self.name), meta == 'raid6'
        self.volume = volumes.Volume(scratch, devices, '400M')
        self.volume.mkfs('-d', data, '-m', meta, *mkfs)
        mnt = self.volume.mount()
        contents.fill(mnt, self.rng, files=20, steps=60, limit=400 * K)
        for number in range(40):
            ops.write(f'{mnt}/keep-{number}', 0, self.rng.randbytes(128 * K))
        ops.sync(mnt)
        self.volume.umount()
        self.expected = digests(self.volume.mount(readonly=True))
        self.volume.umount()
        paths, self.missing = self.volume.paths, missing
        self.here = [path for i, path in enumerate(paths) if i + 1 not in missing]
        self.away = [path for i, path in enumerate(paths) if i + 1 in missing]

    def write(self, paths, name, mib):
        """Edits without the missing devices; more than one chunk of data."""
        big = f'{self.scratch}/big'
        with open(big, 'wb') as f:
            f.write(self.rng.randbytes(mib * M))
        with open(big, 'rb') as f:
            self.expected[f'{name}/big'] = hashlib.sha256(f.read()).digest()
        before = states(self.away)
        script = [f'mkdir {name}', f'put {big} {name}/big']
        for number in range(100):
            script.append(f'put {big}.small {name}/small-{number}')
        with open(f'{big}.small', 'wb') as f:
            f.write(self.rng.randbytes(3000))
        with open(f'{big}.small', 'rb') as f:
            small = hashlib.sha256(f.read()).digest()
        self.expected.update({f'{name}/small-{number}': small for number in range(100)})
        gone = [path for path in self.expected if path.startswith('keep-')][:15]
        script += [f'rm {path}' for path in gone]
        for path in gone:
            del self.expected[path]
        done = edit(paths, '\n'.join(script).encode() + b'\n', '--degraded')
        need(not done.returncode, self.name, done.stderr)
        need(states(self.away) == before, self.name, 'a missing device was written')

    def refused(self):
        before = states(self.volume.paths)
        for paths in (self.here, self.volume.paths) if self.stale else (self.here,):
            done = edit(paths, b'mkdir refused\n')
            need(done.returncode == 1 and done.stderr.count(b'\n') == 1 and not done.stdout, done)
            need(b'--degraded' in done.stderr, done.stderr)
            need(states(self.volume.paths) == before, self.name, 'something was written')

    def run(self):
        self.stale = False
        self.refused()
        self.write(self.here, 'first', 50)
        self.stale = True
        self.refused()
        # The stale devices are given, too.
        self.write(self.volume.paths, 'second', 80)
        check(self.here, len(self.away))
        left = Part(self.here)
        mnt = left.mount('degraded')
        need(digests(mnt) == self.expected, self.name, 'Linux reads something else')
        ops.write(f'{mnt}/linux', 0, self.rng.randbytes(2 * M))
        ops.sync(mnt)
        left.umount()
        run(BTRFS, 'device', 'scan', '--forget')
        # btrfs check cannot rebuild blocks of which two strips are missing.
        if self.two_strips:
            self.replace()
        else:
            btrfs_check(self.here)
        self.back()

    def replace(self):
        """Linux 6.18 does not always rebuild blocks of RAID6 if two of their strips are there, but stale."""
        left = Part(self.here)
        mnt = left.mount('degraded')
        for devid in self.missing:
            path = self.volume.paths[devid - 1]
            size = os.path.getsize(path)
            os.truncate(path, 0)
            os.truncate(path, size)
            with image.loops([path]) as loops:
                run(BTRFS, 'replace', 'start', '-B', '-f', str(devid), loops[0], mnt)
                left.umount()
            run(BTRFS, 'device', 'scan', '--forget')
            left.paths.append(path)
            mnt = left.mount('degraded')
        left.umount()

    def back(self):
        """Linux gets all devices."""
        mnt = self.volume.mount()
        corrected = scrub(mnt)
        need(bool(corrected) != self.two_strips, self.name, corrected, 'errors were corrected')
        need(not corrected or not scrub(mnt), self.name, 'the second scrub finds more')
        self.expected['linux'] = digests(mnt)['linux']
        need(digests(mnt) == self.expected, self.name, 'Linux reads something else')
        self.volume.umount()
        check(self.volume.paths, 0)
        btrfs_check(self.volume.paths)
        print(f'{self.name}: {len(self.expected)} files, {corrected} errors of stale devices corrected by Linux')


def main():
    reason = image.missing()
    if reason:
        print(reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        for row in ROWS + (DEEP if '--deep' in sys.argv else []):
            r = Row(row, scratch)
            try:
                r.run()
            finally:
                r.volume.remove()


if __name__ == '__main__':
    main()
