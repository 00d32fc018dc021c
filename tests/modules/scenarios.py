# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems whose extents are compared with Linux's results: how the kernel makes them, and what each must
contain."""
import os
import random
import threading
import time
from dataclasses import dataclass, field

import image
import ops

K, M = 1 << 10, 1 << 20


@dataclass
class Scenario:
    name: str
    fill: callable                  # fill(t): t.mnt is the mounted filesystem; see class Trial of fiemap-kernel.py
    mkfs: tuple = ()
    mount: str = ''
    size: str = '300M'
    wants: tuple = ()               # regular expressions that the dump of all trees must match
    tune: tuple = ()                # options of btrfstune, run after mkfs
    readonly: str = ''              # further options of the read-only mount that is listed
    options: dict = field(default_factory=dict)


def two_extents(path):
    ops.write(path, 0, b'\xab' * (256 * K), sync=True)
    ops.write(path, 256 * K, b'\xcd' * (256 * K), sync=True)


def second_cloned(t):
    two_extents(f'{t.mnt}/foo')
    ops.clone(f'{t.mnt}/foo', 256 * K, 256 * K, f'{t.mnt}/bar', 0)


def first_cloned(t):
    two_extents(f'{t.mnt}/foo')
    ops.clone(f'{t.mnt}/foo', 0, 256 * K, f'{t.mnt}/bar', 0)


def change(directory, seed, changes=60, size=4 * M):
    rng = random.Random(seed)
    for name in sorted(os.listdir(directory)):
        path = f'{directory}/{name}'
        if not os.path.isfile(path):
            continue
        for _ in range(changes):
            offset = rng.randrange(size // 4096) * 4096
            ops.write(path, offset, ops.incompressible(rng.choice((1, 4096, 12288)), offset))


def generations(t):
    """Three generations of snapshots, with changes in each."""
    first = f'{t.mnt}/first'
    ops.subvolume(first)
    for i in range(6):
        for offset in range(0, 4 * M, 64 * K):
            ops.write(f'{first}/f{i}', offset, ops.incompressible(32 * K, i), sync=offset % M == 0)
    ops.subvolume(f'{first}/nested')
    ops.write(f'{first}/nested/inner', 0, ops.incompressible(64 * K))
    ops.sync(t.mnt)
    change(first, 1)
    ops.snapshot(first, f'{t.mnt}/second')
    change(f'{t.mnt}/second', 2)
    change(first, 3, 5)
    ops.sync(t.mnt)
    ops.snapshot(f'{t.mnt}/second', f'{t.mnt}/third')
    change(f'{t.mnt}/third', 4, 20)
    os.unlink(f'{t.mnt}/second/f5')
    ops.snapshot(f'{t.mnt}/third', f'{t.mnt}/fourth', readonly=True)
    change(f'{t.mnt}/third', 5, 3)


def generations_balanced(t):
    generations(t)
    ops.sync(t.mnt)
    ops.balance(t.mnt, ops.BALANCE_METADATA | ops.BALANCE_DATA)
    change(f'{t.mnt}/second', 6, 10)
    ops.snapshot(f'{t.mnt}/first', f'{t.mnt}/fifth')
    ops.sync(t.mnt)
    ops.balance(t.mnt, ops.BALANCE_METADATA)
    change(f'{t.mnt}/fifth', 7, 10)


def generations_deleted(t):
    """Extents that were shared with deleted subvolumes; some leaves keep full back references."""
    generations(t)
    ops.sync(t.mnt)
    ops.delete_subvolume(f'{t.mnt}/first/nested')
    for name in ('first', 'third'):
        ops.delete_subvolume(f'{t.mnt}/{name}')
        t.wait_for_cleaner()
    change(f'{t.mnt}/second', 8, 4)


def many_extents(t):
    """100,000 extents in one file; a part is cloned, then a snapshot is taken, then it is changed."""
    path = f'{t.mnt}/big'
    with ops.Opened(path) as fd:
        for i in range(100000):
            os.pwrite(fd, b'x', i * 8192)
    ops.sync(t.mnt)
    ops.clone(path, 80 * M, 40 * M, f'{t.mnt}/part', 0)
    ops.snapshot(t.mnt, f'{t.mnt}/snap')
    with ops.Opened(path) as fd:
        for i in range(30000, 90000, 7):
            os.pwrite(fd, b'y', i * 8192)


def clone_scattered(t, path, places, seed):
    """Clone new extents of 8 KiB into these blocks of 8 KiB of a file, in random order, some of them twice."""
    rng = random.Random(seed)
    order = list(range(len(places))) + rng.choices(range(len(places)), k=len(places) // 20)
    rng.shuffle(order)
    with ops.Opened(f'{t.mnt}/source') as source, ops.Opened(path) as file:
        ops.fallocate_each(source, ((k << 14, 1 << 13) for k in range(len(places))))
        os.ftruncate(source, len(places) << 14)
        ops.clone_each(source, file, ((k << 14 | i % 2 << 12, 1 << 12, place << 13)
                                      for i, (k, place) in enumerate(zip(order, places))))
    os.unlink(f'{t.mnt}/source')
    ops.sync(t.mnt)


def scattered(t):
    """A file that refers to extents in random order, a snapshot, and the same for parts of the file, so that shared
    leaves and others follow each other, some of them for a long way; an extent of each kind is in another file."""
    path = f'{t.mnt}/file'
    clone_scattered(t, path, range(24000), 1)
    ops.snapshot(t.mnt, f'{t.mnt}/snap')
    clone_scattered(t, path, (*range(10), *range(2000, 2100), *range(3000, 3010), *range(6000, 23900)), 2)
    for i in (1, 1000, 2050, 9000, 9001, 20000, 23950):
        ops.clone(path, i << 13, 1 << 12, f'{t.mnt}/part', i << 13)


def compressed(kind):
    def fill(t):
        for name, data in (('zeros', bytes(5 * M)), ('text', b'btrfs ' * M), ('small', b'a' * 1000)):
            ops.write(f'{t.mnt}/{name}', 0, data, sync=True)
        ops.write(f'{t.mnt}/mixed', 0, bytes(M) + ops.incompressible(M) + bytes(M), sync=True)
        for i in range(0, 20):
            ops.write(f'{t.mnt}/text', i * 200 * K, b'new' * 5000)
        ops.sync(t.mnt)
        ops.clone(f'{t.mnt}/zeros', 64 * K, 192 * K, f'{t.mnt}/clone', 4096)
        ops.clone(f'{t.mnt}/zeros', 128 * K, 128 * K, f'{t.mnt}/zeros', 5 * M)
        os.truncate(f'{t.mnt}/mixed', 2 * M + 4097)
        ops.snapshot(t.mnt, f'{t.mnt}/snap')
        ops.write(f'{t.mnt}/zeros', 3 * M, bytes(9000))
    return fill


def prealloc(t):
    path = f'{t.mnt}/pre'
    ops.fallocate(path, 0, 8 * M)
    for i in range(0, 64):
        ops.write(path, i * 100 * K, b'w' * (i * 37 % 9000 + 1))
    ops.fallocate(f'{t.mnt}/beyond', 0, 2 * M, ops.KEEP_SIZE)
    ops.write(f'{t.mnt}/beyond', 0, b'start')
    ops.fallocate(f'{t.mnt}/untouched', 4096, M)
    ops.sync(t.mnt)
    ops.clone(path, 0, M, f'{t.mnt}/clone', 0)
    ops.fallocate(path, 2 * M, M, ops.ZERO_RANGE)
    ops.punch(path, 3 * M, 300 * K)
    ops.nocow(f'{t.mnt}/nocow')
    ops.fallocate(f'{t.mnt}/nocow', 0, 2 * M)
    ops.write(f'{t.mnt}/nocow', 123456, b'n' * 300000)
    ops.snapshot(t.mnt, f'{t.mnt}/snap')
    ops.write(f'{t.mnt}/nocow', 130000, b'n' * 50000)


def reflinks(t):
    """A reflink of a reflink, and the same extent twice and many times in one file."""
    two_extents(f'{t.mnt}/a')
    ops.clone(f'{t.mnt}/a', 0, 0, f'{t.mnt}/b', 0)
    ops.clone(f'{t.mnt}/b', 128 * K, 256 * K, f'{t.mnt}/c', 64 * K)
    os.unlink(f'{t.mnt}/b')
    for name in ('twice', 'split', 'shifted', 'often'):
        ops.write(f'{t.mnt}/{name}', 0, ops.incompressible(128 * K), sync=True)
    ops.clone(f'{t.mnt}/twice', 0, 128 * K, f'{t.mnt}/twice', 256 * K)
    ops.write(f'{t.mnt}/split', 64 * K, b's' * 4096)
    ops.clone(f'{t.mnt}/shifted', 0, 64 * K, f'{t.mnt}/shifted', 128 * K)
    ops.write(f'{t.mnt}/shifted', 0, b't' * (64 * K))
    for i in range(1, 700):
        ops.clone(f'{t.mnt}/often', (i % 32) * 4096, 4096, f'{t.mnt}/often', (i * 3 + 64) * 4096)
    for i in range(300):
        ops.clone(f'{t.mnt}/often', 0, 4096, f'{t.mnt}/user{i}', 0)
    ops.write(f'{t.mnt}/d1', 0, b'd' * (128 * K), sync=True)
    ops.write(f'{t.mnt}/d2', 0, b'd' * (128 * K), sync=True)
    if ops.dedupe(f'{t.mnt}/d1', 0, 128 * K, f'{t.mnt}/d2', 0):
        raise RuntimeError('the kernel did not dedupe')


def pieces(path, count):
    """One extent whose file items fill several leaves: every second block of it is overwritten."""
    ops.write(path, 0, ops.incompressible(count * 4096), sync=True)
    for i in range(1, count, 2):
        ops.write(path, i * 4096, b'p' * 4096)


def leaves_source_deleted(t):
    """One extent with items in several leaves; the source of the snapshot is deleted, but it is still shared."""
    ops.subvolume(f'{t.mnt}/source')
    pieces(f'{t.mnt}/source/one', 256)
    ops.sync(t.mnt)
    ops.snapshot(f'{t.mnt}/source', f'{t.mnt}/user')
    ops.sync(t.mnt)
    ops.delete_subvolume(f'{t.mnt}/source')
    t.wait_for_cleaner()


def leaves_partly_shared(t):
    """One extent with items in several leaves, some of which are shared with a snapshot."""
    for which in range(4):
        sub = f'{t.mnt}/sub{which}'
        ops.subvolume(sub)
        pieces(f'{sub}/one', 256)
        ops.sync(t.mnt)
        ops.snapshot(sub, f'{t.mnt}/snap{which}')
        where = (sub, f'{t.mnt}/snap{which}')[which % 2]
        for i in range(1, 20 if which < 2 else 256, 8):
            ops.write(f'{where}/one', i * 4096, b'q' * 4096)
        ops.sync(t.mnt)
    os.unlink(f'{t.mnt}/snap2/one')
    os.truncate(f'{t.mnt}/snap3/one', 400 * K)
    # A snapshot overwrites what it has in its first leaf, which has about 50 items: where it is exactly that, the only
    # reference is the subvolume's, one of whose leaves is its own now, and the others are shared.
    for count in range(10, 28):
        sub = f'{t.mnt}/first{count}'
        ops.subvolume(sub)
        pieces(f'{sub}/one', 128)
        ops.sync(t.mnt)
        ops.snapshot(sub, f'{t.mnt}/replaced{count}')
        for i in range(count):
            ops.write(f'{t.mnt}/replaced{count}/one', 2 * i * 4096, b'r' * 4096)


def half_dropped(t):
    """A subvolume whose deletion was in progress when the filesystem was unmounted."""
    victim, kept, files = f'{t.mnt}/victim', f'{t.mnt}/kept', 20000
    ops.subvolume(victim)
    for i in range(files):
        ops.fallocate(f'{victim}/f{i}', 0, 4096)
    pieces(f'{victim}/one', 512)
    ops.sync(t.mnt)
    ops.snapshot(victim, kept)
    for i in range(0, files, 3):
        os.utime(f'{victim}/f{i}')
    for i in range(0, files, 1000):
        ops.write(f'{kept}/f{i}', 0, b'k' * 5000)
        ops.write(f'{victim}/f{i}', 8192, b'v' * 5000)
        ops.clone(f'{victim}/f{i}', 0, 4096, f'{t.mnt}/clone{i}', 0)
    ops.sync(t.mnt)
    t.image.umount()
    filled = t.image
    for attempt in range(30):
        t.image = filled.copy(t.path('copy.img'))
        t.image.mount()
        ops.delete_subvolume(f'{t.mnt}/victim')
        ops.sync(t.mnt)
        time.sleep(t.options['wait'] * (attempt + 1))
        t.image.umount()
        if t.half_dropped():
            return
    raise RuntimeError('the cleaner never left a subvolume half dropped')


def inline(t):
    for size in (1, 10, 100, 1000, 2000, 2047, 2048, 2049, 4095, 4096):
        ops.write(f'{t.mnt}/i{size}', 0, b'i' * size)
    ops.write(f'{t.mnt}/grown', 0, b'g' * 100, sync=True)
    ops.write(f'{t.mnt}/grown', 8192, b'g' * 100)
    ops.write(f'{t.mnt}/shrunk', 0, b's' * 1500, sync=True)
    os.truncate(f'{t.mnt}/shrunk', 700)
    ops.write(f'{t.mnt}/longer', 0, b's' * 1500, sync=True)
    os.truncate(f'{t.mnt}/longer', 3000)
    ops.clone(f'{t.mnt}/i1000', 0, 0, f'{t.mnt}/cloned', 0)
    ops.snapshot(t.mnt, f'{t.mnt}/snap')
    open(f'{t.mnt}/empty', 'wb').close()


def holes(t):
    with ops.Opened(f'{t.mnt}/tail') as fd:
        os.ftruncate(fd, 10 * M)
    for i in range(500):
        ops.write(f'{t.mnt}/many', i * 12 * K, b'm' * (i % 3 * 4000 + 1))
    os.truncate(f'{t.mnt}/many', 9 * M + 5)
    ops.write(f'{t.mnt}/punched', 0, ops.incompressible(4 * M), sync=True)
    for i in range(30):
        ops.punch(f'{t.mnt}/punched', i * 130000, 50000)
    ops.write(f'{t.mnt}/collapse', 0, ops.incompressible(M), sync=True)
    ops.punch(f'{t.mnt}/collapse', 0, 512 * K)
    ops.clone(f'{t.mnt}/punched', 0, 2 * M, f'{t.mnt}/clone', 64 * K)


def hard_links(t):
    """So many names that some are in INODE_EXTREF items; in some files the first name is removed."""
    for number in range(3):
        path = f'{t.mnt}/file{number}'
        ops.write(path, 0, ops.incompressible(20000, number))
        os.mkdir(f'{t.mnt}/dir{number}')
        for i in range(150):
            os.link(path, f'{t.mnt}/dir{number}/' + f'a-long-name-for-a-hard-link-{i:04}-' * 2)
        if number:
            os.unlink(path)
        if number == 2:
            for name in sorted(os.listdir(f'{t.mnt}/dir2'))[:140:2]:
                os.unlink(f'{t.mnt}/dir2/{name}')
            os.mkdir(f'{t.mnt}/dir2/sub')
            os.link(f'{t.mnt}/dir2/' + os.listdir(f'{t.mnt}/dir2')[0], f'{t.mnt}/aaa')


def few_links(t):
    """Names in two directories, the younger of which comes first in readdir, and names whose order differs from
    readdir's."""
    os.mkdir(f'{t.mnt}/z-old')
    os.mkdir(f'{t.mnt}/a-young')
    for i in range(20):
        first, second = (f'{t.mnt}/a-young/f{i}', f'{t.mnt}/z-old/f{i}')[:: 1 if i % 2 else -1]
        ops.write(first, 0, b'l' * 5000)
        os.link(first, second)
        os.link(second, f'{second}-z')
        os.link(second, f'{second}-a')
        if i % 3 == 0:
            os.unlink(second)
            os.rename(f'{second}-z', f'{second}-b')


