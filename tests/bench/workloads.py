# SPDX-License-Identifier: LGPL-2.1-or-later
"""The filesystems for benchmarks."""
import itertools
import os
import random
import subprocess

import image
import ops
import pairs
import volumes

WITHOUT_V2 = ('-O', '^free-space-tree,^block-group-tree')
GIB = 1 << 30


def snapshot_extents(part, gib=40):
    """A 40 GiB file in 327,680 extents, three of 20 GiB, and a snapshot. Needs 3.6 GB of disk and some minutes."""
    image.run('truncate', '-s', f'{gib * 3 + 10}G', part.path)
    part.mkfs()
    part.mount('compress=lzo,nodiscard')
    for name, size, byte in (('foobar', gib, 0xAB), ('file1', gib // 2, 0xCD), ('file2', gib // 2, 0xEF),
                             ('file3', gib // 2, 0x73)):
        piece = bytes([byte]) * (1 << 20)
        with ops.Opened(f'{part.mnt}/{name}') as fd:
            for i in range(size << 10):
                os.pwrite(fd, piece, i << 20)
    ops.snapshot(part.mnt, f'{part.mnt}/snap1', readonly=True)


def blocks_and_data(part):
    """1.5 GB of data and many small files on 3 GiB, for scanning a device."""
    image.run('truncate', '-s', '3G', part.path)
    part.mkfs('-m', 'single')
    part.mount('nodiscard')
    ops.write(f'{part.mnt}/data', 0, ops.incompressible(500 << 20) * 3)
    for i in range(60000):
        ops.write(f'{part.mnt}/{i}', 0, b'small' * 300)


def hole_extents(part):
    """Files of 32,768, 65,536 and 131,072 extents separated by holes. 1 GB of disk."""
    image.run('truncate', '-s', '8G', part.path)
    part.mkfs()
    part.mount('nodiscard')
    for bits in (28, 29, 30):
        with ops.Opened(f'{part.mnt}/f{bits}') as fd:
            for offset in range(0, 1 << bits, 8192):
                os.pwrite(fd, b'a', offset)
            os.ftruncate(fd, 1 << bits)


def scattered_extents(part, extents=65536):
    """A file whose extents are nowhere adjacent, neither on disk nor in the extent tree. 1 GB of disk."""
    image.run('truncate', '-s', '8G', part.path)
    part.mkfs()
    part.mount('nodiscard')
    order = list(range(extents))
    random.Random(1).shuffle(order)
    with ops.Opened(f'{part.mnt}/source') as source, ops.Opened(f'{part.mnt}/scattered') as file:
        ops.fallocate_each(source, ((k << 13, 1 << 12) for k in range(extents)))
        os.ftruncate(source, extents << 13)
        ops.clone_each(source, file, ((k << 13, 1 << 12, i << 13) for i, k in enumerate(order)))
    os.unlink(f'{part.mnt}/source')
    ops.sync(part.mnt)


def dig(path):
    """Replace zeros in an image by holes: a v1 cache is mostly zeros, and copies are cheap without them."""
    image.run('fallocate', '--dig-holes', path)


def fill_huge(part, terabytes, cache, full):
    """120,000 free pieces of 64 KiB between 120,000 used ones, and files of 1,000 GiB until little space is left. A v1
    cache writes 256 KiB for each GiB, which dig() reclaims."""
    part.mkfs(*WITHOUT_V2)
    part.mount(f'{cache},nodiscard')
    with ops.Opened(f'{part.mnt}/pieces') as fd:
        ops.fallocate_each(fd, ((k << 16, 1 << 16) for k in range(240000)))
        os.fsync(fd)
        ops.fallocate_each(fd, ((k << 16, 1 << 16) for k in range(0, 240000, 2)), ops.PUNCH_HOLE | ops.KEEP_SIZE)
        os.fsync(fd)
    ops.sync(part.mnt)
    for i in range((terabytes << 10) // 1000 - 1 if full else 0):
        ops.fallocate(f'{part.mnt}/big{i}', 0, 1000 * GIB)
    part.umount()


def huge(part, terabytes=15, cache='space_cache=v1', full=True):
    image.run('truncate', '-s', f'{terabytes}T', part.path)
    fill_huge(part, terabytes, cache, full)
    dig(part.path)


def fifty(part):
    """50 TB of the same. Linux needs ten minutes for the 50,000 block groups."""
    huge(part, 50, 'nospace_cache')


def fifty_empty(part):
    huge(part, 50, 'nospace_cache', full=False)


def fifty_on_two(folder):
    """The same on two devices, with a copy of the metadata on each."""
    part = volumes.Volume(folder, 2, '25T')
    try:
        fill_huge(part, 50, 'nospace_cache', full=True)
        for path in part.paths:
            dig(path)
    finally:
        part.umount()


def to_v2(source, part):
    """A copy with a free space tree made by Linux."""
    image.run('cp', '--sparse=always', '--reflink=never', source, part.path)
    part.mount('clear_cache,space_cache=v2,nodiscard')


def extents(part, wanted=3000000):
    """100 GB with 3 million extents of 12 to 44 KiB. In one third of the space every fourth was removed, in another
    third every 64th, and the last third is full; so there are block groups with bitmaps, with extents, and full ones.
    v1 cache."""
    image.run('truncate', '-s', '100GB', part.path)
    part.mkfs(*WITHOUT_V2, '-m', 'single')
    part.mount('space_cache=v1,nodiscard')
    sizes = itertools.cycle(n << 12 for n in (3, 11, 7, 9, 5))
    lengths = {'stay': 0, 'go': 0}
    kept = count = 0
    with ops.Opened(f'{part.mnt}/stay') as stay, ops.Opened(f'{part.mnt}/go') as go:
        while kept < wanted:
            step = (4, 64, 0)[3 * kept // wanted]
            name, fd = ('go', go) if step and count % step == 0 else ('stay', stay)
            size = next(sizes)
            ops.fallocate_each(fd, ((lengths[name], size),))
            lengths[name] += size
            kept += name == 'stay'
            count += 1
    ops.sync(part.mnt)
    os.unlink(f'{part.mnt}/go')
    part.umount()
    part.mount('space_cache=v1,nodiscard')
    part.umount()
    dig(part.path)


def many_snapshots(part, snapshots=30):
    """/usr/share of this machine, and snapshots between which files are changed and removed. 2 GB of disk."""
    image.run('truncate', '-s', '20G', part.path)
    part.mkfs()
    part.mount('nodiscard')
    ops.subvolume(f'{part.mnt}/cur')
    image.run('cp', '-a', '/usr/share', f'{part.mnt}/cur')
    for number in range(snapshots):
        ops.snapshot(f'{part.mnt}/cur', f'{part.mnt}/snap{number}', readonly=True)
        rng = random.Random(number)
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(f'{part.mnt}/cur') for name in names)
        files = [path for path in files if not os.path.islink(path)]
        for path in rng.sample(files, 400):
            ops.write(path, rng.randrange(max(1, os.path.getsize(path))), rng.randbytes(rng.randrange(1, 20000)))
        for path in rng.sample(files, 60):
            os.unlink(path)
        ops.sync(part.mnt)


def many_extents(part, extents, each=100000, shuffled=False):
    """The given number of 4 KiB extents, in files of 100,000, and four snapshots that share their leaves. Shuffled:
    each extent is cloned once more into a random one of 900 files, so that neighbours in their leaves are scattered on
    disk."""
    image.run('truncate', '-s', '300G', part.path)
    part.mkfs('-m', 'single')
    part.mount('nodiscard,noatime,commit=300')
    ops.subvolume(f'{part.mnt}/files')
    for first in range(0, extents, each):
        with ops.Opened(f'{part.mnt}/files/{first}') as fd:
            ops.fallocate_each(fd, ((k << 12, 1 << 12) for k in range(min(each, extents - first))))
    if shuffled:
        image.run(pairs.compiled('shuffled-clones'), f'{part.mnt}/files', str(extents), str(each), '900')
    for number in range(4):
        ops.snapshot(f'{part.mnt}/files', f'{part.mnt}/snap{number}')
        ops.write(f'{part.mnt}/files/more{number}', 0, b'more')
    ops.sync(part.mnt)
    # Drop temporary blocks, which were written to the image too.
    image.run('fstrim', part.mnt)


def changing_snapshots(part, snapshots, files=200000, changes=200):
    """A subvolume of 200,000 files, and many snapshots, between which 200 files are appended to; every eighth snapshot
    is itself changed."""
    image.run('truncate', '-s', '40G', part.path)
    part.mkfs('-m', 'single')
    part.mount('nodiscard,noatime,commit=300')
    ops.subvolume(f'{part.mnt}/cur')
    rng = random.Random(1)

    def change(subvolume, number):
        for i in rng.sample(range(files), number):
            with ops.Opened(f'{subvolume}/{i // 1000}/{i}', os.O_WRONLY) as fd:
                os.pwrite(fd, b'c' * 4096, os.lseek(fd, 0, os.SEEK_END))

    for i in range(files):
        if i % 1000 == 0:
            os.mkdir(f'{part.mnt}/cur/{i // 1000}')
        ops.fallocate(f'{part.mnt}/cur/{i // 1000}/{i}', 0, 4096)
    for number in range(snapshots):
        ops.snapshot(f'{part.mnt}/cur', f'{part.mnt}/snap{number}')
        change(f'{part.mnt}/cur', changes)
        if number % 8 == 4:
            change(f'{part.mnt}/snap{number}', changes // 10)
    ops.sync(part.mnt)
    image.run('fstrim', part.mnt)


def empty_files(n, folders=16):
    """Return a directory with that many empty files, named as fs_mark does."""
    path = os.path.join(pairs.FOLDER, f'empty-{n}')
    if not os.path.exists(path):
        for folder in range(folders):
            os.makedirs(f'{path}.part/d{folder}')
            for i in range(n // folders):
                os.close(os.open(f'{path}.part/d{folder}/{i:016x}~~~~~~~~', os.O_CREAT | os.O_WRONLY, 0o644))
        os.rename(f'{path}.part', path)
    return path


def looked_at(path, name):
    """The statistics of a listing on one line."""
    said = subprocess.run([pairs.BTRKIT, 'fiemap', '--stats', path, name], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=True).stderr.decode()
    return ', '.join(line.replace('\t', ' ') for line in said.splitlines() if not line.endswith('\t0'))


def fiemap(work, path, name, extents, goal):
    """List one file with at least that many extents (early writeback makes some more), compared with the ioctl on the
    mounted image: the time of the ioctl alone, and of the whole process. Then with cold caches."""
    ioctl = pairs.compiled('fiemap-ioctl')
    mounted = image.Image(path, None)
    mounted.mount(readonly=True)
    try:
        wanted, extents = extents, int(image.run(ioctl, f'{mounted.mnt}/{name}', '0').split()[0])
        answer = image.run(ioctl, f'{mounted.mnt}/{name}', str(extents)).decode().split()
        rows = image.run(pairs.BTRKIT, 'fiemap', '--format', 'tsv', path, name).splitlines()
        shared = sum(int(row.split(b'\t')[5], 16) >> 13 & 1 for row in rows)
        if (len(rows), shared) != (int(answer[0]), int(answer[2])) or extents < wanted:
            raise RuntimeError(f'{answer[0]} extents of Linux, {answer[2]} shared; {len(rows)}, {shared} of btrkit')
        ours = pairs.process(pairs.BTRKIT, 'fiemap', '--format', 'tsv', path, name)
        alone = pairs.reported(ioctl, f'{mounted.mnt}/{name}', str(extents))
        pairs.compare(f'{work}, {extents} extents, {answer[2]} shared', ours,
                      {'ioctl alone': alone,
                       'ioctl, process': pairs.process(ioctl, f'{mounted.mnt}/{name}', str(extents))}, goal)
        print(f'    {looked_at(path, name)}')
        pairs.compare(f'{work}, {extents} extents, caches dropped', pairs.cold(ours),
                      {'ioctl alone': pairs.cold(alone)}, 1 / 2)
    finally:
        mounted.umount()
