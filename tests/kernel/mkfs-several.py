#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that `btrkit mkfs` makes on several devices, of every profile and checksum: Linux mounts and fills them,
scrubs them, and finds nothing wrong; btrfs check neither; the library reads every file back as Linux read it.

    mkfs-several.py [--deep] [--only PATTERN] [--list]

BTRKIT and READ_FILES are the programs under test; BTRFS is btrfs-progs'. Exits with 77 where it cannot run.
"""
import argparse
import fnmatch
import hashlib
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import uuid

import contents
import image
import ops
import volumes
from image import BTRFS, run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
READ_FILES = os.environ.get('READ_FILES', 'read-files')
K, M = 1 << 10, 1 << 20

# With as few devices as each can be on.
PROFILES = {'single': 1, 'dup': 1, 'raid0': 1, 'raid1': 2, 'raid1c3': 3, 'raid1c4': 4, 'raid10': 2, 'raid5': 2,
            'raid6': 3}

# Devices; options of mkfs; of the mount.
ROWS = [
    (2, (), ''),
    (6, ('-d', 'raid0', '-m', 'raid0', '--csum', 'xxhash'), 'compress=zstd'),
    (4, ('-d', 'raid1c3', '-m', 'raid1c4', '--csum', 'sha256'), ''),
    (4, ('-d', 'raid10', '-m', 'raid10', '--csum', 'blake2', '-n', '4k'), ''),
    (3, ('-d', 'raid5', '-m', 'raid5', '-O', 'squota'), 'compress=lzo'),
    (5, ('-d', 'raid6', '-m', 'raid6', '-n', '64k'), ''),
    (2, ('-M', '-d', 'raid1', '-m', 'raid1', '-O', 'quota'), ''),
]


def deep_rows():
    for number, (name, smallest) in enumerate(PROFILES.items()):
        for count in sorted({smallest, smallest + 1, 6}):
            yield count, ('-d', name, '-m', name), ''
            yield count, ('-d', name, '--csum', ('xxhash', 'sha256', 'blake2')[number % 3]), 'compress=zstd'
            yield count, ('-m', name, '-n', ('4k', '64k')[count % 2]), 'compress-force=lzo'
        for sums in ('crc32c', 'xxhash', 'sha256', 'blake2'):
            yield max(smallest, 2), ('-d', name, '-m', name, '--csum', sums), ''
        yield 6, ('-M', '-d', name, '-m', name), ''
        yield 5, ('-d', name, '-m', name, '-O', '^free-space-tree'), ''
        yield 4, ('-d', name, '-m', name, '-O', '^skinny-metadata,^no-holes'), ''
        yield 4, ('-d', name, '-m', name, '-O', ('quota', 'squota')[number % 2]), ''


class Failure(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Failure(what)


class Fresh(volumes.Volume):
    """The loop devices stay from one mount to the next, so that btrfs check finds them."""

    def mkfs(self, *args):
        out = run(BTRKIT, 'mkfs', '-q', *args, *self.paths)
        need(not out, f'mkfs -q prints {out!r}')

    def attach(self):
        self.loops = [run('losetup', '-f', '--show', path).decode().strip() for path in self.paths]
        image._live.append(self)

    def mount(self, options='', readonly=False):
        self.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        self.since = time.clock_gettime(time.CLOCK_BOOTTIME)
        parts = [*(['ro'] if readonly else []), *([options] if options else []),
                 *(f'device={loop}' for loop in self.loops)]
        run('mount', '-t', 'btrfs', '-o', ','.join(parts), self.loops[0], self.mnt)
        return self.mnt

    def unmount(self):
        run('umount', self.mnt)
        os.rmdir(self.mnt)
        self.mnt = None
        said = image.complaints(self.loops, self.since)
        need(not said, 'Linux says: ' + '\n'.join(said))

    def check(self):
        done = subprocess.run([BTRFS, 'check', '--check-data-csum', self.loops[0]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode(errors='replace')
        need('no error found' in text and not done.returncode, f'btrfs check: exit {done.returncode}:\n{text}')


def option(given, *names):
    return next((given[i + 1] for i, word in enumerate(given) if word in names), None)


def expected_profiles(count, given):
    data, meta = option(given, '-d') or 'single', option(given, '-m')
    if '-M' in given:
        return {'Data+Metadata': data, 'System': meta or 'single'}
    meta = meta or ('raid1' if count > 1 else 'dup')
    return {'Data': data, 'Metadata': meta, 'System': meta}


def profiles(mnt):
    found = re.findall(r'^(\S+), (\w+): total=', run(BTRFS, 'filesystem', 'df', '-b', mnt).decode(), re.M)
    return {kind: profile.lower() for kind, profile in found if kind != 'GlobalReserve'}


def scrub(mnt):
    text = run(BTRFS, 'scrub', 'start', '-B', mnt).decode()
    need('no errors found' in text, f'scrub: {text}')


def manifest(mnt):
    """What is in every file, by its numbers."""
    found = {}
    for folder, _, names in os.walk(mnt):
        root = ops.root_id(folder)
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                data = os.readlink(path).encode()
            else:
                with open(path, 'rb') as f:
                    data = f.read()
            found[f'{root}-{status.st_ino}'] = hashlib.sha256(data).digest()
    return found


def read_back(volume, scratch):
    out = f'{scratch}/out'
    os.mkdir(out)
    done = subprocess.run([READ_FILES, out, *volume.paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    need(not done.returncode, f'read-files: {done.stderr.decode()}')
    found = {}
    for name in os.listdir(out):
        with open(f'{out}/{name}', 'rb') as f:
            found[name] = hashlib.sha256(f.read()).digest()
    shutil.rmtree(out)
    return found


def fill(mnt, rng):
    contents.fill(mnt, rng, files=30, steps=100, limit=600 * K)
    # More than one row of strips on any profile.
    ops.write(f'{mnt}/big', 0, ops.incompressible(8 * M))
    for k in range(400):
        with open(f'{mnt}/little{k}', 'wb') as f:
            f.write(rng.randbytes(rng.choice((100, 1500))))
    for k in range(0, 400, 3):
        os.unlink(f'{mnt}/little{k}')
    ops.sync(mnt)


def judge(row, scratch, seed):
    """@return how many files were compared"""
    count, given, options = row
    volume = Fresh(scratch, count)
    volume.mkfs(*given)
    volume.attach()
    volume.check()
    mnt = volume.mount(options)
    found, wanted = profiles(mnt), expected_profiles(count, given)
    need(found == wanted, f'profiles {found}, not {wanted}')
    fill(mnt, random.Random(seed))
    scrub(mnt)
    volume.unmount()
    volume.check()
    wanted = manifest(volume.mount(readonly=True))
    volume.unmount()
    found = read_back(volume, scratch)
    need(found == wanted, f'other contents: {[name for name in wanted if found.get(name) != wanted[name]]}')
    volume.remove()
    return len(wanted)


def on_loops(scratch):
    """Made on block devices: Linux knows them all when the first is mounted, also where there is no udev."""
    volume = Fresh(scratch, 3)
    volume.attach()
    fsid = str(uuid.uuid4())
    run(BTRKIT, 'mkfs', '-q', '-d', 'raid0', '-U', fsid, *volume.loops)
    volume.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
    run('mount', '-t', 'btrfs', volume.loops[0], volume.mnt)
    text = run(BTRFS, 'filesystem', 'show', volume.mnt).decode()
    need(f'uuid: {fsid}\n' in text and all(re.search(rf'path {loop}$', text, re.M) for loop in volume.loops), text)
    run('umount', volume.mnt)
    os.rmdir(volume.mnt)
    volume.mnt = None
    # Over itself it may have the same UUID; beside another filesystem it may not.
    run(BTRKIT, 'mkfs', '-q', '-f', '-U', fsid, *volume.loops)
    others = [f'{scratch}/other{i}.img' for i in range(2)]
    for path in others:
        run('truncate', '-s', '300M', path)
    done = subprocess.run([BTRKIT, 'mkfs', '-q', '-U', fsid, *others], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    need(done.returncode == 1 and re.fullmatch(rb'btrkit mkfs: the filesystem on /dev/loop\d+ has that UUID\n',
                                               done.stderr), done.stderr)
    need(not any(os.stat(path).st_blocks for path in others), 'refused, and yet written to')
    run(BTRKIT, 'mkfs', '-q', '-U', fsid, others[0])
    volume.remove()
    for path in others:
        os.unlink(path)


def busy(scratch):
    """One of several that is mounted is refused, and nothing is written to the others."""
    volume, other = Fresh(scratch, 2), f'{scratch}/other.img'
    volume.mkfs()
    volume.attach()
    volume.mount()
    run('truncate', '-s', '300M', other)
    for first in (0, 1):
        devices = [other, volume.loops[1]] if first else [volume.loops[1], other]
        done = subprocess.run([BTRKIT, 'mkfs', '-q', '-f', *devices], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        need(done.returncode == 1 and f'{volume.loops[1]}: in use' in done.stderr.decode(), done.stderr)
        need(not os.stat(other).st_blocks, 'refused, and yet written to')
    volume.unmount()
    volume.remove()
    os.unlink(other)


def name_of(row):
    return ' '.join([f'{row[0]} devices', *row[1], *([f'({row[2]})'] if row[2] else [])])


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--deep', action='store_true')
    parser.add_argument('--only', default='*', metavar='PATTERN')
    parser.add_argument('--list', action='store_true')
    return parser.parse_args()


def attempt(name, work, *args):
    start = time.monotonic()
    try:
        found = work(*args)
    except (Failure, RuntimeError, OSError) as e:
        print(f'{name}: {type(e).__name__}: {e}')
        return None
    finally:
        image.cleanup()
    print(f'{name}: {time.monotonic() - start:.1f} s')
    return found or 0


def main():
    args = options()
    chosen = [row for row in (deep_rows() if args.deep else ROWS) if fnmatch.fnmatch(name_of(row), args.only)]
    if args.list:
        print(*map(name_of, chosen), sep='\n')
        return 0
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    results = []
    with tempfile.TemporaryDirectory(prefix='btrkit-several-') as scratch:
        os.mkdir(f'{scratch}/row')
        for seed, row in enumerate(chosen):
            results.append(attempt(name_of(row), judge, row, f'{scratch}/row', seed))
            shutil.rmtree(f'{scratch}/row')
            os.mkdir(f'{scratch}/row')
        if not args.deep:
            results += [attempt('on loop devices', on_loops, scratch), attempt('busy', busy, scratch)]
    failed, files = results.count(None), sum(filter(None, results))
    print(f'{len(chosen)} filesystems, {files} files compared, {failed} failed')
    return 1 if failed or not files else 0


if __name__ == '__main__':
    sys.exit(main())
