#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that Linux made, with snapshots, reflinks, compression and holes, are edited in transactions (txn-edit).
Then `btrfs check` finds nothing, and Linux mounts them, reads the expected contents in every file of every subvolume,
continues, and leaves a filesystem in which `btrfs check` finds nothing either.

Arguments are names of scenarios; without any, all are run. Exits with 77 if it cannot run.
"""
import collections
import hashlib
import itertools
import os
import random
import subprocess
import sys
import tempfile

import image
import ops
import plan

EDIT = os.environ['TXN_EDIT']
BLOCK = 4096
ZERO = hash(bytes(BLOCK))

# mkfs options, mount options, sizes of the devices
SCENARIOS = {
    'default': ((), ''),
    'small-nodes': (('-n', '4096'), ''),
    'large-nodes': (('-n', '65536'), 'compress=zstd'),
    'old-items': (('-n', '4096', '-O', '^skinny-metadata,^no-holes'), 'compress=lzo'),
    'no-group-tree': (('-n', '4096', '-O', '^block-group-tree'), 'max_inline=0'),
    'v1': (('-n', '4096', '-O', '^free-space-tree'), 'space_cache=v1'),
    'mixed': (('-M', '-n', '4096'), ''),
    'balanced': (('-n', '4096'), ''),
    'quota': (('-n', '4096'), ''),
    'raid0-raid1': (('-n', '4096', '-m', 'raid1', '-d', 'raid0'), '', ('512M', '400M', '300M')),
    'raid10-raid1c3': (('-n', '4096', '-m', 'raid1c3', '-d', 'raid10'), '', ('512M', '400M', '512M', '300M')),
    'raid5': (('-n', '4096', '-m', 'raid5', '-d', 'raid5'), '', ('512M', '400M', '512M')),
    'raid6': (('-m', 'raid6', '-d', 'raid6'), '', ('512M', '400M', '512M', '300M', '300M')),
}
DEEP = {
    'metadata-uuid': (('-n', '4096'), ''),
    'two-devices': (('-n', '4096', '-m', 'single', '-d', 'single'), '', ('512M', '512M')),
    'raid1-raid1c4': (('-m', 'raid1c4', '-d', 'raid1'), '', ('512M', '512M', '700M', '400M')),
    'single': (('-m', 'single'), 'nodatacow'),
    'raid0': (('-m', 'raid0', '-d', 'raid0'), '', ('512M', '512M')),
    'raid1': (('-n', '65536', '-m', 'raid1', '-d', 'raid1'), '', ('512M', '512M', '300M')),
    'raid1c3': (('-n', '4096', '-m', 'raid1c3', '-d', 'raid1c3'), '', ('512M', '512M', '700M')),
    'raid1c4': (('-m', 'raid1c4', '-d', 'raid1c4'), '', ('512M', '512M', '700M', '400M', '400M')),
    'raid10': (('-n', '4096', '-m', 'raid10', '-d', 'raid10'), '', ('512M', '400M', '512M', '300M')),
    'raid5-two': (('-m', 'raid5', '-d', 'raid5'), '', ('600M', '600M')),
    'raid5-mixed': (('-M', '-n', '4096', '-m', 'raid5', '-d', 'raid5'), '', ('600M', '400M', '500M', '300M')),
    'raid5-v1': (('-n', '4096', '-O', '^free-space-tree', '-m', 'raid5', '-d', 'raid1'), 'space_cache=v1',
                 ('512M', '400M', '512M')),
    'raid6-three': (('-n', '4096', '-m', 'raid6', '-d', 'raid6'), '', ('700M', '700M', '600M')),
    'raid6-six': (('-n', '65536', '-m', 'raid6', '-d', 'raid5'), 'compress=zstd', ('400M',) * 6),
    'raid10-six': (('-m', 'raid10', '-d', 'raid0'), '', ('300M', '400M', '300M', '512M', '350M', '400M')),
    'raid1-raid6': (('-n', '4096', '-m', 'raid1', '-d', 'raid6'), 'nodatacow', ('512M', '400M', '512M', '300M')),
}
# How many devices may be lost; if data and metadata profiles differ, the lower number counts.
SPARE = {'raid1': 1, 'raid10': 1, 'raid5': 1, 'raid1c3': 2, 'raid6': 2, 'raid1c4': 3}
count = collections.Counter()


def need(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


class Disk(image.Image):
    """A filesystem on one device, or on several."""

    def __init__(self, path, sizes=('512M',)):
        super().__init__(path, sizes[0])
        self.others = [image.Image(f'{path}.{k + 2}', size) for k, size in enumerate(sizes[1:])]
        self.paths = [path, *(one.path for one in self.others)]

    def mkfs(self, *args):
        image.run(image.MKFS, '-q', '-f', *args, *self.paths)

    def attach_others(self):
        for one in self.others:
            one.loop = image.attach(one.path)
        return [f'device={one.loop}' for one in self.others]

    def mount(self, options='', readonly=False):
        return super().mount(','.join(filter(None, (options, *self.attach_others()))), readonly)

    def umount(self):
        super().umount()
        for one in self.others:
            one.umount()

    def remove(self):
        super().remove()
        for one in self.others:
            one.remove()

    def scrub(self):
        """Scrub every copy. With parity Linux sets each group read-only in turn, for which there may be no space."""
        try:
            said = image.run(image.BTRFS, 'scrub', 'start', '-B', self.mnt).decode()
        except RuntimeError as error:
            if 'errno=28' not in str(error):
                raise
            count['too full to be scrubbed'] += 1
            return
        need('no errors found' in said, said)
        count['scrubbed'] += 1

    def lose(self, lost, files):
        """Linux reads everything without some of the devices, from copies and parity on the others."""
        mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        try:
            with image.loops([path for k, path in enumerate(self.paths) if k not in lost], '-r') as loops:
                options = ','.join(('ro,degraded,subvolid=5', *(f'device={loop}' for loop in loops[1:])))
                image.run('mount', '-t', 'btrfs', '-o', options, loops[0], mnt)
                try:
                    compare(mnt, files)
                finally:
                    image.run('umount', mnt)
        finally:
            os.rmdir(mnt)
        count[f'read without {len(lost)} devices'] += 1

    def edit(self, seed, rounds, edits):
        return subprocess.run([EDIT, str(seed), str(rounds), str(edits), *self.paths], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def check(self, *options):
        """btrfs check looks for the other devices among the block devices of the machine."""
        with image.loops(self.paths) as loops:
            done = subprocess.run([image.BTRFS, 'check', *options, loops[0]], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode(errors='replace')
        need('no error found' in text and not done.returncode, f'btrfs check: exit {done.returncode}:\n{text}')


class File:
    """The expected contents of a file: a hash of every block, and xattrs."""

    def __init__(self, path):
        stat = os.lstat(path)
        self.size, self.blocks, self.xattrs = stat.st_size, [], {}
        if not os.path.islink(path):
            names = [name for name in os.listxattr(path) if name.startswith('user.btrkit')]
            self.xattrs = {name: os.getxattr(path, name).decode() for name in names}
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, 'rb') as f:
                while piece := f.read(256 * BLOCK):
                    self.blocks += [self.hash(piece[at:at + BLOCK]) for at in range(0, len(piece), BLOCK)]

    @staticmethod
    def hash(block):
        """Python's own hash: 64 bits, keyed per process, and much faster than others."""
        return hash(block.ljust(BLOCK, b'\0'))

    def put(self, offset, blocks, grow):
        at = offset // BLOCK
        if grow:
            self.blocks += [ZERO] * (at - len(self.blocks))
        else:
            blocks = blocks[:max(len(self.blocks) - at, 0)]
        self.blocks[at:at + len(blocks)] = blocks
        if grow:
            self.size = offset + len(blocks) * BLOCK

    def get(self, offset, length):
        at, n = offset // BLOCK, length // BLOCK
        blocks = self.blocks[at:at + n]
        return blocks + [ZERO] * (n - len(blocks))

    def __eq__(self, other):
        return (self.size, self.blocks, self.xattrs) == (other.size, other.blocks, other.xattrs)


