# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations of `btrkit edit`: as lines of scripts, and as the system calls with which Linux does the same.

An operation is a tuple of words in bytes: its name and arguments. Paths are relative to the top level, without a
leading slash.
"""
import errno
import fcntl
import os
import stat
import struct

import attributes
import ops

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
SYNC_FILE_RANGE = 7
GET_SUBVOL_FLAGS, SET_SUBVOL_FLAGS, DEFAULT_SUBVOL = 0x80089419, 0x4008941A, 0x40089413
SUBVOL_RDONLY = 2
PLAIN = frozenset(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:@,+-')
NODES = {b'b': stat.S_IFBLK, b'c': stat.S_IFCHR, b'p': stat.S_IFIFO, b's': stat.S_IFSOCK}


def quote(word):
    if not word:
        return b"''"
    return b''.join(b'%c' % c if c in PLAIN else b'\\x%02x' % c for c in word)


def line(op, may_fail):
    return (b'-' if may_fail else b'') + b' '.join(map(quote, op)) + b'\n'


def options(words):
    """Split into option letters and other words."""
    letters, words = b'', list(words)
    while words and words[0][:1] == b'-' and len(words[0]) > 1:
        letters += words.pop(0)[1:]
        if letters[-1:] == b'-':
            return letters[:-1], words
    return letters, words


def number(word):
    return int(word, 0)


class Linux:
    """Runs operations below a mount point."""

    def __init__(self, top):
        self.top = os.fsencode(top)

    def path(self, path):
        return b'/'.join((self.top, path)) if path else self.top

    def run(self, op):
        """Return the errno; 0: success."""
        try:
            getattr(self, op[0].decode().replace('-', '_'))(*op[1:])
        except OSError as e:
            return e.errno
        return 0

    def opened(self, path, flags=os.O_RDWR, mode=0):
        return Descriptor(os.open(self.path(path), flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode))

    # Names.

    def mkdir(self, *words):
        letters, paths = options(words)
        for path in paths:
            if letters:
                os.makedirs(self.path(path), 0o755, exist_ok=True)
            else:
                os.mkdir(self.path(path), 0o755)

    def mknod(self, path, kind, *numbers):
        device = os.makedev(*map(number, numbers)) if numbers else 0
        os.mknod(self.path(path), NODES[kind] | 0o644, device)

    def ln(self, *words):
        letters, (target, path) = options(words)
        if letters:
            os.symlink(target, self.path(path))
        else:
            os.link(self.path(target), self.path(path), follow_symlinks=False)

    def rm(self, *words):
        letters, paths = options(words)
        for path in paths:
            try:
                self.remove(self.path(path), b'r' in letters)
            except FileNotFoundError:
                if b'f' not in letters:
                    raise

    def remove(self, path, below):
        """The last entry of a directory first, as edit does."""
        if below:
            st = os.lstat(path)
            if stat.S_ISDIR(st.st_mode):
                for name in os.listdir(path)[::-1]:
                    self.remove(path + b'/' + name, True)
                os.rmdir(path)
                return
        os.unlink(path)

    def rmdir(self, *paths):
        for path in paths:
            os.rmdir(self.path(path))

    # Subvolumes.

    def subvolume(self, verb, *words):
        letters, paths = options(words)
        getattr(self, 'subvolume_' + verb.decode().replace('-', '_'))(*paths, *([SUBVOL_RDONLY] if letters else []))

    def call_with_name(self, path, request, form, *values):
        """The ioctl on the parent directory takes the name."""
        folder, name = os.path.split(path)
        with ops.opened_dir(self.path(folder)) as fd:
            if len(name) > 255:
                raise OSError(errno.ENAMETOOLONG, 'a name')
            fcntl.ioctl(fd, request, bytearray(struct.pack(form, *values, name)))

    def opened_subvolume(self, path):
        st = os.lstat(self.path(path))
        if not stat.S_ISDIR(st.st_mode) or st.st_ino != 256:
            raise OSError(errno.EINVAL, 'no subvolume')
        return self.opened(path, os.O_RDONLY)

    def subvolume_create(self, path):
        """The ioctl takes no mode, so set the umask that edit assumes."""
        mask = os.umask(0o22)
        try:
            self.call_with_name(path, ops.SUBVOL_CREATE, '=q4088s', 0)
        finally:
            os.umask(mask)

    def subvolume_delete(self, path):
        self.opened_subvolume(path).close()
        self.call_with_name(path, ops.SNAP_DESTROY, '=q4088s', 0)

    def subvolume_snapshot(self, source, path, flags=0):
        with self.opened_subvolume(source) as src:
            self.call_with_name(path, ops.SNAP_CREATE_V2, '=qQQ32x4040s', src, 0, flags)

    def subvolume_set_default(self, path):
        with self.opened_subvolume(path) as fd:
            found = bytearray(struct.pack('=QQ4080x', 0, 256))
            fcntl.ioctl(fd, ops.INO_LOOKUP, found)
            fcntl.ioctl(fd, DEFAULT_SUBVOL, bytearray(found[:8]))

    def property(self, _, path, name, value):
        """Property of a subvolume: ro."""
        with self.opened_subvolume(path) as fd:
            fcntl.ioctl(fd, SET_SUBVOL_FLAGS, bytearray(struct.pack('=Q', SUBVOL_RDONLY if value == b'true' else 0)))

    def mv(self, *words):
        letters, paths = options(words)
        flags = (RENAME_NOREPLACE if b'n' in letters else 0) | (RENAME_EXCHANGE if b'x' in letters else 0)
        call(attributes.libc.renameat2, attributes.AT_FDCWD, self.path(paths[0]), attributes.AT_FDCWD,
             self.path(paths[1]), flags)

    # File contents. Flush after each write to allocate extents, as the library does: otherwise Linux may discard data
    # that the next operation cuts off.

    def put(self, *words):
        letters, (local, path) = options(words)
        with open(local, 'rb', buffering=0) as f:
            st = os.fstat(f.fileno())
            if letters:
                try:
                    os.unlink(self.path(path))
                except FileNotFoundError:
                    pass
            with self.opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, st.st_mode & 0o7777) as fd:
                if (st.st_uid, st.st_gid) != (0, 0):
                    above = os.stat(os.path.dirname(self.path(path)))
                    os.fchown(fd, st.st_uid, -1 if above.st_mode & stat.S_ISGID else st.st_gid)
                at = 0
                while at < st.st_size:
                    try:
                        at = os.lseek(f.fileno(), at, os.SEEK_DATA)
                    except OSError:
                        break
                    end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
                    os.pwrite(fd, os.pread(f.fileno(), end - at, at), at)
                    at = end
                    start_writing(fd)
                os.ftruncate(fd, st.st_size)
                start_writing(fd)

    def write(self, path, offset, local):
        with self.opened(path, os.O_WRONLY) as fd, open(local, 'rb') as f:
            data, at = f.read(), number(offset)
            while data:
                done = pwrite(fd, data, at)
                data, at = data[done:], at + done
            start_writing(fd)

    def truncate(self, path, size):
        if number(size) >> 63:
            raise OSError(errno.EFBIG, 'no file is so large')
        if not stat.S_ISREG(os.lstat(self.path(path)).st_mode):
            os.truncate(self.path(path), number(size))
        # ftruncate always sets ctime and mtime, even if the size does not change, unlike truncate(2).
        with self.opened(path, os.O_WRONLY) as fd:
            os.ftruncate(fd, number(size))
            start_writing(fd)

    def punch(self, path, offset, length):
        self.fallocate(path, ops.PUNCH_HOLE | ops.KEEP_SIZE, offset, length)

    def prealloc(self, *words):
        letters, (path, offset, length) = options(words)
        self.fallocate(path, ops.KEEP_SIZE if letters else 0, offset, length)

    def fallocate(self, path, mode, offset, length):
        with self.opened(path) as fd:
            call(ops._libc.fallocate, fd, mode, number(offset), number(length))
            start_writing(fd)

    def clone(self, *words):
        whole = len(words) == 2
        source, target = (words[0], words[1]) if whole else (words[0], words[3])
        with self.opened(source, os.O_RDONLY) as src:
            st = os.fstat(src)
            if whole and not stat.S_ISREG(st.st_mode):
                raise OSError(errno.EISDIR if stat.S_ISDIR(st.st_mode) else errno.EINVAL, 'no file')
            with self.clone_target(st, target, whole) as dst:
                at, length, to = (0, 0, 0) if whole else map(number, (words[1], words[2], words[4]))
                ops.clone_each(src, dst, [(at, length, to)])
                start_writing(dst)

    def clone_target(self, st, path, whole):
        if not whole:
            return self.opened(path)
        try:
            there = os.lstat(self.path(path))
        except FileNotFoundError:
            made = self.opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, st.st_mode & 0o7777)
            if (st.st_uid, st.st_gid) != (0, 0):
                above = os.stat(os.path.dirname(self.path(path)))
                mode = os.fstat(made.fd).st_mode
                os.fchown(made.fd, st.st_uid, -1 if above.st_mode & stat.S_ISGID else st.st_gid)
                os.fchmod(made.fd, mode & 0o7777)
            return made
        if (there.st_dev, there.st_ino) == (st.st_dev, st.st_ino) or not stat.S_ISREG(there.st_mode):
            raise OSError(errno.EISDIR if stat.S_ISDIR(there.st_mode) else errno.EINVAL, 'no other file')
        return self.opened(path, os.O_RDWR | os.O_TRUNC)

    # Inode attributes.

    def chmod(self, mode, *paths):
        for path in paths:
            attributes.set_attributes(os.fsdecode(self.path(path)), attributes.MODE, int(mode, 8), 0, 0, 0, 0)

    def chown(self, *words):
        letters, (owner, *paths) = options(words)
        uid, _, gid = owner.partition(b':')
        for path in paths:
            os.chown(self.path(path), int(uid or -1), int(gid or -1), follow_symlinks=b'h' not in letters)

    def chattr(self, change, *paths):
        bits = sum(attributes.FLAGS[c] for c in change[1:].decode())
        how = change[:1]
        for path in paths:
            attributes.change_flags(self.path(path), 0 if how == b'-' else bits, ~0 if how == b'=' else bits)

    def touch(self, *words):
        letters, (when, *paths) = options(words)
        seconds, _, part = when[1:].partition(b'.')
        new = int(seconds) * 10**9 + int(part.ljust(9, b'0') or 0)
        for path in paths:
            now = os.stat(self.path(path), follow_symlinks=b'h' not in letters)
            times = letters.replace(b'h', b'')
            os.utime(self.path(path), ns=(now.st_atime_ns if times == b'm' else new,
                                          now.st_mtime_ns if times == b'a' else new),
                     follow_symlinks=b'h' not in letters)

    def setxattr(self, *words):
        letters, (name, value, *paths) = options(words)
        flags = (os.XATTR_CREATE if b'c' in letters else 0) | (os.XATTR_REPLACE if b'r' in letters else 0)
        value = bytes.fromhex(value[2:].decode()) if value[:2] == b'0x' else value
        for path in paths:
            os.setxattr(self.path(path), name, value, flags, follow_symlinks=b'h' not in letters)

    def rmxattr(self, *words):
        letters, (name, *paths) = options(words)
        for path in paths:
            os.removexattr(self.path(path), name, follow_symlinks=b'h' not in letters)


def call(function, *args):
    if function(*args):
        raise OSError(attributes.ctypes.get_errno(), function.__name__)


def pwrite(fd, data, offset):
    """If the sum overflows loff_t Linux returns EINVAL before it compares with the maximal file size, and its calls
    cannot express larger numbers. EFBIG is what it returns when it compares."""
    if (offset + len(data)) >> 63:
        raise OSError(errno.EFBIG, 'no file is so large')
    return os.pwrite(fd, data, offset)


def start_writing(fd):
    call(attributes.libc.sync_file_range, fd, attributes.ctypes.c_long(0), attributes.ctypes.c_long(0), SYNC_FILE_RANGE)


class Descriptor:
    """Context manager: closes a descriptor."""

    def __init__(self, fd):
        self.fd = fd

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.fd)
