#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the images of this folder: the good ones by mkfs.btrfs and Linux, the bad ones from those by tests/damage.

    make.py [NAME...]           needs root, loop devices, and MKFS, BTRFS, BTRFSTUNE of btrfs-progs 6.14 or newer

Beside each good image lie NAME.tsv, the extents of its files as Linux told them by the FIEMAP ioctl (ORACLE is
tests/kernel/fiemap-oracle), and in SHA256SUMS the sums of image, archive and of what dump-tree of btrfs-progs printed.
Some have a sum of what Linux read from their files. MKFS and BTRFS have to know zones for good-zoned, and be built with
--enable-experimental for the images of features that are on trial.
An image made again is not the same byte for byte (Linux writes times and uuids of its own), so both are made together.
"""
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../tests/modules')]

import damages      # noqa: E402
import image        # noqa: E402
import ops          # noqa: E402
import scenarios    # noqa: E402
from scenarios import K, M, two_extents     # noqa: E402

ORACLE = os.environ.get('ORACLE', 'fiemap-oracle')
SMALL = '128M'
UUID = '6b747274-6962-4b69-8000-0000000000{:02x}'


class Making:
    """What a fill function gets; the interface of tests/kernel's Trial."""

    def __init__(self, folder, name, size, options=None):
        self.folder, self.name, self.options = folder, name, options or {}
        self.image = image.Image(os.path.join(folder, f'{name}.img'), size)

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def mnt(self):
        return self.image.mnt

    def use_copy(self):
        copy = self.image.copy(self.path('copy.img'))
        self.image.umount()
        os.rename(copy.path, self.image.path)

    def wait_for_cleaner(self):
        for _ in range(100):
            ops.sync(self.mnt)
            if not image.run(image.BTRFS, 'subvolume', 'list', '-d', self.mnt).strip():
                break
        ops.sync(self.mnt)

    def has(self, pattern, tree='root'):
        text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', tree, self.image.path)
        return pattern.encode() in text


def some(t):
    """A bit of everything that a small filesystem has."""
    root = t.mnt
    os.mkdir(f'{root}/folder')
    for i in range(12):
        ops.write(f'{root}/folder/file{i}', 0, b'file' * (i * i * 100 + 10))
    os.symlink('folder/file1', f'{root}/link')
    os.link(f'{root}/folder/file2', f'{root}/second-name')
    os.mkfifo(f'{root}/fifo')
    os.setxattr(f'{root}/folder/file3', 'user.colour', b'blue')
    two_extents(f'{root}/foo')
    ops.clone(f'{root}/foo', 256 * K, 256 * K, f'{root}/bar', 0)
    ops.subvolume(f'{root}/sub')
    ops.write(f'{root}/sub/inner', 0, b'inner ' * 5000, sync=True)
    ops.snapshot(f'{root}/sub', f'{root}/snap', readonly=True)
    ops.write(f'{root}/sub/inner', 4096, b'changed')
    with ops.Opened(f'{root}/holes') as fd:
        for i in range(5):
            os.pwrite(fd, b'h', i * 40000)
        os.ftruncate(fd, 300000)


def clones(t):
    two_extents(f'{t.mnt}/foo')
    ops.clone(f'{t.mnt}/foo', 256 * K, 256 * K, f'{t.mnt}/bar', 0)
    two_extents(f'{t.mnt}/foo2')
    ops.clone(f'{t.mnt}/foo2', 0, 256 * K, f'{t.mnt}/bar2', 0)
    two_extents(f'{t.mnt}/twice')
    ops.clone(f'{t.mnt}/twice', 0, 256 * K, f'{t.mnt}/twice', M)
    ops.clone(f'{t.mnt}/bar', 0, 256 * K, f'{t.mnt}/of-clone', 4096)


def generations(t):
    previous = f'{t.mnt}/s0'
    ops.subvolume(previous)
    for i in range(30):
        for block in range(8):
            ops.write(f'{previous}/f{i}', block * 8192, b'%d' % i * 1000)
    for number in range(1, 4):
        ops.sync(t.mnt)
        ops.snapshot(previous, f'{t.mnt}/s{number}', readonly=number == 2)
        for i in range(number, 30, 9):
            ops.write(f'{previous}/f{i}', 8192 * number, b'later' * 900)
        previous = f'{t.mnt}/s{number if number != 2 else 1}'


