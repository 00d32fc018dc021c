#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Owners, permissions, times, flags, attributes and ACLs: random plans, run by the library and by Linux on a copy. Each
operation must end with the same errno, and Linux must see the same result in both, also after it has continued with
both.
Usage: attr-kernel.py [PLANS] [OPERATIONS]"""
import errno
import os
import random
import re
import stat
import sys
import tempfile

from attributes import (ATIME, FLAGS, GID, MAX, MODE, MTIME, UID, acl, capability, change_flags, collisions,
                        set_attributes)
from image import BTRFS, Image, missing, peer_options, run, seed

PLAN = os.environ['ATTR_PLAN']
TYPES = {'file': stat.S_IFREG, 'dir': stat.S_IFDIR, 'link': stat.S_IFLNK, 'fifo': stat.S_IFIFO, 'sock': stat.S_IFSOCK}
checks = 0


class Maker:
    """Makes a plan: operations as lists of words."""
    def __init__(self, rnd, node, same_hash):
        self.rnd, self.node, self.same_hash = rnd, node, same_hash
        self.dirs, self.others, self.count = ['.'], [], 0
        self.compression = True

    def path(self):
        pick = self.rnd.choice(self.dirs + self.others * 2)
        return pick if self.rnd.randrange(60) else pick + 'none'

    def make(self):
        kind = self.rnd.choice(['file', 'file', 'file', 'dir', 'dir', 'link', 'fifo', 'sock'])
        folder = self.rnd.choice(self.dirs)
        name = f'{kind}{self.count}' if folder == '.' else f'{folder}/{kind}{self.count}'
        self.count += 1
        (self.dirs if kind == 'dir' else self.others).append(name)
        mode = 0o777 if kind == 'link' else self.rnd.choice([0o777, 0o666, 0o644, 0o7777, 0o2711, 0, 0o1750])
        # mkdir(2) takes fewer mode bits.
        return ['make', name, TYPES[kind] | (mode & 0o1777 if kind == 'dir' else mode)]

    def set(self):
        rnd = self.rnd
        mask = rnd.choice([MODE, MODE, UID, GID, UID | GID, ATIME | MTIME, ATIME, MTIME])
        mode = rnd.choice([0o777, 0o4755, 0o6755, 0o2640, 0o7000, 0, rnd.randrange(0o10000)])
        return ['set', self.path(), mask, mode, rnd.choice([0, 1, 70000, 4294967294]), rnd.choice([0, 5, 70000]),
                rnd.randrange(10**9), rnd.randrange(10**9)]

    def flags(self):
        rnd = self.rnd
        letters = [c for c in FLAGS if self.compression or c not in 'Ccm']
        mask = sum(FLAGS[c] for c in letters if rnd.random() < .3)
        # Immutable and append-only files are rare, because nothing more can be changed in them.
        wanted = sum(FLAGS[c] for c in letters if rnd.random() < (.05 if c in 'ia' else .4))
        if rnd.random() < .7:
            mask |= FLAGS['i'] | FLAGS['a']
        if rnd.randrange(40) == 0:
            mask, wanted = mask | 0x100, wanted | 0x100
        return ['flags', self.path(), wanted, mask]

    def attribute(self):
        """Return a name and a value."""
        rnd = self.rnd
        kind = rnd.randrange(13)
        if kind < 3 or (5 <= kind < 7 and not self.compression):
            name = rnd.choice(['user.a', 'trusted.b', 'security.c', 'user.' + 'n' * 250])
            return name, rnd.randbytes(rnd.randrange(99))
        if kind < 5:
            return rnd.choice(rnd.choice(self.same_hash)), rnd.randbytes(rnd.randrange(60))
        if kind < 7:
            return 'btrfs.compression', rnd.choice(
                [b'zlib', b'lzo', b'zstd', b'zstd:9', b'lzox', b'no', b'none', b'nono', b'zst', b'', b'ZLIB'])
        if kind < 10:
            return rnd.choice(['system.posix_acl_access', 'system.posix_acl_default']), acl(rnd, self.node)
        if kind < 11:
            return 'security.capability', capability(rnd)
        if kind < 12:
            return rnd.choice(['user.', 'system.x', 'foo.bar', 'btrfs.x', 'btrfs.', 'trusted.', 'none', 'security.',
                               'user.' + 'n' * 251, 'btrfs.compressionx', 'system.']), b'value'
        # Linux may not find room to replace an attribute by a larger one.
        size = rnd.choice([2000, 3000, MAX[self.node] - 12, MAX[self.node] - 11, 65536, 65537])
        self.count += 1
        return f'user.large{self.count:08}', b'L' * size

    def put(self):
        name, value = self.attribute()
        return ['put', self.path(), 'x' + name.encode().hex(), 'x' + value.hex(), self.rnd.choice([0, 0, 0, 1, 2, 3])]

    def remove(self):
        return ['remove', self.path(), 'x' + self.attribute()[0].encode().hex()]

    def write(self):
        files = [p for p in self.others if 'file' in p.rsplit('/', maxsplit=1)[-1]] or ['filenone']
        path = self.rnd.choice(files)
        if self.rnd.randrange(3):
            return ['write', path, self.rnd.choice([0, 100, 5000]), 'x' + self.rnd.randbytes(9).hex()]
        return ['truncate', path, self.rnd.choice([0, 0, 10, 6000])]

    def plan(self, length):
        steps = [self.make] * 3 + [self.set] * 4 + [self.flags] * 3 + [self.put] * 8 + [self.remove] * 2 + [self.write]
        ret = [self.make() for _ in range(12)]
        while len(ret) < length:
            ret.append(self.rnd.choice(steps)())
            if self.rnd.randrange(80) == 0:
                ret.append(['commit'])
        return ret


def put_attribute(path, name, value, flags):
    try:
        os.setxattr(path, name, value, flags, follow_symlinks=False)
    except OSError as e:
        # Linux may not find room in a leaf to replace a value by a larger one, where there would be room for the new
        # one alone.
        if e.errno != errno.ENOSPC or name not in map(os.fsencode, os.listxattr(path, follow_symlinks=False)):
            raise
        before = os.getxattr(path, name, follow_symlinks=False)
        os.removexattr(path, name, follow_symlinks=False)
        try:
            os.setxattr(path, name, value, follow_symlinks=False)
        except OSError:
            os.setxattr(path, name, before, follow_symlinks=False)
            raise


def linux(top, op):
    path, words = f'{top}/{op[1]}', op[2:]
    if op[0] == 'make':
        if stat.S_ISDIR(words[0]):
            os.mkdir(path, words[0] & 0o7777)
        elif stat.S_ISLNK(words[0]):
            os.symlink('target', path)
        else:
            os.mknod(path, words[0])
    elif op[0] == 'set':
        set_attributes(path, *words)
    elif op[0] == 'flags':
        change_flags(path, *words)
    elif op[0] == 'put':
        put_attribute(path, bytes.fromhex(words[0][1:]), bytes.fromhex(words[1][1:]), words[2])
    elif op[0] == 'remove':
        os.removexattr(path, bytes.fromhex(words[0][1:]), follow_symlinks=False)
    else:
        fd = os.open(path, os.O_WRONLY)
        try:
            if op[0] == 'write':
                os.pwrite(fd, bytes.fromhex(words[1][1:]), words[0])
            else:
                os.ftruncate(fd, words[0])
        finally:
            os.close(fd)


def for_linux(op, top):
    """Whether Linux can do it: flags of links, and of files that cannot be opened, cannot be changed."""
    if op[0] in ('commit', 'flags') and (op[0] == 'commit' or re.search('(link|fifo|sock)[0-9]+$', op[1])):
        return False
    return op[0] != 'make' or not os.path.lexists(f'{top}/{op[1]}')


def run_linux(top, plan):
    results = []
    for op in plan:
        try:
            linux(top, op)
            results.append(0)
        except OSError as e:
            results.append(e.errno)
    return results


def run_library(path, plan):
    lines = ''.join(' '.join(map(str, op)) + '\n' for op in plan)
    return [int(line) for line in run(PLAN, path, input=lines.encode()).split()]


def flags_on_disk(path):
    """Flags of every inode, including those that Linux does not show."""
    ret, inode = {}, None
    for line in run(BTRFS, 'inspect-internal', 'dump-tree', '-t', '5', path).decode(errors='replace').splitlines():
        if found := re.search(r'key \((\d+) (\w+) ', line):
            inode = int(found[1]) if found[2] == 'INODE_ITEM' else None
        elif inode and (found := re.search(r'flags (0x\w+)\(', line)):
            ret[inode], inode = int(found[1], 16), None
    return ret


def attribute(path, name):
    """Return its value; an empty security.capability can be set but not read."""
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError as e:
        return errno.errorcode[e.errno]


def state(image):
    """Everything that the plans change, by path."""
    flags, ret = flags_on_disk(image.path), {}
    top = image.mount(readonly=True)
    try:
        for folder, dirs, files in os.walk(top):
            for path in [folder] + [f'{folder}/{n}' for n in dirs + files]:
                s = os.lstat(path)
                # Times that a plan sets are earlier than the current time.
                times = [t for t in (s.st_atime_ns, s.st_mtime_ns) if t < 10**18]
                names = sorted(os.listxattr(path, follow_symlinks=False))
                ret[path[len(top):]] = {
                    'mode': oct(s.st_mode), 'owner': (s.st_uid, s.st_gid), 'size': s.st_size, 'times': times,
                    'flags': flags[s.st_ino],
                    'attributes': {n: attribute(path, n) for n in names}}
    finally:
        image.umount()
    return ret


def check(ours, theirs, what, loaded=False):
    """@loaded: Linux has read inodes that the library wrote. It knows an inode's compression property only if that is
    in the same leaf, and sets the flag for incompressible data only if it knows of no property; so both are ignored."""
    global checks
    run(BTRFS, 'check', '--check-data-csum', ours.path)
    a, b = state(ours), state(theirs)
    for inode in [*a.values(), *b.values()]:
        if loaded:
            inode['attributes'].pop('btrfs.compression', None)
            inode['flags'] &= ~0x808
    for path in sorted(a.keys() | b.keys()):
        assert a.get(path) == b.get(path), f'{what}: {path}: {a.get(path)}; Linux: {b.get(path)}'
        checks += 1


def same_errnos(plan, ours, theirs, what):
    global checks
    for op, x, y in zip(plan, ours, theirs, strict=True):
        words = ' '.join(map(str, op))[:300]
        # Linux checks names and values before it looks up the file.
        if op[0] in ('put', 'remove') and x == errno.ENOENT and y in (errno.E2BIG, errno.ERANGE, errno.EINVAL):
            continue
        assert x == y, f'{what}: {words}: {errno.errorcode.get(x, x)}; Linux: {errno.errorcode.get(y, y)}'
        checks += 1


def one(folder, number, length, node, same_hash):
    maker = Maker(random.Random(number), node, same_hash)
    what = f'seed {number}, nodes of {node}'
    ours = Image(f'{folder}/ours', '400M')
    ours.mkfs('-n', str(node), *peer_options([]))
    theirs = ours.copy(f'{folder}/theirs')
    plan = [op for op in maker.plan(length) if for_linux(op, folder)]
    done = run_library(ours.path, [op for op in plan])
    top = theirs.mount()
    expected = run_linux(top, plan)
    theirs.umount()
    same_errnos(plan, done, expected, what)
    check(ours, theirs, what)
    # Linux continues with both.
    maker.compression = False
    more = [op for op in maker.plan(length // 4) if for_linux(op, folder)]
    results = []
    for image in (ours, theirs):
        top = image.mount()
        results.append(run_linux(top, more))
        complaints = image.log.complaints(image.loop)
        image.umount()
        assert not complaints, f'{what}: {complaints}'
    same_errnos(more, *results, f'{what}, afterwards')
    check(ours, theirs, f'{what}, afterwards', loaded=True)
    counts = {}
    for result in done:
        counts[errno.errorcode.get(result, 'done')] = counts.get(errno.errorcode.get(result, 'done'), 0) + 1
    print(f'{what}: {len(plan)} operations: ' + ', '.join(f'{counts[k]} {k}' for k in sorted(counts)), flush=True)


def limits(folder, node):
    """The largest attribute that fits, and one byte more."""
    global checks
    plan = [['make', 'file', stat.S_IFREG | 0o644]]
    name = 'x' + b'user.a'.hex()
    for size in (MAX[node] + 1, MAX[node]):
        plan.append(['put', 'file', name, 'x' + '61' * size, 0])
    ours = Image(f'{folder}/ours', '400M')
    ours.mkfs('-n', str(node), *peer_options([]))
    theirs = ours.copy(f'{folder}/theirs')
    done = run_library(ours.path, plan)
    assert done == [0, errno.ENOSPC, 0], done
    results = run_linux(theirs.mount(), plan)
    theirs.umount()
    same_errnos(plan, done, results, f'limits, nodes of {node}')
    check(ours, theirs, f'limits, nodes of {node}')


def main(plans=6, length=600):
    why = missing()
    if why:
        print(why)
        return 77
    os.umask(0)
    same_hash = collisions()
    with tempfile.TemporaryDirectory() as folder:
        for node in MAX:
            limits(folder, node)
        for i in range(int(plans)):
            one(folder, seed() * 1000 + i, int(length), list(MAX)[i % 3], same_hash)
    print(f'{checks} comparisons')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
