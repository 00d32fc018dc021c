# SPDX-License-Identifier: LGPL-2.1-or-later
"""Describe a tree of files on any filesystem: everything that a copy must have."""
import hashlib
import os
import stat

UNIT = 4096
PIECE = 1 << 20


def data_ranges(f, size):
    """Ranges of data in whole units, as opposed to what Linux reports as holes."""
    found, at = [], 0
    while at < size:
        try:
            at = os.lseek(f.fileno(), at, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
        start, stop = at // UNIT * UNIT, min(-(-end // UNIT) * UNIT, size)
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
        at = end
    return found


def contents(path, dir_fd):
    """The ranges of data, and a hash of the contents, which does not depend on how zeros are stored."""
    with open(path, 'rb', buffering=0, opener=lambda name, flags: os.open(
            name, flags | os.O_NOFOLLOW | os.O_NOATIME, dir_fd=dir_fd)) as f:
        ranges = data_ranges(f, os.fstat(f.fileno()).st_size)
        found = hashlib.sha256()
        for start, stop in ranges:
            for at in range(start, stop, PIECE):
                data = os.pread(f.fileno(), min(PIECE, stop - at), at)
                for k in range(0, len(data), UNIT):
                    if any(data[k:k + UNIT]):
                        found.update(b'%d:' % (at + k) + data[k:k + UNIT])
    return ranges, found.hexdigest()


def describe(name, folder, st, holes, attributes):
    """@folder is a descriptor"""
    what = {'mode': f'{st.st_mode:o}', 'owner': (st.st_uid, st.st_gid), 'mtime': st.st_mtime_ns}
    whole = f'/proc/self/fd/{folder}/'.encode() + name
    if stat.S_ISREG(st.st_mode):
        ranges, what['sum'] = contents(name, folder)
        what['size'] = st.st_size
        if holes:
            what['ranges'] = ranges
    elif stat.S_ISLNK(st.st_mode):
        what['target'] = os.readlink(name, dir_fd=folder)
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        what['device'] = st.st_rdev
    what['xattrs'] = {a: os.getxattr(whole, a, follow_symlinks=False)
                      for a in os.listxattr(whole, follow_symlinks=False) if attributes(a)}
    if stat.S_ISDIR(st.st_mode) or st.st_nlink > 1:
        what['atime'] = None
    else:
        what['atime'] = st.st_atime_ns
    return what


def tree(top, holes=True, attributes=lambda name: True, atime=True):
    """Each path below, in bytes, with its description; paths may be longer than Linux accepts. Names of one inode refer
    to each other."""
    found, names = {}, {}
    stack = [(os.open(top, os.O_RDONLY | os.O_DIRECTORY), b'')]
    while stack:
        folder, shown = stack.pop()
        for name in os.listdir(f'/proc/self/fd/{folder}'.encode()):
            path = shown + name
            st = os.lstat(name, dir_fd=folder)
            found[path] = describe(name, folder, st, holes, attributes)
            if not atime:
                del found[path]['atime']
            if stat.S_ISDIR(st.st_mode):
                stack.append((os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder), path + b'/'))
                # The placeholder of a nested subvolume in a snapshot has the current time.
                if st.st_ino == 2:
                    del found[path]['mtime'], found[path]['owner']
            elif st.st_nlink > 1:
                names.setdefault((st.st_dev, st.st_ino), []).append(path)
        os.close(folder)
    for group in names.values():
        for path in group:
            found[path]['names'] = sorted(group)
    return found


def differences(theirs, ours, leave_out=()):
    """Return lines about differences; attributes that only one side has are compared if both could have them."""
    lines = [f'only there: {path!r}' for path in sorted(theirs.keys() - ours.keys())]
    lines += [f'only here: {path!r}' for path in sorted(ours.keys() - theirs.keys())]
    for path in sorted(theirs.keys() & ours.keys()):
        for key in sorted(theirs[path].keys() & ours[path].keys() - set(leave_out)):
            if theirs[path][key] != ours[path][key]:
                lines.append(f'{path!r}: {key}: {theirs[path][key]!r} there, {ours[path][key]!r} here')
        if theirs[path].keys() - ours[path].keys() - {'names', 'mtime', 'owner', 'atime'}:
            lines.append(f'{path!r}: {theirs[path].keys() ^ ours[path].keys()}')
        if ('names' in theirs[path]) != ('names' in ours[path]) and 'names' not in leave_out:
            lines.append(f'{path!r}: has other names in one of them')
    return lines
