#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random changes of file data by the library, and by Linux on a copy: write, truncate, punch, preallocate and clone,
within files, between them, and between subvolumes. Each operation must return the same, and contents, sizes, blocks,
holes and shared ranges must be equal afterwards; `btrfs check` finds nothing, neither then nor after Linux has
continued with ours.

    file-data-kernel.py [--plans N] [--seed N] [--ops N] [--no-sharing]

Linux makes one extent of neighbouring delayed writes where the library makes two, and clones then share more. Plans of
more than 150 operations come across that, and are run with --no-sharing.

Exits with 77 if it cannot run.
"""
import argparse
import errno
import fcntl
import hashlib
import os
import random
import struct
import subprocess
import sys
import tempfile

import image
import ops

FILE_DATA = os.environ['FILE_DATA']
FS_IOC_FIEMAP = 0xC020660B
ENCODED, INLINE, UNWRITTEN, SHARED = 8, 0x200, 0x800, 0x2000
# mkfs options, mount options of Linux, and the same compression for the library.
KINDS = (((), '', 0), (('-n', '4096', '-O', '^no-holes'), '', 0), (('-n', '65536'), 'compress-force=zstd', 3),
         (('--csum', 'sha256', '-O', '^no-holes'), 'compress-force=zlib', 1), (('-M', '-n', '4096'), '', 0))
FILES = [f'f{i}' for i in range(5)] + ['nocow0', 'nocow1'] + [f'sub/f{i}' for i in range(3)]
# Without no-holes: these have data past their ends, as a crash can leave it. Linux miscounts when it overwrites that.
LOST_ENDS = FILES[3:5]
K64, MASK = 0x9e3779b97f4a7c15, (1 << 64) - 1


def pattern(seed, length):
    """Must match do_write() in file-data.c."""
    out, x = bytearray(), seed
    for i in range(0, length, 64):
        if seed % 2:
            x = (seed * K64 + i // 65536) & MASK
            out += struct.pack('<Q', x) * 8
        else:
            x = (x * 6364136223846793005 + 1442695040888963407) & MASK
            out += bytes((x * (2 * k + 1) & MASK) >> 56 for k in range(64))
    return bytes(out[:length])


def place(rng):
    near = rng.choice((0, 4096, 8192, 65536, 131072, 300000, 1 << 20))
    return max(0, near + rng.choice((0, 0, 0, rng.randrange(-4096, 4096), 4096 * rng.randrange(-16, 16))))


def length(rng):
    return rng.choice((1, 100, 1500, 2048, 2049, 4095, 4096, 5000, 16384, 65536, 131072, rng.randrange(1, 400000)))


def punched(offset, size):
    """Punch whole sectors: if only part of a sector in a hole is punched, Linux may write zeros, where the library
    leaves the hole. Partial sectors are covered by the model in memory."""
    first = offset & ~4095
    return first, ((offset + size + 4095) & ~4095) - first


def plan(rng, count, compression):
    lines = []
    for _ in range(count):
        path, kind = rng.choice(FILES), rng.randrange(20)
        if kind < 7:
            lines.append(f'write {path} {place(rng)} {length(rng)} {rng.randrange(1 << 30)} {compression}')
        elif kind < 10:
            lines.append(f'truncate {path} {rng.choice((0, 1, 100, 2000, 4096, 5000, place(rng)))}')
        elif kind < 13:
            lines.append('punch {} {} {}'.format(path, *punched(place(rng), length(rng))))
        elif kind < 15:
            lines.append(f'prealloc {path} {place(rng)} {length(rng)} {rng.randrange(2)}')
        else:
            whole = rng.randrange(5) == 0
            at, to = (p if rng.randrange(8) == 0 else p & ~4095 for p in (place(rng), place(rng)))
            n = 0 if rng.randrange(3) == 0 else (length(rng) + 4095) & ~4095
            lines.append(f'clone {path} {0 if whole else at} {0 if whole else n} {rng.choice(FILES)} '
                         f'{0 if whole else to}')
        if rng.randrange(12) == 0:
            lines.append(rng.choice(('flush', 'commit')))
    return lines


def grow(rng, path):
    return rng.choice((f'truncate {path} 450000', f'write {path} 450000 5000 7 0', f'prealloc {path} 450000 5000 0',
                       f'clone sub/f0 0 0 {path} 450560'))


def by_linux(mnt, line):
    """Return what the library must return for the same operation."""
    name, path, *rest = line.split()
    fd = os.open(os.path.join(mnt, path), os.O_RDWR)
    other = None
    try:
        if name == 'write':
            os.pwrite(fd, pattern(int(rest[2]), int(rest[1])), int(rest[0]))
        elif name == 'truncate':
            os.ftruncate(fd, int(rest[0]))
        elif name == 'punch':
            fallocate(fd, ops.PUNCH_HOLE | ops.KEEP_SIZE, int(rest[0]), int(rest[1]))
        elif name == 'prealloc':
            fallocate(fd, ops.KEEP_SIZE if int(rest[2]) else 0, int(rest[0]), int(rest[1]))
        elif name == 'clone':
            other = os.open(os.path.join(mnt, rest[2]), os.O_RDWR)
            fcntl.ioctl(other, ops.FICLONERANGE,
                        struct.pack('=qQQQ', fd, int(rest[0]), int(rest[1]), int(rest[3])))
    except OSError as e:
        return -e.errno
    finally:
        # Flush, because a later operation may discard data waiting for writeback, which the library does not.
        os.fsync(fd)
        os.close(fd)
        if other is not None:
            os.fsync(other)
            os.close(other)
    return 0


def fallocate(fd, mode, offset, size):
    if ops._libc.fallocate(fd, mode, offset, size):
        raise OSError(ops.ctypes.get_errno(), 'fallocate')


def fiemap(fd, kinds):
    """Ranges with their FIEMAP flags, adjacent equal ones merged."""
    buf = bytearray(struct.pack('=QQIIII', 0, MASK, 0, 0, 4096, 0) + bytes(56 * 4096))
    fcntl.ioctl(fd, FS_IOC_FIEMAP, buf)
    rows = []
    for i in range(struct.unpack_from('=I', buf, 20)[0]):
        start, _, size, _, _, flags, *_ = struct.unpack_from('=QQQQQI', buf, 32 + 56 * i)
        flags &= kinds
        if rows and rows[-1][1] == start and rows[-1][2] == flags:
            rows[-1] = (rows[-1][0], start + size, flags)
        else:
            rows.append((start, start + size, flags))
    return rows


def segments(fd, size):
    rows, at = [], 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO
            break
        at = os.lseek(fd, start, os.SEEK_HOLE)
        rows.append((start, at))
    return rows


def state(mnt, options, compression, sharing):
    ret = {}
    for path in FILES:
        fd = os.open(os.path.join(mnt, path), os.O_RDONLY)
        st = os.fstat(fd)
        data = hashlib.sha256(os.pread(fd, st.st_size, 0)).hexdigest()
        # For nodatacow files Linux overwrites extents in place, while the library allocates new ones, so sharing
        # differs.
        kinds = INLINE | UNWRITTEN | (SHARED if sharing and not path.startswith('nocow') else 0)
        # Which pieces are compressed, and so the space used, may differ.
        blocks = 0 if compression or ('^no-holes' in options and path in LOST_ENDS) else st.st_blocks
        kinds |= 0 if compression else ENCODED
        ret[path] = (st.st_size, blocks, data, segments(fd, st.st_size), fiemap(fd, kinds))
        os.close(fd)
    return ret


def check_clean(path):
    done = subprocess.run([image.BTRFS, 'check', '--check-data-csum', path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    if done.returncode or 'no error found' not in text:
        raise AssertionError(f'btrfs check: exit {done.returncode}:\n{text[-3000:]}')


def run_plan(folder, seed, count, size, sharing):
    rng = random.Random(seed)
    options, mount, compression = KINDS[seed % len(KINDS)]
    base = image.Image(os.path.join(folder, 'base.img'), size)
    base.mkfs(*options)
    mnt = base.mount(mount)
    os.mkdir(os.path.join(mnt, 'd'))
    image.run(image.BTRFS, 'subvolume', 'create', os.path.join(mnt, 'sub'))
    for path in FILES:
        with open(os.path.join(mnt, path), 'wb') as f:
            if path.startswith('nocow'):
                image.run('chattr', '+C', f.name)
    # Linux leaves old data past the end when it truncates.
    for path in FILES[:3] + ['sub/f0']:
        ops.write(os.path.join(mnt, path), 0, ops.incompressible(50000, 7), sync=True)
        os.truncate(os.path.join(mnt, path), rng.randrange(50000))
    if '^no-holes' in options:
        for path in LOST_ENDS:
            for at in range(0, 400000, rng.choice((16384, 50000, 131072))):
                ops.write(os.path.join(mnt, path), at, ops.incompressible(rng.randrange(1, 50000), 7), sync=True)
    base.umount()
    if '^no-holes' in options:
        lines = [f'end {path} {rng.choice((0, 1, 1000, 4096, 5000, 40000, 131072))}' for path in LOST_ENDS]
        image.run(FILE_DATA, base.path, input='\n'.join(lines + ['']).encode())
    ours, lines = base.copy(os.path.join(folder, 'ours.img')), plan(rng, count, compression)
    lines = [grow(rng, path) for path in LOST_ENDS] + lines
    said = image.run(FILE_DATA, ours.path, input='\n'.join(lines + ['']).encode())
    check_clean(ours.path)
    mnt = base.mount(mount)
    lines = [line for line in lines if line not in ('flush', 'commit')]
    now = mount
    for i, (line, got) in enumerate(zip(lines, map(int, said.split()))):
        # The library compresses only data that is written.
        then = mount if line.startswith('write') or not mount else 'compress=no'
        if then != now:
            image.run('mount', '-o', f'remount,{then}', mnt)
            now = then
        wanted = by_linux(mnt, line)
        if got != wanted:
            raise AssertionError(f'line {i}, {line}: {got}, by Linux {wanted}')
    image.sync(mnt)
    wanted = state(mnt, options, compression, sharing)
    base.umount()
    mnt = ours.mount(mount)
    got = state(mnt, options, compression, sharing)
    for path in FILES:
        for what, a, b in zip(('size', 'blocks', 'contents', 'data', 'extents'), got[path], wanted[path]):
            if a != b:
                log = '\n'.join(line for line in lines if f' {path} ' in line + ' ')
                raise AssertionError(f'{path}: {what}\n{a}\nby Linux\n{b}\n{log}')
    for line in plan(rng, 40, compression):
        if line not in ('flush', 'commit') and not any(f' {path} ' in f'{line} ' for path in LOST_ENDS):
            by_linux(mnt, line)
    complaints = ours.log.complaints(ours.loop)
    ours.umount()
    if complaints:
        raise AssertionError('\n'.join(complaints))
    check_clean(ours.path)
    refused = sum(int(x) != 0 for x in said.split())
    base.remove()
    ours.remove()
    return len(lines), refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plans', type=int, default=10)
    parser.add_argument('--ops', type=int, default=150)
    parser.add_argument('--seed', type=int, default=image.seed())
    parser.add_argument('--no-sharing', action='store_true')
    args = parser.parse_args()
    why = image.missing()
    if why:
        print(f'skipped: {why}')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for seed in range(args.seed, args.seed + args.plans):
            try:
                done, refused = run_plan(folder, seed, args.ops, '400M', not args.no_sharing)
            except AssertionError as e:
                print(f'plan {seed}, {KINDS[seed % len(KINDS)]}: {e}')
                sys.exit(1)
            print(f'plan {seed}: {done} operations, {refused} refused by both: the same')


main()
