# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random plans: a seed always gives the same operations, apart from how the kernel's threads interleave."""
import os
import random
from collections import Counter

import ops

SIZE = 4 << 20
OPERATIONS = 2000
MKFS = [
    ('-n', '4096'), ('-n', '16384'), ('-n', '65536'), ('-n', '4096', '-O', '^no-holes'),
    ('-n', '4096', '-O', '^skinny-metadata'), ('-n', '8192'), ('-M', '-n', '4096'),
]
MOUNTS = ['', '', 'max_inline=0', 'compress=lzo', 'compress=zlib', 'compress-force=zstd', 'nodatacow', 'commit=1']


def shape(seed):
    """The form of filesystem for a plan: options of mkfs and of mount."""
    rng = random.Random(seed)
    return rng.choice(MKFS), rng.choice(MOUNTS)


class Plan:
    def __init__(self, mnt, seed, log=None):
        self.mnt, self.log = mnt, log
        self.rng = random.Random(f'plan {seed}')
        self.trees = {'': set()}            # subvolume -> names of its files
        self.readonly = set()
        self.count = Counter()
        self.serial = 0
        self.weights = {
            'write': 26, 'scatter': 6, 'write_at_end': 6, 'clone': 14, 'clone_within': 7, 'dedupe': 2, 'punch': 6,
            'zero_range': 2, 'truncate': 5, 'prealloc': 6, 'fsync': 6, 'sync': 1, 'rename': 3, 'link': 2, 'unlink': 3,
            'compress': 1, 'nocow': 1, 'snapshot': 1.5, 'subvolume': 0.4, 'delete_subvolume': 0.8, 'balance': 0.1,
        }

    def run(self, operations=OPERATIONS):
        """Returns how often each operation was done; operations that Linux refused are counted as refused."""
        names, weights = zip(*self.weights.items())
        for number in range(operations):
            name = self.rng.choices(names, weights)[0]
            try:
                what = getattr(self, name)()
                self.count[name] += 1
            except OSError as e:
                what = e
                self.count['refused'] += 1
            if self.log:
                print(number, name, what, file=self.log)
        ops.sync(self.mnt)
        return self.count

    def path(self, tree, name=''):
        return '/'.join(part for part in (self.mnt, tree, name) if part)

    def tree(self, writable=True):
        return self.rng.choice(sorted(t for t in self.trees if not (writable and t in self.readonly)))

    def any_file(self, writable=True):
        """An existing file, or a new one."""
        tree = self.tree(writable)
        names = sorted(self.trees[tree])
        if not names or (tree not in self.readonly and len(names) < 12 and self.rng.random() < 0.1):
            if tree in self.readonly:
                raise OSError('a read-only snapshot without files')
            self.serial += 1
            directory = self.rng.choice(['', '', 'd1/', 'd1/d2/'])
            os.makedirs(self.path(tree, directory), exist_ok=True)
            names = [f'{directory}f{self.serial}']
            self.trees[tree].add(names[0])
            with ops.Opened(self.path(tree, names[0])):
                pass
        return tree, self.rng.choice(names)

    def file(self, writable=True):
        return self.path(*self.any_file(writable))

    def blocks(self, most):
        return self.rng.randrange(SIZE // 4096) * 4096, self.rng.randint(1, most) * 4096

    def data(self, size):
        kinds = bytes(size), ops.incompressible(size, self.rng.randrange(100)), b'text ' * (size // 5 + 1)
        return self.rng.choice(kinds)[:size]

    def write(self):
        path, (offset, size) = self.file(), self.blocks(64)
        if self.rng.random() < 0.3:
            offset, size = self.rng.randrange(SIZE), self.rng.randint(1, 9000)
        if self.rng.random() < 0.15:
            offset, size = 0, self.rng.randint(1, 3000)
        ops.write(path, offset, self.data(size), sync=self.rng.random() < 0.2)
        return path, offset, size

    def scatter(self):
        """Many small writes, so that a file's items fill leaves."""
        path, blocks = self.file(), self.rng.randint(8, 60)
        with ops.Opened(path) as fd:
            for _ in range(blocks):
                os.pwrite(fd, self.data(self.rng.choice((4096, 4096, 8192, 100))), self.blocks(1)[0])
            if self.rng.random() < 0.5:
                os.fsync(fd)
        return path, blocks

    def write_at_end(self):
        path = self.file()
        data = self.data(self.rng.choice((4096, 131072, 5000)))
        ops.write(path, os.path.getsize(path), data, sync=self.rng.random() < 0.5)
        return path

    def clone(self):
        source, dest = self.file(writable=False), self.file()
        (offset, size), (to, _) = self.blocks(128), self.blocks(1)
        length = os.path.getsize(source)
        offset = offset % max(length // 4096 * 4096, 4096)
        if offset + size > length:
            size = 0
        ops.clone(source, offset, size, dest, to)
        return source, offset, size, dest, to

    def clone_within(self):
        path, (offset, size), (to, _) = self.file(), self.blocks(32), self.blocks(1)
        offset = offset % max(os.path.getsize(path) // 4096 * 4096, 4096)
        ops.clone(path, offset, size, path, to)
        return path, offset, size, to

    def dedupe(self):
        source, dest, (offset, size) = self.file(writable=False), self.file(), self.blocks(16)
        offset = offset % max(os.path.getsize(source) // 4096 * 4096, 4096)
        with ops.Opened(source, os.O_RDONLY) as fd:
            data = os.pread(fd, size, offset)
        to = self.blocks(1)[0]
        ops.write(dest, to, data)
        return source, dest, ops.dedupe(source, offset, len(data) // 4096 * 4096, dest, to)

    def punch(self):
        path, (offset, size) = self.file(), self.blocks(40)
        ops.punch(path, offset + self.rng.choice((0, 0, 777)), size + self.rng.choice((0, 0, 999)))
        return path, offset, size

    def zero_range(self):
        path, (offset, size) = self.file(), self.blocks(40)
        ops.fallocate(path, offset, size, self.rng.choice((ops.ZERO_RANGE, ops.ZERO_RANGE | ops.KEEP_SIZE)))
        return path, offset, size

    def truncate(self):
        path = self.file()
        size = self.rng.choice((0, self.rng.randrange(SIZE), self.blocks(1)[0], self.rng.randrange(3000)))
        os.truncate(path, size)
        return path, size

    def prealloc(self):
        path, (offset, size) = self.file(), self.blocks(128)
        ops.fallocate(path, offset, size, self.rng.choice((0, ops.KEEP_SIZE)))
        return path, offset, size

    def fsync(self):
        path = self.file()
        ops.fsync(path)
        return path

    def sync(self):
        ops.sync(self.mnt)

    def rename(self):
        tree, name = self.any_file()
        self.serial += 1
        new = f'r{self.serial}'
        os.rename(self.path(tree, name), self.path(tree, new))
        self.trees[tree] ^= {name, new}
        return tree, name, new

    def link(self):
        tree, name = self.any_file()
        self.serial += 1
        os.link(self.path(tree, name), self.path(tree, f'l{self.serial}'))
        self.trees[tree].add(f'l{self.serial}')
        return tree, name, self.serial

    def unlink(self):
        tree, name = self.any_file()
        os.unlink(self.path(tree, name))
        self.trees[tree].discard(name)
        return tree, name

    def compress(self):
        path = self.file()
        ops.compression(path, self.rng.choice(('lzo', 'zlib', 'zstd', 'none')))
        return path

    def nocow(self):
        path = self.file()
        if os.path.getsize(path):
            os.truncate(path, 0)
        ops.nocow(path)
        return path

    def subvolume(self):
        self.serial += 1
        parent = self.tree()
        name = '/'.join(part for part in (parent, f's{self.serial}') if part)
        ops.subvolume(self.path(name))
        self.trees[name] = set()
        return name

    def snapshot(self):
        if len(self.trees) > 14:
            return self.delete_subvolume()
        source, self.serial, readonly = self.tree(writable=False), self.serial + 1, self.rng.random() < 0.3
        name = f's{self.serial}'
        ops.snapshot(self.path(source), self.path(name), readonly)
        self.trees[name] = set(self.trees[source])
        if readonly:
            self.readonly.add(name)
        return source, name, readonly

    def delete_subvolume(self):
        """Never one that contains another: Linux refuses that."""
        names = sorted(t for t in self.trees if t)
        if not names:
            raise OSError('nothing to delete')
        name = self.rng.choice(names)
        ops.delete_subvolume(self.path(name))
        del self.trees[name]
        self.readonly.discard(name)
        return name

    def balance(self):
        what = self.rng.choice((ops.BALANCE_DATA, ops.BALANCE_METADATA))
        ops.balance(self.mnt, what)
        return what