def compressed(t):
    for kind in ('lzo', 'zlib', 'zstd'):
        for name, size in (('large', 300 * K), ('small', 900)):
            path = f'{t.mnt}/{kind}-{name}'
            with ops.Opened(path):
                pass
            ops.compression(path, kind)
            ops.write(path, 0, (kind.encode() + b' ') * (size // 4), sync=True)
    ops.clone(f'{t.mnt}/zstd-large', 0, 128 * K, f'{t.mnt}/clone', 0)


def leaves(t):
    ops.subvolume(f'{t.mnt}/source')
    ops.write(f'{t.mnt}/source/one', 0, b'o' * M, sync=True)
    for i in range(1, 256, 2):
        ops.write(f'{t.mnt}/source/one', i * 4096, b'p' * 4096)
    ops.sync(t.mnt)
    ops.snapshot(f'{t.mnt}/source', f'{t.mnt}/user')
    ops.sync(t.mnt)
    ops.delete_subvolume(f'{t.mnt}/source')
    t.wait_for_cleaner()


def holes(t):
    for i in range(12):
        ops.write(f'{t.mnt}/many', i * 12 * K, b'm' * (i % 3 * 4000 + 1))
    ops.fallocate(f'{t.mnt}/prealloc', 0, M)
    ops.write(f'{t.mnt}/prealloc', 100000, b'w' * 9000)
    ops.fallocate(f'{t.mnt}/beyond', 0, 256 * K, ops.KEEP_SIZE)
    ops.write(f'{t.mnt}/beyond', 0, b'start')


def links(t):
    for number in range(2):
        path = f'{t.mnt}/file{number}'
        ops.write(path, 0, b'linked ' * 2000)
        os.mkdir(f'{t.mnt}/dir{number}')
        for i in range(120):
            os.link(path, f'{t.mnt}/dir{number}/' + f'a-long-name-for-a-hard-link-{i:04}-' * 2)
    os.unlink(f'{t.mnt}/file1')


def quota(simple):
    def fill(t):
        ops.quota(t.mnt, simple)
        some(t)
    return fill


def half_dropped(t):
    ops.subvolume(f'{t.mnt}/victim')
    for i in range(3000):
        os.symlink('nowhere', f'{t.mnt}/victim/l{i}')
    for i in range(20):
        ops.write(f'{t.mnt}/victim/f{i}', 0, b'v' * 9000)
    ops.sync(t.mnt)
    ops.snapshot(f'{t.mnt}/victim', f'{t.mnt}/kept')
    for i in range(0, 3000, 10):
        os.utime(f'{t.mnt}/victim/l{i}', follow_symlinks=False)
    ops.clone(f'{t.mnt}/victim/f7', 0, 4096, f'{t.mnt}/clone', 0)
    t.image.umount()
    filled = t.image
    for _ in range(200):
        t.image = filled.copy(t.path('try.img'))
        t.image.mount()
        ops.delete_subvolume(f'{t.mnt}/victim')
        ops.sync(t.mnt)
        t.image.umount()
        if t.has('refs 0\n\t\tdrop_progress key (2'):
            os.rename(t.image.path, filled.path)
            t.image = filled
            return
    raise RuntimeError('never half dropped')


def log_tree(t):
    two_extents(f'{t.mnt}/f')
    ops.sync(t.mnt)
    ops.write(f'{t.mnt}/f', 64 * K, b'logged' * 2000, sync=True)
    ops.write(f'{t.mnt}/new', 0, b'logged' * 2000, sync=True)
    t.use_copy()


def orphan(t):
    some(t)
    two_extents(f'{t.mnt}/gone')
    with ops.Opened(f'{t.mnt}/gone') as held:
        os.unlink(f'{t.mnt}/gone')
        ops.sync(t.mnt)
        t.listing = image.run(ORACLE, t.mnt, f'/proc/{os.getpid()}/fd/{held}')
        copy = t.image.copy(t.path('copy.img'))
    t.image.umount()
    os.rename(copy.path, t.image.path)


def keyed_references(t):
    """More references than an extent item has room for, of each of the four types."""
    source = f'{t.mnt}/source'
    ops.subvolume(source)
    ops.write(f'{source}/file', 0, b'f' * 8192, sync=True)
    for i in range(3000):
        os.symlink('nowhere', f'{source}/link{i}')
    for i in range(24):
        ops.clone(f'{source}/file', 0, 8192, f'{t.mnt}/clone{i}', 0)
        ops.snapshot(source, f'{t.mnt}/s{i}')
        ops.sync(t.mnt)
        os.setxattr(f'{t.mnt}/s{i}/file', 'user.number', b'%d' % i)
        ops.snapshot(f'{t.mnt}/s{i}', f'{t.mnt}/t{i}')
    ops.sync(t.mnt)
    for name in ('source', *(f's{i}' for i in range(24))):
        ops.delete_subvolume(f'{t.mnt}/{name}')
    t.wait_for_cleaner()


def levels(t):
    """Nodes that two trees share, of the tree that made them and of a snapshot."""
    ops.subvolume(f'{t.mnt}/source')
    for i in range(20):
        ops.write(f'{t.mnt}/source/f{i}', 0, b'f' * 9000)
    for i in range(2400):
        os.symlink('nowhere', f'{t.mnt}/source/l{i}')
    ops.sync(t.mnt)
    ops.snapshot(f'{t.mnt}/source', f'{t.mnt}/snapshot')
    for i in range(0, 2400, 150):
        os.utime(f'{t.mnt}/snapshot/l{i}', follow_symlinks=False)


def zoned(t):
    """Not in the order of zones, which nobody who reads minds."""
    some(t)
    compressed(t)


V1 = ('-O', '^free-space-tree,^block-group-tree')

# name: what it is, how it is filled, options of mkfs, of mount, and more
GOOD = {
    'good-default': ('what btrfs-progs 6.19 makes by default, with a bit of everything', some),
    'good-nodesize-4k': ('nodes of 4 KiB, so that most trees have levels', some, ('-n', '4096')),
    'good-nodesize-64k': ('nodes of 64 KiB', some, ('-n', '65536')),
    'good-clones': ('extents cloned: the second of two, the first of two, twice in a file, a clone of a clone', clones),
    'good-generations': ('three generations of snapshots with changes in each', generations, ('-n', '4096')),
    'good-leaves-source-deleted': ('an extent in several leaves, one user left, yet shared', leaves, ('-n', '4096')),
    'good-compressed': ('lzo, zlib and zstd, in extents and inline', compressed),
    'good-holes': ('holes that the no-holes feature leaves out, and preallocated ranges', holes),
    'good-holes-explicit': ('the same without no-holes', holes, ('-O', '^no-holes')),
    'good-hard-links': ('names in INODE_EXTREF items; one file lost its first name', links, ('-n', '4096')),
    'good-odd-names': ('names with line ends, tabs, bytes that are not UTF-8', scenarios.odd_names),
    'good-mixed': ('data and metadata in the same block groups', some, ('-M', '-n', '4096'), '', '32M'),
    'good-quota': ('quota groups', quota(False)),
    'good-quota-simple': ('simple quotas: extents know their owner', quota(True)),
    'good-cache-v1': ('a v1 free space cache (block groups under 100 MiB have none)', some, V1, 'space_cache=v1',
                      '1200M'),
    'good-not-skinny': ('extent items of tree blocks in the old form', some, ('-O', '^skinny-metadata', '-n', '4096')),
    'good-single': ('a single copy of metadata', some, ('-m', 'single')),
    'good-dup-data': ('two copies of data', some, ('-d', 'dup'), '', '256M'),
    'good-metadata-uuid': ('another filesystem id than the one in its blocks', some),
    'good-log-tree': ('a crash after fsync: a log tree', log_tree, (), 'commit=600', SMALL, 'rescue=nologreplay'),
    'good-orphan': ('a crash while an unlinked file was open', orphan),
    'good-half-dropped': ('a subvolume that was being dropped', half_dropped, ('-n', '4096')),
    'good-levels': ('a subvolume of three levels, and a snapshot of it', levels, ('-n', '4096')),
    'good-keyed-references': ('references with items of their own, of each type', keyed_references, ('-n', '4096')),
    'good-zoned': ('zoned, made on an emulated zoned device', zoned, ('-O', 'zoned'), '', '3G'),
}

UNSUPPORTED = {
    'unsupported-raid-stripe-tree': ('a raid-stripe-tree, of items written by hand: all is shown, no file data read',
                                     ('-O', 'raid-stripe-tree'), SMALL),
    'unsupported-extent-tree-v2': ('an extent tree of version 2', ('-O', 'extent-tree-v2'), SMALL),
}

ZONED = 1 << 12
RAID_STRIPE_TREE, RAID_STRIPE = 12, 230


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def file_sum(path):
    with open(path, 'rb') as f:
        return hashlib.file_digest(f, 'sha256').hexdigest() if hasattr(hashlib, 'file_digest') else sha256(f.read())


def pack(path, name, sums):
    """A sparse archive: what is not in it is zero."""
    inside = os.path.join(os.path.dirname(path), f'{name}.img')
    if path != inside:
        os.rename(path, inside)
    image.run('fallocate', '--dig-holes', inside)
    archive = os.path.join(HERE, f'{name}.tar.xz')
    plain = ('--format=gnu', '-S', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=644')
    tar = image.run('tar', '-C', os.path.dirname(inside), *plain, '-c', f'{name}.img')
    packed = subprocess.run(['xz', '-9e', '-T1'], input=tar, stdout=subprocess.PIPE, check=True).stdout
    with open(archive, 'wb') as f:
        f.write(packed)
    sums[f'{name}.img'] = file_sum(inside)
    sums[f'{name}.tar.xz'] = sha256(packed)
    print(f'{name}: {len(packed)} bytes', flush=True)


def set_zoned(path, on):
    """Linux without support for zones writes to a zoned filesystem as if it were none. So it gets one that says so."""
    with open(path, 'r+b') as f:
        for at in damages.SUPERS:
            f.seek(at)
            block = bytearray(f.read(4096))
            if block[0x40:0x48] != b'_BHRfS_M':
                continue
            incompat = damages.u64(block, 0xBC)
            block[0xBC:0xC4] = damages.u64_bytes(incompat | ZONED if on else incompat & ~ZONED)
            block[0:4] = struct.pack('<I', damages.crc32c(block[32:]))
            f.seek(at)
            f.write(block)


def add_stripes(path):
    """Writes items into the empty raid-stripe-tree: two strides for each data extent, and one of many."""
    fs = damages.Filesystem(path)
    where = fs.leaf(RAID_STRIPE_TREE)
    leaf, end = fs.block(where), fs.nodesize - damages.HEADER
    extents = [key for key, _ in fs.items(fs.root(damages.EXTENT_TREE)) if key[1] == damages.EXTENT_ITEM]
    for n, (start, _, length) in enumerate(extents):
        strides = [(device + 1, start + (device << 30)) for device in range(7 if n == 1 else 2)]
        data = b''.join(struct.pack('<QQ', *stride) for stride in strides)
        end -= len(data)
        leaf[damages.HEADER + end:damages.HEADER + end + len(data)] = data
        struct.pack_into('<QBQII', leaf, damages.HEADER + n * damages.ITEM, start, RAID_STRIPE, length, end, len(data))
    struct.pack_into('<I', leaf, 96, len(extents))
    fs.put(where, leaf)
    fs.save()


def as_6_19(text):
    """What btrfs-progs 6.19 would print instead of this text of 7.1 or later."""
    text = re.sub(rb'(\n\t\textent|(?<=\))) encryption \d+(?=\n)', b'', text)
    return re.sub(rb'\n\t(\t\(172 0x[0-9a-f]+\) )extent owner root ', rb'\n\1textent owner root ', text)


def add_dumps(name, path, sums):
    """Add the sums of the dump without the banner, and without what only a build with --enable-experimental prints.
    Before 7.1 there is only one of 6.19."""
    lines = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', path).splitlines(True)[1:]
    text = b''.join(line for line in lines if not line.startswith((b'checksum stored ', b'checksum calced ')))
    sums.pop(f'{name}.dump', None)
    if image.progs_version() >= (7, 1):
        sums[f'{name}.dump'] = sha256(text)
    sums[f'{name}.dump-6.19'] = sha256(as_6_19(text))


def make_good(number, name, folder, sums):
    _, fill, mkfs, mount, size, readonly = (GOOD[name] + ((), '', SMALL, '')[len(GOOD[name]) - 2:])[:6]
    t = Making(folder, name, size)
    t.listing = None
    t.image.mkfs('-U', UUID.format(number), *mkfs)
    if name == 'good-metadata-uuid':
        image.run(image.BTRFSTUNE, '-M', UUID.format(number + 128), t.image.path)
    if name == 'good-zoned':
        set_zoned(t.image.path, False)
    t.image.mount(mount)
    fill(t)
    t.image.umount()
    if not t.listing:
        t.image.mount(readonly, readonly=True)
        t.listing = image.run(ORACLE, t.image.mnt)
        if name == 'good-zoned':
            sums[f'{name}.files'] = sha256('\n'.join(sorted(set(files_of(t.image.mnt)))).encode())
        t.image.umount()
    if name == 'good-zoned':
        set_zoned(t.image.path, True)
    with open(os.path.join(HERE, f'{name}.tsv'), 'wb') as f:
        f.write(t.listing)
    add_dumps(name, t.image.path, sums)
    pack(t.image.path, name, sums)


def files_of(mnt):
    """The content of each file, under the name that tests/kernel/read-files gives it."""
    for folder, _, names in os.walk(mnt):
        for path in (os.path.join(folder, name) for name in names):
            name = f'{ops.root_id(folder)}-{os.lstat(path).st_ino}'
            if os.path.islink(path):
                yield f'{name} {sha256(os.fsencode(os.readlink(path)))}'
            elif os.path.isfile(path):
                yield f'{name} {file_sum(path)}'


def make_unsupported(number, name, folder, sums):
    _, mkfs, size = UNSUPPORTED[name]
    made = image.Image(os.path.join(folder, f'{name}.img'), size)
    files = os.path.join(folder, 'files')
    os.makedirs(files, exist_ok=True)
    for n in range(4):
        with open(os.path.join(files, f'file{n}'), 'wb') as f:
            f.write(b'data' * (n * 5000 + 20))
    if name == 'unsupported-raid-stripe-tree':
        made.mkfs('-U', UUID.format(number), '--rootdir', files, *mkfs)
        add_stripes(made.path)
        add_dumps(name, made.path, sums)
    else:
        made.mkfs('-U', UUID.format(number), *mkfs)
    pack(made.path, name, sums)


def make_bad(name, folder, sums):
    source = damages.DAMAGES[name].source
    path = os.path.join(folder, f'{name}.img')
    image.run('cp', '--sparse=always', os.path.join(folder, f'{source}.img'), path)
    damages.apply(name, path)
    pack(path, name, sums)


def readme(sums):
    lines = ['<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->', '# Images', '',
             'Small filesystems for tests. `make.py` made them and documents how; `unpack.py NAME DIR` unpacks one.',
             'Those named good can be read completely. Those named bad are damaged, by `tests/modules/damages.py`.',
             'Those named unsupported are sound, but refused completely or in part, with the name of the feature.',
             '`NAME.tsv` is the output of the FIEMAP ioctl. `SHA256SUMS` has the sums of archives, of images, and of',
             'what btrfs-progs 7.3 and 6.19 print for an image (dump-tree without its first line, with TZ=UTC).', '',
             '| image | what it is | sha256 of the image, of the archive |', '|---|---|---|']
    what = {name: row[0] for name, row in (*GOOD.items(), *UNSUPPORTED.items())}
    what |= {name: f'{d.what}, in {d.source}' for name, d in damages.DAMAGES.items()}
    for name, text in what.items():
        lines.append(f'| {name} | {text} | `{sums[name + ".img"][:16]}`, `{sums[name + ".tar.xz"][:16]}` |')
    with open(os.path.join(HERE, 'README.md'), 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


def main():
    os.environ.update(TZ='UTC', LC_ALL='C')
    path = os.path.join(HERE, 'SHA256SUMS')
    sums = {}
    if os.path.exists(path):
        with open(path, encoding='ascii') as f:
            sums = {name: value for value, name in (line.split() for line in f)}
    wanted = sys.argv[1:]
    for name in wanted:
        if name not in {*GOOD, *UNSUPPORTED, *damages.DAMAGES}:
            sys.exit(f'make.py: there is no image {name}')
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate((*GOOD, *UNSUPPORTED)):
            if not wanted or name in wanted:
                (make_good if name in GOOD else make_unsupported)(number, name, folder, sums)
        for name, damage in damages.DAMAGES.items():
            if not wanted or name in wanted:
                if not os.path.exists(os.path.join(folder, f'{damage.source}.img')):
                    subprocess.run([sys.executable, os.path.join(HERE, 'unpack.py'), damage.source, folder], check=True)
                make_bad(name, folder, sums)
    with open(path, 'w', encoding='ascii') as f:
        f.writelines(f'{value}  {name}\n' for name, value in sorted(sums.items()))
    readme(sums)


if __name__ == '__main__':
    main()
