# SPDX-License-Identifier: LGPL-2.1-or-later
"""The filesystems that are measured."""
import os

import image
import ops
import pairs


def snapshot_extents(part):
    """A 40 GiB file in 327,680 extents, three of 20 GiB, and a snapshot. 3.6 GB of disk, some minutes."""
    image.run('truncate', '-s', '130G', part.path)
    part.mkfs()
    part.mount('compress=lzo,nodiscard')
    for name, gib, byte in (('foobar', 40, 0xAB), ('file1', 20, 0xCD), ('file2', 20, 0xEF), ('file3', 20, 0x73)):
        piece = bytes([byte]) * (1 << 20)
        with ops.Opened(f'{part.mnt}/{name}') as fd:
            for i in range(gib << 10):
                os.pwrite(fd, piece, i << 20)
    ops.snapshot(part.mnt, f'{part.mnt}/snap1', readonly=True)


def hole_extents(part):
    """Files of 32,768, 65,536 and 131,072 extents between holes. 1 GB of disk."""
    image.run('truncate', '-s', '8G', part.path)
    part.mkfs()
    part.mount('nodiscard')
    for bits in (28, 29, 30):
        with ops.Opened(f'{part.mnt}/f{bits}') as fd:
            for offset in range(0, 1 << bits, 8192):
                os.pwrite(fd, b'a', offset)
            os.ftruncate(fd, 1 << bits)


def fiemap(work, path, name, extents, goal):
    """One file, beside the ioctl on the mounted image: its time alone, and that of the whole process."""
    ioctl = pairs.compiled('fiemap-ioctl')
    mounted = image.Image(path, None)
    mounted.mount(readonly=True)
    try:
        answer = image.run(ioctl, f'{mounted.mnt}/{name}', str(extents)).decode().split()
        rows = image.run(pairs.BTRKIT, 'fiemap', '--format', 'tsv', path, name).splitlines()
        shared = sum(int(row.split(b'\t')[5], 16) >> 13 & 1 for row in rows)
        if (len(rows), shared) != (int(answer[0]), int(answer[2])) or len(rows) != extents:
            raise RuntimeError(f'{answer[0]} extents of Linux, {answer[2]} shared; {len(rows)}, {shared} of btrkit')
        pairs.compare(f'{work}, {extents} extents, {answer[2]} shared',
                      pairs.process(pairs.BTRKIT, 'fiemap', '--format', 'tsv', path, name),
                      {'ioctl alone': pairs.reported(ioctl, f'{mounted.mnt}/{name}', str(extents)),
                       'ioctl, process': pairs.process(ioctl, f'{mounted.mnt}/{name}', str(extents))}, goal)
    finally:
        mounted.umount()
