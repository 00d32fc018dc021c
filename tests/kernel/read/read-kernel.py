#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare file contents read by the library with those read by Linux, byte for byte.

READ_FILES is the program that reads an image by the library. Exits with 77 if it cannot run.
"""
import filecmp
import os
import random
import re
import stat
import subprocess
import sys
import tempfile

import contents
import image
import ops

READ_FILES = os.environ.get('READ_FILES', 'read-files')

# mkfs options, and options of the mount under which the files are written.
FORMS = [
    ((), ''),
    (('-O', '^no-holes'), 'compress=zlib'),
    (('-n', '4k'), 'compress=lzo'),
    (('-n', '64k'), 'compress-force=zstd:9'),
    (('--csum', 'xxhash'), 'compress=zstd'),
    (('--csum', 'sha256'), ''),
    (('--csum', 'blake2b'), 'compress-force=lzo'),
    (('-M',), 'max_inline=0'),
    (('-m', 'dup', '-d', 'dup'), 'nodatasum'),
]


def compare(mnt, out):
    """Compare each file of the mounted filesystem with the one written under its numbers; returns number of files and
    bytes."""
    files = size = 0
    for folder, _, names in os.walk(mnt):
        root = ops.root_id(folder)
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            ours = f'{out}/{root}-{status.st_ino}'
            if stat.S_ISLNK(status.st_mode):
                with open(ours, encoding='ascii') as f:
                    assert f.read() == os.readlink(path), path
            else:
                assert filecmp.cmp(path, ours, shallow=False), f'{path}: another content'
            files, size = files + 1, size + status.st_size
    return files, size


# Forms that must occur at least once: "part" is an extent that the file refers to partly, "end inside" one that extends
# past its end.
FORMS_OF_EXTENTS = {'hole', 'no hole', 'prealloc', *(f'{what} {how}' for how in ('none', 'zlib', 'lzo', 'zstd')
                                                     for what in ('inline', 'whole', 'part', 'end inside'))}


def forms_of_extents(path, tree, no_holes):
    """The forms of extents in a tree, from the output of btrfs."""
    found, size, at = set(), 0, 0
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', str(tree), path).decode(errors='replace')
    for item in re.split(r'\n\titem ', text)[1:]:
        if m := re.match(r'\d+ key \(\d+ INODE_ITEM 0\).*\n.*generation \d+ transid \d+ size (\d+)', item):
            size, at = int(m[1]), 0
        m = re.match(r'\d+ key \(\d+ EXTENT_DATA (\d+)\)', item)
        if not m:
            continue
        offset = int(m[1])
        if offset > at and no_holes:
            found.add('no hole')
        if 'type 2 (prealloc)' in item:
            at = offset + int(re.search(r'data offset \d+ nr (\d+)', item)[1])
            found.add('prealloc')
            continue
        how = re.search(r'compression \d+ \((\w+)\)', item)[1]
        if 'inline extent data' in item:
            found.add(f'inline {how}')
            continue
        skip, n, ram = map(int, re.search(r'extent data offset (\d+) nr (\d+) ram (\d+)', item).groups())
        at = offset + n
        if 'disk byte 0 nr 0' in item:
            found.add('hole')
            continue
        found.add(f'{"part" if skip or n < ram else "whole"} {how}')
        if offset < size < at:
            found.add(f'end inside {how}')
    return found


def run(form, seed, scratch):
    mkfs, mount = form
    rng = random.Random(seed)
    im = image.Image(f'{scratch}/fs.img', '600M')
    im.mkfs(*mkfs)
    contents.fill(im.mount(mount), rng)
    im.umount()
    forms = forms_of_extents(im.path, 5, '^no-holes' not in mkfs)
    out = f'{scratch}/out'
    os.mkdir(out)
    done = subprocess.run([READ_FILES, out, im.path], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f'{form}: read-files failed')
    files, size = compare(im.mount(readonly=True), out)
    im.remove()
    image.run('rm', '-r', out)
    if not files:
        raise RuntimeError('nothing was compared')
    return files, size, forms


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    totals, met = [0, 0], set()
    with tempfile.TemporaryDirectory(prefix='btrkit-read-') as scratch:
        for seed, form in enumerate(FORMS):
            *counts, forms = run(form, seed, scratch)
            totals = [a + b for a, b in zip(totals, counts)]
            met |= forms
            image.cleanup()
    if met != FORMS_OF_EXTENTS:
        raise RuntimeError(f'forms of extents: {met ^ FORMS_OF_EXTENTS}')
    print(f'{len(met)} forms of extents, {len(FORMS)} filesystems, {totals[0]} files, {totals[1]} bytes compared')
    return 0


sys.exit(main())
