#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare extracted files with the same filesystems mounted by Linux: names, types, modes, owners, times, xattrs,
contents, holes, hard links, in a directory and as an archive read by other programs. Then targets in which existing
links must not be followed.

BTRKIT is the program under test. --deep adds more forms. Exits with 77 if it cannot run.
"""
import fcntl
import importlib.util
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import contents
import image
import ops
import trees

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
FORMS = [((), 'compress=zstd'), (('-M', '-n', '4k', '-O', '^no-holes'), 'compress-force=lzo')]
IMMUTABLE_APPEND = 0x30
DEEP = [(('-n', '4k', '-O', '^no-holes'), 'compress-force=lzo'), (('-M',), 'compress=zlib')]

_spec = importlib.util.spec_from_file_location('namespace', os.path.join(os.path.dirname(__file__),
                                                                         'namespace-kernel.py'))
namespace = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(namespace)


def extract(*args, status=0):
    done = subprocess.run([BTRKIT, 'extract', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr[-2000:])
    assert bool(done.stderr) == bool(status), done.stderr[-2000:]
    return done.stderr.decode(errors='backslashreplace')


def deep(top, levels):
    """A path longer than Linux accepts in a single call."""
    here = os.open(top, os.O_RDONLY)
    for k in range(levels):
        name = 'd' * (k % 255 + 1)
        os.mkdir(name, 0o700 + k % 64, dir_fd=here)
        if k % 100 == 99:
            with open('file', 'w', encoding='ascii', opener=lambda name, flags: os.open(name, flags, dir_fd=here)) as f:
                f.write(f'{k}\n')
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def fill(mnt, rng):
    image.run(image.BTRFS, 'subvolume', 'create', f'{mnt}/contents')
    contents.fill(f'{mnt}/contents', rng, files=40, steps=150)
    namespace.fill(mnt, rng)
    os.mkdir(f'{mnt}/deep')
    deep(f'{mnt}/deep', 1000)
    with open(f'{mnt}/largest', 'wb') as f:
        f.write(b'begin')
        f.truncate((1 << 63) - 1)
        os.pwrite(f.fileno(), b'middle', 1 << 50)
        os.pwrite(f.fileno(), b'the end', (1 << 63) - 8192)
    with open(f'{mnt}/only a hole', 'wb') as f:
        f.truncate(1 << 40)
    with open(f'{mnt}/prealloc', 'wb') as f:
        f.write(bytes(range(256)) * 64)
    ops.fallocate(f'{mnt}/prealloc', 1 << 20, 1 << 20, 0)
    attributes(mnt, rng)
    # Directories whose order of names differs from that of inodes, and whose times must be kept although files are
    # created in them.
    for name in ('a', 'b'):
        os.mkdir(f'{mnt}/times-{name}')
    for k in range(20):
        os.rename(f'{mnt}/link-{k:0100d}', f'{mnt}/times-{"ab"[k % 2]}/link{k}')
    for name in ('times-a', 'times-b', 'deep'):
        os.utime(f'{mnt}/{name}', ns=(7, 1234567890123456789))
    image.run(image.BTRFS, 'subvolume', 'snapshot', mnt, f'{mnt}/whole')


def attributes(mnt, rng):
    files = [f'{mnt}/{name}' for name in ('largest', 'prealloc', 'deep', 'contents')]
    for k, path in enumerate(files):
        os.setxattr(path, f'user.{"n" * k}x', rng.randbytes(k * 700))
        os.setxattr(path, 'trusted.overlay.opaque', b'y')
        image.run('setfacl', '-m', f'u:{k + 5}:rwx,g:70000:r', path)
    image.run('setfacl', '-d', '-m', 'u:77:rx', f'{mnt}/deep')
    os.setxattr(f'{mnt}/contents', 'btrfs.compression', b'zstd')
    os.symlink('nowhere', f'{mnt}/labelled')
    os.setxattr(f'{mnt}/labelled', 'security.linked', b'a label\0', follow_symlinks=False)
    os.chown(f'{mnt}/labelled', 5, 6, follow_symlinks=False)
    os.chown(f'{mnt}/prealloc', 5, 6)
    os.chmod(f'{mnt}/prealloc', 0o6755)
    os.setxattr(f'{mnt}/prealloc', 'security.capability', bytes.fromhex('0100000200040000000000000000000000000000'))


class Target:
    """An empty filesystem to extract to."""

    def __init__(self, scratch):
        self.fs = image.Image(f'{scratch}/target.img', '3G')
        self.fs.mkfs()
        self.mnt = self.fs.mount()
        self.count = 0

    def folder(self):
        self.count += 1
        os.mkdir(path := f'{self.mnt}/{self.count}')
        return path

    def clear(self, path):
        image.run('rm', '-r', path)


def check(theirs, ours, what):
    lines = trees.differences(theirs, ours)
    assert not lines and theirs, f'{what}: ' + '\n'.join(line[:500] for line in lines[:10])
    return len(theirs)


def whole(fs, linux, target):
    folder = target.folder()
    extract('-C', folder, fs.path)
    compared = check(linux, trees.tree(folder), 'all of it')
    top = os.stat(fs.mnt), os.stat(folder)
    assert len({(st.st_mode, st.st_uid, st.st_mtime_ns) for st in top}) == 1, top
    # Existing files are replaced, with the same result.
    extract('-C', folder, fs.path)
    compared += check(linux, trees.tree(folder), 'the second time')
    target.clear(folder)
    return compared


def parts(fs, linux, target):
    """Paths in another subvolume; a file and a whole directory; one inside another; duplicates."""
    folder = target.folder()
    extract('-C', folder, '--subvol', 'whole', fs.path)
    compared = check(trees.tree(f'{fs.mnt}/whole'), trees.tree(folder), 'a snapshot')
    target.clear(folder)
    folder = target.folder()
    asked = (b'times-a', b'deep/d', b'contents/file3', b'prealloc', b'times-a/link0', b'prealloc')
    extract('-C', folder, fs.path, *asked)
    below = {path: what for path, what in linux.items()
             if any(path == one or path.startswith(one + b'/') for one in asked)}
    ours = trees.tree(folder)
    assert ours.keys() - below.keys() == {b'deep', b'contents'}
    names = {path for path in below if path.startswith(b'times-a/')}
    assert all(set(ours[path]['names']) == names for path in names), 'links among what was asked for'
    for path in ours.keys() - below.keys():
        del ours[path]
    lines = trees.differences(below, ours, leave_out=('names',))
    assert not lines, lines[:10]
    target.clear(folder)
    return compared + len(ours)


def obstacles(fs, linux, target):
    """Existing files are replaced, and targets of links do not change."""
    folder, outside = target.folder(), target.folder()
    os.mkdir(f'{outside}/d')
    with open(f'{outside}/file', 'w', encoding='ascii') as f:
        f.write('precious')
    before = trees.tree(outside)
    os.symlink(outside, f'{folder}/times-a')
    os.symlink(f'{outside}/d', f'{folder}/contents')
    os.symlink(f'{outside}/file', f'{folder}/prealloc')
    os.symlink(f'{outside}/new', f'{folder}/labelled')
    os.link(f'{outside}/file', f'{folder}/largest')
    os.mkfifo(f'{folder}/deep')
    os.mkdir(f'{folder}/only a hole')
    os.mkdir(f'{folder}/socket')
    with open(f'{folder}/stays', 'w', encoding='ascii'):
        pass
    extract('-C', folder, fs.path)
    after = trees.tree(outside)
    assert not trees.differences(before, after, leave_out=('names',)) and len(after) == 2, after
    ours = trees.tree(folder)
    del ours[b'stays']
    compared = check(linux, ours, 'obstacles')
    target.clear(folder)
    # This also holds for directories above the requested path.
    folder = target.folder()
    os.symlink(outside, f'{folder}/deep')
    extract('-C', folder, fs.path, 'deep/d')
    assert trees.tree(outside).keys() == before.keys() and not os.path.islink(f'{folder}/deep')
    # A nonempty directory is kept and reported, and the rest is extracted.
    os.makedirs(f'{folder}/prealloc/full')
    said = extract('-C', folder, fs.path, 'prealloc', 'only a hole', status=1)
    assert 'prealloc: cannot create file: Directory not empty' in said or 'File exists' in said, said
    assert os.path.isdir(f'{folder}/prealloc/full') and os.path.getsize(f'{folder}/only a hole') == 1 << 40
    target.clear(folder)
    return compared


def flag_of(path, folder):
    with ops.Opened(f'{folder}/{path}', os.O_RDONLY) as fd:
        return struct.unpack('=I', fcntl.ioctl(fd, ops.FS_IOC_GETFLAGS, bytes(4)))[0]


def flags(scratch, target):
    """Flags of chattr, also for files with several names and compression; and on a filesystem that does not support all
    of them."""
    letters = ('', 'A', 'C', 'S', 'a', 'c', 'd', 'i', 'm', 'Ai', 'aS', 'ci')
    fs = image.Image(f'{scratch}/flags.img', '300M')
    fs.mkfs()
    mnt = fs.mount()
    for kind in ('f', 'd'):
        for each in letters + ('D',) * (kind == 'd'):
            path = f'{mnt}/{kind}{each}'
            os.mkdir(path) if kind == 'd' else ops.write(path, 0, b'')
            if each:
                image.run('chattr', '+' + ''.join(c for c in each if c not in 'ai'), path)
            if kind == 'f':
                ops.write(path, 0, b'x' * 20000)
            if kind == 'd':
                ops.write(f'{path}/in', 0, b'y' * 20000)
                image.run('chattr', '-C', '-c', '-m', '-S', '-A', '-d', f'{path}/in')
            if each == 'ci':
                os.setxattr(path, 'btrfs.compression', b'zstd')
    for name in ('fi', 'fa', 'fci'):
        os.link(f'{mnt}/{name}', f'{mnt}/d/{name}')
        os.link(f'{mnt}/{name}', f'{mnt}/another-{name}')
    for kind in ('f', 'd'):
        for each in (each for each in letters if set(each) & set('ai')):
            image.run('chattr', '+' + ''.join(c for c in each if c in 'ai'), f'{mnt}/{kind}{each}')
    paths = [os.path.relpath(os.path.join(at, name), mnt) for at, dirs, files in os.walk(mnt) for name in dirs + files]
    wanted = {path: flag_of(path, mnt) for path in paths}
    linux = trees.tree(mnt)
    image.sync(mnt)
    folder = target.folder()
    extract('-C', folder, '--flags', fs.path)
    assert len({value for value in wanted.values()}) > len(letters), wanted
    for again in range(2):
        got = {path: flag_of(path, folder) for path in paths}
        assert got == wanted, {path: (hex(got[path]), hex(wanted[path])) for path in paths if got[path] != wanted[path]}
        check(linux, trees.tree(folder), 'with flags')
        # Into directories whose flags new files inherit.
        if not again:
            image.run('chattr', '-R', '-f', '-i', '-a', folder)
            extract('-C', folder, '--flags', fs.path)
    assert os.stat(f'{folder}/fi').st_nlink == 3
    plain = target.folder()
    extract('-C', plain, fs.path)
    assert not any(flag_of(path, plain) & 0x8100f8 for path in paths)
    # On another filesystem: a line for each unsupported flag, and everything else is extracted.
    other = f'{scratch}/other'
    os.mkdir(other)
    image.run('mount', '-t', 'tmpfs', 'none', other)
    try:
        lines = extract('-C', other, '--flags', fs.path, status=1).splitlines()
        told = [line.rpartition('cannot set inode flag ')[2] for line in lines]
        assert told and len(set(told)) == len(told) and all(': Operation not supported' in line for line in told), lines
        has = [path for path in paths if flag_of(path, other) & IMMUTABLE_APPEND == wanted[path] & IMMUTABLE_APPEND]
        assert len(has) == len(paths), set(paths) - set(has)
    finally:
        image.run('chattr', '-R', '-f', '-i', '-a', other)
        image.run('umount', other)
    image.run('chattr', '-R', '-f', '-i', '-a', folder, mnt)
    fs.umount()
    fs.remove()
    return len(paths)


def archived(fs, linux, target, scratch):
    """As an archive, read by GNU tar, by bsdtar if installed, and by mkfs --tar."""
    archive = f'{scratch}/files.tar'
    # tar cannot handle paths that are longer than Linux accepts in a single call.
    asked = [name for name in os.listdir(fs.mnt.encode()) if name not in (b'whole', b'deep')]
    below = {path: what for path, what in linux.items() if path.partition(b'/')[0] in asked}
    sockets = {path for path, what in below.items() if int(what['mode'], 8) >> 12 == 0o14}
    for path in sockets:
        del below[path]
    done = subprocess.run([BTRKIT, 'extract', '--tar', archive, fs.path, '--', *asked], stderr=subprocess.PIPE,
                          check=False)
    lines = done.stderr.decode().splitlines()
    assert not done.returncode and len(lines) == len(sockets), lines[:5]
    assert all('sockets cannot be stored in an archive' in line for line in lines), lines[:5]
    compared = 0
    bsdtar = os.environ.get('BSDTAR') or shutil.which('bsdtar')
    for reader in ('tar', bsdtar):
        if not reader:
            continue
        folder = target.folder()
        options = ['--xattrs', '--xattrs-include=*', '--acls', '--numeric-owner',
                   '--warning=no-timestamp'] if reader == 'tar' else []
        done = subprocess.run([reader, *options, '-xpf', archive, '-C', folder], stderr=subprocess.PIPE, check=False)
        # GNU tar always treats names as bytes, and ignores hdrcharset. It does not know how libarchive writes device
        # numbers that are too large for the field.
        said = [line for line in done.stderr.splitlines() if b"keyword 'hdrcharset'" not in line
                and b"keyword 'SCHILY.devm" not in line]
        assert not done.returncode and not said, (reader, said[:5])
        ours = trees.tree(folder)
        for path, what in below.items():
            # bsdtar sets it on a directory first, from which files inherit it.
            if reader == bsdtar and 'btrfs.compression' not in what['xattrs']:
                ours[path]['xattrs'].pop('btrfs.compression', None)
            if reader == 'tar' and os.minor(what.get('device', 0)) >= 1 << 18:
                ours[path]['device'] = what['device']
        lines = trees.differences(below, ours, leave_out=('atime',))
        assert not lines, f'{reader}: ' + '\n'.join(line[:500] for line in lines[:10])
        compared += len(below)
        target.clear(folder)
    return compared + filled(fs, below, asked, scratch)


def filled(fs, below, asked, scratch):
    """Through a pipe into another filesystem."""
    made = image.Image(f'{scratch}/made.img', size=None)
    with subprocess.Popen([BTRKIT, 'extract', '--tar', '-', fs.path, '--', *asked, b'deep'], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as writer:
        image.run(BTRKIT, 'mkfs', '--tar', '-', made.path, stdin=writer.stdout)
    assert not writer.returncode
    mnt = made.mount(readonly=True)
    ours = trees.tree(mnt)
    deepest = {path for path in ours if path.startswith(b'deep/')}
    assert len(deepest) == 1010, len(deepest)
    lines = trees.differences(below, {path: what for path, what in ours.items()
                                      if path != b'deep' and path not in deepest}, leave_out=('ranges',))
    assert not lines, 'mkfs --tar: ' + '\n'.join(line[:500] for line in lines[:10])
    made.umount()
    made.remove()
    return len(ours)


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    compared = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-extract-') as scratch:
        for k, (mkfs, mount) in enumerate(FORMS + DEEP if '--deep' in sys.argv else FORMS):
            fs = image.Image(f'{scratch}/fs.img', '1G')
            fs.mkfs(*mkfs)
            fill(fs.mount(mount), random.Random(image.seed() + k))
            fs.umount()
            fs.mount(readonly=True)
            target = Target(scratch)
            linux = trees.tree(fs.mnt)
            compared += whole(fs, linux, target) + parts(fs, linux, target)
            compared += archived(fs, linux, target, scratch)
            if not k:
                compared += obstacles(fs, linux, target) + flags(scratch, target)
            target.fs.remove()
            fs.umount()
            fs.remove()
    print(f'{compared} names compared')
    return 0


sys.exit(main())
