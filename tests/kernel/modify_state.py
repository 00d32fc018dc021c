# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that a mounted btrfs has, in a form in which two filesystems with the same history are equal: no numbers of
inodes or subvolumes, no addresses, and of times of the clock only between which others they are."""
import bisect
import fcntl
import hashlib
import os
import re
import stat
import struct

import image
import ops
import trees

TREE_SEARCH_V2, FIEMAP = 0xC0709411, 0xC020660B
INODE_ITEM, EXTENT_DATA = 1, 108
SECTOR = 4096
# Of FIEMAP: of a file that is not compressed these do not depend on who wrote it.
SHARED, UNWRITTEN, INLINE, ENCODED = 0x2000, 0x800, 0x200, 8
NODATACOW, COMPRESSION = 1 << 1, 1 << 3 | 1 << 11
EMPTY, TOP = 2, 256
LARGEST = (1 << 63) - 1


def search(fd, buffer=bytearray(112 + (4 << 20))):
    """Items of the subvolume that a descriptor belongs to: (inode, type, offset, bytes)."""
    at = (0, 0, 0)
    while True:
        key = struct.pack('=7Q4I4Q', 0, at[0], 2**64 - 1, at[2], 2**64 - 1, 0, 2**64 - 1, at[1], 255, 2**32 - 1, 0, 0,
                          0, 0, 0)
        struct.pack_into('=104sQ', buffer, 0, key, len(buffer) - 112)
        fcntl.ioctl(fd, TREE_SEARCH_V2, buffer)
        count, place = struct.unpack_from('=I', buffer, 64)[0], 112
        if not count:
            return
        for _ in range(count):
            _, inode, offset, kind, size = struct.unpack_from('=3Q2I', buffer, place)
            place += 32
            if kind in (INODE_ITEM, EXTENT_DATA):
                yield inode, kind, offset, bytes(buffer[place:place + size])
            place += size
        at = (inode, kind, offset + 1) if offset + 1 < 2**64 else (inode, kind + 1, 0)


def extent(offset, item):
    """(kind, offset, length, address on disk, offset in the extent, compression), None: a hole."""
    ram, compression, kind = struct.unpack_from('=8xQB3xB', item)
    if kind == 0:
        return 'inline', offset, ram, 0, 0, compression
    disk, _, skipped, length = struct.unpack_from('=4Q', item, 21)
    if not disk:
        return None
    return 'prealloc' if kind == 2 else 'data', offset, length, disk, skipped, compression


class Subvolume:
    """What the items of one say."""

    def __init__(self, fd, path):
        self.path, self.inodes, self.extents = path, {}, {}
        for inode, kind, offset, item in search(fd):
            if kind == INODE_ITEM:
                times = struct.unpack_from('=QIQIQIQI', item, 112)
                self.inodes[inode] = {
                    'nbytes': struct.unpack_from('=Q', item, 24)[0], 'flags': struct.unpack_from('=Q', item, 64)[0],
                    'times': dict(zip(('atime', 'ctime', 'mtime', 'otime'),
                                      (times[k] * 10**9 + times[k + 1] for k in (0, 2, 4, 6))))}
            elif found := extent(offset, item):
                self.extents.setdefault(inode, []).append(found)


def joined(rows):
    """Of (start, end, what): neighbours that are the same are one."""
    ret = []
    for start, end, what in rows:
        if ret and ret[-1][1] == start and ret[-1][2] == what:
            ret[-1] = (ret[-1][0], end, what)
        else:
            ret.append((start, end, what))
    return ret


def fiemap(fd, kinds):
    rows, at = [], 0
    while True:
        buffer = bytearray(struct.pack('=QQIIII', at, 2**64 - 1 - at, 0, 0, 512, 0) + bytes(56 * 512))
        fcntl.ioctl(fd, FIEMAP, buffer)
        count = struct.unpack_from('=I', buffer, 20)[0]
        for k in range(count):
            start, _, size, _, _, flags = struct.unpack_from('=5QI', buffer, 32 + 56 * k)
            rows.append((start, start + size, flags & kinds))
            at = start + size
        if count < 512:
            return joined(rows)


class State:
    """@bounds: times at which something else began. @loaded: nothing of compression; each path below @top gets what it
    has in .paths"""

    def __init__(self, top, bounds=(), compressed=False, loaded=False):
        self.bounds, self.compressed, self.loaded = bounds, compressed, loaded
        self.paths, self.subvolumes, self.names = {}, [], {}
        self.cache = {}
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
        try:
            st = os.fstat(fd)
            self.enter(fd, b'')
            self.paths[b''] = self.describe(b'.', fd, st, self.subvolumes[0])
        finally:
            os.close(fd)
        self.walk(top)
        for group in self.names.values():
            for path in group:
                self.paths[path]['names'] = group
        self.shared = self.sharing()

    def enter(self, fd, path):
        self.subvolumes.append(Subvolume(fd, path))
        return self.subvolumes[-1]

    def walk(self, top):
        """Paths may be longer than Linux takes them."""
        stack = [(os.open(top, os.O_RDONLY | os.O_DIRECTORY), b'', self.subvolumes[0])]
        try:
            while stack:
                folder, path, subvolume = stack.pop()
                try:
                    self.step(stack, folder, path, subvolume)
                finally:
                    os.close(folder)
        finally:
            for folder, _, _ in stack:
                os.close(folder)

    def step(self, stack, folder, path, subvolume):
        self.paths[path]['order'] = os.listdir(b'/proc/self/fd/%d' % folder)
        for name in self.paths[path]['order']:
            below = path + b'/' + name if path else name
            st = os.lstat(name, dir_fd=folder)
            if st.st_ino == EMPTY and stat.S_ISDIR(st.st_mode):
                self.paths[below] = {'mode': 'the place of a subvolume'}
                continue
            inside = subvolume
            if stat.S_ISDIR(st.st_mode):
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                if st.st_ino == TOP:
                    inside = self.enter(fd, below)
                stack.append((fd, below, inside))
            elif st.st_nlink > 1:
                self.names.setdefault((inside.path, st.st_ino), []).append(below)
            self.paths[below] = self.describe(name, folder, st, inside)
            inside.inodes[st.st_ino].setdefault('path', below)

    def time(self, ns):
        """What a plan sets lies before any clock."""
        return ns if not self.bounds or ns < self.bounds[0] else f'time {bisect.bisect_right(self.bounds, ns)}'

    def describe(self, name, folder, st, subvolume):
        inode = subvolume.inodes[st.st_ino]
        whole = b'/proc/self/fd/%d/%s' % (folder, name)
        ret = {'mode': oct(st.st_mode), 'owner': (st.st_uid, st.st_gid), 'size': st.st_size, 'nlink': st.st_nlink,
               'rdev': st.st_rdev, 'flags': inode['flags'],
               'times': {key: self.time(ns) for key, ns in inode['times'].items()},
               'xattrs': {key: xattr(whole, key) for key in os.listxattr(whole, follow_symlinks=False)}}
        if self.loaded:
            ret['xattrs'].pop('btrfs.compression', None)
            ret['flags'] &= ~COMPRESSION
        if stat.S_ISLNK(st.st_mode):
            ret['target'] = os.readlink(name, dir_fd=folder)
        if not stat.S_ISREG(st.st_mode):
            return ret
        if (subvolume.path, st.st_ino) not in self.cache:
            self.cache[subvolume.path, st.st_ino] = self.contents(name, folder, subvolume, st.st_ino,
                                                                        st.st_size)
        ret.update(self.cache[subvolume.path, st.st_ino])
        return ret

    def contents(self, name, folder, subvolume, number, size):
        inode = subvolume.inodes[number]
        ret, rows = {}, subvolume.extents.get(number, ())
        if size >> 62:
            ret['sum'] = self.far(name, folder, rows)
        else:
            ret['segments'], ret['sum'] = trees.contents(name, folder)
        ret['compressed'] = self.compressed or any(row[5] for row in rows)
        ret['extents'] = joined((at // SECTOR, -(-(at + length) // SECTOR), kind) for kind, at, length, *_ in rows)
        ret['pieces'] = [row[1:3] + row[4:] for row in rows]
        ret['nbytes'] = inode['nbytes']
        fd = os.open(name, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW, dir_fd=folder)
        try:
            ret['fiemap'] = fiemap(fd, UNWRITTEN | INLINE | ENCODED | (0 if inode['flags'] & NODATACOW else SHARED))
        finally:
            os.close(fd)
        return ret

    def far(self, name, folder, rows):
        """Where the last sector of a file ends is beyond what lseek() can tell."""
        fd = os.open(name, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return [(at, hashlib.sha256(os.pread(fd, min(length, LARGEST - at), at)).hexdigest())
                    for _, at, length, *_ in rows]
        finally:
            os.close(fd)

    def sharing(self):
        """Which sectors of which files are the same on disk."""
        places = {}
        for subvolume in self.subvolumes:
            for inode, rows in subvolume.extents.items():
                path = subvolume.inodes.get(inode, {}).get('path')
                if path is None:
                    continue
                for _, at, length, disk, skipped, _ in rows:
                    for k in range(0, length if disk else 0, SECTOR):
                        places.setdefault((disk, skipped + k), []).append((path, at + k))
        return {tuple(sorted(users)) for users in places.values() if len(users) > 1}


def xattr(path, name):
    """Its value; an empty security.capability can be set but not read."""
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError as e:
        return e.errno


def subvolumes(mnt):
    """What Linux lists: paths, whose snapshot each is, which is read-only, which is the default."""
    text = image.run(image.BTRFS, 'subvolume', 'list', '-puq', mnt)
    rows = re.findall(rb'^ID (\d+) gen \d+ parent (\d+) top level (\d+) parent_uuid (\S+) +uuid (\S+) '
                      rb'path (.*?)\n(?=ID |\Z)', text, re.M | re.S)
    if len(rows) != len(re.findall(rb'^ID \d+ gen ', text, re.M)):
        raise AssertionError(f'subvolume list: {text!r}')
    top = re.search(rb'UUID:\s+(\S+)', image.run(image.BTRFS, 'subvolume', 'show', mnt))[1]
    paths = {row[0]: row[5] for row in rows} | {b'5': b''}
    owners = {row[4]: row[5] for row in rows} | {top: b'', b'-': '-'}
    default = image.run(image.BTRFS, 'subvolume', 'get-default', mnt).split()[1]
    return {'default': paths[default],
            **{row[5]: (paths[row[1]], paths[row[2]], owners.get(row[3], 'gone'), read_only(mnt, row[5]))
               for row in rows}}


def read_only(mnt, path):
    with ops.opened_dir(os.path.join(os.fsencode(mnt), path)) as fd:
        return struct.unpack('=Q', fcntl.ioctl(fd, 0x80089419, bytes(8)))[0] & 2


def without_sharing(a, b):
    """An extent of which another file has a part is shared as a whole; which sectors are is compared besides."""
    return [{key: joined((at, end, flags & ~SHARED) for at, end, flags in value) if key == 'fiemap' else value
             for key, value in each.items() if key != 'pieces'} for each in (a, b)]


def comparable(a, b):
    """Which pieces of a file are compressed, and how large they are then, is for each to decide."""
    if not (a.get('compressed') or b.get('compressed')):
        return without_sharing(a, b) if a.get('pieces') != b.get('pieces') else (a, b)
    both = [{key: value for key, value in each.items() if key not in ('compressed', 'nbytes', 'fiemap', 'pieces')}
            for each in (a, b)]
    for each in both:
        each['extents'] = joined((at, end, 'data' if kind == 'inline' else kind) for at, end, kind in each['extents'])
    return both


def differences(ours, theirs, leave_out=()):
    """Lines about what is not the same."""
    ret = [f'only in ours: {path!r}' for path in sorted(ours.paths.keys() - theirs.paths.keys())]
    ret += [f'only by Linux: {path!r}' for path in sorted(theirs.paths.keys() - ours.paths.keys())]
    for path in sorted(ours.paths.keys() & theirs.paths.keys()):
        a, b = comparable(ours.paths[path], theirs.paths[path])
        ret += [f'{path!r}: {key}: {a.get(key)!r:.1500}; by Linux: {b.get(key)!r:.1500}'
                for key in sorted(a.keys() | b.keys()) if key not in leave_out and a.get(key) != b.get(key)]
    # A file of a sector may lie in its item when it is compressed.
    inline = {path for each in (ours, theirs) if each.compressed for path, what in each.paths.items()
              if any(kind == 'inline' for _, _, kind in what.get('extents', ()))}
    here, there = (set(filter(lambda users: len(users) > 1, (
        tuple(user for user in users if user[0] not in inline) for users in each.shared))) for each in (ours, theirs))
    for what, rest in (('only in ours', here - there), ('only by Linux', there - here)):
        ret += [f'shared {what}: {users!r:.4000}' for users in sorted(rest)[:5]]
    return ret
