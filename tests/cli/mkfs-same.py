#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same source and options make identical bytes on any host: threads, locale, umask, time zone, working directory,
the order in which files were created, access and change times, the host's attributes, and how zeros are stored do not
matter. And --deterministic derives another UUID from any difference.

    mkfs-same.py             what needs no root
    mkfs-same.py --deep DIR  copies on other filesystems (needs root), and programs built from the sources in DIR by
                             other compilers and with other optimization levels
    mkfs-same.py --other COMMAND...
                             a program for another machine, with the command that runs it here"""
import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

import tool
from tool import BTRKIT, digest

UUID = '1b4e28ba-2fa1-11d2-883f-0016d3cca427'
DEVICE_UUID = '2b4e28ba-2fa1-11d2-883f-0016d3cca427'
EPOCH = '1600000000'
TIME = 1500000000
ROOT = not os.geteuid()
# The environment without variables that must not matter.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(('LC_', 'LANG')) and k not in ('TZ', 'SOURCE_DATE_EPOCH')}

# Combinations of options that fix everything host-dependent.
FIXED = ((('--deterministic',), None),
         (('--deterministic', '-U', UUID), EPOCH),
         (('--deterministic', '--device-uuid', DEVICE_UUID), None),
         (('-U', UUID), EPOCH),
         (('-U', UUID, '--device-uuid', DEVICE_UUID, '-n', '4k', '--csum', 'sha256', '-m', 'single'), EPOCH))
compared = 0


def contents():
    """Generate the files of a tree: name and contents."""
    rnd = random.Random(6)
    words = [b'%x ' % rnd.getrandbits(40) for _ in range(99)]
    found = {}
    for i, size in enumerate((0, 1, 100, 2047, 2048, 4095, 4096, 4097, 60000, 131072, 131073, 1500000)):
        found[f'random/{i:02}-{size}'] = rnd.randbytes(size)
        found[f'text/{i:02}-{size}'] = b''.join(rnd.choices(words, k=size // 3))[:size]
    for i in range(300):
        found[f'many/{i * 7919 % 1000:03}/{"x" * (i % 50)}{i}'] = b'%d\n' % i * (i % 20)
    found['zeros'] = bytes(300000)
    found['many zeros'] = b'begin' + bytes(3000000)
    found['holes'] = bytes(70000) + b'data' + bytes(3000000) + b'end'
    found['compressible first'] = bytes(b'a' * 200000) + rnd.randbytes(1200000)
    found['random first'] = rnd.randbytes(200000) + bytes(b'a' * 1200000)
    found['l\u00e4tin \udcff\udc81 \x01'] = b'name'
    found['subvolume/deep/file'] = b'in a subvolume' * 1000
    return found


class Tree:
    """A copy of the same tree, created in another order. @other: differ in everything that must not matter"""

    def __init__(self, path, seed=0, other=False):
        self.path, self.random, self.other = path, random.Random(seed), other
        os.mkdir(path)
        files = list(contents().items())
        if seed:
            self.random.shuffle(files)
        for i, (name, data) in enumerate(files):
            # Shifts inode numbers and positions in directories.
            if seed and not i % 5:
                self.write(f'gone{i}', b'gone')
            self.write(name, data)
        for i in range(0, len(files) if seed else 0, 5):
            os.unlink(f'{path}/gone{i}')
        if seed % 2:
            self.write('huge', b'end', (24 << 20) + 5)
        else:
            self.write('huge', bytes((24 << 20) + 5) + b'end')
        self.special()
        self.attributes()
        self.times()

    def write(self, name, data, offset=0):
        os.makedirs(os.path.dirname(f'{self.path}/{name}'), exist_ok=True)
        with open(f'{self.path}/{name}', 'wb') as f:
            f.seek(offset)
            f.write(data)

    def special(self):
        links = [('one', 'text/03-2047'), ('two', 'text/03-2047'), ('many/000/three', 'text/03-2047')]
        for name, to in links if not self.other else reversed(links):
            os.link(f'{self.path}/{to}', f'{self.path}/{name}')
        os.symlink('some/where', f'{self.path}/symlink')
        os.mkfifo(f'{self.path}/fifo')
        for folder, dirs, files in os.walk(self.path):
            for name in [*dirs, *files]:
                if not os.path.islink(f'{folder}/{name}'):
                    os.chmod(f'{folder}/{name}', 0o750 if name in dirs else 0o640)
        os.chmod(self.path, 0o755)

    def attributes(self):
        """Set the file's attributes, in some order; also host-specific ones if @other."""
        names = [('user.one', b'1'), ('user.two', bytes(200)), ('user.three', b'\xff\x00')]
        if self.other:
            names.reverse()
        for name, value in names:
            os.setxattr(f'{self.path}/zeros', name, value)
        if self.other and ROOT:
            with contextlib.suppress(OSError):
                os.setxattr(f'{self.path}/zeros', 'security.selinux', b'host')
                os.setxattr(self.path, 'security.selinux', b'host')
                os.setxattr(f'{self.path}/many', 'trusted.overlay.opaque', b'y')

    def times(self):
        for folder, dirs, files in os.walk(self.path, topdown=False):
            for name in sorted([*dirs, *files]):
                self.set_time(f'{folder}/{name}', len(name) * 1000 + len(files))
        self.set_time(self.path, 0)

    def set_time(self, path, add):
        mtime = (TIME + add) * 10**9 + add % 7 * 1001
        atime = mtime + (self.random.randrange(10**15) if self.other else 5)
        os.utime(path, ns=(atime, mtime), follow_symlinks=False)


