# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make a directory with everything that a filesystem can contain, and describe directories for comparison."""
import hashlib
import os
import stat
import struct

K, M = 1 << 10, 1 << 20
LINKS, MANY, DEPTH = 65535, 100000, 1000
SIZES = (0, 1, 2047, 2048, 4095, 4096, 4097, 8 * K + 1, 128 * K - 1, 128 * K, 128 * K + 1, M - 1, M, M + 1)
BIG = (128 * M - 1, 128 * M, 128 * M + 1)
# Overhead of a leaf per item, and of an xattr item besides name and value.
LEAF, ENTRY, INLINE = 101 + 25, 30, 21


def write(path, data=b''):
    with open(path, 'wb') as f:
        f.write(data)


def crc32c(data, crc=0xFFFFFFFE):
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def same_hash(count, length=44):
    """Names with equal hashes: the checksum is linear, so some sets of flipped bits do not change it."""
    zero, basis, kernel = crc32c(bytes(length)), {}, []
    for at in range(length):
        flipped = bytes(k == at for k in range(length))
        hashed, places = crc32c(flipped) ^ zero, 1 << at
        while hashed and hashed.bit_length() in basis:
            other = basis[hashed.bit_length()]
            hashed, places = hashed ^ other[0], places ^ other[1]
        if hashed:
            basis[hashed.bit_length()] = hashed, places
        else:
            kernel.append(places)
    names = []
    for number in range(count):
        flips = 0
        for i, places in enumerate(kernel):
            flips ^= places if number >> i & 1 else 0
        names.append(bytes(ord('b') + (flips >> at & 1) for at in range(length)).decode())
    assert len(set(names)) == count and len({crc32c(n.encode()) for n in names}) == 1
    return names


def acl(*entries):
    """(tag, permissions, id) of each entry."""
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in entries)


