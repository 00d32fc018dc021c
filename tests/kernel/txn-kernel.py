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

import image
import ops
import plan

EDIT = os.environ['TXN_EDIT']
BLOCK = 4096
ZERO = hashlib.blake2b(bytes(BLOCK), digest_size=8).digest()
SIMPLE_QUOTA, QUOTA = 'simple quota', 'quota'

# mkfs, mount, quotas
SCENARIOS = {
    'default': ((), '', None),
    'small-nodes': (('-n', '4096'), '', None),
    'large-nodes': (('-n', '65536'), 'compress=zstd', None),
    'old-items': (('-n', '4096', '-O', '^skinny-metadata,^no-holes'), 'compress=lzo', None),
    'no-group-tree': (('-n', '4096', '-O', '^block-group-tree'), 'max_inline=0', None),
    'v1': (('-n', '4096', '-O', '^free-space-tree'), 'space_cache=v1', None),
    'mixed': (('-M', '-n', '4096'), '', None),
    'single': (('-m', 'single', '--csum', 'crc32c'), 'nodatacow', None),
    'quota': (('-n', '4096'), '', QUOTA),
}
count = collections.Counter()


def need(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


def check(path, *options):
    done = subprocess.run([image.BTRFS, 'check', *options, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    text = done.stdout.decode(errors='replace')
    need('no error found' in text and not done.returncode, f'btrfs check: exit {done.returncode}:\n{text}')
    return text


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
    mkfs, mount, quotas = SCENARIOS[name]
    img = image.Image(os.path.join(scratch, f'{name}.img'), '512M')
    img.mkfs(*(image.peer_options(list(mkfs)) if '-M' not in mkfs else mkfs))
    mnt = img.mount(mount)
    if quotas:
        ops.quota(mnt, simple=quotas == SIMPLE_QUOTA)
    work = plan.Plan(mnt, seed)
    work.run(500)
    for edits in rounds:
        files = read_all(mnt)
        img.umount()
        done = subprocess.run([EDIT, img.path, str(seed), '6', str(edits)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        need(not done.returncode, f'txn-edit: {done.stderr.decode()}')
        expect(files, done.stdout.decode().splitlines())
        if quotas:
            need('INCONSISTENT' in quota_flags(img.path), 'quotas are not marked')
        check(img.path)
        work.mnt = mnt = img.mount(mount)
        compare(mnt, files)
        work.run(150)
        seed += 1
    img.umount()
    check(img.path, '--check-data-csum')
    img.remove()
    count['scenarios'] += 1


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    names = sys.argv[1:] or list(SCENARIOS)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            run(name, scratch, 1 + list(SCENARIOS).index(name), (5, 60, 200))
    print('transactions:', ', '.join(f'{value} {key}' for key, value in sorted(count.items())))
    return 0


if __name__ == '__main__':
    sys.exit(main())
