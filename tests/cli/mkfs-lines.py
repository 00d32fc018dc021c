#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Command lines with which other programs call mkfs.btrfs, run with ours in its place: the filesystem has the requested
label, UUID, size and contents. Needs no root."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import filling
from tool import BTRKIT, MKFS

M, G = 1 << 20, 1 << 30
UUID, DEVICE = 'abcdef01-2345-6789-abcd-ef0123456789', '11111111-2222-3333-4444-555555555555'
SHRUNK = 'shrunk'   # the minimal size
checks = 0

# The caller; the size of the image file, or None if it does not exist; the arguments, where ROOT is a directory and IMG
# the image; then what is expected: the size, and fields of dump-super.
LINES = [
    ('systemd-repart 252', 400 * M, f'-q -L root -U {UUID} IMG --nodiscard -r ROOT', 400 * M,
     {'label': 'root', 'fsid': UUID}),
    ('systemd-repart 257', 400 * M, f'-L root -U {UUID} --nodiscard -r ROOT -q IMG', 400 * M,
     {'label': 'root', 'fsid': UUID}),
    ('systemd-repart 258', G, f'-L root-x86-64 -U {UUID} --nodiscard -r ROOT -q --compress zstd:3 --sectorsize=4096 '
     'IMG --subvol default-ro:/usr --subvol /var --subvol ro:/home/user --inode-flags nodatacow:/var', G,
     {'label': 'root-x86-64', 'fsid': UUID}),
    ('systemd-repart 258', 300 * M, f'-L  -U {UUID} --nodiscard -q --sectorsize=4096 IMG', 300 * M,
     {'label': '', 'fsid': UUID}),
    # SYSTEMD_REPART_MKFS_OPTIONS_BTRFS, appended to everything else, as used by mkosi and by systemd-repart alone.
    ('mkosi', 400 * M, f'-L root -U {UUID} --nodiscard -r ROOT -q IMG --device-uuid={DEVICE}', 400 * M,
     {'fsid': UUID, 'dev_item.uuid': DEVICE}),
    ('mkosi', 400 * M, f'-L root -U {UUID} -r ROOT -q --compress lzo IMG --nodiscard --shrink', SHRUNK, {'fsid': UUID}),
    ('libblockdev, fs', 300 * M, f'IMG -L label -U {UUID} -K -f', 300 * M, {'label': 'label', 'fsid': UUID}),
    ('libblockdev, fs', 300 * M, 'IMG -f', 300 * M, {'label': ''}),
    ('libblockdev, btrfs', 300 * M, '--label label --data single --metadata dup IMG', 300 * M, {'label': 'label'}),
    ('libblockdev, btrfs', 300 * M, '--label label --data raid0 --metadata raid1 IMG IMG2', 300 * M,
     {'label': 'label', 'num_devices': '2', 'total_bytes': str(600 * M)}),
    ('osbuild', 300 * M, f'-U {UUID} -L root IMG', 300 * M, {'label': 'root', 'fsid': UUID}),
    ('osbuild', 300 * M, f'-U {UUID} -L root --metadata single IMG', 300 * M, {'label': 'root', 'fsid': UUID}),
    ('nixpkgs make-btrfs-fs', 0, f'-L NIXOS_SD -U {UUID} -r ROOT --shrink IMG', SHRUNK,
     {'label': 'NIXOS_SD', 'fsid': UUID}),
    ('nixpkgs make-btrfs-fs', None, f'-L NIXOS_SD -U {UUID} -r ROOT --shrink IMG', SHRUNK, {'label': 'NIXOS_SD'}),
    ('mobile-nixos', 300 * M, f'-r . -L system -U {UUID} --shrink IMG', SHRUNK, {'label': 'system', 'fsid': UUID}),
    ('openembedded image', 200 * M, '-n 4096 --shrink -r ROOT IMG', SHRUNK, {'nodesize': '4096'}),
    ('openembedded image', 16384 * 1024, '-r ROOT IMG', None, {}),
    ('openembedded wic', 250 * M, f'-b {250 * M} -r ROOT -L platform IMG', 250 * M, {'label': 'platform'}),
    ('openembedded wic', 250 * M, f'-b {250 * M} -L platform IMG', 250 * M, {'label': 'platform'}),
    ('buildroot', 300 * M, '-f -r ROOT -L rootfs --byte-count 300m --nodesize 16384 --sectorsize 4096 '
     '--features ^no-holes IMG', 300 * M, {'label': 'rootfs', 'nodesize': '16384'}),
    ('genimage', 256 * M, '-L data -r ROOT IMG', 256 * M, {'label': 'data'}),
    ('an image in a script', 300 * M, '--rootdir ROOT --label SD --uuid ' + UUID +
     ' --checksum xxhash --data single --metadata dup IMG', 300 * M, {'label': 'SD', 'csum_type': '1 (xxhash64)'}),
    ('an image in a script', None, '--mixed -m single -d single --shrink --rootdir ROOT IMG', SHRUNK, {}),
    # Without --shrink a file is never made smaller, and it is enlarged if it is too small.
    ('by hand', 300 * M, '-b 200m -r ROOT IMG', 300 * M, {'total_bytes': str(200 * M)}),
    ('by hand', 300 * M + 1234, '-r ROOT IMG', 300 * M + 1234, {'total_bytes': str(300 * M)}),
    ('by hand', 5000, '-r ROOT IMG', None, {}),
    ('by hand', 1000, '-b 300m -r ROOT IMG', 300 * M, {'total_bytes': str(300 * M)}),
    ('by hand', None, '-b 300m -r ROOT IMG', 300 * M, {'total_bytes': str(300 * M)}),
    ('by hand', 300 * M, '-b 200m --shrink -r ROOT IMG', SHRUNK, {}),
    ('by hand', 300 * M, '-q --compress no IMG', 300 * M, {}),
    ('by hand', 300 * M, '--compress zstd:0 -r ROOT IMG', 300 * M, {}),
]


