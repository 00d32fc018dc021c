#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random edits in transactions of trees that Linux made, compared with a sorted array (edit-model.c): after each commit
the device must contain what the array says; finally `btrfs check` finds nothing, Linux reads every xattr as in the
array, continues to write, and the result is clean again.

    edit-kernel.py [--items N] [NAME...]

Exits with 77 if it cannot run.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

import image
import ops
from image import run

BTRKIT, EDIT_MODEL = os.environ['BTRKIT'], os.environ['EDIT_MODEL']
FILES = 60

# Program that makes it, its options, snapshots of the tree, and the share of the items. Blocks shared with 'kept' never
# lose their last other owner; with 'changed' alone they do.
KEPT, CHANGED = ('changed', 'kept'), ('changed',)
SCENARIOS = {
    '4k': (image.MKFS, ('-n', '4096', '-O', 'free-space-tree'), KEPT, 1),
    '16k': (image.MKFS, ('-n', '16384', '-O', 'free-space-tree'), CHANGED, 1),
    '64k': (image.MKFS, ('-n', '65536', '-O', 'free-space-tree'), KEPT, 1),
    '16k-btrkit': (BTRKIT, ('-n', '16384'), (), .3),
    '16k-v1': (image.MKFS, ('-n', '16384', '-m', 'single', '-O', '^free-space-tree,^block-group-tree'), KEPT, .1),
    '4k-fat': (image.MKFS, ('-n', '4096', '-O', '^skinny-metadata,free-space-tree'), CHANGED, .1),
    '4k-mixed': (image.MKFS, ('-n', '4096', '-M', '-O', 'free-space-tree'), CHANGED, .1),
}


def check_clean(path):
    done = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    if done.returncode or 'no error found' not in text:
        raise AssertionError(f'btrfs check: exit {done.returncode}:\n{text[-3000:]}')


def populate(folder, rng):
    """Files with xattrs of all sizes and data extents in between. Returns inode numbers."""
    inodes = []
    for k in range(FILES):
        path = f'{folder}/file{k}'
        with open(path, 'wb') as f:
            inodes.append(os.fstat(f.fileno()).st_ino)
            for piece in range(rng.randrange(12)):
                os.pwrite(f.fileno(), rng.randbytes(4096), 8192 * piece)
        for n in range(rng.randrange(90)):
            name = f'user.{n}' + 'n' * (rng.randrange(200) if rng.random() < .1 else 0)
            os.setxattr(path, name, rng.randbytes(rng.randrange(3000 if rng.random() < .05 else 200)))
    return inodes


def make(img, name, rng):
    """Return {tree: path}, and the inodes to change in each."""
    maker, options, snapshots, _ = SCENARIOS[name]
    if maker == BTRKIT:
        run(BTRKIT, 'mkfs', '-q', *options, img.path)
    else:
        img.mkfs(*options)
    img.mount('nodiscard')
    if not snapshots:
        inodes, folders = populate(img.mnt, rng), {5: ''}
        img.umount()
        return {5: inodes}, folders
    ops.subvolume(f'{img.mnt}/source')
    inodes = populate(f'{img.mnt}/source', rng)
    image.sync(img.mnt)
    for folder in snapshots:
        ops.snapshot(f'{img.mnt}/source', f'{img.mnt}/{folder}', readonly=folder == 'kept')
    folders = {ops.root_id(f'{img.mnt}/{folder}'): folder for folder in ('source', *snapshots)}
    img.umount()
    return {root: [] if folder == 'kept' else inodes for root, folder in folders.items()}, folders


def attributes(folder):
    """{inode: {name: value}} as Linux reads them, and all file data."""
    found, data = {}, {}
    for k in range(FILES):
        path = f'{folder}/file{k}'
        inode = os.stat(path).st_ino
        found[inode] = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        with open(path, 'rb') as f:
            data[inode] = f.read()
    return found, data


def manifest(path):
    """{tree: {inode: {name: value}}} from the model."""
    found = {}
    with open(path, 'rb') as f:
        while head := f.read(32):
            tree, inode, name_len, size = struct.unpack('<4Q', head)
            name = f.read(name_len).decode()
            found.setdefault(tree, {}).setdefault(inode, {})[name] = f.read(size)
    return found


def write_more(folder, rng):
    """Linux continues where we stopped."""
    for k in rng.sample(range(FILES), 20):
        path = f'{folder}/file{k}'
        for name in os.listxattr(path)[::3]:
            os.removexattr(path, name)
        for n in range(20):
            os.setxattr(path, f'user.more{n}', rng.randbytes(rng.randrange(500)))
        with open(path, 'r+b') as f:
            f.write(rng.randbytes(20000))


def check_mounted(img, folders, before, model):
    """Compare every xattr read by Linux with the model; data must be unchanged. Returns the number of xattrs."""
    compared = 0
    for root, folder in folders.items():
        found, data = attributes(f'{img.mnt}/{folder}')
        if data != before[root][1]:
            raise AssertionError(f'{folder}: data has changed')
        expected = before[root][0] if folder == 'kept' else model[root]
        for inode, names in found.items():
            if names != expected.get(inode, {}):
                raise AssertionError(f'{folder}: attributes of inode {inode} differ')
            compared += len(names)
    return compared


def run_scenario(scratch, name, items, seed):
    rng = random.Random(f'{seed} {name}')
    img = image.Image(os.path.join(scratch, f'{name}.img'), '8G')
    trees, folders = make(img, name, rng)
    check_clean(img.path)
    img.mount(readonly=True)
    before = {root: attributes(f'{img.mnt}/{folder}') for root, folder in folders.items()}
    img.umount()
    path = os.path.join(scratch, 'manifest')
    count = int(items * SCENARIOS[name][3])
    said = run(EDIT_MODEL, img.path, str(rng.randrange(1 << 32)), str(count), path,
               *(f'{root}:{",".join(map(str, inodes))}' for root, inodes in trees.items()))
    print(said.decode(), end='')
    check_clean(img.path)
    img.mount('nodiscard')
    compared = check_mounted(img, folders, before, manifest(path))
    for folder in folders.values():
        if folder != 'kept':
            write_more(f'{img.mnt}/{folder}', rng)
    if len(folders) > 1:
        ops.sync(img.mnt)
        ops.delete_subvolume(f'{img.mnt}/changed')
    ops.sync(img.mnt)
    img.umount()
    img.mount('nodiscard')
    img.umount()
    check_clean(img.path)
    img.remove()
    if not compared:
        raise AssertionError('nothing was compared')
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--items', type=int, default=100000)
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    seed = image.seed()
    print(f'seed {seed}')
    compared = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as scratch:
        for name in args.names or SCENARIOS:
            print(name, flush=True)
            compared += run_scenario(scratch, name, args.items, seed)
    print(f'{compared} attributes read by Linux, none different')
    return 0


if __name__ == '__main__':
    sys.exit(main())