def read_all(mnt):
    """Map (root, inode) to File, for everything below."""
    found = {}
    for folder, folders, names in os.walk(mnt):
        # Skip placeholders of nested subvolumes in snapshots.
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_ino != 2]
        root = ops.root_id(folder)
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            key = root, os.lstat(path).st_ino
            if key not in found:
                found[key] = File(path)
    return found


def expect(files, lines):
    """Apply the changes that txn-edit reports to the model."""
    for line in lines:
        kind, root, inode, *rest = line.split(' ')
        if kind == 'S':
            names = 'commits', 'blocks copied', 'references', 'netted', 'chunks made', 'chunks removed'
            count.update(dict(zip(names, map(int, (root, inode, *rest)))))
            continue
        file = files.get((int(root), int(inode)))
        # A file that was open but unlinked when Linux stopped has no name.
        if not file:
            count['nameless'] += 1
            continue
        count[kind] += 1
        if kind == 'X':
            file.xattrs[rest[0]] = rest[1]
        elif kind == 'x':
            del file.xattrs[rest[0]]
        elif kind == 'C':
            offset, length, inode, source = map(int, rest)
            file.put(offset, files[int(root), inode].get(source, length), True)
        elif kind == 'W':
            offset, length, byte = map(int, rest)
            file.put(offset, [File.hash(bytes([byte]) * BLOCK)] * (length // BLOCK), True)
        else:
            offset, length = map(int, rest)
            file.put(offset, [ZERO] * (length // BLOCK), False)


def compare(mnt, files):
    found = read_all(mnt)
    need(set(found) == set(files), 'other files are there:', set(found) ^ set(files))
    for key, file in found.items():
        need(file == files[key], f'{key}: {file.size} bytes, {file.xattrs}; expected {files[key].size}, '
             f'{files[key].xattrs}, blocks differ at',
             [i for i, (a, b) in enumerate(zip(file.blocks, files[key].blocks)) if a != b][:5])


def quota_flags(path):
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'quota', path).decode()
    return next(line for line in text.splitlines() if 'flags ON' in line or 'flags OFF' in line)


def run(name, scratch, seed, rounds):
    mkfs, mount, *sizes = {**SCENARIOS, **DEEP}[name]
    img = Disk(os.path.join(scratch, f'{name}.img'), *sizes)
    profiles = [mkfs[mkfs.index(option) + 1] for option in ('-m', '-d') if option in mkfs]
    spare = min(SPARE.get(profile, 0) for profile in profiles) if len(profiles) == 2 else 0
    lost = list(itertools.combinations(range(len(img.paths)), spare))
    random.Random(seed).shuffle(lost)
    losses = itertools.cycle(lost)
    img.mkfs(*(image.peer_options(list(mkfs)) if '-M' not in mkfs else mkfs))
    if name == 'metadata-uuid':
        image.run(image.BTRFSTUNE, '-f', '-m', img.path)
    mnt = img.mount(mount)
    if name == 'quota':
        ops.quota(mnt)
    work = plan.Plan(mnt, seed)
    work.run(500)
    for edits in rounds:
        if name == 'balanced':
            ops.balance(mnt, ops.BALANCE_DATA | ops.BALANCE_METADATA)
        files = read_all(mnt)
        img.umount()
        done = img.edit(seed, 6, edits)
        need(not done.returncode, f'txn-edit: {done.stderr.decode()}')
        expect(files, done.stdout.decode().splitlines())
        if name == 'quota':
            need('INCONSISTENT' in quota_flags(img.path), 'quotas are not marked')
        img.check()
        if spare:
            for _ in range(3):
                img.lose(next(losses), files)
        work.mnt = mnt = img.mount(mount)
        compare(mnt, files)
        if len(img.paths) > 1:
            img.scrub()
        work.run(150)
        seed += 1
    img.umount()
    # With parity it also reads data rebuilt from parity, and reports mismatches even for data written by Linux alone.
    img.check(*([] if {'raid5', 'raid6'} & set(profiles) else ['--check-data-csum']))
    img.remove()
    count['scenarios'] += 1
    print(name, 'commits so far:', count['commits'], flush=True)


def simple_quotas(scratch):
    """Files cannot be changed with simple quotas, because that is not accounted; chunks can be created and removed."""
    img = Disk(os.path.join(scratch, 'simple-quota.img'))
    img.mkfs('-n', '4096')
    mnt = img.mount()
    try:
        ops.quota(mnt, simple=True)
    except OSError:
        print('simple quotas: this kernel has none')
        img.remove()
        return
    work = plan.Plan(mnt, 1)
    work.run(300)
    img.umount()
    refused(img, 'simple quotas', 50)
    done = img.edit(3, 20, 0)
    need(not done.returncode, f'txn-edit: {done.stderr.decode()}')
    expect({}, done.stdout.decode().splitlines())
    img.check()
    work.mnt = img.mount()
    work.run(100)
    img.umount()
    img.check()
    img.remove()
    count['scenarios'] += 1


def refused(img, word, edits=1):
    """The error names the reason, and nothing is written."""
    with open(img.path, 'rb') as f:
        before = hashlib.file_digest(f, 'blake2b').digest()
    done = img.edit(1, 1, edits)
    need(done.returncode and word in done.stderr.decode(), f'not refused for {word}: {done.stderr.decode()}')
    with open(img.path, 'rb') as f:
        need(before == hashlib.file_digest(f, 'blake2b').digest(), f'{word}: refused, and yet written')
    count['refused'] += 1


def refusals(scratch):
    """States left by Linux in which writing is refused."""
    img = Disk(os.path.join(scratch, 'refused.img'))
    img.mkfs()
    mnt = img.mount()
    logged = img.copy_with_log(os.path.join(scratch, 'copy.img'),
                               lambda: ops.write(f'{mnt}/file', 0, b'logged' * 2000, sync=True))
    copy = Disk.__new__(Disk)
    copy.__dict__.update(logged.__dict__, others=[], paths=[logged.path])
    refused(copy, 'log tree')
    copy.remove()
    for i in range(40):
        ops.write(f'{mnt}/{i}', 0, ops.incompressible(1 << 20, i), sync=True)
    ops.leave_balance(mnt)
    img.umount()
    refused(img, 'unfinished balance')
    img.mkfs()
    image.run(image.BTRFSTUNE, '-f', '-S', '1', img.path)
    refused(img, 'seed device')
    img.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    others = {'simple-quota': simple_quotas, 'refusals': refusals}
    with tempfile.TemporaryDirectory() as scratch:
        deep = sys.argv[1:] == ['--deep']
        named = list(DEEP) if deep else sys.argv[1:]
        for name in named or [*SCENARIOS, *others]:
            if name in others:
                others[name](scratch)
            else:
                run(name, scratch, 1 + [*SCENARIOS, *DEEP].index(name),
                    (5, 200, 1, 40, 300, 15) if deep else (5, 200))
    print('transactions:', ', '.join(f'{value} {key}' for key, value in sorted(count.items())))
    return 0


if __name__ == '__main__':
    sys.exit(main())
