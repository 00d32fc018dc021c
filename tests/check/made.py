#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cases of codes.txt that cannot be made from an image, on filesystems made here. BTRKIT is the program under test. A
case that codes.txt refers to but that is missing here is a failure.    made.py [no-parity]"""
import json
import os
import re
import shutil
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
import damages
import unpack
from editing import works
from tool import run

DEVID = 0xC9  # offset in the superblock
BLOCK_GROUP_TREE, STRIPE_TREE, BLOCK_GROUP_ITEM, RAID_STRIPE = 11, 12, 192, 230
DATA, RAID0 = 1, 8
TREES_MAX = 64  # number of trees whose names are compared at a time


def make(folder, number, *options):
    """Make a filesystem without any findings."""
    paths = [os.path.join(folder, f'device-{i}') for i in range(number)]
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(128 << 20)
    status, _, err = run('mkfs', '-q', *options, *paths)
    assert status == 0, err
    assert codes(paths) == [], codes(paths)
    return paths


def codes(paths, *options):
    """Return the codes of all findings in order; also without options."""
    status, out, err = run('check', *(options or ('--data', '--json')), '--repeats', '1000', *paths)
    assert status in (0, 4), (status, err)
    rows = [json.loads(line) for line in out.decode().splitlines()[1:]]
    return [row['code'].removeprefix('BTR-') for row in rows if row['kind'] == 'finding']


def stale(folder):
    """One device missed a commit, so its superblocks are old."""
    paths = make(folder, 2, '-d', 'raid1')
    with open(paths[1], 'rb') as f:
        kept = [os.pread(f.fileno(), 4096, at) for at in damages.SUPERS[:2]]
    works(paths[0], b'mkdir new\n', '--device', paths[1])
    assert codes(paths) == []
    with open(paths[1], 'r+b') as f:
        for at, old in zip(damages.SUPERS, kept):
            os.pwrite(f.fileno(), old, at)
    return codes(paths)


def flip(path, at):
    with open(path, 'r+b') as f:
        byte = os.pread(f.fileno(), 1, at)
        os.pwrite(f.fileno(), bytes([byte[0] ^ 1]), at)


def damage_strips(folder, *lines):
    """Return the codes for files made by a script when the first row of stripes is damaged on one device after the
    other."""
    source = os.path.join(folder, 'source')
    with open(source, 'wb') as f:
        f.write(os.urandom(1 << 20))
    paths = make(folder, 3, '-d', 'raid5', '-m', 'raid1')
    works(paths[0], ''.join(f'{line}\n' for line in (*lines, f'put {source} dir/file')).encode(),
          *(word for path in paths[1:] for word in ('--device', path)))
    assert codes(paths) == []
    chunks = run('dump-tree', '-t', 'chunk', *paths)[1].decode().split('\titem ')
    data = next(chunk for chunk in chunks if 'DATA|RAID5' in chunk)
    told = []
    for devid, offset in re.findall(r'stripe \d+ devid (\d+) offset (\d+)', data):
        flip(paths[int(devid) - 1], int(offset) + 4096)
        told.append(codes(paths))
        flip(paths[int(devid) - 1], int(offset) + 4096)
    return sorted(told)


def parity(folder):
    """One of the devices holds the parity. For data without checksums the bad strip cannot be identified."""
    told = damage_strips(folder, 'mkdir dir', 'chattr +C dir')
    assert told == [['DATA-PARITY']] * 3, told
    told = damage_strips(folder, 'mkdir dir')
    assert told == [['DATA-COPY'], ['DATA-COPY'], ['DATA-PARITY']], told
    return told[-1]


def names(folder):
    """In one tree after the other, a name has different indexes in its inode and in its directory."""
    number = TREES_MAX + 2
    path, = make(folder, 1)
    works(path, ''.join(f'subvolume create sub{i}\nmkdir sub{i}/dir{i}\n' for i in range(number)).encode())
    fs = damages.Filesystem(path)
    for tree in range(256, 256 + number):
        logical, slot, _, _ = fs.find(tree, damages.INODE_REF, 257)
        block = fs.block(logical)
        offset = struct.unpack_from('<I', block, damages.HEADER + slot * damages.ITEM + damages.KEY)[0]
        struct.pack_into('<Q', block, damages.HEADER + offset, 77)
        fs.put(logical, block)
    fs.save()
    told = codes([path])
    assert told == ['NAME-INDEX'] * TREES_MAX + ['NAME-SUM'] * (number - TREES_MAX), told
    return told[-1:]


def name_hash(name):
    crc = 0xFFFFFFFE
    for byte in name:
        crc = damages.TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def attributes(name, good, bad):
    """Return a case with many xattrs, some of which are replaced by bad ones of the same length: only those may be
    reported."""
    def case(folder):
        path, = make(folder, 1)
        rows = [(name, value) if isinstance(value, bytes) else value for value in (*good, *bad)]
        works(path, ''.join(f'mknod {i} p\nsetxattr trusted.{"x" * (len(n) - 8)} {"y" * len(v) or chr(34) * 2} {i}\n'
                            for i, (n, v) in enumerate(rows)).encode())
        fs = damages.Filesystem(path)
        for i, (n, value) in enumerate(rows):
            inode = damages.FIRST_FREE + 1 + i
            leaf, slot, _, _ = fs.find(damages.FS_TREE, damages.XATTR_ITEM, inode)
            damages.poke_item(fs, damages.FS_TREE, damages.XATTR_ITEM, damages.DIR_HEAD, n + value, inode)
            damages.poke(fs, leaf, damages.HEADER + slot * damages.ITEM + 9, struct.pack('<Q', name_hash(n)))
        fs.save()
        status, out, _ = run('check', '--json', '--repeats', '1000', path)
        told = [json.loads(line) for line in out.decode().splitlines()[1:]]
        told = sorted((row['key']['objectid'], row['code']) for row in told if row['kind'] == 'finding')
        inodes = [damages.FIRST_FREE + 1 + len(good) + i for i in range(len(bad))]
        assert status == 4 and [inode for inode, _ in told] == inodes, (told, inodes)
        return sorted({code.removeprefix('BTR-') for _, code in told})
    return case


def acl(*entries, version=2):
    return struct.pack('<I', version) + b''.join(struct.pack('<HHI', tag, perm, 1000 if tag in (2, 8) else NOBODY)
                                                 for tag, perm in entries)


def capability(revision, size):
    return struct.pack('<I', revision << 24 | 1) + bytes(size - 4)


NOBODY = (1 << 32) - 1
OWNER, USER, GROUP, MASK, OTHER = (1, 7), (2, 7), (4, 5), (16, 7), (32, 5)
ACLS = attributes(
    b'system.posix_acl_access',
    (acl(OWNER, USER, GROUP, MASK, OTHER), acl(OWNER, GROUP, OTHER), acl(), b''),
    (b'\2', acl(OWNER, GROUP, OTHER, version=1), acl(OWNER, GROUP, OTHER)[:-1], acl(OWNER, (3, 7), GROUP, OTHER),
     acl(OWNER, USER, GROUP, OTHER), acl(OWNER, USER, GROUP, MASK), acl(GROUP, OWNER, OTHER),
     acl(OWNER, OWNER, GROUP, OTHER), acl(OWNER, GROUP, (32, 8)),
     acl(OWNER, USER, GROUP, MASK, OTHER).replace(struct.pack('<I', 1000), struct.pack('<I', NOBODY)),
     (b'system.posix_acl_default', acl(OWNER, GROUP, OTHER))))
CAPABILITIES = attributes(
    b'security.capability', (capability(1, 12), capability(2, 20), capability(3, 24)),
    (b'', b'\2', capability(2, 12), capability(2, 24), capability(3, 20), capability(0, 20), capability(4, 24),
     capability(3, 28)))
PROPERTIES = attributes(
    b'btrfs.compression', (b'', b'no', b'none', b'zlib', b'zlib:9', b'lzo', b'zstd', b'zstd:15'),
    (b'n', b'non', b'nonex', b'zst', b'lz4', b'ZLIB', (b'btrfs.foo', b'1'), (b'btrfs.compressionx', b'zlib')))


def circle(folder):
    """
    p/x and p/x/q/x are exchanged: then x is in q and q in x, far apart in the tree, in the subvolume and in a
    snapshot. Directories that were merely moved to a higher inode number form no cycle.
    """
    path, = make(folder, 1)
    lines, numbers = [], {}
    for n, name in enumerate(('p', 'p/x', 'p/x/q', 'p/x/q/x', 'new')):
        numbers[name] = damages.FIRST_FREE + 1 + len(lines)
        lines += [f'mkdir {name}', *(f'mkdir {n}-{i}' for i in range(200))]
    lines += [f'mv 1-{i} new/{i}' for i in range(200)]
    works(path, '\n'.join([*lines, 'subvolume snapshot . snapshot', '']).encode())
    assert codes([path]) == []
    fs = damages.Filesystem(path)
    assert fs.block(fs.root(damages.FS_TREE))[100], 'a tree of one leaf'
    p, a, q, d = (struct.pack('<Q', numbers[name]) for name in list(numbers)[:4])
    for tree in damages.FS_TREE, damages.FIRST_FREE:
        for directory, to in (p, d), (q, a):
            for kind in damages.DIR_ITEM, damages.DIR_INDEX:
                damages.poke_item(fs, tree, kind, 0, to, damages.u64(directory, 0))
        for inode, directory in (a, q), (d, p):
            leaf, slot, _, _ = fs.find(tree, damages.INODE_REF, damages.u64(inode, 0))
            damages.poke(fs, leaf, damages.HEADER + slot * damages.ITEM + 9, directory)
    fs.save()
    told = codes([path])
    assert told == ['DIR-CIRCLE'] * 2, told
    return told[-1:]


def many_ways(folder):
    """
    Seven nodes above the leaf of the top tree each have only one child, in all of their pointers, so that there are
    120^7 ways to the leaf. A directory is in one with a higher number. The check ends.
    """
    path, = make(folder, 1, '-n', '4096')
    works(path, b'mkdir low\nmkdir high\nmv low high/low\n')
    assert codes([path]) == []
    fs = damages.Filesystem(path)
    below = fs.root(damages.FS_TREE)
    for level in range(1, 8):
        block = fs.block(below)
        generation, at = block[80:88], below + (1 << 20) + 4096
        struct.pack_into('<Q', block, 48, at)
        struct.pack_into('<IB', block, 96, 120, level)
        for i in range(120):
            struct.pack_into('<QBQQ', block, damages.HEADER + 33 * i, damages.FIRST_FREE, 1, i, below)
            block[damages.HEADER + 33 * i + 25:damages.HEADER + 33 * i + 33] = generation
        fs.put(at, block)
        below = at
    damages.poke_item(fs, damages.ROOT_TREE, damages.ROOT_ITEM, 176, struct.pack('<Q', below), damages.FS_TREE)
    damages.poke_item(fs, damages.ROOT_TREE, damages.ROOT_ITEM, 238, b'\7', damages.FS_TREE)
    fs.save()
    told = codes([path])
    assert 'BLOCK-PARENT' in told, told


def target(folder):
    """A replace target is present, as after a crash at the end of a device replacement."""
    paths = make(folder, 2, '-d', 'raid1')
    paths.append(os.path.join(folder, 'target'))
    shutil.copy(paths[0], paths[2])
    with open(paths[2], 'r+b') as f:
        for at in damages.SUPERS[:2]:
            block = bytearray(os.pread(f.fileno(), 4096, at))
            struct.pack_into('<Q', block, DEVID, 0)
            struct.pack_into('<I', block, 0, damages.crc32c(block[32:]))
            os.pwrite(f.fileno(), block, at)
    told = codes(paths)
    assert codes(paths[2:] + paths[:2]) == told, 'it depends on the order of devices'
    return told


def make_striped(fs):
    """
    Make a filesystem with a stripe tree and data in RAID0 on a single device. Strips keep their positions, so Linux
    looks them up in the tree.
    """
    for tree, kind, at in ((damages.CHUNK_TREE, damages.CHUNK_ITEM, 24), (BLOCK_GROUP_TREE, BLOCK_GROUP_ITEM, 16)):
        logical = fs.leaf(tree)
        block = fs.block(logical)
        for slot in range(damages.u32(block, 96)):
            (_, found, _), data = fs.item(block, slot)
            offset = damages.HEADER + damages.u32(block, damages.HEADER + slot * damages.ITEM + damages.KEY) + at
            if found == kind and damages.u64(data, at) == DATA:
                struct.pack_into('<Q', block, offset, DATA | RAID0)
        fs.put(logical, block)


def put_strides(fs, rows):
    """Replace the items of the stripe tree by these, with one stride each."""
    logical = fs.leaf(STRIPE_TREE)
    block, end = fs.block(logical), fs.nodesize - damages.HEADER
    for n, (start, length, physical) in enumerate(rows):
        end -= 16
        struct.pack_into('<QBQII', block, damages.HEADER + n * damages.ITEM, start, RAID_STRIPE, length, end, 16)
        struct.pack_into('<QQ', block, damages.HEADER + end, 1, physical)
    struct.pack_into('<I', block, 96, len(rows))
    fs.put(logical, block)
    fs.save()


def strides(edit):
    """Return a case that edits the rows of a good filesystem's stripe tree."""
    def case(folder):
        fs = damages.Filesystem(unpack.unpack('unsupported-raid-stripe-tree', folder, quick=True))
        make_striped(fs)
        extents = [key for key, _ in fs.items(fs.root(damages.EXTENT_TREE)) if key[1] == damages.EXTENT_ITEM]
        rows = [(start, length, fs.copies(start)[0]) for start, _, length in extents]
        put_strides(fs, rows)
        assert codes([fs.path], '--json') == [], codes([fs.path], '--json')
        edit(rows)
        put_strides(fs, rows)
        return codes([fs.path], '--json')
    return case