def make(folder, *args, epoch=None, env=None, binary=BTRKIT, size=0, cwd=None, umask=-1):
    """Make an image and return its name."""
    image = f'{folder}/image'
    with contextlib.suppress(FileNotFoundError):
        os.unlink(image)
    if size:
        with open(image, 'wb') as f:
            f.truncate(size)
    env = {**CLEAN, **(env or {}), **({'SOURCE_DATE_EPOCH': epoch} if epoch else {})}
    done = subprocess.run([*(binary if isinstance(binary, list) else [binary]), 'mkfs', '-q', *args, image], env=env,
                          cwd=cwd, umask=umask, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False, timeout=600)
    assert not done.returncode, f'{args}: {done.stderr}'
    return image


def expect_same(wanted, what, folder, *args, **kwargs):
    global compared
    got = digest(make(folder, *args, **kwargs))
    assert got == wanted, f'{what}: {args}: {got}, not {wanted}'
    compared += 1


def locales():
    have = subprocess.run(['locale', '-a'], stdout=subprocess.PIPE, check=False).stdout.decode(errors='replace').split()
    return ['C', 'C.UTF-8', *[name for name in have if name.startswith(('de_DE', 'tr_TR', 'cs_CZ'))]]


def same(folder, trees):
    """Every combination of fixing options, with variations of everything around it."""
    options = ('--subvol', 'ro:subvolume', '--inode-flags', 'nodatacow:many/000', '--free', '1m')
    for i, (fixed, epoch) in tool.thinned(enumerate(FIXED), 2):
        # If the host's attributes are taken, as without --deterministic, they must be the same.
        clean = '--deterministic' in fixed
        kind = ('no', 'zstd', 'zlib:9', 'lzo', 'zstd:1')[i]
        args = (*fixed, '--compress', kind, *options, *(() if clean else ('--without-xattr', 'security.*',
                                                                         '--without-xattr', 'trusted.*')))
        first = (*args, '--rootdir', trees[0].path)
        wanted = digest(make(folder, *first, epoch=epoch))
        expect_same(wanted, 'again', folder, *first, epoch=epoch)
        for threads in ('1', '2', '7'):
            expect_same(wanted, 'threads', folder, *first, '--threads', threads, epoch=epoch)
        for tree in trees[1:]:
            expect_same(wanted, 'a copy', folder, *args, '--rootdir', tree.path, '--threads', '3', epoch=epoch)
        expect_same(wanted, 'by a relative path', folder, *args, '--rootdir', '.', epoch=epoch, cwd=trees[1].path)
        # One combination for each of these is enough: they do not interact with the options.
        for name in locales()[i % 2::2]:
            expect_same(wanted, f'locale {name}', folder, *first, epoch=epoch,
                        env={'LC_ALL': name, 'LANG': name, 'LANGUAGE': 'de'})
        # Without root, one must still be able to open one's own files.
        expect_same(wanted, 'time zone and umask', folder, *first, epoch=epoch,
                    umask=(0, 0o77, 0o177 if os.geteuid() else 0o777)[i % 3],
                    env={'TZ': ('UTC', 'Asia/Kathmandu', 'EST5EDT')[i % 3]})
        # Previous contents and the previous size do not matter.
        expect_same(wanted, 'over a larger file', folder, *first, '-f', '--shrink', epoch=epoch, size=300 << 20)
        without = [a for a in first if a not in ('-U', UUID, '--deterministic')]
        assert digest(make(folder, *without, epoch=epoch)) != wanted, 'nothing makes two filesystems different'