def odd_names(t):
    for name in (b'new\nline', b't\tab', b'\xff\xfe', b'back\\slash', b'sp ace', b' lead', b'trail ',
                 b'\x01\x1f\x7f', b'\x1b[0m', '\u00e9\u4e2d\U0001f600'.encode(), b'a' * 255, b'%s%n', b'"quoted"', b"'",
                 b'-n', b'\x07\x08\x0b\x0c\r', b'...'):
        with ops.Opened(os.path.join(t.mnt.encode(), name)) as fd:
            os.write(fd, ops.incompressible(8192))
    os.mkdir(t.mnt.encode() + b'/d\ni\xc3r')
    ops.subvolume(f'{t.mnt}/sub vol')
    for directory in (b'/d\ni\xc3r', b'/sub vol'):
        with ops.Opened(t.mnt.encode() + directory + b'/x\n') as fd:
            os.write(fd, b'x' * 5000)


def plain(t):
    """A bit of everything, for filesystems with other features."""
    prealloc(t)
    os.mkdir(f'{t.mnt}/more')
    inner = type('Inner', (), {'mnt': f'{t.mnt}/more'})
    reflinks(inner)
    os.mkdir(f'{t.mnt}/gen')
    generations(type('Inner', (), {'mnt': f'{t.mnt}/gen'}))


