#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the contents of files as the library reads them with what Linux reads, byte for byte.

READ_FILES is the program that reads an image by the library. Exits with 77 where it cannot run.
"""
import filecmp
import os
import random
import stat
import subprocess
import sys
import tempfile

import contents
import image
import ops

READ_FILES = os.environ.get('READ_FILES', 'read-files')

# Options of mkfs and of the mount under which the files are written.
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
    """Each file of the mounted filesystem with the one that was written by its numbers; how many, and their bytes."""
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


def run(form, seed, scratch):
    mkfs, mount = form
    rng = random.Random(seed)
    im = image.Image(f'{scratch}/fs.img', '600M')
    im.mkfs(*mkfs)
    contents.fill(im.mount(mount), rng)
    im.umount()
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
    return files, size


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    totals = [0, 0]
    with tempfile.TemporaryDirectory(prefix='btrkit-read-') as scratch:
        for seed, form in enumerate(FORMS):
            totals = [a + b for a, b in zip(totals, run(form, seed, scratch))]
            image.cleanup()
    print(f'{len(FORMS)} filesystems, {totals[0]} files, {totals[1]} bytes compared')
    return 0


sys.exit(main())