def content(rng, size):
    """Some of it is compressible, some is zeros."""
    parts, have = [], 0
    while have < size:
        length = min(rng.choice((1, 100, 5 * K, 100 * K, 300 * K)), size - have)
        kind = rng.randrange(4)
        parts.append(rng.randbytes(length) if kind < 2 else bytes(length) if kind == 2 else
                     (b'btrfs on disk ' * (length // 14 + 1))[:length])
        have += length
    return b''.join(parts)


def _kinds(top):
    os.mkdir(top)
    write(f'{top}/plain', b'plain')
    for name, kind, major, minor in (('pipe', stat.S_IFIFO, 0, 0), ('socket', stat.S_IFSOCK, 0, 0),
                                     ('char', stat.S_IFCHR, 4095, 1048575), ('block', stat.S_IFBLK, 8, 300)):
        os.mknod(f'{top}/{name}', kind | 0o640, os.makedev(major, minor))
    for mode in (0, 0o7777, 0o4755, 0o2711, 0o1700):
        write(f'{top}/mode{mode:o}', b'x')
        os.chmod(f'{top}/mode{mode:o}', mode)
        os.mkdir(f'{top}/dir{mode:o}')
        os.chmod(f'{top}/dir{mode:o}', mode)
    for owner in (1, 1000, 65535, 3000000000, 4294967294):
        write(f'{top}/owner{owner}')
        os.chown(f'{top}/owner{owner}', owner, owner - 1)
    os.symlink('nowhere', f'{top}/owned')
    os.lchown(f'{top}/owned', 7, 8)
    for number, ns in enumerate((0, 1, -1, 999999999, -10**18, 2**32 * 10**9 + 123456789, 10**18 + 5)):
        write(f'{top}/time{number}')
        os.utime(f'{top}/time{number}', ns=(ns + 3, ns))
    os.utime(f'{top}/owned', ns=(5, 77), follow_symlinks=False)


def _names(top):
    top = os.fsencode(top)
    os.mkdir(top)
    for byte in set(range(1, 256)) - {ord('/')}:
        if byte != ord('.'):
            write(top + b'/' + bytes([byte]), bytes([byte]))
        write(top + b'/n' + bytes([byte]) * 254, b'')
    os.mkdir(top + b'/' + b'd' * 255)
    write(top + b'/' + b'd' * 255 + '/é€\U0001f600'.encode())
    for name in (b'...', b'..a', b' ', b'-rf', b'a\nb', b'\xff\xfe', b'a\\b'):
        write(top + b'/' + name)


def _links(top, count, same):
    os.makedirs(f'{top}/b')
    os.mkdir(f'{top}/a')
    write(f'{top}/a/0', b'a file with many names')
    for number in range(1, count - len(same)):
        os.link(f'{top}/a/0', f'{top}/{"ab"[number % 3 == 0]}/{number}')
    for name in same:
        os.link(f'{top}/a/0', f'{top}/a/{name}')
    os.symlink('0', f'{top}/symlink')
    os.link(f'{top}/symlink', f'{top}/again', follow_symlinks=False)
    os.mkfifo(f'{top}/pipe')
    os.link(f'{top}/pipe', f'{top}/b/pipe')


def _attributes(top):
    os.mkdir(top)
    mine = acl((1, 6, -1 & 0xFFFFFFFF), (2, 7, 1234), (4, 4, 0xFFFFFFFF), (8, 5, 77), (16, 7, 0xFFFFFFFF),
               (32, 0, 0xFFFFFFFF))
    for name in ('acl', 'capability', 'hundred', 'empty'):
        write(f'{top}/{name}', name.encode())
    os.setxattr(f'{top}/acl', 'system.posix_acl_access', mine)
    os.setxattr(top, 'system.posix_acl_default', mine)
    os.setxattr(f'{top}/capability', 'security.capability', struct.pack('<IIIII', 0x2000001, 1 << 10, 0, 0, 0))
    os.setxattr(f'{top}/capability', 'security.selinux', b'system_u:object_r:bin_t:s0\0')
    for number in range(100):
        os.setxattr(f'{top}/hundred', f'user.{number}', bytes([number]) * number)
    os.setxattr(f'{top}/empty', 'user.empty', b'')
    os.setxattr(f'{top}/empty', 'trusted.mine', b'\0\xff')
    os.setxattr(f'{top}/empty', 'user.' + 'n' * 250, b'long name')
    os.setxattr(f'{top}/empty', 'user.é\n =', b'name')
    os.mkfifo(f'{top}/pipe')
    os.symlink('x', f'{top}/symlink')
    for name in ('pipe', 'symlink'):
        os.setxattr(f'{top}/{name}', 'trusted.of', name.encode(), follow_symlinks=False)


def _sparse(path, size, *pieces):
    with open(path, 'wb') as f:
        for at, data in pieces:
            os.pwrite(f.fileno(), data, at)
        os.truncate(f.fileno(), size)


def _files(top, rng):
    os.mkdir(top)
    for size in SIZES:
        write(f'{top}/random{size}', rng.randbytes(size))
        write(f'{top}/text{size}', (b'all work and no play ' * (size // 21 + 1))[:size])
        write(f'{top}/zeros{size}', bytes(size))
        write(f'{top}/mixed{size}', content(rng, size))
    for number in range(30):
        write(f'{top}/any{number}', content(rng, rng.randrange(700 * K)))
    data = rng.randbytes(64 * K)
    _sparse(f'{top}/hole at both ends', 3 * M, (M + 5, data))
    _sparse(f'{top}/hole in front', 2 * M + 64 * K, (2 * M, data))
    _sparse(f'{top}/hole behind', 5 * M + 1, (0, data))
    _sparse(f'{top}/holes', 40 * M + 7, (100, b'x'), (5 * M, data), (39 * M - 3, data), (40 * M + 6, b'y'))
    _sparse(f'{top}/only a hole', 10**12)
    _sparse(f'{top}/little hole', 100)
    _sparse(f'{top}/far', 2**40, (2**40 - 1, b'x'))


def make(top, rng, big):
    """Everything that does not depend on filesystem options; on a filesystem that supports all of it."""
    os.makedirs(top, exist_ok=True)
    _kinds(f'{top}/kinds')
    _names(f'{top}/names')
    _attributes(f'{top}/attributes')
    _files(f'{top}/files', rng)
    _links(f'{top}/links', LINKS, same_hash(40))
    _links(f'{top}/some', 3000, same_hash(40))
    os.mkdir(f'{top}/deep')
    for depth in range(1, DEPTH + 1):
        os.mkdir(f'{top}/deep' + '/d' * depth)
    write(f'{top}/deep' + '/d' * DEPTH + '/f', b'at the bottom')
    os.mkdir(f'{top}/many')
    for number in range(MANY):
        write(f'{top}/many/{number * 7919}')
    os.mkdir(f'{top}/big')
    piece = rng.randbytes(M)
    for size in BIG if big else ():
        with open(f'{top}/big/{size}', 'wb') as f:
            for at in range(0, size, M):
                f.write((struct.pack('<Q', at) + piece[8:])[:size - at])
    # Hard links on both sides of a subvolume boundary.
    os.makedirs(f'{top}/cut/sub/nested/sub')
    os.mkdir(f'{top}/cut/beside')
    for name, size in (('little', 100), ('large', 300 * K)):
        write(f'{top}/cut/{name}', rng.randbytes(size))
        for at in ('beside', 'sub', 'sub/nested', 'sub/nested/sub'):
            os.link(f'{top}/cut/{name}', f'{top}/cut/{at}/{name}')
        os.link(f'{top}/cut/{name}', f'{top}/cut/sub/{name} again')
    os.symlink('little', f'{top}/cut/link')
    os.link(f'{top}/cut/link', f'{top}/cut/sub/link', follow_symlinks=False)
    os.chmod(f'{top}/cut/sub/nested', 0o1751)
    os.chown(f'{top}/cut/sub/nested', 12, 34)
    os.setxattr(f'{top}/cut/sub/nested', 'user.of', b'a subvolume')


def make_limits(top, nodesize, rng):
    """Objects of the maximal size for this node size."""
    room = nodesize - LEAF
    os.mkdir(top)
    os.symlink('s' * min(room - INLINE, 4095), f'{top}/symlink')
    write(f'{top}/attribute')
    os.setxattr(f'{top}/attribute', 'user.limit', rng.randbytes(room - ENTRY - 10))
    # One item for all of them.
    same = same_hash(min(250, room // (ENTRY + 44)))
    os.mkdir(f'{top}/same')
    for name in same:
        write(f'{top}/same/{name}', name.encode())
    write(f'{top}/attributes')
    for name in same_hash(min(120, room // (ENTRY + 44 + 5 + 2))):
        os.setxattr(f'{top}/attributes', f'user.{name}', b'xy')
    for size in (room - INLINE - 1, room - INLINE, room - INLINE + 1):
        write(f'{top}/inline{size}', rng.randbytes(size))


def _escaped(data, more=b''):
    """Escape as in a dump file of composefs."""
    if data == b'-':
        return b'\\x2d'
    return b''.join(bytes([b]) if 0x20 < b < 0x7f and b != 0x5c and b not in more else b'\\x%02x' % b for b in data)


def dumpfile(top, skip=()):
    """Make a manifest of a directory; contents are found there by path."""
    top, lines, seen, waiting = os.fsencode(top), [], {}, [b'/']
    while waiting:
        name = waiting.pop(0)
        path, payload, content = top + name, b'-', b'-'
        st = os.lstat(path)
        mode, isdir = b'%o' % st.st_mode, stat.S_ISDIR(st.st_mode)
        if not isdir and (st.st_dev, st.st_ino) in seen:
            mode, payload = b'@' + mode, _escaped(seen[st.st_dev, st.st_ino])
        elif stat.S_ISLNK(st.st_mode):
            payload = _escaped(os.readlink(path))
        elif stat.S_ISREG(st.st_mode) and 0 < st.st_size < 60:
            with open(path, 'rb') as f:
                content = _escaped(f.read())
        elif stat.S_ISREG(st.st_mode):
            payload = _escaped(name[1:])
        seen[st.st_dev, st.st_ino] = name
        xattrs = [b' ' + _escaped(os.fsencode(n), b'=') + b'=' + _escaped(os.getxattr(path, n, follow_symlinks=False),
                                                                        b'=')
                  for n in os.listxattr(path, follow_symlinks=False)]
        lines.append(b'%s %d %s %d %d %d %d %d.%d %s %s -%s\n' % (
            _escaped(name), st.st_size, mode, st.st_nlink, st.st_uid, st.st_gid, st.st_rdev, st.st_mtime_ns // 10**9,
            st.st_mtime_ns % 10**9, payload, content, b''.join(xattrs)))
        if isdir:
            below = [name.rstrip(b'/') + b'/' + entry for entry in os.listdir(path)]
            waiting += [n for n in below if os.fsdecode(n[1:]) not in skip]
    return b''.join(lines)


def digest(path, status, known):
    """Contents of a file; holes are not read."""
    key = status.st_dev, status.st_ino
    if key in known:
        return known[key]
    found, at = hashlib.blake2b(b'%d' % status.st_size), 0
    with open(path, 'rb', buffering=0) as f:
        while at < status.st_size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at -= at % M
            data = os.pread(f.fileno(), M, at)
            if not data:
                break
            if data.count(0) < len(data):
                found.update(b'%d ' % at + data)
            at += len(data)
    known[key] = found.digest()
    return known[key]


def listing(top, skip=(), subvolumes=None, known=None):
    """{path: {what: value}} of everything below a directory. If it is a source for @subvolumes, the names of a file are
    counted on each side of a boundary; otherwise the link count of Linux is used."""
    top, found, names = os.fsencode(top), {}, {}
    known = {} if known is None else known
    inner = [os.fsencode(s) for s in subvolumes or ()]
    waiting = [b'']
    while waiting:
        rel = waiting.pop()
        path = top + b'/' + rel
        st = os.lstat(path)
        of = {'mode': oct(st.st_mode), 'uid': st.st_uid, 'gid': st.st_gid, 'mtime': st.st_mtime_ns,
              'atime': st.st_atime_ns, 'ctime': st.st_ctime_ns}
        names_of = sorted(os.listxattr(path, follow_symlinks=False))
        for name in names_of:
            of['attribute ' + name] = os.getxattr(path, name, follow_symlinks=False)
        found[rel] = of
        if stat.S_ISDIR(st.st_mode):
            for name in os.listdir(path):
                if os.fsdecode(below := rel + b'/' + name if rel else name) not in skip:
                    waiting.append(below)
            continue
        if st.st_rdev:
            of['rdev'] = st.st_rdev
        if stat.S_ISLNK(st.st_mode):
            of['target'] = os.readlink(path)
        else:
            of['size'] = st.st_size
        if stat.S_ISREG(st.st_mode):
            of['content'] = digest(path, st, known)
        of['nlink'] = st.st_nlink
        within = max((s for s in inner if rel.startswith(s + b'/')), key=len, default=b'')
        names.setdefault((st.st_dev, st.st_ino, within), []).append(rel)
    for same in names.values():
        first = min(same)
        for rel in same:
            found[rel]['first'] = first
            if subvolumes is not None:
                found[rel]['nlink'] = len(same)
    return found


def differences(found, wanted, ignored=()):
    """Return lines about differences, up to a limit."""
    lines = []
    for path in sorted({*found, *wanted}):
        a, b = found.get(path), wanted.get(path)
        if a is None or b is None:
            lines.append(f'{path!r}: {"missing" if a is None else "not wanted"}')
        else:
            lines += [f'{path[-80:]!r}: {what} is {str(a.get(what))[:80]}, not {str(b.get(what))[:80]}'
                      for what in sorted({*a, *b}) if a.get(what) != b.get(what) and what not in ignored]
        if len(lines) > 12:
            break
    return lines
