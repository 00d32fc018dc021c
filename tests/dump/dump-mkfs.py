#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree and dump-super compared with btrfs-progs on filesystems that mkfs.btrfs makes. Needs no root."""
import os
import random
import struct
import sys
import tempfile

import compare
from compare import BTRFS, BTRFSTUNE, BTRKIT, MKFS, Comparison, Difference, must, run, thinned

from tool import SUPER_OFFSETS, SUPER_SIZE, crc32c

LABEL = 'odd\tlab\udce4el \x01 \u20ac'
# Name, mkfs.btrfs options, btrfstune options.
FILESYSTEMS = [
    ('default', [], []),
    ('nodesize-4k', ['-n', '4096', '-s', '4096'], []),
    ('nodesize-64k', ['-n', '65536'], []),
    ('mixed', ['-M', '-n', '4096', '-s', '4096'], []),
    ('old', ['-n', '4096', '-s', '4096', '-O', '^extref,^skinny-metadata,^no-holes', '-R', '^free-space-tree'], []),
    ('block-group-tree', ['-O', 'block-group-tree'], []),
    ('quota', ['-O', 'quota'], []),
    ('squota', ['-O', 'squota'], []),
    ('label', ['-L', LABEL], []),
    ('uuids', ['-U', 'abcdef01-2345-6789-abcd-ef0123456789'], []),
    ('metadata-uuid', [], ['-m']),
    ('seeding', [], ['-S', '1']),
    ('single', ['-m', 'single', '-d', 'single'], []),
    ('compressed', ['--compress', 'zstd'], []),
]
OTHER_CHECKSUMS = ['xxhash', 'sha256', 'blake2']


def make_files(folder):
    rng = random.Random(1)
    for i in range(3):
        os.makedirs(f'{folder}/d{i}/deep')
        for j in range(150):
            with open(f'{folder}/d{i}/file-{j}', 'wb') as f:
                f.write(rng.randbytes(rng.choice((0, 10, 3000, 5000, 200000 if j % 30 == 0 else 1))))
    os.symlink('../d1/file-1', f'{folder}/d0/link')
    os.link(f'{folder}/d0/file-1', f'{folder}/d1/hard\tlink \\ \x7f')
    with open(os.fsencode(folder) + b'/na\xefve \n\x01\xff', 'wb') as f:
        f.write(b'text ' * 100000)
    try:
        os.setxattr(f'{folder}/d0/file-2', 'user.odd', bytes(range(256)))
    except OSError:
        print('no extended attributes here')


def make(path, folder, options):
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    return run(MKFS, '-q', '-f', '-r', folder, *options, path)


def whole_filesystems(c, scratch, folder):
    image = f'{scratch}/fs.img'
    for name, options, tune in FILESYSTEMS:
        made = make(image, folder, options)
        if made.returncode:
            print(f'{name}: not made by this mkfs.btrfs: {made.stderr.decode(errors="replace").splitlines()[:1]}')
            continue
        if tune:
            must(BTRFSTUNE, '-f', *tune, image)
        try:
            c.trees(image)
            c.supers(image)
        except Difference as e:
            raise Difference(f'{name}: {e}') from e


def several_devices(c, scratch):
    images = [f'{scratch}/{i}.img' for i in range(3)]
    for image in images:
        with open(image, 'wb') as f:
            f.truncate(200 << 20)
    must(MKFS, '-q', '-f', '-m', 'single', '-d', 'single', *images)
    c.trees(*images)
    c.supers(*images)
    # Devices in another order, starting with another one.
    c.tree([], images[2], images[0], images[1])


def other_checksums(c, scratch, folder):
    """The same as with crc32c. A build without the library for a checksum must show superblocks and refuse the
    filesystem by the checksum's name."""
    image = f'{scratch}/fs.img'
    for name in OTHER_CHECKSUMS:
        if make(image, folder, ['--csum', name]).returncode:
            raise RuntimeError(f'mkfs.btrfs --csum {name} fails')
        theirs = must(BTRFS, 'inspect-internal', 'dump-super', '-f', image)
        ours = must(BTRKIT, 'dump-super', '-f', image)
        if b' [NOT CHECKED]\n' not in ours:
            c.supers(image)
            c.trees(image)
            continue
        theirs = theirs.replace(b' [match]\n', b' [NOT CHECKED]\n', 1)
        c.same(theirs, ours, f'dump-super, {name}')
        refused = run(BTRKIT, 'dump-tree', image)
        if refused.returncode != 1 or name.encode() not in refused.stderr:
            raise Difference(f'dump-tree of {name}: exit {refused.returncode}: {refused.stderr}')


def damaged_superblocks(c, scratch, folder):
    """Random damage, with and without a valid checksum: both programs must show the same."""
    image = f'{scratch}/fs.img'
    make(image, folder, [])
    rng = random.Random(2)
    # Checksum type, features and flags have tests of their own; older versions of the peer know fewer chunk types.
    spared = [range(56, 64), range(180, 198)] + [range(811, 2859)] * (compare.progs_version() < (6, 19))
    with open(image, 'r+b') as f:
        f.seek(SUPER_OFFSETS[0])
        good = f.read(SUPER_SIZE)
        for number in thinned(range(200), 3):
            data = bytearray(good)
            for _ in range(rng.choice((1, 3, 30, 300))):
                at = rng.randrange(len(data))
                if not any(at in part for part in spared):
                    data[at] = rng.randrange(256)
            if number % 2:
                struct.pack_into('<I', data, 0, crc32c(data[32:]))
            f.seek(SUPER_OFFSETS[0])
            f.write(data)
            f.flush()
            c.super(['-f', '-F'], image)
            c.super(['-F', '-a'], image)
    print('damaged superblocks are shown alike')


def main():
    compare.need_peer()
    compare.self_test()
    c = Comparison()
    with tempfile.TemporaryDirectory() as scratch:
        folder = f'{scratch}/files'
        make_files(folder)
        whole_filesystems(c, scratch, folder)
        several_devices(c, scratch)
        other_checksums(c, scratch, folder)
        damaged_superblocks(c, scratch, folder)
    return c.finish()


if __name__ == '__main__':
    sys.exit(main())
