# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits of what a filesystem supports, compared between edit and Linux: the same operations work up to the limit, and
those beyond fail with the same errno."""
import errno
import fcntl
import itertools
import os
import random
import struct

import attributes
import image
import ops
from modify_pair import Pair, check_clean, counts, edit

LARGEST = (1 << 63) - 1
LINKS = 65535
# The file has data at the start, holes from 4096 to 36864 and from 40960 to 196608, and ends at 204800.
HOLES = ((4096, 32768), (4096, 32767), (4096, 32769), (8192, 4096), (36863, 2), (0, 4096),
         (32768, 8192), (40960, 163840), (204800, 4096), (300000, 1 << 30), (204799, 4096), (0, 1 << 30), (5000, 100))
# Xattr names, not all of which are valid.
NAMES = (b'user.a', b'user.', b'trusted.b', b'trusted.', b'security.c', b'security.', b'system.x', b'btrfs.compression',
         b'btrfs.x', b'foo.bar', b'none')
ENABLE_VERITY = 0x40806685


def same_hash(count, length, prefix=b''):
    """Names with equal hashes: the effect of flipping a bit on the hash does not depend on the other bits."""
    base = bytearray(prefix + b'`' * (length - len(prefix)))
    start, rows = attributes.crc32c(bytes(base)), []
    # More bits than a hash has, so some sets of them cancel out.
    for bit in range(44):
        name = bytearray(base)
        name[len(prefix) + bit // 4] ^= 1 << bit % 4
        rows.append((attributes.crc32c(bytes(name)) ^ start, 1 << bit))
    free, pivots = [], {}
    for change, bits in rows:
        while change and change.bit_length() in pivots:
            other = pivots[change.bit_length()]
            change, bits = change ^ other[0], bits ^ other[1]
        if change:
            pivots[change.bit_length()] = change, bits
        else:
            free.append(bits)
    ret = []
    for chosen in itertools.islice(itertools.product((0, 1), repeat=len(free)), count):
        name, bits = bytearray(base), 0
        for use, each in zip(chosen, free):
            bits ^= each if use else 0
        for bit in range(44):
            name[len(prefix) + bit // 4] ^= (bits >> bit & 1) << bit % 4
        assert attributes.crc32c(bytes(name)) == start
        ret.append(bytes(name))
    return ret


def words(text):
    return tuple(text.encode().split())


def names(local):
    long, longer = b'n' * 255, b'n' * 256
    for name in (long, longer, b'\xff' * 255, b'\xff' * 256):
        yield from ((b'mkdir', b'names/' + name), (b'rmdir', b'names/' + name), (b'put', local, b'names/' + name),
                    (b'ln', b'names/' + name, b'names/l' + name[1:]), (b'mv', b'names/' + name, b'names/m' + name[1:]),
                    (b'mv', b'names/m' + name[1:], b'names/short'), (b'mv', b'names/short', b'names/' + name),
                    (b'rm', b'names/l' + name[1:]), (b'ln', b'-s', b'x', b'names/s' + name[1:]),
                    (b'mknod', b'names/p' + name[1:], b'p'))
    for path in (b'names/' + longer, b'names/' + longer + b'/x', b'file/' + longer):
        yield from everything(path, local)
    for size in (4095, 4096):
        yield b'ln', b'-s', b't' * size, b'names/target%d' % size


def everything(path, local, other=b'file'):
    """Every operation on a file; on a directory, those that Linux would reject differently are left out."""
    yield from ((b'chmod', b'600', path), (b'chown', b'5:6', path), (b'touch', b'@77', path), (b'chattr', b'+d', path),
                (b'setxattr', b'user.x', b'value', path), (b'rmxattr', b'user.x', path), (b'truncate', path, b'5'),
                (b'write', path, b'0', local), (b'punch', path, b'0', b'4096'), (b'prealloc', path, b'0', b'9000'),
                (b'clone', b'file', path), (b'ln', path, other + b'l'), (b'mv', path, other + b'm'),
                (b'mv', other + b'm', path),
                (b'mv', b'-x', path, other), (b'mv', b'-x', path, other), (b'mv', b'-n', path, other),
                (b'rm', path), (b'rmdir', path))


def inside(path, local, other=b'file'):
    """Every operation inside a directory. @other: a file elsewhere in the same subvolume"""
    yield from ((b'mkdir', path + b'/new'), (b'mknod', path + b'/p', b'p'), (b'put', local, path + b'/f'),
                (b'put', b'-f', local, path + b'/file'), (b'ln', other, path + b'/l'),
                (b'ln', b'-s', b'x', path + b'/s'), (b'mkdir', path), (b'mkdir', b'-p', path + b'/dir'),
                (b'mv', path + b'/file', path + b'/renamed'), (b'mv', other, path + b'/moved'),
                (b'mv', path + b'/file', other + b'2'), (b'rm', b'-r', path + b'/dir'),
                (b'clone', path + b'/file', b'copy'))
    yield from everything(path + b'/file', local, other)


def collisions(node, local):
    """As many names in one item as fit into a leaf, and more."""
    room = node // (30 + 255)
    found = same_hash(room + 3, 255)
    yield b'mkdir', b'hash'
    makers = (lambda p: (b'put', local, p), lambda p: (b'mkdir', p), lambda p: (b'ln', b'hash/first', p),
              lambda p: (b'ln', b'-s', b'x', p), lambda p: (b'mv', b'hash/second', p))
    yield b'put', local, b'hash/first'
    for name in found[:room - 1]:
        yield b'mknod', b'hash/' + name, b'p'
    yield b'put', local, b'hash/second'
    for name, make in zip(found[room - 1:] * 2, makers):
        yield make(b'hash/' + name)
    yield b'rm', b'hash/' + found[3]
    for make in makers:
        yield make(b'hash/' + found[-1])
    for name in found[:room:2]:
        yield b'rm', b'hash/' + name
    # As many names of one inode as its items can hold, with equal hashes too.
    yield b'mkdir', b'refs'
    yield from ((b'ln', b'hash/first', b'refs/' + name) for name in same_hash(room + 3, 255))
    # Enough names for INODE_EXTREF items, then the last of them are removed.
    others = [b'refs/' + (b'%d' % k).ljust(255, b'o') for k in range(node // 255)]
    yield from ((b'ln', b'hash/first', path) for path in others)
    yield from ((b'rm', others[-1]), (b'mv', others[-3], b'refs/other'), (b'rm', others[0]),
                (b'ln', b'hash/first', others[-1]), (b'rm', others[-2]))
    # The same for xattrs.
    for name in same_hash(room + 3, 255, b'user.'):
        yield b'setxattr', name, b'', b'file'
    yield b'rmxattr', found[0], b'file'


def attribute_limits(node):
    most = attributes.MAX[node]
    for size in (most + 1, most, 100, most, most + 1, 65536, 65537):
        yield b'setxattr', b'user.a', b'L' * size, b'large'
        yield b'setxattr', b'-r', b'user.a', b'M' * size, b'large'
    yield b'setxattr', b'user.' + b'n' * 250, b'L' * (most - 249), b'file2'
    yield b'setxattr', b'user.' + b'n' * 250, b'L' * (most - 248), b'file2'


def sizes(local):
    """The maximal file size is one byte less than 8 EiB."""
    most = b'%d' % LARGEST
    yield from ((b'truncate', b'huge', most), (b'write', b'huge', b'%d' % (LARGEST - 1), local),
                (b'write', b'huge', most, local), (b'write', b'huge', b'%d' % (LARGEST - 4096), local),
                (b'prealloc', b'huge', b'%d' % (LARGEST - 4096), b'4097'), (b'prealloc', b'huge', most, b'1'),
                (b'prealloc', b'huge', b'%d' % (LARGEST - 5000), b'5000'),
                (b'punch', b'huge', b'%d' % (LARGEST - 8191), b'4096'),
                (b'truncate', b'huge2', b'%d' % (LARGEST - 4096)), (b'truncate', b'huge2', b'0'),
                (b'truncate', b'huge2', most))


def holes(local):
    """Which punches count as changes; shortening a small file is one in any case."""
    for k, (first, size) in enumerate(HOLES):
        yield b'punch', b'holes%d' % k, b'%d' % first, b'%d' % size
    yield from ((b'put', local, b'two'), (b'write', b'two', b'1', local), (b'put', local, b'kept'),
                (b'prealloc', b'-k', b'kept', b'0', b'9000'), (b'clone', b'two', b'kept'), (b'truncate', b'kept', b'1'),
                (b'clone', b'kept', b'kept2'))


def contents(path, local):
    """Operations on data."""
    yield from ((b'truncate', path, b'5'), (b'write', path, b'0', local), (b'punch', path, b'0', b'4096'),
                (b'prealloc', path, b'0', b'9000'), (b'clone', b'file', path), (b'clone', path, b'file'),
                (b'clone', b'file', b'0', b'4096', path, b'0'), (b'clone', path, b'0', b'4096', b'file', b'0'),
                (b'clone', path, b'0', b'4096', b'none', b'0'))


def small(node, local):
    """Everything that is fast."""
    yield from ((b'mkdir', b'names'), (b'put', local, b'file2'), (b'put', local, b'large'), (b'put', local, b'huge'),
                (b'put', local, b'huge2'), *names(local), *collisions(node, local), *attribute_limits(node),
                *sizes(local), *holes(local))
    for each, other in ((b'ro', b'ro/dir/file'), (b'ro/dir', b'ro/file')):
        yield from inside(each, local, other)
    yield from (words('subvolume snapshot -r source frozen'), words('mkdir frozen/new'),
                words('property set frozen ro false'), words('mkdir frozen/new'),
                words('subvolume snapshot -r frozen frozen2'), words('rm frozen2/file'))
    for path in (b'ro/inner', b'rw/inner', b'rw/dir'):
        yield from contents(path, local)
    for path, name in itertools.product((b'ro/pipe', b'ro/link', b'ro/file', b'ro/dir'), NAMES):
        yield from ((b'setxattr', name, value, path) for value in (b'zlib', b'nono'))
        yield b'rmxattr', name, path
    for flag in (b'i', b'a'):
        folder, path = b'dir_' + flag, b'file_' + flag
        yield from ((b'mkdir', folder), (b'mkdir', folder + b'/dir'), (b'put', local, folder + b'/file'),
                    (b'put', local, path), (b'chattr', b'+' + flag, folder), (b'chattr', b'+' + flag, path))
        yield from (*inside(folder, local), *everything(path, local), *everything(folder, local))
        yield from ((b'chattr', b'-' + flag, folder, path), (b'rm', b'-r', folder), *everything(path, local))
    for path in (b'none', b'none/none', b'file2/none', b'dir'):
        yield from everything(path, local)
    # Linux cannot do more with files that cannot be opened.
    yield from (op for op in everything(b'pipe', local)
                if op[0] not in (b'chattr', b'write', b'punch', b'prealloc', b'clone'))
    yield from ((b'mkdir', b'/'), (b'chmod', b'755', b'/'), (b'touch', b'@9', b'/'))
    yield from (words('mv dir dir/below'), words('mv -x dir dir/below'), words('mkdir dir dir'),
                words('mv file2 dir'), words('mv dir file2'), words('mv -n -x file2 dir'), words('ln dir hard'))


def base(mnt, local):
    os.mkdir(f'{mnt}/dir')
    os.mkdir(f'{mnt}/dir/below')
    os.mkfifo(f'{mnt}/pipe')
    # Each is punched only once: Linux's in-memory state after that affects the next punch.
    for k in range(len(HOLES)):
        with open(f'{mnt}/holes{k}', 'wb') as f:
            f.write(b'data')
            for at in (40000, 200000):
                f.seek(at)
                f.write(b'more')
    for path in ('file', 'dir/file'):
        with open(f'{mnt}/{path}', 'wb') as f:
            f.write(random.Random(1).randbytes(20000))
    ops.subvolume(f'{mnt}/source')
    os.mkdir(f'{mnt}/source/dir')
    os.mkfifo(f'{mnt}/source/pipe')
    os.symlink('file', f'{mnt}/source/link')
    for path in ('file', 'dir/file'):
        with open(f'{mnt}/source/{path}', 'wb') as f:
            f.write(b'not to be written')
    ops.subvolume(f'{mnt}/source/inner')
    ops.snapshot(f'{mnt}/source', f'{mnt}/ro', readonly=True)
    ops.snapshot(f'{mnt}/source', f'{mnt}/rw')
    with open(f'{mnt}/sealed', 'wb') as f:
        f.write(bytes(range(256)) * 100)
    fd = os.open(f'{mnt}/sealed', os.O_RDONLY)
    try:
        fcntl.ioctl(fd, ENABLE_VERITY, bytearray(struct.pack('=4IQ2IQ88x', 1, 1, 4096, 0, 0, 0, 0, 0)))
        return True
    except OSError as e:
        if e.errno not in (errno.ENOTTY, errno.EOPNOTSUPP):
            raise
        return False
    finally:
        os.close(fd)


def run_small(folder, node, local):
    pair = Pair(folder, ('-n', str(node)))
    try:
        sealed = base(pair.ours.mount(pair.mount_options), local)
        pair.begin()
        plan = [*small(node, local), *(everything(b'sealed', local) if sealed else ())]
        pair.by_edit(pair.by_linux(plan))
        pair.compare(f'edges, nodes of {node}')
        pair.leave()
    finally:
        pair.end()
    return sealed


def run_kept(folder, local):
    """Write over preallocation past the end of a file. Without no-holes, Linux keeps the new size of such an inode only
    in memory, so it is gone after a remount; edit writes it."""
    pair = Pair(folder, ('-O', '^no-holes'))
    try:
        mnt = pair.ours.mount(pair.mount_options)
        for name in ('write', 'truncate', 'prealloc'):
            with open(f'{mnt}/{name}', 'wb') as f:
                f.write(b'small')
            ops.fallocate(f'{mnt}/{name}', 8192, 2048, ops.KEEP_SIZE)
        pair.begin()
        pair.by_edit(pair.by_linux([(b'write', b'write', b'0', local), (b'truncate', b'truncate', b'10000'),
                                    (b'prealloc', b'prealloc', b'0', b'20000')]))
        pair.compare('space behind the end')
        pair.leave()
    finally:
        pair.end()


def listing(mnt):
    """Names in directory order, and attributes of the directories."""
    found, stack = {}, [mnt]
    while stack:
        folder = stack.pop()
        st = os.lstat(folder)
        found[folder[len(mnt):]] = st.st_nlink, st.st_size, st.st_mode, os.listdir(folder)
        if '/links' not in folder and '/many' not in folder:
            stack += [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return found, os.lstat(f'{mnt}/linked').st_nlink


def run_large(folder, node, local, files, links, depth, whole):
    """Many names, links and levels: Linux removes what edit made, and vice versa."""
    pair = Pair(folder, ('-n', str(node)))
    try:
        pair.ours.mount(pair.mount_options)
        pair.begin()
        plan = [(b'mkdir', b'many'), (b'mkdir', b'links'), (b'put', local, b'linked'),
                *((b'mknod', b'many/file%d' % k, b'p') for k in range(files)),
                *((b'ln', b'linked', b'links/%d' % k) for k in range(links)),
                *((b'mkdir', b'/'.join([b'd'] * k)) for k in range(1, depth + 1))]
        done = pair.by_linux(plan)
        assert [number for _, number in done if number] == [errno.EMLINK] * max(links + 1 - LINKS, 0), 'links'
        # btrfs check compares each link with each other one, which takes a minute.
        pair.by_edit(done, check=whole)
        if whole:
            pair.compare(f'large, nodes of {node}')
        else:
            assert listing(pair.ours.mount(pair.mount_options)) == listing(pair.theirs.mnt), 'large'
            counts['paths'] += files + links + depth
        image.run('rm', '-r', *(f'{pair.ours.mnt}/{top}' for top in ('many', 'links', 'd')))
        pair.leave()
        pair.theirs.umount()
        edit(pair.theirs.path, [((b'rm', b'-r', b'many', b'links', b'd'), 0)])
        check_clean(pair.theirs.path)
        pair.theirs.mount(pair.mount_options)
        # The order of the phases differs between the two.
        for bounds in pair.bounds:
            bounds[:] = bounds[:1]
        pair.compare(f'large, removed, nodes of {node}')
        pair.leave()
    finally:
        pair.end()
