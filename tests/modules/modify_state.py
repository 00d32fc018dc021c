# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything in a mounted btrfs, in a form that is equal for filesystems with the same history: without inode numbers,
subvolume IDs and addresses; times are reduced to the phase in which they lie."""
import bisect
import collections
import fcntl
import hashlib
import os
import re
import stat
import struct

import image
import ops
import trees

TREE_SEARCH_V2, FIEMAP, FIEMAP_FLAG_SYNC = 0xC0709411, 0xC020660B, 1
INODE_ITEM, XATTR_ITEM, DIR_ITEM, DIR_INDEX, EXTENT_DATA, ROOT_ITEM = 1, 24, 84, 96, 108, 132
ROOT_TREE = 1
SECTOR = 4096
# FIEMAP flags. For uncompressed files these do not depend on the writer.
SHARED, UNWRITTEN, INLINE, ENCODED = 0x2000, 0x800, 0x200, 8
NODATACOW, PREALLOC, COMPRESSION = 1 << 1, 1 << 4, 1 << 3 | 1 << 11
EMPTY, TOP = 2, 256
LARGEST = (1 << 63) - 1


def search(fd, tree, kinds, buffer=bytearray(112 + (4 << 20))):
    """Items of a tree, 0 for the subvolume of the descriptor: (object, type, offset, bytes)."""
    at = (0, 0, 0)
    while True:
        key = struct.pack('=7Q4I4Q', tree, at[0], 2**64 - 1, at[2], 2**64 - 1, 0, 2**64 - 1, at[1], 255, 2**32 - 1, 0,
                          0, 0, 0, 0)
        struct.pack_into('=104sQ', buffer, 0, key, len(buffer) - 112)
        fcntl.ioctl(fd, TREE_SEARCH_V2, buffer)
        count, place = struct.unpack_from('=I', buffer, 64)[0], 112
        if not count:
            return
        for _ in range(count):
            _, inode, offset, kind, size = struct.unpack_from('=3Q2I', buffer, place)
            place += 32
            if kind in kinds:
                yield inode, kind, offset, bytes(buffer[place:place + size])
            place += size
        at = (inode, kind, offset + 1) if offset + 1 < 2**64 else (inode, kind + 1, 0)


class Extent:
    """A file extent item. Without an address it is a hole."""

    def __init__(self, offset, item):
        self.generation, ram, self.compression, kind = struct.unpack_from('=QQB3xB', item)
        self.kind, self.offset, self.length, self.whole = ('inline', 'data', 'prealloc')[kind], offset, ram, ram
        self.disk = self.size = self.skipped = 0
        if kind:
            self.disk, self.size, self.skipped, self.length = struct.unpack_from('=4Q', item, 21)

    def is_hole(self):
        return self.kind != 'inline' and not self.disk

    def piece(self):
        """Everything except the position on disk."""
        return self.kind, self.offset, self.length, self.skipped, self.size, self.whole, self.compression

    def sectors(self, what):
        return self.offset // SECTOR, -(-(self.offset + self.length) // SECTOR), what


def names(item):
    """Generate (name, transid) of directory entries and xattrs."""
    at = 0
    while at < len(item):
        transid, data, name = struct.unpack_from('=17xQHHx', item, at)
        yield item[at + 30:at + 30 + name], transid
        at += 30 + name + data


class Subvolume:
    """The items of a subvolume."""

    def __init__(self, fd, path):
        self.path, self.inodes, self.extents = path, {}, {}
        # For each kind, the transaction in which each name of an inode was written.
        self.named = {DIR_ITEM: {}, DIR_INDEX: {}, XATTR_ITEM: {}}
        for inode, kind, offset, item in search(fd, 0, {INODE_ITEM, EXTENT_DATA, *self.named}):
            if kind in self.named:
                self.named[kind].setdefault(inode, {}).update(names(item))
            elif kind == INODE_ITEM:
                times = struct.unpack_from('=QIQIQIQI', item, 112)
                self.inodes[inode] = {
                    'transactions': struct.unpack_from('=QQ', item),
                    'nbytes': struct.unpack_from('=Q', item, 24)[0], 'flags': struct.unpack_from('=Q', item, 64)[0],
                    'times': dict(zip(('atime', 'ctime', 'mtime', 'otime'),
                                      (times[k] * 10**9 + times[k + 1] for k in (0, 2, 4, 6))))}
            elif not (found := Extent(offset, item)).is_hole():
                self.extents.setdefault(inode, []).append(found)


def joined(rows):
    """Merge adjacent (start, end, what) with equal contents."""
    ret = []
    for start, end, what in rows:
        if ret and ret[-1][1] == start and ret[-1][2] == what:
            ret[-1] = (ret[-1][0], end, what)
        else:
            ret.append((start, end, what))
    return ret


def fiemap(fd, kinds):
    """Return ranges and flags after flushing the file."""
    rows, at = [], 0
    while True:
        buffer = bytearray(struct.pack('=QQIIII', at, 2**64 - 1 - at, FIEMAP_FLAG_SYNC, 0, 512, 0) + bytes(56 * 512))
        fcntl.ioctl(fd, FIEMAP, buffer)
        count = struct.unpack_from('=I', buffer, 20)[0]
        for k in range(count):
            start, _, size, _, _, flags = struct.unpack_from('=5QI', buffer, 32 + 56 * k)
            rows.append((start, start + size, flags & kinds))
            at = start + size
        if count < 512:
            return joined(rows)


class State:
    """@bounds: start times of the phases, each with the last transaction before. @loaded: ignore compression. The
    result for each path below @top is in .paths."""

    def __init__(self, top, bounds=(), compressed=False, loaded=False):
        self.bounds, self.transactions = [ns for ns, _ in bounds], [generation for _, generation in bounds]
        self.compressed, self.loaded = compressed, loaded
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
            # Comparing each with each of 65,535 would take minutes.
            said = group if len(group) < 100 else (len(group), hashlib.sha256(b'/ '.join(group)).hexdigest())
            for path in group:
                self.paths[path]['names'] = said
        self.single = set()
        self.shared = self.sharing()

    def enter(self, fd, path):
        self.subvolumes.append(Subvolume(fd, path))
        return self.subvolumes[-1]

    def walk(self, top):
        """Paths may be longer than Linux accepts."""
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
            entry = [self.transaction(subvolume.named[kind][os.fstat(folder).st_ino][name])
                     for kind in (DIR_ITEM, DIR_INDEX)]
            if stat.S_ISDIR(st.st_mode):
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                if st.st_ino == TOP:
                    inside = self.enter(fd, below)
                stack.append((fd, below, inside))
            elif st.st_nlink > 1:
                self.names.setdefault((inside.path, st.st_ino), []).append(below)
            self.paths[below] = self.describe(name, folder, st, inside)
            self.paths[below]['entry'] = entry
            inside.inodes[st.st_ino].setdefault('path', below)

    def time(self, ns):
        """Times that a plan sets are earlier than the first phase."""
        return ns if not self.bounds or ns < self.bounds[0] else f'time {bisect.bisect_right(self.bounds, ns)}'

    def transaction(self, generation):
        """The phase that a transaction belongs to."""
        return bisect.bisect_left(self.transactions, generation)

    def describe(self, name, folder, st, subvolume):
        inode = subvolume.inodes[st.st_ino]
        whole = b'/proc/self/fd/%d/%s' % (folder, name)
        ret = {'mode': oct(st.st_mode), 'owner': (st.st_uid, st.st_gid), 'size': st.st_size, 'nlink': st.st_nlink,
               'rdev': st.st_rdev, 'flags': inode['flags'],
               'times': {key: self.time(ns) for key, ns in inode['times'].items()},
               'xattrs': {key: xattr(whole, key) for key in os.listxattr(whole, follow_symlinks=False)},
               'transactions': [self.transaction(n) for n in inode['transactions']],
               'named': {key: self.transaction(n)
                         for key, n in subvolume.named[XATTR_ITEM].get(st.st_ino, {}).items()}}
        if self.loaded:
            ret['xattrs'].pop('btrfs.compression', None)
            ret['named'].pop(b'btrfs.compression', None)
            ret['flags'] &= ~COMPRESSION
        # Linux writes the inherited compression of a subvolume to its inode only when that changes next.
        if st.st_ino == TOP and 'btrfs.compression' in ret['xattrs']:
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
        ret['compressed'] = self.compressed or any(row.compression for row in rows)
        ret['extents'] = joined(row.sectors(row.kind) for row in rows)
        # Linux overwrites nodatacow data in place, the library never does; and if a part of preallocated space is
        # written, Linux rewrites the items of the other parts too, including those of clones.
        kept = collections.defaultdict(int)
        for row in rows:
            if row.kind == 'prealloc':
                kept[row.disk] = max(each.generation for each in rows if each.disk == row.disk)
        ret['written'] = joined(row.sectors(self.transaction(kept[row.disk] or row.generation)) for row in rows
                                if not inode['flags'] & (NODATACOW | PREALLOC))
        ret['pieces'] = [row.piece() for row in rows]
        ret['nbytes'] = inode['nbytes']
        fd = os.open(name, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW, dir_fd=folder)
        try:
            ret['fiemap'] = fiemap(fd, UNWRITTEN | INLINE | ENCODED | (0 if inode['flags'] & NODATACOW else SHARED))
        finally:
            os.close(fd)
        return ret

    def far(self, name, folder, rows):
        """For sizes where lseek() cannot represent the end of the last sector."""
        fd = os.open(name, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return [(row.offset, hashlib.sha256(os.pread(fd, min(row.length, LARGEST - row.offset), row.offset))
                     .hexdigest()) for row in rows]
        finally:
            os.close(fd)

    def sharing(self):
        """Return sets of file sectors that are the same on disk."""
        places = {}
        for subvolume in self.subvolumes:
            for inode, rows in subvolume.extents.items():
                path = subvolume.inodes.get(inode, {}).get('path')
                if path is None:
                    continue
                for row in rows:
                    if row.kind == 'inline' or row.size == row.length == row.whole == SECTOR:
                        self.single.add((path, row.offset))
                    for k in range(0, row.length if row.disk else 0, SECTOR):
                        places.setdefault((row.disk, row.skipped + k), []).append((path, row.offset + k))
        return {tuple(sorted(users)) for users in places.values() if len(users) > 1}


def xattr(path, name):
    """Return its value; an empty security.capability can be set but not read."""
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError as e:
        return e.errno


def subvolumes(mnt, state):
    """What Linux lists: paths, origins of snapshots, the default subvolume; and the contents of their root items."""
    text = image.run(image.BTRFS, 'subvolume', 'list', '-puq', mnt)
    rows = re.findall(rb'^ID (\d+) gen \d+ parent (\d+) top level (\d+) parent_uuid (\S+) +uuid (\S+) '
                      rb'path (.*?)\n(?=ID |\Z)', text, re.M | re.S)
    if len(rows) != len(re.findall(rb'^ID \d+ gen ', text, re.M)):
        raise AssertionError(f'subvolume list: {text!r}')
    top = re.search(rb'UUID:\s+(\S+)', image.run(image.BTRFS, 'subvolume', 'show', mnt))[1]
    paths = {row[0]: row[5] for row in rows} | {b'5': b''}
    owners = {row[4]: row[5] for row in rows} | {top: b'', b'-': '-'}
    default = image.run(image.BTRFS, 'subvolume', 'get-default', mnt).split()[1]
    with ops.opened_dir(mnt) as fd:
        items = {b'%d' % root: root_item(item, state)
                 for root, _, _, item in search(fd, ROOT_TREE, {ROOT_ITEM}) if root == 5 or root >= 256}
    return {'default': paths[default],
            **{row[5]: (paths[row[1]], paths[row[2]], owners.get(row[3], 'gone'), items[row[0]]) for row in rows}}


def root_item(item, state):
    """The parts of a root item that do not depend on positions."""
    flags, refs = struct.unpack_from('=QI', item, 208)
    transactions = struct.unpack_from('=Q', item, 200) + struct.unpack_from('=4Q', item, 295)
    times = struct.unpack_from('=QIQIQIQI', item, 327)
    return {'flags': flags, 'refs': refs, 'received': item[279:295] != bytes(16),
            'transactions': [n and state.transaction(n) for n in transactions],
            'times': [times[k] and state.time(times[k] * 10**9 + times[k + 1]) for k in range(0, 8, 2)]}


def flags_where(rows, pieces, kinds):
    """FIEMAP flags: all of them in these pieces, and only @kinds outside."""
    ret, at = [], 0
    for start, end in sorted((offset, offset + length) for _, offset, length, *_ in pieces) + [(2**64, 2**64)]:
        for low, high, mask in ((at, start, kinds), (start, end, ~0)):
            ret += [(max(row[0], low), min(row[1], high), row[2] & mask) for row in rows
                    if row[0] < high and low < row[1]]
        at = end
    return joined(ret)


def comparable(a, b):
    """Which pieces of a file are compressed, their size, and whether one is inline, may differ. An extent that is
    partly referenced by another file counts as shared as a whole, so FIEMAP flags are comparable only for equal extents
    that are longer than a sector: see apart(). Sharing of sectors is compared separately."""
    if 'pieces' not in a or 'pieces' not in b:
        return a, b
    packed = a['compressed'] or b['compressed']
    alike = {piece for piece in set(a['pieces']) & set(b['pieces']) if piece[2:6] != (SECTOR, 0, SECTOR, SECTOR)}
    both = [{key: value for key, value in each.items() if key not in ('compressed', 'pieces')} for each in (a, b)]
    for each in both:
        if not packed:
            each['fiemap'] = flags_where(each['fiemap'], alike, ~SHARED)
        else:
            each['fiemap'] = flags_where([(at, end, flags & ~SHARED) for at, end, flags in each['fiemap']], alike, 0)
            del each['nbytes'], each['written']
            each['extents'] = joined((at, end, 'data' if kind == 'inline' else kind)
                                     for at, end, kind in each['extents'])
    return both


def apart(users, a, b):
    """Whether sectors that are shared in @a need not be shared in @b: with compression a sector may be inline, and a
    clone of it gets an extent of its own."""
    return b.single.issuperset(users) and any(
        each.paths.get(path, {}).get('compressed') for path, _ in users for each in (a, b))


def differences(ours, theirs, leave_out=()):
    """Return lines that describe the differences."""
    ret = [f'only in ours: {path!r}' for path in sorted(ours.paths.keys() - theirs.paths.keys())]
    ret += [f'only by Linux: {path!r}' for path in sorted(theirs.paths.keys() - ours.paths.keys())]
    for path in sorted(ours.paths.keys() & theirs.paths.keys()):
        a, b = comparable(ours.paths[path], theirs.paths[path])
        ret += [f'{path!r}: {key}: {a.get(key)!r:.1500}; by Linux: {b.get(key)!r:.1500}'
                for key in sorted(a.keys() | b.keys()) if key not in leave_out and a.get(key) != b.get(key)]
    for what, a, b in (('only in ours', ours, theirs), ('only by Linux', theirs, ours)):
        rest = {users for users in a.shared - b.shared if not apart(users, a, b)}
        ret += [f'shared {what}: {users!r:.4000}' for users in sorted(rest)[:5]]
    return ret