def quota(simple):
    def fill(t):
        ops.quota(t.mnt, simple)
        plain(t)
    return fill


def orphan(t):
    """Unlinked files, held open while the image is copied."""
    ops.subvolume(f'{t.mnt}/sub')
    held = []
    for i, directory in enumerate((t.mnt, f'{t.mnt}/sub')):
        path = f'{directory}/gone'
        two_extents(path)
        ops.clone(path, 256 * K, 128 * K, f'{directory}/stays', 0)
        held.append(os.open(path, os.O_RDONLY))
        os.unlink(path)
        ops.write(f'{directory}/other', 0, b'o' * (i + 1) * 9000)
    ops.sync(t.mnt)
    copy = t.image.copy(t.path('copy.img'))
    try:
        t.listing = t.oracle(*(f'/proc/{os.getpid()}/fd/{fd}' for fd in held))
    finally:
        for fd in held:
            os.close(fd)
    t.use_copy(copy)


def log_tree(t):
    """As after a crash: the copy has a log that is not replayed."""
    ops.subvolume(f'{t.mnt}/sub')
    for directory in (t.mnt, f'{t.mnt}/sub'):
        two_extents(f'{directory}/f')
    ops.sync(t.mnt)

    def work():
        for directory in (t.mnt, f'{t.mnt}/sub'):
            ops.write(f'{directory}/f', 64 * K, b'logged' * 2000, sync=True)
            ops.write(f'{directory}/new', 0, b'logged' * 2000, sync=True)
        ops.clone(f'{t.mnt}/f', 256 * K, 256 * K, f'{t.mnt}/g', 0)
        ops.fsync(f'{t.mnt}/g')
    t.use_copy(t.image.copy_with_log(t.path('copy.img'), work))


