# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls on a mounted btrfs for which Python has no function."""
import ctypes
import errno
import fcntl
import os
import random
import struct
import threading
import time

FICLONERANGE = 0x4020940D
FIDEDUPERANGE = 0xC0189436
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_NOCOW_FL = 0x80086601, 0x40086602, 0x00800000
SUBVOL_CREATE, SNAP_CREATE_V2, SNAP_DESTROY = 0x5000940E, 0x50009417, 0x5000940F
INO_LOOKUP = 0xD0009412
BTRFS_SYNC, BALANCE_V2, BALANCE_CTL, QUOTA_CTL = 0x9408, 0xC4009420, 0x40049421, 0xC0109428
SNAP_RDONLY = 2
BALANCE_DATA, BALANCE_METADATA, BALANCE_PAUSE = 1, 4, 1
QUOTA_ENABLE, QUOTA_ENABLE_SIMPLE = 1, 4
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
INCOMPRESSIBLE = random.Random(1).randbytes(1 << 20)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


class Opened:
    """Context manager: a file descriptor."""

    def __init__(self, path, flags=os.O_RDWR | os.O_CREAT):
        self.fd = os.open(path, flags, 0o644)

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)


def opened_dir(path):
    return Opened(path, os.O_RDONLY | os.O_DIRECTORY)


def incompressible(size, seed=0):
    start = seed * 4099 % (len(INCOMPRESSIBLE) // 2)
    piece = INCOMPRESSIBLE[start:] + INCOMPRESSIBLE[:start]
    return (piece * (size // len(piece) + 1))[:size]


def write(path, offset, data, sync=False):
    with Opened(path) as fd:
        os.pwrite(fd, data, offset)
        if sync:
            os.fsync(fd)


def fsync(path):
    with Opened(path, os.O_RDONLY) as fd:
        os.fsync(fd)


def clone(source, source_offset, length, dest, dest_offset):
    """Length 0 means up to the end of the source."""
    with Opened(source, os.O_RDONLY) as src, Opened(dest) as dst:
        fcntl.ioctl(dst, FICLONERANGE, struct.pack('=qQQQ', src, source_offset, length, dest_offset))


def clone_each(src, dst, ranges):
    """Clone each range (source offset, length, offset) of one open file into another."""
    for source_offset, length, offset in ranges:
        fcntl.ioctl(dst, FICLONERANGE, struct.pack('=qQQQ', src, source_offset, length, offset))


def dedupe(source, source_offset, length, dest, dest_offset):
    """Returns 0 if Linux found the ranges equal."""
    with Opened(source, os.O_RDONLY) as src, Opened(dest) as dst:
        arg = struct.pack('=QQHHIqQQiI', source_offset, length, 1, 0, 0, dst, dest_offset, 0, 0, 0)
        answer = fcntl.ioctl(src, FIDEDUPERANGE, arg)
        return struct.unpack('=QQHHIqQQiI', answer)[8]


def fallocate(path, offset, length, mode=0):
    with Opened(path) as fd:
        if _libc.fallocate(fd, mode, offset, length):
            raise OSError(ctypes.get_errno(), 'fallocate', path)


def fallocate_each(fd, ranges, mode=0):
    """Process each range (offset, length) by a separate call, so that each becomes an extent."""
    for offset, length in ranges:
        if _libc.fallocate(fd, mode, offset, length):
            raise OSError(ctypes.get_errno(), 'fallocate')


def punch(path, offset, length):
    fallocate(path, offset, length, PUNCH_HOLE | KEEP_SIZE)


def root_id(path):
    """ID of the subvolume that contains a directory."""
    with opened_dir(path) as fd:
        args = bytearray(struct.pack('=QQ4080x', 0, 256))
        fcntl.ioctl(fd, INO_LOOKUP, args)
        return struct.unpack_from('=Q', args)[0]


def compression(path, kind):
    os.setxattr(path, 'btrfs.compression', kind.encode())


def nocow(path):
    with Opened(path) as fd:
        flags = struct.unpack('=I', fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(4)))[0]
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack('=I', flags | FS_NOCOW_FL))


def subvolume(path):
    parent, name = os.path.split(path)
    with opened_dir(parent) as fd:
        fcntl.ioctl(fd, SUBVOL_CREATE, bytearray(struct.pack('=q4088s', 0, name.encode())))


def snapshot(source, path, readonly=False):
    parent, name = os.path.split(path)
    with opened_dir(parent) as fd, opened_dir(source) as src:
        flags = SNAP_RDONLY if readonly else 0
        fcntl.ioctl(fd, SNAP_CREATE_V2, bytearray(struct.pack('=qQQ32x4040s', src, 0, flags, name.encode())))


def delete_subvolume(path):
    parent, name = os.path.split(path)
    with opened_dir(parent) as fd:
        fcntl.ioctl(fd, SNAP_DESTROY, bytearray(struct.pack('=q4088s', 0, name.encode())))


def sync(mnt):
    """Commit, and wake the cleaner."""
    with opened_dir(mnt) as fd:
        fcntl.ioctl(fd, BTRFS_SYNC)


def freeze(mnt, thaw=False):
    with opened_dir(mnt) as fd:
        fcntl.ioctl(fd, FITHAW if thaw else FIFREEZE, 0)


def balance(mnt, what):
    """Returns when finished; raises OSError if it was paused."""
    with opened_dir(mnt) as fd:
        fcntl.ioctl(fd, BALANCE_V2, bytearray(struct.pack('=Q1016x', what)))


def pause_balance(mnt):
    with opened_dir(mnt) as fd:
        fcntl.ioctl(fd, BALANCE_CTL, BALANCE_PAUSE)


def leave_balance(mnt):
    """Pause a running balance, which leaves it unfinished. It may finish before that."""
    paused = []

    def work():
        try:
            while True:
                balance(mnt, BALANCE_DATA | BALANCE_METADATA)
        except OSError as e:
            paused.append(e)
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        try:
            pause_balance(mnt)
        except OSError:
            time.sleep(0.001)
    thread.join()
    if paused[0].errno != errno.ECANCELED:
        raise paused[0]


def quota(mnt, simple=False):
    with opened_dir(mnt) as fd:
        command = QUOTA_ENABLE_SIMPLE if simple else QUOTA_ENABLE
        fcntl.ioctl(fd, QUOTA_CTL, bytearray(struct.pack('=QQ', command, 0)))
