# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fill a mounted filesystem with files of every form."""
import os

import ops

K, M = 1 << 10, 1 << 20


def content(rng, size):
    """Some of it is compressible."""
    parts = []
    while sum(map(len, parts)) < size:
        length = rng.choice((1, 100, 5 * K, 100 * K, 300 * K))
        parts.append(rng.choice((rng.randbytes(length), bytes(length), b'btrfs on disk ' * (length // 14 + 1))))
    return b''.join(parts)[:size]


def fill(mnt, rng, files=60, steps=300, limit=2 * M):
    """Files with sizes around every limit; then holes, clones, preallocation, truncation, overwriting."""
    sizes = [0, 1, 2047, 2048, 4095, 4096, 4097, 8 * K + 1, 128 * K - 1, 128 * K, 128 * K + 1, 3 * M + 17]
    paths = []
    for k in range(files):
        path = f'{mnt}/file{k}'
        with open(path, 'wb') as f:
            f.write(content(rng, sizes[k] if k < len(sizes) else rng.randrange(1, limit)))
        if k % 13 == 12:
            os.unlink(path)
            with open(path, 'wb'):
                pass
            ops.nocow(path)
            ops.write(path, 0, content(rng, M))
        paths.append(path)
    os.symlink('t' * 3000, f'{mnt}/link')
    ops.sync(mnt)
    for k in range(steps):
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
                pass        # cloning fails between nodatasum files and others, and within a file if the ranges overlap
        elif what == 5:
            ops.fsync(path)
        if k == steps // 2:
            ops.snapshot(mnt, f'{mnt}/snap')
    ops.sync(mnt)