def set_row(i, start=0, length=0, physical=0):
    def edit(rows):
        rows[i] = tuple(old + add for old, add in zip(rows[i], (start, length, physical)))
    return edit


CASES = {'SUPER-STALE': stale, 'DATA-PARITY': parity, 'NAME-SUM': names, 'DIR-CIRCLE': circle, 'DEV-REPLACE': target,
         'INODE-ATTRIBUTE': lambda folder: ACLS(folder) + CAPABILITIES(folder)[1:], 'INODE-PROPERTY': PROPERTIES,
         'STRIPE-PLACE': strides(set_row(1, physical=1 << 30)), 'STRIPE-OVERLAP': strides(set_row(0, length=4096)),
         'STRIPE-MISSING': strides(list.pop), 'STRIPE-EXTENT': strides(set_row(-1, length=4096))}


def main():
    with open(os.path.join(HERE, 'codes.txt'), encoding='ascii') as f:
        wanted = {code.removeprefix('BTR-') for code in re.findall(r'^(\S+) - ', f.read(), re.M)}
    assert wanted == set(CASES), (wanted, set(CASES))
    if 'no-parity' in sys.argv:
        del CASES['DATA-PARITY']
    for code, case in CASES.items():
        with tempfile.TemporaryDirectory(prefix='btrkit-made-') as folder:
            told = case(folder)
        assert told == [code], (code, told)
    with tempfile.TemporaryDirectory(prefix='btrkit-made-') as folder:
        many_ways(folder)
    print(f'{len(CASES)} codes')
    return 0


if __name__ == '__main__':
    sys.exit(main())