def relocating(t):
    """
    During a balance, as after a crash: copies with relocation trees. A balance prevents freezing the filesystem, so
    the image is on another btrfs, where a reflink copies it atomically.
    """
    inner = image.Image(f'{t.mnt}/inner.img', '600M')
    inner.mkfs('-n', '4096')
    inner.mount('commit=600,nodiscard')
    for i in range(4):
        sub = f'{inner.mnt}/s{i}'
        ops.subvolume(sub)
        pieces(f'{sub}/one', 512)
        for n in range(4500):
            os.symlink('nowhere', f'{sub}/l{n}')
            if n % 10 == 0:
                ops.fallocate(f'{sub}/f{n}', 0, 4096 + n % 3 * 4096)
        ops.sync(inner.mnt)
        if i % 2:
            ops.snapshot(sub, f'{inner.mnt}/t{i}')
    ops.sync(inner.mnt)
    copies = []
    for attempt in range(8):
        working = threading.Thread(target=_quietly, args=(ops.balance, inner.mnt, t.options['what']))
        working.start()
        while working.is_alive():
            ops.sync(inner.mnt)
            copies.append(f'{t.mnt}/copy{len(copies)}.img')
            ops.clone(inner.path, 0, 0, copies[-1], 0)
        working.join()
        found = [copy for copy in copies if t.matches(copy, 'root', r'TREE_RELOC ROOT_ITEM')]
        if found:
            inner.umount()
            outside = [image.Image(found[i], None).copy(t.path(f'copy{i}.img')) for i in sorted({0, len(found) - 1})]
            t.use_copy(outside[0])
            t.others = outside[1:]
            return
        ops.sync(inner.mnt)
    raise RuntimeError('no copy has a relocation tree')


