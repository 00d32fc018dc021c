# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attributes of files for random plans: names with equal hashes, ACLs, capabilities, and the calls that set them."""
import ctypes
import fcntl
import os
import random
import struct

GETFLAGS, SETFLAGS = 0x80086601, 0x40086602
FLAGS = {'S': 0x8, 'i': 0x10, 'a': 0x20, 'd': 0x40, 'A': 0x80, 'D': 0x10000, 'C': 0x800000, 'm': 0x400, 'c': 0x4}
MODE, UID, GID, ATIME, MTIME = 1, 2, 4, 8, 16
MAX = {4096: 3934, 16384: 16222, 65536: 65374}
FCHMODAT2, AT_FDCWD, AT_SYMLINK_NOFOLLOW = 452, -100, 0x100
libc = ctypes.CDLL(None, use_errno=True)


def crc32c(data):
    crc = 0xfffffffe
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc


def collisions():
    """Return names with equal hashes. Equal suffixes can be appended: names of the same length and hash stay equal."""
    rnd, seen, found = random.Random(1), {}, []
    while len(found) < 3:
        name = b'user.' + rnd.randbytes(4).hex().encode()
        other = seen.setdefault(crc32c(name), name)
        if other != name:
            found.append((name.decode(), other.decode()))
    return found


def acl(rnd, node):
    """An ACL, usually a valid one."""
    def entry(tag, number=0xffffffff):
        return struct.pack('<HHI', tag, rnd.randrange(8), number)
    users = [entry(2, rnd.choice([1, 7, 70000])) for _ in range(rnd.choice([0, 0, 1, 3]))]
    groups = [entry(8, rnd.choice([1, 7, 70000])) for _ in range(rnd.choice([0, 0, 1, 3]))]
    many = rnd.random() < .05
    if many:
        users += [entry(2, 100 + i) for i in range(rnd.choice([400, (node - 300) // 8, node // 8 + 9]))]
    mask = [entry(16)] if users or groups or rnd.random() < .2 else []
    entries = [entry(1), *users, entry(4), *groups, *mask, entry(32)]
    kind = rnd.randrange(24)
    if kind == 0:
        del entries[rnd.randrange(len(entries))]
    elif kind == 1:
        entries.insert(rnd.randrange(len(entries)), rnd.choice(entries))
    elif kind == 2:
        entries[0] = struct.pack('<HHI', rnd.choice([0, 3, 64, 2]), rnd.choice([7, 8, 0xffff]), 0xffffffff)
    elif kind == 3:
        entries = []
    elif kind == 4:
        entries.append(b'xyz')
    elif kind == 5:
        # This entry type has no ID, so the number is ignored.
        entries[0] = struct.pack('<HHI', 1, rnd.randrange(8), 42)
    return struct.pack('<I', 2 if rnd.randrange(20) else 3) + b''.join(entries)


def capability(rnd):
    kind = rnd.randrange(6)
    if kind == 0:
        return b'x' * rnd.choice([0, 3, 4, 20, 24])
    if kind == 1:
        return struct.pack('<6I', 0x03000000 | rnd.randrange(2), 1, 0, 0, 0, 1000)
    return struct.pack('<5I', 0x02000000 | rnd.choice([0, 1, 1, 2]), rnd.randrange(1, 99), 0, 0, 0)


def change_flags(path, wanted, mask):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        buf = bytearray(8)
        fcntl.ioctl(fd, GETFLAGS, buf)
        old = struct.unpack_from('<I', buf)[0]
        fcntl.ioctl(fd, SETFLAGS, struct.pack('<Q', old & ~mask | wanted & mask))
    finally:
        os.close(fd)


def set_attributes(path, mask, mode, uid, gid, atime, mtime):
    if mask & MODE:
        if libc.syscall(FCHMODAT2, AT_FDCWD, os.fsencode(path), mode, AT_SYMLINK_NOFOLLOW):
            raise OSError(ctypes.get_errno(), path)
    if mask & (UID | GID):
        os.chown(path, uid if mask & UID else -1, gid if mask & GID else -1, follow_symlinks=False)
    if mask & (ATIME | MTIME):
        now = os.lstat(path)
        os.utime(path, ns=(atime * 10**9 + 5 if mask & ATIME else now.st_atime_ns,
                           mtime * 10**9 + 6 if mask & MTIME else now.st_mtime_ns), follow_symlinks=False)