def check(condition, what):
    global checks
    checks += 1
    assert condition, what


def made(program, scratch, size, row, name):
    """Run a command line twice. @return the images"""
    images = [f'{scratch}/{name}{number}.img' for number in ('', 2)]
    for image in images:
        if os.path.exists(image):
            os.unlink(image)
        if size is not None:
            with open(image, 'wb') as f:
                f.truncate(size)
    words = {'ROOT': f'{scratch}/root', 'IMG': images[0], 'IMG2': images[1]}
    done = subprocess.run([program, *(words.get(word, word) for word in row.split(' '))], cwd=f'{scratch}/root',
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    check(not done.returncode, f'{row}: exit {done.returncode}: {done.stderr}')
    check(not done.stdout or not re.search(r'(^| )-q( |$)', row), f'{row}: -q, and yet {done.stdout!r}')
    return images


def check_row(scratch, who, row, size, fields, images, content):
    has, what = os.path.getsize(images[0]), f'{who}: {row}'
    total = int(filling.superblock(images[0], 'total_bytes'))
    if size == SHRUNK:
        check(has == total < 40 * M, f'{what}: {has} bytes in the file, {total} in the filesystem')
    elif size:
        check(has == size, f'{what}: {has} bytes, not {size}')
        check('total_bytes' in fields or total == size, f'{what}: the filesystem has {total} bytes')
    else:
        check(has == total, f'{what}: {has} bytes in the file, {total} in the filesystem')
    for field, wanted in fields.items():
        found = filling.superblock(images[0], field)
        check(found == wanted, f'{what}: {field} {found!r}, not {wanted!r}')
    if 'IMG2' in row:
        return
    check(filling.checked(images[0]), f'{what}: btrfs check')
    found = filling.restored(images[0], scratch)
    wanted = content if re.search(r'(^| )(-r|--rootdir) ', row) else {}
    differs = set(map(repr, found.items())) ^ set(map(repr, wanted.items()))
    check(not differs, f'{what}: differs: {sorted(differs)}'[:2000])
    if '--subvol' in row:
        found = filling.subvolumes(images[0])
        check(found == {'usr': (True, True), 'var': (False, False), 'user': (True, False)}, f'{what}: {found}')
        check('NODATACOW' in filling.tree(images[0], '257') + filling.tree(images[0], '258'), f'{what}: no flag')


def beside_peer(scratch):
    """The sizes of image files equal those that mkfs.btrfs makes, wherever it defines them."""
    if not shutil.which(MKFS):
        print('no mkfs.btrfs to compare sizes with')
        return
    version = subprocess.run([MKFS, '--version'], capture_output=True, text=True, check=False).stdout
    if [int(number) for number in re.findall(r'\d+', version)[:2]] < [6, 19]:
        print('no mkfs.btrfs 6.19 to compare sizes with')
        return
    for who, size, row, wanted, _ in LINES:
        if wanted and wanted != SHRUNK:
            image = made(MKFS, scratch, size, row, 'peer')[0]
            check(os.path.getsize(image) == wanted, f'{who}: {row}: mkfs.btrfs makes {os.path.getsize(image)} bytes')


def main():
    filling.need_btrfs()
    os.environ.pop('SOURCE_DATE_EPOCH', None)
    with tempfile.TemporaryDirectory() as scratch:
        program = f'{scratch}/mkfs.btrfs'
        os.symlink(os.path.realpath(BTRKIT), program)
        os.mkdir(f'{scratch}/root')
        filling.make_tree(f'{scratch}/root')
        content = filling.listing(f'{scratch}/root')
        for who, size, row, wanted, fields in LINES:
            images = made(program, scratch, size, row, 'ours')
            check_row(scratch, who, row, wanted, fields, images, content)
        beside_peer(scratch)
    print(f'{len(LINES)} command lines, {checks} checks')


if __name__ == '__main__':
    sys.exit(main())
