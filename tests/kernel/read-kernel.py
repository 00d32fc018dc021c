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

import image
import ops

READ_FILES = os.environ.get('READ_FILES', 'read-files')
K, M = 1 << 10, 1 << 20

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


def content(rng, size):
    """Some of it can be compressed."""
    parts = []
    while sum(map(len, parts)) < size:
        length = rng.choice((1, 100, 5 * K, 100 * K, 300 * K))
        parts.append(rng.choice((rng.randbytes(length), bytes(length), b'btrfs on disk ' * (length // 14 + 1))))
    return b''.join(parts)[:size]


def fill(mnt, rng):
    """Files of sizes around every limit; then holes, clones, prealloc, truncation, overwriting."""
    sizes = [0, 1, 2047, 2048, 4095, 4096, 4097, 8 * K + 1, 128 * K - 1, 128 * K, 128 * K + 1, 3 * M + 17]
    paths = []
    for k in range(60):
        path = f'{mnt}/file{k}'
        with open(path, 'wb') as f:
            f.write(content(rng, sizes[k] if k < len(sizes) else rng.randrange(1, 2 * M)))
        if k % 13 == 12:
            os.unlink(path)
            with open(path, 'wb'):
                pass
            ops.nocow(path)
            ops.write(path, 0, content(rng, M))
        paths.append(path)
    os.symlink('t' * 3000, f'{mnt}/link')
    ops.sync(mnt)
    for k in range(300):
        path, size = (p := rng.choice(paths)), os.path.getsize(p)
        at, length = rng.randrange(size + 1), rng.randrange(1, 300 * K)
        what = rng.randrange(6)
        if what == 0:
            ops.write(path, at + rng.choice((0, 0, M)), content(rng, length))
        elif what == 1:
            ops.punch(path, at, length)
        elif what == 2:
            ops.fallocate(path, at, length, rng.choice((0, 1)))
        elif what == 3:
            os.truncate(path, at)
        elif what == 4 and size > 4 * K:
            at -= at % (4 * K)
            try:
                ops.clone(path, at, 0, rng.choice(paths), rng.randrange(50) * 4 * K)
            except OSError:
                pass        # nodatasum and others do not mix, nor does a file with itself where it overlaps
        elif what == 5:
            ops.fsync(path)
        if k == 150:
            ops.snapshot(mnt, f'{mnt}/snap')
    ops.sync(mnt)


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
    fill(im.mount(mount), rng)
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
