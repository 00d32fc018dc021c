#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of subvolumes among those of files: Linux runs random operations, sensible or not, and the library does the
same on a copy: each must end with the same errno, and the resulting trees must be equal.

SUBVOLUME_NAMES is the program that runs them by the library. Exits with 77 if it cannot run.
"""
import collections
import ctypes
import errno
import fcntl
import os
import random
import re
import struct
import sys
import tempfile

import image
import ops

NAMES = os.environ.get('SUBVOLUME_NAMES', 'subvolume-names')
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
PLANS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
SUBVOL_SETFLAGS, SUBVOL_RDONLY = 0x4008941A, 2
IMMUTABLE, APPEND, NOCOW, COMPRESS, NOCOMPRESS = 0x10, 0x20, 0x800000, 0x4, 0x400
PLACE = 2
MOVES = {'mv': 0, 'mvn': 1, 'xch': 2}
KINDS = ('mkdir 8 touch 6 subvol 4 snap 3 rm 4 rmdir 8 del 2 ro 1 rw 3 mv 24 mvn 3 xch 8 flags 2 xattr 2 '
         'commit 1').split()
_libc = ctypes.CDLL(None, use_errno=True)


def acl(rng):
    """A default ACL with a mask."""
    entries = [(1, rng.randrange(8), -1), (2, rng.randrange(8), 1000 + rng.randrange(9)), (4, rng.randrange(8), -1),
               (16, rng.randrange(8), -1), (32, rng.randrange(8), -1)]
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *e) for e in entries)


class ByLinux:
    def __init__(self, mnt, rng):
        self.mnt, self.rng, self.serial = mnt, rng, 0
        self.lines, self.results = [], []
        self.said = collections.Counter()
        self.look()

    def path(self, name):
        return os.path.join(self.mnt, name)

    def look(self):
        """Existing names, with inode numbers."""
        self.dirs, self.all = {'.': 256}, {}
        for folder, names, files in os.walk(self.mnt):
            for name in names + files:
                st = os.lstat(os.path.join(folder, name))
                path = os.path.relpath(os.path.join(folder, name), self.mnt)
                self.all[path] = st.st_ino
                if name in names:
                    self.dirs[path] = st.st_ino

    def old(self):
        return self.rng.choice(list(self.all)) if self.all and self.rng.randrange(20) else self.new()

    def new(self):
        self.serial += 1
        folder = self.rng.choice([d for d, ino in self.dirs.items() if ino != PLACE and d.count('/') < 5])
        return os.path.relpath(os.path.join(folder, f'n{self.serial}'))

    def subvolume(self):
        return self.rng.choice([d for d, ino in self.dirs.items() if ino == 256])

    def any(self):
        return self.old() if self.rng.randrange(3) else self.new()

    def often_subvolume(self):
        return self.old() if self.rng.randrange(3) else self.rng.choice([d for d, i in self.dirs.items() if i < 257])

    def line(self):
        rng = self.rng
        kind = rng.choices(KINDS[::2], [int(n) for n in KINDS[1::2]])[0]
        if kind in ('mkdir', 'touch', 'subvol'):
            words = [self.any() if not rng.randrange(6) else self.new()]
        elif kind == 'snap':
            words = [self.subvolume(), self.new()]
        elif kind in MOVES:
            words = [self.often_subvolume(), self.often_subvolume() if rng.randrange(2) else self.any()]
        elif kind in ('del', 'ro', 'rw'):
            words = [self.subvolume()]
        elif kind == 'flags':
            words = [rng.choice(list(self.dirs)),
                     str(rng.choice((0, 0, 0, IMMUTABLE, APPEND, NOCOW, COMPRESS, NOCOMPRESS)))]
        elif kind == 'xattr':
            name, value = rng.choice((('system.posix_acl_default', acl(rng)), ('btrfs.compression', b'zstd'),
                                      ('btrfs.compression', b'lzo'), ('user.x', b'y')))
            words = [rng.choice(list(self.dirs)), name, value.hex()]
        else:
            words = [self.old()] if kind != 'commit' else []
        # Linux sets ACLs even in read-only subvolumes.
        if kind == 'xattr' and 'acl' in words[1] and not os.access(self.path(words[0]), os.W_OK):
            return None
        # Skip what is known to differ: operations on the top level, on placeholders without an inode, and exchanges
        # with a placeholder.
        if '.' in words and kind not in ('snap', 'flags', 'xattr'):
            return None
        if kind in ('flags', 'xattr') and self.dirs[words[0]] == PLACE:
            return None
        if kind == 'xch' and PLACE in (self.all.get(words[0]), self.all.get(words[1])):
            return None
        if kind == 'snap' and len([i for i in self.dirs.values() if i == 256]) > 25:
            return None
        return [kind, *words]

    def run(self, kind, *words):
        one, two = ([self.path(w) for w in words] + ['', ''])[:2]
        if kind in MOVES:
            if _libc.renameat2(-100, one.encode(), -100, two.encode(), MOVES[kind]):
                raise OSError(ctypes.get_errno(), kind)
        elif kind == 'mkdir':
            os.mkdir(one, 0o755)
        elif kind == 'touch':
            os.close(os.open(one, os.O_CREAT | os.O_EXCL, 0o644))
        elif kind == 'subvol':
            ops.subvolume(one)
        elif kind == 'snap':
            ops.snapshot(one, two)
        elif kind == 'rm':
            os.unlink(one)
        elif kind == 'rmdir':
            os.rmdir(one)
        elif kind == 'del':
            ops.delete_subvolume(one)
        elif kind in ('ro', 'rw'):
            with ops.opened_dir(one) as fd:
                fcntl.ioctl(fd, SUBVOL_SETFLAGS, struct.pack('=Q', SUBVOL_RDONLY if kind == 'ro' else 0))
        elif kind == 'flags':
            with ops.opened_dir(one) as fd:
                fcntl.ioctl(fd, ops.FS_IOC_SETFLAGS, struct.pack('=I', int(words[1])))
        elif kind == 'xattr':
            os.setxattr(one, words[1], bytes.fromhex(words[2]))
        else:
            ops.sync(self.mnt)

    def step(self):
        line = self.line()
        if not line:
            return
        said = 0
        try:
            self.run(*line)
            self.look()
        except OSError as e:
            said = e.errno
        self.lines.append(' '.join(line))
        self.results.append(said)
        self.said[line[0], errno.errorcode.get(said, 'ok')] += 1


def account(mnt):
    """Names with what they refer to."""
    tree = {}
    for folder, names, files in os.walk(mnt):
        for name in ['.'] + names + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            special = st.st_ino if st.st_ino in (PLACE, 256) else 0
            attrs, flags = {}, 0
            if st.st_ino != PLACE:
                attrs = {k: os.getxattr(path, k) for k in os.listxattr(path)}
                with ops.Opened(path, os.O_RDONLY) as fd:
                    flags = struct.unpack('=I', fcntl.ioctl(fd, ops.FS_IOC_GETFLAGS, bytes(4)))[0]
            tree[os.path.relpath(path, mnt)] = (special, oct(st.st_mode), st.st_size, st.st_nlink, st.st_gid, flags,
                                                attrs)
    # The root tree says where each subvolume is.
    listed = image.run(image.BTRFS, 'subvolume', 'list', '-p', mnt).decode()
    return tree, sorted(re.findall(r'ID (\d+) .*parent (\d+) top level (\d+) path (.*)', listed))


def one(work, form, seed):
    linux = image.Image(f'{work}/linux', '400M')
    linux.mkfs(*form)
    ours = linux.copy(f'{work}/ours')
    by_linux = ByLinux(linux.mount(), random.Random(seed))
    for _ in range(STEPS):
        by_linux.step()
    wanted = account(linux.mnt)
    linux.umount()
    said = image.run(NAMES, ours.path, input='\n'.join(by_linux.lines).encode()).decode().split()
    assert len(said) == len(by_linux.lines)
    for k, (line, mine, theirs) in enumerate(zip(by_linux.lines, map(int, said), by_linux.results)):
        if mine != theirs:
            before = '\n'.join(by_linux.lines[max(0, k - 5):k])
            raise AssertionError(f'{form}, seed {seed}, step {k}: after\n{before}\n{line}: '
                                 f'{errno.errorcode.get(mine, "ok")}, Linux {errno.errorcode.get(theirs, "ok")}')
    image.run(image.BTRFS, 'check', ours.path)
    found = account(ours.mount())
    for mine, theirs in zip(found, wanted):
        if mine != theirs:
            names = [p for p in {*mine, *theirs} if p not in mine or p not in theirs or mine[p] != theirs[p]] \
                if isinstance(mine, dict) else {*mine} ^ {*theirs}
            where = sorted(names)[:4]
            raise AssertionError(f'{form}, seed {seed}: {where}'
                                 + ''.join(f'\n{p}: {mine.get(p)}, Linux {theirs.get(p)}' for p in where
                                           if isinstance(mine, dict)))
    complaints = ours.log.complaints(ours.loop)
    assert not complaints, complaints
    ours.umount()
    linux.remove()
    ours.remove()
    print(f'{" ".join(form) or "default"}, seed {seed}: {len(said)} operations, {len(wanted[0])} names, '
          f'{len(wanted[1])} subvolumes equal')
    return by_linux.said


def main():
    why = image.missing()
    if why:
        print(why)
        return 77
    os.umask(0)
    said = collections.Counter()
    with tempfile.TemporaryDirectory(prefix='btrkit-names-') as work:
        for k in range(PLANS):
            for form in (('-n', '4k'), ()):
                said += one(work, form, image.seed() + k)
    for kind in KINDS[::2]:
        print(f'{kind}:', ', '.join(f'{name} {n}' for (op, name), n in sorted(said.items()) if op == kind))
    return 0


sys.exit(main())
