#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that Linux made, with snapshots, reflinks, compression and holes, are edited by transactions (txn-edit).
Then `btrfs check` finds nothing, and Linux mounts them, reads what is expected in every file of every subvolume, goes
on working, and leaves a filesystem of which `btrfs check` finds nothing either.

Arguments are names of scenarios; without any all are run. Exits with 77 where it cannot run.
"""
import collections
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time

import image
import ops
import plan

EDIT = os.environ['TXN_EDIT']
BLOCK = 4096
ZERO = hashlib.blake2b(bytes(BLOCK), digest_size=8).digest()

# mkfs and mount
SCENARIOS = {
    'default': ((), ''),
    'small-nodes': (('-n', '4096'), ''),
    'large-nodes': (('-n', '65536'), 'compress=zstd'),
    'old-items': (('-n', '4096', '-O', '^skinny-metadata,^no-holes'), 'compress=lzo'),
    'no-group-tree': (('-n', '4096', '-O', '^block-group-tree'), 'max_inline=0'),
    'v1': (('-n', '4096', '-O', '^free-space-tree'), 'space_cache=v1'),
    'mixed': (('-M', '-n', '4096'), ''),
    'single': (('-m', 'single'), 'nodatacow'),
    'balanced': (('-n', '4096'), ''),
    'metadata-uuid': (('-n', '4096'), ''),
    'quota': (('-n', '4096'), ''),
    'two-devices': (('-n', '4096', '-m', 'single', '-d', 'single'), ''),
}
count = collections.Counter()


def need(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


class Disk(image.Image):
    """A filesystem on one device, or on two."""

    def __init__(self, path, twins=False):
        super().__init__(path, '512M')
        self.second = image.Image(f'{path}.2', '512M') if twins else None
        self.paths = [path, *([self.second.path] if twins else [])]

    def mkfs(self, *args):
        image.run(image.MKFS, '-q', '-f', *args, *self.paths)

    def attach_second(self):
        if self.second:
            self.second.loop = image.run('losetup', '-f', '--show', self.second.path).decode().strip()
        return f'device={self.second.loop}' if self.second else ''

    def mount(self, options='', readonly=False):
        return super().mount(','.join(filter(None, (options, self.attach_second()))), readonly)

    def umount(self):
        super().umount()
        if self.second:
            self.second.umount()

    def edit(self, seed, rounds, edits):
        return subprocess.run([EDIT, str(seed), str(rounds), str(edits), *self.paths], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def check(self, *options):
        """btrfs check looks for a second device among the devices of the machine."""
        self.attach_second()
        try:
            loop = image.run('losetup', '-f', '--show', self.path).decode().strip()
            try:
                done = subprocess.run([image.BTRFS, 'check', *options, loop], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, check=False)
            finally:
                image.run('losetup', '-d', loop)
        finally:
            self.umount()
        text = done.stdout.decode(errors='replace')
        need('no error found' in text and not done.returncode, f'btrfs check: exit {done.returncode}:\n{text}')


class File:
    """What a file is expected to be: a hash of every block, and xattrs."""

    def __init__(self, path):
        stat = os.lstat(path)
        self.size, self.blocks, self.xattrs = stat.st_size, [], {}
        if not os.path.islink(path):
            names = [name for name in os.listxattr(path) if name.startswith('user.btrkit')]
            self.xattrs = {name: os.getxattr(path, name).decode() for name in names}
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, 'rb') as f:
                while block := f.read(BLOCK):
                    self.blocks.append(self.hash(block))

    @staticmethod
    def hash(block):
        return hashlib.blake2b(block.ljust(BLOCK, b'\0'), digest_size=8).digest()

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
    """(root, inode) -> File, of everything below."""
    found = {}
    for folder, folders, names in os.walk(mnt):
        # Where a subvolume was below one that was snapshotted is a folder that is none.
        folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_ino != 2]
        root = ops.root_id(folder)
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            key = root, os.lstat(path).st_ino
            if key not in found:
                found[key] = File(path)
    return found


def expect(files, lines):
    """Does to the model what txn-edit says that it did."""
    for line in lines:
        kind, root, inode, *rest = line.split(' ')
        if kind == 'S':
            names = 'commits', 'blocks copied', 'references', 'netted', 'chunks made', 'chunks removed'
            count.update(dict(zip(names, map(int, (root, inode, *rest)))))
            continue
        file = files.get((int(root), int(inode)))
        # A file that is deleted but was open when Linux stopped has no name.
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
    mkfs, mount = SCENARIOS[name]
    img = Disk(os.path.join(scratch, f'{name}.img'), twins=name == 'two-devices')
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
        work.mnt = mnt = img.mount(mount)
        compare(mnt, files)
        work.run(150)
        seed += 1
    img.umount()
    img.check('--check-data-csum')
    img.remove()
    count['scenarios'] += 1


def simple_quotas(scratch):
    """No file can be changed, since that is not accounted; chunks can come and go."""
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
    """The refusal names what stands against it, and nothing is written."""
    with open(img.path, 'rb') as f:
        before = hashlib.file_digest(f, 'blake2b').digest()
    done = img.edit(1, 1, edits)
    need(done.returncode and word in done.stderr.decode(), f'not refused for {word}: {done.stderr.decode()}')
    with open(img.path, 'rb') as f:
        need(before == hashlib.file_digest(f, 'blake2b').digest(), f'{word}: refused, and yet written')
    count['refused'] += 1


def refusals(scratch):
    """What Linux leaves behind that stands against writing."""
    img = Disk(os.path.join(scratch, 'refused.img'))
    img.mkfs()
    mnt = img.mount()
    ops.write(f'{mnt}/file', 0, b'logged' * 2000, sync=True)
    copy = Disk.__new__(Disk)
    copy.__dict__.update(img.copy(os.path.join(scratch, 'copy.img')).__dict__, second=None,
                         paths=[os.path.join(scratch, 'copy.img')])
    refused(copy, 'log tree')
    copy.remove()
    for i in range(40):
        ops.write(f'{mnt}/{i}', 0, ops.incompressible(1 << 20, i), sync=True)
    balancing = threading.Thread(target=paused_balance, args=(mnt,))
    balancing.start()
    while balancing.is_alive():
        try:
            ops.pause_balance(mnt)
        except OSError:
            time.sleep(0.001)
    balancing.join()
    img.umount()
    refused(img, 'unfinished balance')
    img.mkfs()
    image.run(image.BTRFSTUNE, '-f', '-S', '1', img.path)
    refused(img, 'seed device')
    img.remove()


def paused_balance(mnt):
    for _ in range(50):
        try:
            ops.balance(mnt, ops.BALANCE_DATA | ops.BALANCE_METADATA)
        except OSError:
            return
    raise AssertionError('no balance could be paused')


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    others = {'simple-quota': simple_quotas, 'refusals': refusals}
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or [*SCENARIOS, *others]:
            if name in others:
                others[name](scratch)
            else:
                run(name, scratch, 1 + list(SCENARIOS).index(name), (5, 200))
    print('transactions:', ', '.join(f'{value} {key}' for key, value in sorted(count.items())))
    return 0


if __name__ == '__main__':
    sys.exit(main())