def fsid(image):
    with open(image, 'rb') as f:
        f.seek(tool.SUPER_OFFSETS[0] + tool.Super.FSID)
        return f.read(16).hex()


def change(path, data, offset):
    """Overwrite some bytes and keep the time."""
    st = os.stat(path)
    with open(path, 'r+b') as f:
        f.seek(offset)
        f.write(data)
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def rename(path, old, new):
    st = os.stat(path)
    os.rename(f'{path}/{old}', f'{path}/{new}')
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def keep_time(path, action):
    st = os.stat(path)
    action()
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def swap_files(path, a, b):
    """Exchange two files, with their times."""
    keep_time(os.path.dirname(f'{path}/{a}'), lambda: (os.rename(f'{path}/{a}', f'{path}/t'),
                                                       os.rename(f'{path}/{b}', f'{path}/{a}'),
                                                       os.rename(f'{path}/t', f'{path}/{b}')))


def changes(path):
    """Changes of a tree, each of which must give a different filesystem."""
    yield 'a byte of a large file', lambda: change(f'{path}/random/11-1500000', b'?', 1234567)
    yield 'a byte of a file in an item', lambda: change(f'{path}/random/02-100', b'?', 99)
    yield 'a byte of a sparse file', lambda: change(f'{path}/huge', b'?', 20 << 20)
    yield 'a hole at the end', lambda: keep_time(f'{path}/zeros', lambda: os.truncate(f'{path}/zeros', 300001))
    yield 'a name', lambda: rename(path, 'one', 'oNe')
    yield 'a mode', lambda: os.chmod(f'{path}/zeros', 0o600)
    yield 'the mode of the top directory', lambda: os.chmod(path, 0o700)
    yield 'the value of an attribute', lambda: os.setxattr(f'{path}/zeros', 'user.one', b'2')
    yield 'the name of an attribute', lambda: (os.removexattr(f'{path}/zeros', 'user.one'),
                                               os.setxattr(f'{path}/zeros', 'user.0ne', b'1'))
    yield 'an attribute of a directory', lambda: os.setxattr(path, 'user.top', b'')
    yield 'a time', lambda: os.utime(f'{path}/zeros', ns=(TIME * 10**9, TIME * 10**9 + 1))
    yield 'the time of the top directory', lambda: os.utime(path, ns=(TIME * 10**9, TIME * 10**9 + 1))
    yield 'the target of a link', lambda: (keep_time(path, lambda: (os.unlink(f'{path}/symlink'),
                                                                    os.symlink('some/w\u00e9re', f'{path}/symlink'))),
                                           os.utime(f'{path}/symlink', ns=(5, 5), follow_symlinks=False))
    yield 'another kind', lambda: keep_time(path, lambda: (os.unlink(f'{path}/fifo'),
                                                           open(f'{path}/fifo', 'wb').close()))
    yield 'a file more', lambda: keep_time(f'{path}/text', lambda: open(f'{path}/text/x', 'wb').close())
    yield 'a directory more', lambda: keep_time(f'{path}/text', lambda: os.mkdir(f'{path}/text/x'))
    yield 'a link less', lambda: keep_time(path, lambda: os.unlink(f'{path}/two'))
    yield 'a copy instead of a link', lambda: keep_time(path, lambda: (
        os.unlink(f'{path}/two'), shutil.copy2(f'{path}/one', f'{path}/two')))
    yield 'two files exchanged', lambda: swap_files(path, 'compressible first', 'random first')
    if ROOT:
        yield 'an owner', lambda: os.chown(f'{path}/fifo', 5, -1)
        yield 'a group', lambda: os.chown(f'{path}/fifo', -1, 5)


