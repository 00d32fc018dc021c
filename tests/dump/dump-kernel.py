#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree and dump-super compared with btrfs-progs, with every option, on filesystems that the kernel made."""
import fnmatch
import os
import random
import re
import stat
import struct
import subprocess
import sys
import tempfile
import types
from fcntl import ioctl

import compare
from compare import BTRFS, Comparison, Difference, must

import image
import ops

SET_RECEIVED = 0xC0C89425
DEFAULT_SUBVOL = 0x40089413
OLD = ['-O', '^extref,^skinny-metadata,^no-holes', '-R', '^free-space-tree']


class Trial:
    def __init__(self, scratch, size):
        self.image = image.Image(f'{scratch}/fs.img', size)
        self.many_links = True          # requires extended references
        self.dumped = [self.image]      # what is compared: a copy taken while mounted, or the final image

    @property
    def mnt(self):
        return self.image.mnt

    def take(self):
        """Compare the current state of the image, including everything written so far."""
        subprocess.run(['sync', '-d', self.image.path], check=True)
        self.dumped = [self.image.copy(self.image.path + '.copy')]


def names(t):
    """Inodes of every type, names with every byte, more hard links than fit into one item, attributes."""
    os.makedirs(f'{t.mnt}/dir/sub')
    for low in range(1, 256, 50):
        name = bytes(b for b in range(low, min(low + 50, 256)) if b != 0x2f)
        ops.write(os.fsencode(f'{t.mnt}/dir/') + name, 0, name * 50)
    ops.write(f'{t.mnt}/inline', 0, b'inline data\n')
    ops.write(f'{t.mnt}/regular', 0, ops.incompressible(500000))
    for i in range(200 if t.many_links else 10):
        os.link(f'{t.mnt}/regular', f'{t.mnt}/dir/{"long name " * 20}{i}')
    os.symlink('dir/sub', f'{t.mnt}/link')
    os.mkfifo(f'{t.mnt}/fifo')
    os.mknod(f'{t.mnt}/block', stat.S_IFBLK | 0o600, os.makedev(7, 300))
    os.mknod(f'{t.mnt}/char', stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for i, value in enumerate((b'', b'value', bytes(range(256)), b'\xff\x00' * 1500)):
        os.setxattr(f'{t.mnt}/regular', f'user.name {i}', value)
    os.setxattr(f'{t.mnt}/dir', 'trusted.odd\n', b'\n')
    os.utime(f'{t.mnt}/inline', (-1e9, 4e9))
    os.chmod(f'{t.mnt}/fifo', 0o7777)
    os.chown(f'{t.mnt}/fifo', 12345, 0xfffffffe)


def extents(t):
    """Holes, preallocated and compressed extents, clones, many checksum items and back references."""
    for i, kind in enumerate(('zlib', 'lzo', 'zstd')):
        ops.write(f'{t.mnt}/{kind}', 0, b'')
        ops.compression(f'{t.mnt}/{kind}', kind)
        ops.write(f'{t.mnt}/{kind}', i * 4096, b'compress me ' * 30000)
    ops.nocow(f'{t.mnt}/nocow')
    ops.write(f'{t.mnt}/nocow', 0, ops.incompressible(100000))
    ops.fallocate(f'{t.mnt}/prealloc', 0, 1 << 20)
    ops.write(f'{t.mnt}/prealloc', 100000, b'x' * 10000)
    ops.write(f'{t.mnt}/holes', 1 << 30, b'far')
    for i in range(0, 3000):
        ops.write(f'{t.mnt}/many', i * 8192, b'%d' % i)
    ops.sync(t.mnt)
    for i in range(40):
        ops.clone(f'{t.mnt}/zstd', 0, 65536, f'{t.mnt}/clone-{i}', i * 65536)


def subvolumes(t):
    names(t)
    ops.subvolume(f'{t.mnt}/sub')
    extents(types.SimpleNamespace(mnt=f'{t.mnt}/sub'))
    ops.subvolume(f'{t.mnt}/sub/nested')
    ops.snapshot(f'{t.mnt}/sub', f'{t.mnt}/snap')
    ops.snapshot(f'{t.mnt}/sub', f'{t.mnt}/read only', readonly=True)
    ops.snapshot(t.mnt, f'{t.mnt}/top')
    ops.write(f'{t.mnt}/snap/many', 0, b'changed' * 1000)
    with ops.opened_dir(f'{t.mnt}/snap') as fd:
        args = bytearray(struct.pack('=16sQQQIxxxxQIxxxxQ128x', bytes(range(16)), 7, 0, 1700000000, 5, 0, 0, 0))
        ioctl(fd, SET_RECEIVED, args[:200])
    with ops.opened_dir(t.mnt) as fd:
        ioctl(fd, DEFAULT_SUBVOL, struct.pack('=Q', ops.root_id(f'{t.mnt}/snap')))
    ops.sync(t.mnt)
    ops.delete_subvolume(f'{t.mnt}/top')


def log_tree(t):
    """Changes that were only fsynced, so they are in the log tree."""
    names(t)
    ops.subvolume(f'{t.mnt}/sub')
    ops.sync(t.mnt)

    def work():
        for i in range(20):
            ops.write(f'{t.mnt}/dir/new-{i}', 0, ops.incompressible(5000 * i + 1), sync=True)
        os.rename(f'{t.mnt}/dir/new-3', f'{t.mnt}/dir/renamed')
        os.unlink(f'{t.mnt}/dir/new-4')
        ops.fsync(f'{t.mnt}/dir')
        ops.write(f'{t.mnt}/sub/file', 0, b'sub' * 5000, sync=True)
        ops.fsync(f'{t.mnt}/dir/renamed')
        subprocess.run(['sync', '-d', t.image.path], check=True)
    t.dumped = [t.image.copy_with_log(t.image.path + '.copy', work)]


def orphans(t):
    extents(t)
    opened = [os.open(f'{t.mnt}/{name}', os.O_RDONLY) for name in ('many', 'zstd')]
    os.unlink(f'{t.mnt}/many')
    os.unlink(f'{t.mnt}/zstd')
    ops.sync(t.mnt)
    t.take()
    for fd in opened:
        os.close(fd)


def quotas(t):
    must(BTRFS, 'quota', 'enable', t.mnt)
    subvolumes(t)
    for level in ('1/100', '2/1'):
        must(BTRFS, 'qgroup', 'create', level, t.mnt)
    must(BTRFS, 'quota', 'rescan', '-w', t.mnt)
    must(BTRFS, 'qgroup', 'assign', '--no-rescan', f'0/{ops.root_id(t.mnt + "/sub")}', '1/100', t.mnt)
    must(BTRFS, 'qgroup', 'assign', '--no-rescan', '1/100', '2/1', t.mnt)
    must(BTRFS, 'qgroup', 'limit', '1G', '1/100', t.mnt)
    must(BTRFS, 'qgroup', 'limit', '-e', '2G', '2/1', t.mnt)
    must(BTRFS, 'quota', 'rescan', '-w', t.mnt)


def simple_quotas(t):
    ops.quota(t.mnt, simple=True)
    subvolumes(t)


def free_space(t):
    """Enough fragments of free space for bitmaps."""
    rng = random.Random(3)
    for i in range(6000):
        ops.write(f'{t.mnt}/f{i % 40}', i // 40 * 4096 * 2, b'%d' % i * 100)
        if i % 40 == 39:
            ops.sync(t.mnt)
    for i in rng.sample(range(40), 20):
        os.unlink(f'{t.mnt}/f{i}')
    ops.sync(t.mnt)


def balance_paused(t):
    for i in range(120):
        ops.write(f'{t.mnt}/f{i}', 0, ops.incompressible(1000000, i))
    ops.sync(t.mnt)
    ops.leave_balance(t.mnt)
    ops.sync(t.mnt)


SCENARIOS = [
    # Name, mkfs.btrfs options, mount options, what to do, what the dump must contain.
    ('names', [], '', names, [rb'INODE_EXTREF', rb'XATTR_ITEM', rb'type FIFO', rb'type BLKDEV']),
    ('names-4k', ['-n', '4096', '-s', '4096'], '', names, [rb'level 1 items']),
    ('extents', [], '', extents, [rb'compression 3', rb'prealloc', rb'EXTENT_DATA_REF']),
    ('extents-64k', ['-n', '65536'], '', extents, [rb'EXTENT_CSUM']),
    ('old', [*OLD, '-n', '4096', '-s', '4096'], 'space_cache=v1', subvolumes, [rb'EXTENT_ITEM \d+', rb'UNTYPED']),
    ('mixed', ['-M', '-n', '4096', '-s', '4096'], '', subvolumes, [rb'DATA\|METADATA']),
    ('subvolumes', [], '', subvolumes, [rb'UUID_KEY_RECEIVED_SUBVOL', rb'ROOT_BACKREF']),
    ('no-cache', ['-R', '^free-space-tree'], 'nospace_cache', subvolumes, []),
    ('v1-cache', ['-R', '^free-space-tree', '-O', '^block-group-tree'], 'space_cache=v1', free_space,
     [rb'cache generation']),
    ('free-space-tree', [], '', free_space, [rb'FREE_SPACE_BITMAP']),
    ('block-group-tree', ['-O', 'block-group-tree'], '', subvolumes, [rb'BLOCK_GROUP_TREE']),
    ('quotas', [], '', quotas, [rb'QGROUP_RELATION', rb'QGROUP_LIMIT', rb'QGROUP_STATUS']),
    ('simple-quotas', [], '', simple_quotas, [rb'EXTENT_OWNER_REF|extent owner', rb'QGROUP_STATUS']),
    ('log-tree', [], '', log_tree, [rb'log root tree', rb'TREE_LOG ROOT_ITEM', rb'DIR_LOG_INDEX']),
    ('orphans', [], '', orphans, [rb'ORPHAN_ITEM']),
    ('balance-paused', [], '', balance_paused, [rb'TEMPORARY_ITEM']),
]


def attempt(c, scratch, mkfs, mount, fill, wants):
    # Linux keeps a v1 cache only for block groups of at least 100 MiB.
    t = Trial(scratch, '4G' if 'space_cache=v1' in mount else '400M')
    t.many_links = mkfs[:2] != OLD[:2]
    try:
        t.image.mkfs(*mkfs)
        t.image.mount(mount)
        fill(t)
        t.image.umount()
        devices = [taken.path for taken in t.dumped]
        text = c.tree([], *devices)
        for want in wants:
            if not re.search(want, text):
                raise RuntimeError(f'the filesystem lacks what it is for: {want}')
        c.trees(*devices, more=[['-t', 'tree-log'], ['--dfs', '-t', 'TREE_LOG']] if b'log root tree' in text else [])
        c.supers(*devices)
    finally:
        t.image.umount()
        for taken in {t.image, *t.dumped}:
            taken.remove()


def replaced_device(c, scratch):
    """Two devices, one of which was replaced: device statistics and the replace item."""
    paths = [f'{scratch}/{i}.img' for i in range(3)]
    loops, mnt = [], tempfile.mkdtemp(dir=scratch)
    try:
        for path in paths:
            with open(path, 'wb') as f:
                f.truncate(300 << 20)
            loops.append(image.attach(path))
        must(compare.MKFS, '-q', '-f', '-m', 'single', '-d', 'single', *loops[:2])
        must('mount', loops[0], mnt)
        ops.write(f'{mnt}/file', 0, ops.incompressible(50 << 20))
        must(BTRFS, 'replace', 'start', '-B', '-f', '2', loops[2], mnt)
        must('umount', mnt)
        text = c.tree([], loops[0], loops[2])
        if b'DEV_REPLACE' not in text or b'PERSISTENT_ITEM' not in text:
            raise RuntimeError('no device was replaced')
        c.trees(loops[0], loops[2])
        # Both btrfs-progs and btrkit find the second device by themselves.
        c.tree([], loops[2])
    finally:
        subprocess.run(['umount', mnt], stderr=subprocess.DEVNULL, check=False)
        image.detach(*loops)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else '*'
    compare.need_peer()
    reason = image.missing()
    if reason:
        compare.skip(reason)
    compare.self_test()
    c, failed = Comparison(), []
    with tempfile.TemporaryDirectory(prefix='btrkit-dump-') as scratch:
        work = [(name, attempt, rest) for name, *rest in SCENARIOS] + [('replaced-device', replaced_device, [])]
        for name, function, args in work:
            if not fnmatch.fnmatch(name, only):
                continue
            before = c.lines
            try:
                function(c, scratch, *args)
                print(f'ok {name}: {c.lines - before} lines', flush=True)
            except (Difference, RuntimeError, OSError) as e:
                failed.append(name)
                print(f'FAIL {name}: {type(e).__name__}: {e}', flush=True)
    if failed:
        print('failed:', *failed)
    return c.finish() or bool(failed)


if __name__ == '__main__':
    sys.exit(main())
