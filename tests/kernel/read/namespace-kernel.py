#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare directories, inodes and paths as the library reads them with the mounted filesystem.

NAMESPACE is the program that lists an image by the library. Exits with 77 if it cannot run.
"""
import fcntl
import os
import random
import socket
import stat
import struct
import subprocess
import sys
import tempfile

import image

NAMESPACE = os.environ.get('NAMESPACE', 'namespace')
INO_LOOKUP = 0xd0009412


def root_of(path):
    """ID of the subvolume that a directory belongs to."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        answer = bytearray(struct.pack('=QQ4080x', 0, 256))
        fcntl.ioctl(fd, INO_LOOKUP, answer)
        return struct.unpack_from('=Q', answer)[0]
    finally:
        os.close(fd)


def fill(mnt, rng):
    """Every type of inode, odd names, many hard links, nested subvolumes."""
    btrfs = lambda *args: image.run(image.BTRFS, *args)
    folders = [mnt]
    for k in range(40):
        folders.append(os.path.join(rng.choice(folders), f'dir{k}'))
        if k % 10 == 3:
            btrfs('subvolume', 'create', folders[-1])
        else:
            os.mkdir(folders[-1], rng.choice((0o755, 0o1777, 0o2750)))
    odd = [bytes([b]) + b'x' for b in range(1, 256) if b != ord('/')] + [b'n' * 255, 'žluť'.encode()]
    for k, name in enumerate(odd + [f'file{k}'.encode() for k in range(400)]):
        path = os.path.join(rng.choice(folders).encode(), name)
        if k % 17 == 0:
            os.symlink(b'target' * rng.randrange(1, 300), path)
        elif k % 17 == 1:
            os.mkfifo(path, 0o640)
        elif k % 17 == 2:
            device = os.makedev(rng.randrange(4096), rng.randrange(1 << 20))
            os.mknod(path, 0o600 | rng.choice((stat.S_IFCHR, stat.S_IFBLK)), device)
        else:
            with open(path, 'wb') as f:
                f.write(os.urandom(rng.choice((0, 5, 1000, 5000, 300000))))
                if k % 5 == 0:
                    f.truncate(rng.randrange(1 << 24))
            os.chown(path, rng.randrange(1 << 31), rng.randrange(1 << 31))
            os.utime(path, ns=(rng.randrange(1 << 61), rng.randrange(1 << 61)))
    linked = os.path.join(mnt, 'linked')
    with open(linked, 'w', encoding='ascii'):
        pass
    # More than fits into one INODE_REF, so that INODE_EXTREFs follow.
    for k in range(400):
        os.link(linked, os.path.join(mnt, f'link-{k:0100d}'))
    with socket.socket(socket.AF_UNIX) as s:
        here = os.open(mnt, os.O_RDONLY)
        os.chdir(here)
        s.bind('socket')
        os.chdir('/')
        os.close(here)
    btrfs('subvolume', 'snapshot', '-r', mnt, os.path.join(mnt, 'snap'))
    source = next(p for p in folders[1:] if os.stat(p).st_ino == 256)
    btrfs('subvolume', 'snapshot', source, os.path.join(mnt, 'again'))
    deep = mnt
    for k in range(60):
        deep = os.path.join(deep, 'd' * (k + 1))
        os.mkdir(deep)


def linux_account(mnt):
    lines = set()

    def visit(folder, shown, root):
        for entry in os.scandir(folder):
            st = entry.stat(follow_symlinks=False)
            path = shown + b'/' + entry.name
            # The placeholder of a nested subvolume in a snapshot: an empty directory that Linux synthesizes.
            if st.st_ino == 2:
                lines.add((path.hex(), root, 2, 'empty'))
                continue
            below = root_of(entry.path) if stat.S_ISDIR(st.st_mode) and st.st_ino == 256 else root
            rdev = st.st_rdev if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode) else 0
            sec, nsec = divmod(st.st_mtime_ns, 10 ** 9)
            bytes_used = st.st_blocks * 512 if stat.S_ISREG(st.st_mode) else 0
            lines.add((path.hex(), below, st.st_ino, f'{st.st_mode:o}', st.st_size, st.st_nlink, st.st_uid, st.st_gid,
                       rdev, f'{sec}.{nsec:09d}', bytes_used))
            if stat.S_ISDIR(st.st_mode):
                visit(entry.path, path, below)

    visit(mnt.encode(), b'', 5)
    return lines


def library_account(path):
    lines, wrong = set(), []
    for line in subprocess.run([NAMESPACE, path], check=True, stdout=subprocess.PIPE).stdout.decode().splitlines():
        f = line.split()
        if f[3:] == ['empty']:
            lines.add((f[0], int(f[1]), int(f[2]), f[3]))
            continue
        regular = stat.S_ISREG(int(f[3], 8))
        # The sum of the extents equals nbytes in the inode; Linux reports it in whole sectors.
        if f[11] != f[10] and regular:
            wrong.append(f'{bytes.fromhex(f[0])}: nbytes {f[10]}, extents {f[11]}')
        used = (int(f[10]) + 4095) // 4096 * 4096 if regular else 0
        lines.add((f[0], int(f[1]), int(f[2]), f[3], int(f[4]), *map(int, f[5:9]), f[9], used))
    return lines, wrong


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    seed = image.seed()
    print(f'seed {seed}')
    compared = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for args in ([], ['-n', '4096', '-O', '^no-holes']):
            fs = image.Image(os.path.join(folder, 'fs.img'))
            fs.mkfs(*args)
            fill(fs.mount(), random.Random(seed))
            fs.umount()
            linux = linux_account(fs.mount(readonly=True))
            fs.umount()
            ours, wrong = library_account(fs.path)
            fs.remove()
            for line in sorted(linux - ours)[:5]:
                wrong.append(f'only Linux: {bytes.fromhex(line[0])} {line[1:]}')
            for line in sorted(ours - linux)[:5]:
                wrong.append(f'only btrkit: {bytes.fromhex(line[0])} {line[1:]}')
            if wrong or not linux:
                print('\n'.join(wrong) or 'nothing was compared')
                return 1
            compared += len(linux)
    print(f'{compared} names compared')
    return 0


if __name__ == '__main__':
    sys.exit(main())