OPTIONS = (('-L', 'label'), ('-n', '4k'), ('-s', '8k'), ('--csum', 'xxhash'), ('-d', 'dup'), ('-m', 'single'), ('-M',),
           ('-O', '^no-holes'), ('-O', 'quota'), ('-O', '^block-group-tree'), ('--compress', 'zstd'),
           ('--compress', 'zstd:9'), ('--compress', 'zlib'), ('--compress', 'lzo'), ('--free', '1m'), ('--free', '10%'),
           ('-b', '300m'), ('-b', '301m'), ('--device-uuid', DEVICE_UUID), ('--subvol', 'subvolume'),
           ('--subvol', 'ro:subvolume'), ('--subvol', 'default:subvolume'), ('--subvol', 'default-ro:subvolume'),
           ('--subvol', 'text'), ('--inode-flags', 'nodatasum:text'), ('--inode-flags', 'nodatacow:text'),
           ('--exclude', 'zeros'), ('--without-xattr', 'user.one'), ('--root-owner', '7:0'), ('--root-owner', '0:7'))


def derived(folder, changed, tree):
    """The UUID changes with any difference that goes into the filesystem, and only with those."""
    args = ('--deterministic', '--rootdir', tree.path)
    first = fsid(make(folder, *args))
    seen = {first: 'the tree'}
    for what, change_it in tool.thinned(changes(changed), 5):
        shutil.rmtree(changed, ignore_errors=True)
        Tree(changed)
        assert fsid(make(folder, '--deterministic', '--rootdir', changed)) == first, 'a copy'
        change_it()
        note(seen, what, fsid(make(folder, '--deterministic', '--rootdir', changed)))
    shutil.rmtree(changed)
    for options in tool.thinned(OPTIONS, 3):
        note(seen, ' '.join(options), fsid(make(folder, *args, *options)))
    for epoch in (EPOCH, '1600000001'):
        note(seen, f'epoch {epoch}', fsid(make(folder, *args, epoch=epoch)))
    for options in (('--threads', '5'), ('--exclude', 'nothing'), ('-f', '-v')):
        assert fsid(make(folder, *args, *options, size=200 << 20)) == first, options


def note(seen, what, uuid):
    global compared
    assert uuid not in seen, f'{what} has the same UUID as {seen[uuid]}'
    seen[uuid] = what
    compared += 1


def archive(path, files, fmt=tarfile.PAX_FORMAT):
    with tarfile.open(path, 'w', format=fmt) as t:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), TIME, 0o644
            t.addfile(member, io.BytesIO(data))
    return path


def archives(folder, tree):
    """From the same archive, compressed or not, from a file or a pipe, with holes or zeros."""
    plain, holes = f'{folder}/plain.tar', f'{folder}/holes.tar'
    tar = ['tar', '-C', tree.path, '--sort=name', '--format=pax', '--xattrs', '--numeric-owner',
           '--pax-option=delete=atime,delete=ctime', '-c']
    subprocess.run([*tar, '-f', plain, '.'], check=True)
    subprocess.run([*tar, '-S', '-f', holes, '.'], check=True)
    subprocess.run(['gzip', '-k', plain], check=True)
    for kind in ('no', 'zstd'):
        args = ('--deterministic', '--compress', kind, '--subvol', 'subvolume')
        wanted = digest(make(folder, *args, '--tar', plain))
        for threads in ('1', '2', '7'):
            path = {'1': plain, '2': holes, '7': plain + '.gz'}[threads]
            expect_same(wanted, path, folder, *args, '--tar', path, '--threads', threads)
    told = []
    for path in (plain, holes):
        image = f'{folder}/told'
        done = subprocess.run([BTRKIT, 'mkfs', '-f', '--format', 'json', '--tar', path, image], check=True,
                              stdout=subprocess.PIPE)
        filled = json.loads(done.stdout.splitlines()[-1])['filled']
        told.append((filled['files'], filled['file_bytes']))
    assert told[0] == told[1], f'what was filled in, told of zeros and of holes: {told}'
    files = [('a', b'1' * 5000), ('b', b'2' * 5000)]
    seen = {}
    for what, members in (('one', files), ('contents exchanged', [('b', b'1' * 5000), ('a', b'2' * 5000)]),
                          ('another byte', [files[0], ('b', b'2' * 4999 + b'1')])):
        note(seen, what, fsid(make(folder, '--deterministic', '--tar', archive(f'{folder}/small.tar', members))))


