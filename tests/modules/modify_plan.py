# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random plans of operations on everything that a filesystem can have. Most of them make sense; the others must fail
with the same errno everywhere."""
import os
import random

import attributes
from modify_state import fiemap

MASK = (1 << 64) - 1
DIRS, FILES, SPECIAL = 'ds', 'f', 'lnp'
LONG = 900      # longer paths get no entries below them, so that all paths stay short enough for Linux


class Local:
    """Local files with contents."""

    SIZES = (0, 1, 100, 1500, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 16384, 65536, 131072, 131073, 200000, 400000)

    def __init__(self, folder):
        self.paths, rng = [], random.Random(1)
        for k, size in enumerate(self.SIZES + self.SIZES):
            path = f'{folder}/local{k}'
            with open(path, 'wb') as f:
                f.write(rng.randbytes(size) if k % 2 else (b'text of file %d ' % k * (size // 10 + 1))[:size])
                if k % 7 == 6:
                    f.truncate(size + 50000)
                if k % 9 == 8:
                    f.seek(size + 300000)
                    f.write(b'behind a hole')
            os.chmod(path, rng.choice((0o644, 0o644, 0o600, 0o755, 0o4755, 0o2640)))
            if k % 11 == 10:
                os.chown(path, 1000, 1001)
            self.paths.append(os.fsencode(path))


class Plan:
    """Generates operations one by one; done() keeps track of what exists."""

    def __init__(self, seed, local, node, same_hash):
        self.rng, self.local, self.node, self.same_hash = random.Random(f'modify {seed}'), local, node, same_hash
        self.kinds, self.serial, self.top = {b'': 's'}, 0, b''
        # Properties may be unknown to Linux's in-memory inodes, and the effect of chattr +c depends on the mount.
        self.compression, self.flags = True, 'SiadADCm'
        # Paths of files that got a capability.
        self.capable = set()
        # Whether preallocation past the end of files is used.
        self.keeps = True
        self.weights = {
            'put': 16, 'mkdir': 8, 'symlink': 4, 'mknod': 4, 'ln': 8, 'rm': 8, 'rm_below': 1, 'rmdir': 3, 'mv': 14,
            'chmod': 6, 'chown': 5, 'chattr': 4, 'touch': 6, 'setxattr': 12, 'rmxattr': 4, 'truncate': 6, 'write': 14,
            'punch': 7, 'prealloc': 6, 'clone': 14,
            'subvolume_create': 2, 'subvolume_snapshot': 2, 'subvolume_delete': 1, 'set_default': 1, 'read_only': 2,
        }

    def some(self, count):
        """Generate operations, depending on the success of earlier ones."""
        names, weights = zip(*self.weights.items())
        for _ in range(count):
            op = tuple(getattr(self, self.rng.choices(names, weights)[0])())
            # Linux may not find room to replace an ACL by another large one if both do not fit into a leaf.
            if op[0] == b'setxattr' and op[-3].startswith(b'system.posix') and len(op[-2]) > self.node // 2:
                yield b'rmxattr', op[-3], op[-1]
            zeros = self.zeros(*op[1:]) if op[0] == b'punch' else ()
            # Whether punching an existing hole counts as a change, which removes a capability, depends on Linux's
            # in-memory state.
            if op[0] == b'punch' and op[1] in self.capable:
                yield b'rmxattr', b'security.capability', op[1]
            yield op
            yield from zeros
            if op[0] == b'punch':
                yield b'touch', b'-m', b'@5', op[1]

    # What exists.

    def adopt(self, mnt):
        """Register what exists already."""
        self.top = top = os.fsencode(mnt)
        for folder, dirs, files in os.walk(top):
            for name in dirs + files:
                whole = os.path.join(folder, name)
                self.kinds[whole[len(top) + 1:]] = (
                    'l' if os.path.islink(whole) else 'd' if name in dirs else 'f' if os.path.isfile(whole) else 'n')

    def below(self, path):
        return [p for p in self.kinds if p == path or p.startswith(path + b'/')]

    def take(self, path):
        """Forget a path and everything below it."""
        return {p[len(path):]: self.kinds.pop(p) for p in self.below(path)}

    def give(self, path, tree):
        self.kinds.update({path + p: kind for p, kind in tree.items()})

    def done(self, op):
        name, words = op[0], [w for w in op[1:] if w[:1] != b'-']
        if name in (b'put', b'ln', b'mkdir', b'mknod'):
            if name == b'mknod':
                kind = 'n'
            elif name == b'ln':
                kind = 'l' if op[1] == b'-s' else self.kinds.get(words[0], 'f')
            else:
                kind = {b'put': 'f', b'mkdir': 'd'}[name]
            path = words[0] if name in (b'mkdir', b'mknod') else words[1]
            # If a link replaced a directory, Linux would follow it.
            self.take(path)
            self.kinds[path] = kind
        elif name in (b'rm', b'rmdir'):
            for path in words:
                self.take(path)
        elif name == b'mv':
            moved, there = self.take(words[0]), self.take(words[1])
            self.give(words[1], moved)
            if op[1] == b'-x':
                self.give(words[0], there)
        elif name == b'subvolume':
            self.done_subvolume(op[1], words[1:])
        elif name == b'setxattr' and words[-3] == b'security.capability':
            self.capable.add(words[-1])
        elif name == b'clone':
            self.kinds[words[1] if len(words) == 2 else words[3]] = 'f'

    def done_subvolume(self, verb, paths):
        """A snapshot contains only empty directories in place of nested subvolumes; the plan ignores these."""
        if verb == b'create':
            self.kinds[paths[0]] = 's'
        elif verb == b'delete':
            self.take(paths[0])
        elif verb == b'snapshot':
            source, to = paths
            below = {p[len(source):]: kind for p, kind in self.kinds.items() if p.startswith(source + b'/')}
            inner = [p for p, kind in below.items() if kind == 's']
            self.kinds[to] = 's'
            self.give(to, {p: kind for p, kind in below.items()
                           if not any(p == i or p.startswith(i + b'/') for i in inner)})

    def pick(self, kinds, miss=.03):
        """Pick an existing path; occasionally of another type, or a missing one."""
        if self.rng.random() < miss:
            kinds = 'dsflnp'
        found = [p for p, kind in self.kinds.items() if kind in kinds and p]
        path = self.rng.choice(found) if found else b'none'
        odd = self.rng.randrange(300)
        # Edit does not follow links in the middle of a path.
        if odd < 4 and self.kinds.get(path) != 'l':
            return (path + b'none', path + b'/none', b'none/' + path, os.path.dirname(path) + b'/' + b'x' * 256)[odd]
        return path

    def folder(self):
        return self.rng.choice([p for p, kind in self.kinds.items() if kind in DIRS and len(p) < LONG])

    def new(self):
        """Return a path for something new."""
        rng, folder = self.rng, self.folder()
        self.serial += 1
        kind = rng.randrange(60)
        if kind < 3:
            name = bytes(rng.choice([c for c in range(1, 256) if c != ord('/')])
                         for _ in range(rng.randrange(1, 40))) + b'%d' % self.serial
        elif kind < 5:
            name = (b'%d' % self.serial).ljust(255, rng.choice((b'n', b'\xff')))
        elif kind == 5:
            name = b'%d' % self.serial * 256
        elif kind < 8:
            return self.pick('dsflnp')
        elif kind < 18:
            name = rng.choice(rng.choice(self.same_hash))
        else:
            name = b'%c%d' % (rng.choice(b'abcdef'), self.serial)
        return folder + b'/' + name if folder else name

    def place(self):
        rng = self.rng
        near = rng.choice((0, 4096, 8192, 65536, 131072, 300000, 1 << 20))
        return max(0, near + rng.choice((0, 0, 0, rng.randrange(-4096, 4096), 4096 * rng.randrange(-16, 16))))

    def length(self):
        return self.rng.choice((1, 100, 1500, 2048, 2049, 4095, 4096, 5000, 16384, 65536, 131072,
                                self.rng.randrange(1, 400000)))

    # Names.

    def put(self):
        flag = [b'-f'] if self.rng.randrange(5) == 0 else []
        path = self.pick(FILES) if flag and self.rng.randrange(2) else self.new()
        return b'put', *flag, self.rng.choice(self.local.paths), path

    def mkdir(self):
        return b'mkdir', self.new()

    def symlink(self):
        target = self.rng.choice((b'target', b't' * self.rng.randrange(1, 3000), self.pick('dsf')))
        return b'ln', b'-s', target, self.new()

    def mknod(self):
        kind = self.rng.choice((b'b', b'c', b'p', b's'))
        numbers = [b'%d' % self.rng.randrange(1 << bits) for bits in (12, 20)] if kind in b'bc' else []
        return b'mknod', self.new(), kind, *numbers

    def ln(self):
        """The names are in the same subvolume in most cases, by chance."""
        return b'ln', self.pick('flnp'), self.new()

    def rm(self):
        flag = [b'-f'] if self.rng.randrange(4) == 0 else []
        return b'rm', *flag, *(self.pick('flnp') for _ in range(self.rng.choice((1, 1, 1, 3))))

    def rm_below(self):
        return b'rm', b'-r', self.pick('ddddf')

    def rmdir(self):
        dirs = [p for p, kind in self.kinds.items() if kind == 'd' and p]
        empty = [p for p in dirs if not any(q.startswith(p + b'/') for q in self.kinds)]
        return b'rmdir', self.rng.choice(empty) if empty and self.rng.randrange(3) else self.pick('ds')

    def mv(self):
        rng = self.rng
        kind = rng.randrange(10)
        if kind == 0:
            return b'mv', b'-x', self.pick('dflnp'), self.pick('dflnp')
        source = self.pick(rng.choice(('ds', 'flnp', 'flnp')))
        target = self.pick('d' if self.kinds.get(source) == 'd' else 'flnp') if rng.randrange(3) == 0 else self.new()
        return b'mv', *([b'-n'] if kind < 3 else []), source, target

    # Subvolumes.

    def subvolume_create(self):
        return b'subvolume', b'create', self.new()

    def subvolume_snapshot(self):
        """Not of the top level, which contains too much."""
        return b'subvolume', b'snapshot', *self.rng.choice(([], [], [b'-r'])), self.pick('s'), self.new()

    def subvolume_delete(self):
        return b'subvolume', b'delete', self.pick('s')

    def set_default(self):
        return b'subvolume', b'set-default', self.pick('s')

    def read_only(self):
        return b'property', b'set', self.pick('s', 0), b'ro', self.rng.choice((b'true', b'false', b'false'))

    # What inodes say of themselves.

    def chmod(self):
        """Not of links, which it follows."""
        mode = self.rng.choice((0o777, 0o755, 0o4755, 0o6755, 0o2755, 0o2640, 0o7000, 0, self.rng.randrange(0o10000)))
        path = self.pick('dsfn', .1)
        return b'chmod', b'%o' % mode, self.pick('dsfn', 0) if self.kinds.get(path) == 'l' else path

    def chown(self):
        ids = [b'%d' % self.rng.choice((0, 1, 70000, 4294967294)) for _ in range(2)]
        return b'chown', b'-h', self.rng.choice((ids[0], b':' + ids[1], b':'.join(ids))), self.pick('dsflnp')

    def chattr(self):
        """Not for files that cannot be opened. Immutable files are rare, because nothing more can be changed in
        them."""
        rng = self.rng
        path = rng.choice([p for p, kind in self.kinds.items() if kind in 'dsf' and p] or [b'none'])
        stuck = rng.randrange(3) == 0
        letters = [c for c in self.flags if self.compression or c not in 'Ccm']
        chosen = ''.join(c for c in letters if rng.random() < (.15 if c in 'ia' and stuck else 0 if c in 'ia' else .3))
        how = '=' if not stuck or rng.randrange(3) else rng.choice('+-=')
        return b'chattr', (how + (chosen or 'd')).encode(), path

    def touch(self):
        flags = self.rng.choice(([], [], [b'-a'], [b'-m'], [b'-a', b'-m']))
        when = b'@%d' % self.rng.randrange(10**9)
        if self.rng.randrange(2):
            when += b'.%09d' % self.rng.randrange(10**9)
        return b'touch', b'-h', *flags, when, *(self.pick('dsflnp') for _ in range(self.rng.choice((1, 1, 2))))

    def attribute(self):
        """Return a name and a value."""
        rng = self.rng
        kind = rng.randrange(14)
        if kind < 4:
            name = rng.choice((b'user.a', b'trusted.b', b'security.c', b'user.' + b'n' * 250))
            return name, rng.randbytes(rng.randrange(99))
        if kind < 6:
            return b'user.' + rng.choice(rng.choice(self.same_hash)), rng.randbytes(rng.randrange(60))
        if kind < 7 and self.compression:
            return b'btrfs.compression', rng.choice((b'zlib', b'lzo', b'zstd', b'no', b'none', b'nono', b'', b'ZLIB'))
        if kind < 11:
            return (rng.choice((b'system.posix_acl_access', b'system.posix_acl_default')),
                    attributes.acl(rng, self.node))
        if kind < 12:
            return b'security.capability', attributes.capability(rng)
        if kind < 13:
            return rng.choice((b'user.', b'system.x', b'foo.bar', b'btrfs.x', b'trusted.', b'none',
                               b'user.' + b'n' * 251)), b'value'
        # Each gets a unique name, because Linux may not find room for a replacement.
        self.serial += 1
        size = rng.choice((2000, 3000, attributes.MAX[self.node] - 14, attributes.MAX[self.node] - 13))
        return b'user.large%010d' % self.serial, b'L' * size

    def attribute_of(self):
        """With a path. Linux changes ACLs even in read-only subvolumes."""
        name, value = self.attribute()
        path = self.pick('dsflnp')
        whole = os.path.join(self.top, path)
        if name.startswith(b'system.posix') and not all(
                os.access(p, os.W_OK, follow_symlinks=False) for p in (whole, os.path.dirname(whole))):
            name, value = b'user.a', b'value'
        return name, value, path

    def setxattr(self):
        name, value, path = self.attribute_of()
        text = value.isalnum() and value[:2] != b'0x'
        return (b'setxattr', b'-h', *self.rng.choice(([], [], [], [b'-c'], [b'-r'])), name,
                value if text else b'0x' + value.hex().encode(), path)

    def rmxattr(self):
        name, _, path = self.attribute_of()
        return b'rmxattr', b'-h', name, path

    # What is in files.

    def truncate(self):
        """Not through links, which the library does not follow."""
        path = self.rng.choice([p for p, kind in self.kinds.items() if kind in 'fffd' and p] or [b'none'])
        return b'truncate', path, b'%d' % self.rng.choice((0, 1, 100, 2000, 4096, 5000, self.place()))

    def file(self):
        return self.rng.choice([p for p, kind in self.kinds.items() if kind == 'f'] or [b'none'])

    def write(self):
        """Not with empty data, for which only Linux reports that the file cannot be opened."""
        local = self.rng.choice([p for p in self.local.paths if os.path.getsize(p)])
        return b'write', self.file(), b'%d' % self.place(), local

    def punch(self):
        return b'punch', self.file(), b'%d' % self.place(), b'%d' % self.length()

    def zeros(self, path, offset, length):
        """If only part of a sector in a hole is punched, Linux may write zeros, depending on its in-memory view of the
        hole, where the library leaves the hole. Punch such sectors as a whole afterwards."""
        try:
            fd = os.open(os.path.join(self.top, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return []
        try:
            rows = fiemap(fd, 0)
        finally:
            os.close(fd)
        ends = {n & ~4095 for n in (int(offset), int(offset) + int(length)) if n % 4096}
        return [(b'punch', path, b'%d' % at, b'4096') for at in sorted(ends)
                if not any(start <= at < end for start, end, _ in rows)]

    def prealloc(self):
        flag = [b'-k'] if self.rng.randrange(2) and self.keeps else []
        return b'prealloc', *flag, self.file(), b'%d' % self.place(), b'%d' % self.length()

    def clone(self):
        """Not to links, which it follows."""
        rng = self.rng
        if rng.randrange(3) == 0:
            source, target = self.file(), self.file() if rng.randrange(3) else self.new()
            return b'clone', source, self.file() if self.kinds.get(target) == 'l' else target
        at, to = (p if rng.randrange(8) == 0 else p & ~4095 for p in (self.place(), self.place()))
        length = 0 if rng.randrange(3) == 0 else (self.length() + 4095) & ~4095
        return b'clone', self.file(), b'%d' % at, b'%d' % length, self.file(), b'%d' % to
