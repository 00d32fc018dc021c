#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Read every file of filesystems on four devices by the library, verifying all checksums, compared with cat on Linux.
The device files are in the page cache for both; Linux uses loop devices without direct I/O. Linux mounts anew before
each run, otherwise it would verify nothing; only the process is timed: for the library that includes opening the
devices, for Linux it excludes the mount."""
import os
import random
import sys
import time

import pairs
from pairs import image

import volumes      # noqa: E402, found by pairs

K, M = 1 << 10, 1 << 20
# Name, mkfs options, options of the mount under which files are written
KINDS = (('raid1', ('-d', 'raid1', '-m', 'raid1'), ''), ('raid0', ('-d', 'raid0', '-m', 'raid1'), ''),
         ('raid1 sha256', ('-d', 'raid1', '-m', 'raid1', '--csum', 'sha256'), ''),
         ('raid1 zstd', ('-d', 'raid1', '-m', 'raid1'), 'compress=zstd'))
# Name, number of files, maximal size
LOADS = (('large files', 24, 64 * M), ('small files', 20000, 40 * K))


def fill(mnt, files, size, text):
    """Text is compressible."""
    rng = random.Random(0)
    words = [rng.randbytes(9).hex() for _ in range(5000)]
    for k in range(files):
        folder = f'{mnt}/{k % 100}'
        os.makedirs(folder, exist_ok=True)
        with open(f'{folder}/{k}', 'wb') as f:
            length = size if size >= M else rng.randrange(1, size)
            f.write(' '.join(rng.choices(words, k=length // 18)).encode() if text else rng.randbytes(length))


def made(name, options, mount, files, size):
    """A volume whose files are kept."""
    folder = os.path.join(pairs.FOLDER, name.replace(' ', '-'))
    if not os.path.exists(folder):
        print(f'making {folder}', file=sys.stderr)
        os.makedirs(folder + '.part', exist_ok=True)
        volume = volumes.Volume(folder + '.part', 4, '1500M')
        volume.mkfs(*options)
        try:
            fill(volume.mount(mount), files, size, bool(mount))
        finally:
            volume.umount()
        os.rename(folder + '.part', folder)
    volume = volumes.Volume(folder, 4, None)
    for path in volume.paths:
        with open(path, 'rb') as f:
            while f.read(M):
                pass
    return volume


def linux(volume):
    """A way: cat after a new mount."""
    def run():
        mnt = volume.mount(readonly=True)
        try:
            start = time.perf_counter()
            image.run('sh', '-c', 'find "$1" -type f -print0 | xargs -0 cat >/dev/null', 'sh', mnt)
            return (time.perf_counter() - start) * 1e3
        finally:
            volume.umount()
    return run


def main():
    pairs.skip_unless_possible()
    for kind, options, mount in KINDS:
        for load, files, size in LOADS:
            volume = made(f'read {kind} {load}', options, mount, files, size)
            ours = pairs.process(pairs.program('bench-read-all'), *volume.paths)
            said = image.run(pairs.program('bench-read-all'), *volume.paths).decode().strip()
            pairs.compare(f'read {kind}, {said}', ours, {'cat': linux(volume)}, *([] if ' ' in kind else [1.0]))


if __name__ == '__main__':
    main()