def _quietly(call, *args):
    try:
        call(*args)
    except OSError:
        pass


def deep(t):
    path = t.mnt
    for i in range(60):
        path += f'/level-{i:03}-' + 'd' * 40
        os.mkdir(path)
        ops.write(f'{path}/file', 0, ops.incompressible(4096 + i * 50, i))
    ops.snapshot(t.mnt, f'{t.mnt}/snap')


def default_subvolume(t):
    ops.subvolume(f'{t.mnt}/root')
    two_extents(f'{t.mnt}/root/f')
    two_extents(f'{t.mnt}/f')
    t.btrfs('subvolume', 'set-default', f'{t.mnt}/root')


V1 = ('-O', '^free-space-tree,^block-group-tree')
SCENARIOS = [
    Scenario('seed-second-extent-cloned', second_cloned),
    Scenario('seed-first-extent-cloned', first_cloned),
    *(Scenario(f'generations-{n}', generations, ('-n', str(n))) for n in (4096, 16384, 65536)),
    Scenario('generations-balanced', generations_balanced, ('-n', '4096'), size='600M'),
    Scenario('generations-deleted', generations_deleted, ('-n', '4096'), wants=(r'FULL_BACKREF',)),
    Scenario('extents-100000', many_extents, size='1500M'),
    *(Scenario(f'scattered-{n}', scattered, ('-n', str(n)), size='1G') for n in (4096, 16384)),
    Scenario('lzo', compressed('lzo'), mount='compress=lzo', wants=(r'compression 2 \(lzo\)',)),
    Scenario('zlib', compressed('zlib'), mount='compress=zlib', wants=(r'compression 1 \(zlib\)',)),
    Scenario('zstd', compressed('zstd'), mount='compress=zstd', wants=(r'compression 3 \(zstd\)',)),
    Scenario('prealloc', prealloc, wants=(r'\(prealloc\)',)),
    Scenario('reflinks', reflinks, ('-n', '4096'), wants=(r'EXTENT_DATA_REF \d+\) itemoff',)),
    Scenario('leaves-source-deleted', leaves_source_deleted, ('-n', '4096'),
             wants=(r'shared data backref|SHARED_DATA_REF',)),
    Scenario('leaves-partly-shared', leaves_partly_shared, ('-n', '4096')),
    *(Scenario(f'half-dropped-{n}', half_dropped, ('-n', '4096'), size='600M', options={'wait': wait})
      for n, wait in enumerate((0, 0.004, 0.015))),
    Scenario('inline', inline, wants=(r'\(inline\)',)),
    Scenario('inline-compressed', inline, mount='compress-force=zlib', wants=(r'\(inline\)',)),
    Scenario('holes', holes),
    Scenario('holes-explicit', holes, ('-O', '^no-holes'), wants=(r'disk byte 0 ',)),
    Scenario('hard-links', hard_links, ('-n', '4096'), wants=(r'INODE_EXTREF',)),
    Scenario('hard-links-few', few_links, ('-O', '^extref')),
    Scenario('odd-names', odd_names),
    Scenario('mixed', plain, ('-M',)),
    Scenario('quota', quota(False), wants=(r'QUOTA_TREE',)),
    Scenario('quota-simple', quota(True), wants=(r'EXTENT_OWNER_REF|extent owner',)),
    Scenario('cache-v1', plain, V1, size='4G', mount='space_cache=v1', wants=(r'FREE_SPACE UNTYPED',)),
    Scenario('no-cache', plain, V1, mount='nospace_cache'),
    Scenario('orphan', orphan, wants=(r'ORPHAN_ITEM',)),
    Scenario('log-tree', log_tree, mount='commit=600', readonly='rescue=nologreplay'),
    Scenario('relocating-metadata', relocating, size='3G', mount='compress=no', readonly='skip_balance',
             options={'what': ops.BALANCE_METADATA}),
    Scenario('relocating-data', relocating, size='3G', mount='compress=no', readonly='skip_balance',
             wants=(r'root DATA_RELOC_TREE|DATA_RELOC',), options={'what': ops.BALANCE_DATA}),
    Scenario('single-metadata', plain, ('-m', 'single')),
    Scenario('dup-data', plain, ('-m', 'dup', '-d', 'dup'), size='600M'),
    Scenario('metadata-uuid', plain, tune=('-m',)),
    Scenario('extents-not-skinny', plain, ('-O', '^skinny-metadata', '-n', '4096')),
    Scenario('deep-folders', deep),
    Scenario('default-subvolume', default_subvolume),
]