@contextlib.contextmanager
def mounted(folder, kind):
    """Make and mount an empty filesystem of another type. Yields its directory, or None if the type is not available
    here."""
    at, image = f'{folder}/mnt-{kind}', f'{folder}/{kind}.img'
    os.mkdir(at)
    command = ['mount', '-t', 'tmpfs', 'none', at]
    if kind != 'tmpfs':
        with open(image, 'wb') as f:
            f.truncate(400 << 20)
        maker = shutil.which(f'mkfs.{kind}') or shutil.which(f'mkfs.{kind}', path='/usr/sbin:/sbin')
        if not maker or subprocess.run([maker, '-q', image], check=False, stderr=subprocess.DEVNULL).returncode:
            yield None
            return
        command = ['mount', '-o', 'loop', image, at]
    if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
        yield None
        return
    try:
        yield at
    finally:
        subprocess.run(['umount', at], check=True)


def other_filesystems(folder, tree):
    args = ('--deterministic', '--compress', 'zstd', '--subvol', 'subvolume')
    wanted = digest(make(folder, *args, '--rootdir', tree.path))
    for seed, kind in enumerate(('ext4', 'xfs', 'btrfs', 'tmpfs'), 10):
        with mounted(folder, kind) as at:
            try:
                copy = Tree(f'{at}/copy', seed, True) if at else None
            except OSError as e:
                # Not every tmpfs supports user attributes.
                print(f'{kind}: {e}')
                copy = None
            print(f'a copy on {kind}' if copy else f'no {kind} here')
            if copy:
                expect_same(wanted, kind, folder, *args, '--rootdir', copy.path)


def other_programs(folder, tree, sources):
    """Other compilers and optimization levels, and without the checksum libraries that table-based code can replace."""
    kinds = ('no', 'zstd', 'zlib', 'lzo')
    wanted = [digest(make(folder, '--deterministic', '--compress', kind, '--rootdir', tree.path)) for kind in kinds]
    for cc, level, more in (('gcc', '0', ()), ('gcc', '3', ()), ('clang', '0', ()), ('clang', '3', ()),
                            ('gcc', '2', ('-Disal=disabled', '-Db_lto=true'))):
        if not shutil.which(cc):
            print(f'no {cc} here')
            continue
        build = f'{folder}/build'
        env = {**os.environ, 'CC': cc}
        env.pop('CFLAGS', None)
        subprocess.run(['meson', 'setup', build, sources, f'-Doptimization={level}', '-Dtests=disabled',
                        '-Dman=disabled', *more], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', build, 'cmd/btrkit'], check=True, stdout=subprocess.DEVNULL)
        for kind, digest_wanted in zip(kinds, wanted):
            expect_same(digest_wanted, f'{cc} -O{level} {more}', folder, '--deterministic', '--compress', kind,
                        '--rootdir', tree.path, binary=f'{build}/cmd/btrkit')
        print(f'{cc} -O{level} {" ".join(more)}: {len(kinds)} equal images')
        shutil.rmtree(build)


def other_machine(folder, tree, command):
    """A program for another machine, with the command that runs it here, such as qemu-user."""
    for kind in ('no', 'zstd', 'zlib', 'lzo'):
        for more in ((), ('--csum', 'blake2', '-n', '64k', '--subvol', 'ro:subvolume', '-O', 'quota')):
            args = ('--deterministic', '--compress', kind, *more, '--rootdir', tree.path)
            wanted = digest(make(folder, *args))
            expect_same(wanted, 'another machine', folder, *args, binary=command)
    print(f'{" ".join(command)}: equal images')


def main():
    way, rest = sys.argv[1] if len(sys.argv) > 1 else '', sys.argv[2:]
    with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
        try:
            trees = [Tree(f'{folder}/tree{i}', i, bool(i)) for i in range(3)]
        except OSError as e:
            tool.skip(f'no attributes of users on {folder}: {e}')
        if way == '--deep':
            if ROOT:
                other_filesystems(folder, trees[0])
            other_programs(folder, trees[0], rest[0])
        elif way == '--other':
            other_machine(folder, trees[0], rest)
        else:
            # Only the sources need a filesystem with user attributes; images would be slow on a disk.
            with tempfile.TemporaryDirectory() as images:
                same(images, trees)
                archives(images, trees[0])
                derived(images, f'{folder}/changed', trees[0])
    print(f'compared {compared} images and UUIDs')


main()
