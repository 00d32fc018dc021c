#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each operation of `btrkit edit` on targets that are missing, of a wrong type, read-only, immutable, append-only or
full, compared with Linux: both succeed, or both fail with the same errno. Also received subvolumes, and rm -r on nested
subvolumes.

Exits with 77 if it cannot run.
"""
import errno
import fcntl
import os
import re
import stat
import struct
import subprocess
import sys
import tempfile

import image
import ops

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
IMMUTABLE, APPEND, NODUMP = 0x10, 0x20, 0x40
SUBVOL_SETFLAGS, SUBVOL_RDONLY = 0x4008941A, 2
NOREPLACE, EXCHANGE = 1, 2
LONG = 'n' * 256

# Paths below the directory of the round, and what they are.
TARGETS = ('no', 'no/', 'no/x', LONG, 'f', 'f/', 'f/x', 'e/', 'ro/f/', 'd', 'd/x', 'e', 'l', 'l/', 'ld', 'ld/',
           'ld/x', 'ld/no', 'll', 'll/x', 'p', 'c', 's', 's/f',
           's/id/no', 'z', 'z/no', 'ro', 'ro/no', 'ro/f', 'ro/d', 'ro/e', 'ro/l', 'ro/p', 'i', 'a', 'id', 'id/no',
           'id/f', 'id/e', 'ad', 'ad/no', 'ad/f')
# The placeholder of a nested subvolume in a snapshot has a name but no inode: only for operations on names.
PLACE, OF_NAMES = 'of/in', ('mkdir', 'mknod', 'ln', 'put', 'rmdir', 'rm', 'mv')


def set_flags(path, flags):
    with ops.Opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
        fcntl.ioctl(fd, ops.FS_IOC_SETFLAGS, struct.pack('=I', flags))


def set_read_only(path, on):
    with ops.Opened(path, os.O_RDONLY) as fd:
        fcntl.ioctl(fd, SUBVOL_SETFLAGS, struct.pack('=Q', SUBVOL_RDONLY if on else 0))


def make_targets(top):
    os.mkdir(top)
    for folder in ('', 'd/', 's/', 's/id/', 'ro/', 'ro/d/', 'id/', 'ad/'):
        if folder in ('s/', 'ro/'):
            ops.subvolume(f'{top}/{folder[:-1]}')
        elif folder:
            os.mkdir(f'{top}/{folder}')
        ops.write(f'{top}/{folder}f', 0, b'x' * 8192)
    for path in ('d/x', 'a', 'i'):
        ops.write(f'{top}/{path}', 0, b'x' * 8192)
    for folder in ('', 'ro/', 'id/'):
        os.mkdir(f'{top}/{folder}e')
        os.symlink('f', f'{top}/{folder}l')
        os.mkfifo(f'{top}/{folder}p')
    os.symlink('d', f'{top}/ld')
    os.symlink('ll', f'{top}/ll')
    os.mknod(f'{top}/c', stat.S_IFCHR | 0o600, os.makedev(1, 3))
    ops.subvolume(f'{top}/z')
    set_read_only(f'{top}/ro', True)
    for path, flags in (('i', IMMUTABLE), ('a', APPEND), ('id', IMMUTABLE), ('ad', APPEND),
                        ('s/id', IMMUTABLE)):
        set_flags(f'{top}/{path}', flags)


def make_place(top, source):
    if not os.path.isdir(source):
        ops.subvolume(source)
        ops.subvolume(f'{source}/in')
    if not os.path.isdir(f'{top}/{PLACE}'):
        ops.snapshot(source, f'{top}/of')


def write(path, flags=0):
    fd = os.open(path, os.O_WRONLY | flags)
    os.write(fd, b'local')
    os.close(fd)


def rename(a, b, flags):
    if ops._libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), flags):
        raise OSError(ops.ctypes.get_errno(), 'renameat2')


def allocate(path, mode):
    with ops.Opened(path, os.O_WRONLY) as fd:
        if ops._libc.fallocate(fd, mode, 0, 4096):
            raise OSError(ops.ctypes.get_errno(), 'fallocate')


def clone(a, b, flags=0):
    with ops.Opened(a, os.O_RDONLY) as src, \
            ops.Opened(b, os.O_WRONLY | flags) as dst:
        fcntl.ioctl(dst, ops.FICLONERANGE, struct.pack('=qQQQ', src, 0, 0, 0))


# The words, with P for the target and T/ for the directory of the round; the system call by which Linux does the same;
# and the targets that are left out: for devices Linux opens what they refer to, and a fifo has no reader; subvolumes
# are created and deleted by name in a directory that must be opened; and open(2) cannot create a name with a trailing
# slash.
OPENED = ('p', 'ro/p', 'c')
SLASHES = ('no/', 'f/', 'e/', 'ro/f/', 'l/', 'ld/')
CASES = (
    ('mkdir P', lambda p, t: os.mkdir(p), ()),
    ('mknod P p', lambda p, t: os.mkfifo(p), ()),
    ('ln -s x P', lambda p, t: os.symlink('x', p), ()),
    ('put LOCAL P', lambda p, t: write(p, os.O_CREAT | os.O_EXCL), ()),
    ('rmdir P', lambda p, t: os.rmdir(p), ()),
    ('rm P', lambda p, t: os.unlink(p), ()),
    ('ln T/f P', lambda p, t: os.link(f'{t}/f', p), ()),
    ('ln T/d P', lambda p, t: os.link(f'{t}/d', p), ()),
    ('ln T/i P', lambda p, t: os.link(f'{t}/i', p), ()),
    ('ln P T/no/new', lambda p, t: os.link(p, f'{t}/no/new', follow_symlinks=False), ()),
    ('ln P T/new', lambda p, t: os.link(p, f'{t}/new', follow_symlinks=False), ()),
    ('mv T/f P', lambda p, t: os.rename(f'{t}/f', p), ()),
    ('mv T/d P', lambda p, t: os.rename(f'{t}/d', p), ()),
    ('mv P T/new', lambda p, t: os.rename(p, f'{t}/new'), ()),
    ('mv P T/e', lambda p, t: os.rename(p, f'{t}/e'), ()),
    ('mv P T/s/new', lambda p, t: os.rename(p, f'{t}/s/new'), ()),
    ('mv P T/no/new', lambda p, t: os.rename(p, f'{t}/no/new'), ()),
    ('mv P T/f/new', lambda p, t: os.rename(p, f'{t}/f/new'), ()),
    ('mv -n P T/no/new', lambda p, t: rename(p, f'{t}/no/new', NOREPLACE), ()),
    ('mv P T/ro/new', lambda p, t: os.rename(p, f'{t}/ro/new'), ()),
    ('mv T/z P', lambda p, t: os.rename(f'{t}/z', p), ()),
    ('mv T/s P', lambda p, t: os.rename(f'{t}/s', p), ()),
    ('mv T/ro P', lambda p, t: os.rename(f'{t}/ro', p), ()),
    ('mv -x T/z P', lambda p, t: rename(f'{t}/z', p, EXCHANGE), ()),
    ('mv -n T/f P', lambda p, t: rename(f'{t}/f', p, NOREPLACE), ()),
    ('mv -x T/f P', lambda p, t: rename(f'{t}/f', p, EXCHANGE), ()),
    ('truncate P 5', lambda p, t: os.truncate(p, 5), OPENED),
    ('write P 0 LOCAL', lambda p, t: write(p), OPENED),
    ('punch P 0 4096', lambda p, t: allocate(p, ops.PUNCH_HOLE | ops.KEEP_SIZE), OPENED),
    ('prealloc P 0 4096', lambda p, t: allocate(p, 0), OPENED),
    ('clone T/d/f P', lambda p, t: clone(f'{t}/d/f', p, os.O_CREAT | os.O_TRUNC), OPENED + ('f/', 'ro/f/', 'l/')),
    ('clone P T/d/x', lambda p, t: clone(p, f'{t}/d/x', os.O_TRUNC), OPENED + ('d/x', 'ld/x')),
    ('chmod 600 P', lambda p, t: os.chmod(p, 0o600), ()),
    ('chown 7:8 P', lambda p, t: os.chown(p, 7, 8), ()),
    ('chown -h 7:8 P', lambda p, t: os.lchown(p, 7, 8), ()),
    ('touch @5 P', lambda p, t: os.utime(p, (5, 5)), ()),
    ('touch -h @5 P', lambda p, t: os.utime(p, (5, 5), follow_symlinks=False), ()),
    ('setxattr user.x y P', lambda p, t: os.setxattr(p, 'user.x', b'y'), ()),
    ('setxattr -h user.x y P', lambda p, t: os.setxattr(p, 'user.x', b'y', 0, follow_symlinks=False), ()),
    ('setxattr -r trusted.x y P', lambda p, t: os.setxattr(p, 'trusted.x', b'y', os.XATTR_REPLACE), ()),
    ('setxattr -hr trusted.x y P',
     lambda p, t: os.setxattr(p, 'trusted.x', b'y', os.XATTR_REPLACE, follow_symlinks=False), ()),
    ('rmxattr user.x P', lambda p, t: os.removexattr(p, 'user.x'), ()),
    ('rmxattr -h user.x P', lambda p, t: os.removexattr(p, 'user.x', follow_symlinks=False), ()),
    ('chattr =d P', lambda p, t: set_flags(p, NODUMP), OPENED),
    ('subvolume create P', lambda p, t: ops.subvolume(p), ('f/x', LONG) + SLASHES),
    ('subvolume snapshot T/s P', lambda p, t: ops.snapshot(f'{t}/s', p), ('f/x', LONG) + SLASHES),
    ('subvolume delete P', lambda p, t: ops.delete_subvolume(p),
     tuple(set(TARGETS) - {'no', 'no/x', 'd', 'e', 's', 'z', 'ro'})),
    ('property set P ro true', lambda p, t: set_read_only(p, True), OPENED),
)


def by_linux(call, path, top):
    try:
        call(path, top)
    except OSError as e:
        return e.errno
    return 0


def by_btrkit(img, script, folder, target, local):
    """Add a failing line, so that no change is ever kept."""
    words = [target and f'{folder}/{target}' if w == 'P' else local if w == 'LOCAL' else w.replace('T/', f'{folder}/')
             for w in script.split()]
    done = subprocess.run([BTRKIT, 'edit', img], input=f'{" ".join(words)}\nno such operation\n'.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    said = done.stderr.decode()
    if done.returncode != 1 or said.count('\n') != 1 or done.stdout:
        raise AssertionError(f'{script} {target}: exit {done.returncode}: {said}')
    return said


def agree(expected, said):
    if not expected:
        return ': line 2: ' in said
    return ': line 1: ' in said and os.strerror(expected) in said


class Round:
    """The Linux side: a new directory with all targets whenever the last one was changed."""

    def __init__(self, mnt):
        self.mnt, self.n = mnt, 0
        self.top = f'{mnt}/t0'

    def answer(self, call, target):
        if target == PLACE:
            make_place(self.top, f'{self.mnt}/source')
        got = by_linux(call, f'{self.top}/{target}', self.top)
        if not got:
            self.n += 1
            self.top = f'{self.mnt}/t{self.n}'
            make_targets(self.top)
        return got


def compare(scratch, local):
    img = image.Image(os.path.join(scratch, 'fs.img'), '400M')
    img.mkfs()
    mnt = img.mount()
    make_targets(f'{mnt}/t0')
    make_place(f'{mnt}/t0', f'{mnt}/source')
    img.umount()
    before = img.copy(os.path.join(scratch, 'copy.img'))
    linux, compared, failed, wrong = Round(img.mount()), 0, set(), []
    for script, call, left_out in CASES:
        for target in TARGETS + (PLACE,) * (script.split()[0] in OF_NAMES):
            if target in left_out:
                continue
            expected = linux.answer(call, target)
            said = by_btrkit(before.path, script, 't0', target, local)
            compared += 1
            failed.add(expected)
            if not agree(expected, said):
                wrong.append(f'{script}, P is {target[:20]}: Linux: {os.strerror(expected)}; {said.strip()[-120:]}')
    img.remove()
    before.remove()
    if wrong:
        raise AssertionError('\n'.join(wrong))
    print(f'{compared} answers as Linux gives them, among them {len(failed) - 1} errnos')


def full(scratch, local):
    """Without space, both give the same errno, and can still remove files."""
    img = image.Image(os.path.join(scratch, 'full.img'), '130M')
    img.mkfs('-m', 'single')
    mnt = img.mount()
    for size in (1 << 20, 4096):
        try:
            for n in range(10000):
                ops.fallocate(f'{mnt}/fill{size}-{n}', 0, size)
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
    image.sync(mnt)
    try:
        ops.fallocate(f'{mnt}/one', 0, 1 << 20)
        raise AssertionError('Linux has space')
    except OSError as e:
        expected = e.errno
    img.umount()
    for script in ('prealloc fill4096-0 1m 1m', 'prealloc -k fill4096-0 1m 4k', 'put LOCAL new', 'write one 0 LOCAL'):
        said = by_btrkit(img.path, f'{script}', '', '', local)
        if not agree(expected, said):
            raise AssertionError(f'{script}: {said}')
    img.remove()


def edit(*words):
    done = subprocess.run([BTRKIT, 'edit', *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr.decode()


def left(img):
    """Paths and subvolumes, as Linux lists them."""
    mnt = img.mount()
    paths = sorted(os.path.join(top, name)[len(mnt):] for top, dirs, files in os.walk(mnt) for name in dirs + files)
    listed = image.run(image.BTRFS, 'subvolume', 'list', mnt).decode()
    img.umount()
    return paths, sorted(re.findall(r'path (.*)', listed))


def removed(scratch):
    """What rm -r leaves, compared with rm -rf on the mounted filesystem."""
    img = image.Image(os.path.join(scratch, 'removed.img'), '300M')
    img.mkfs()
    mnt = img.mount()
    os.mkdir(f'{mnt}/t')
    for path in ('t/s', 't/s/in', 't/s/in/deep', 't/empty', 'ro', 'ro/below'):
        ops.subvolume(f'{mnt}/{path}')
        if path != 't/empty':
            os.makedirs(f'{mnt}/{path}/d/e')
            ops.write(f'{mnt}/{path}/d/f', 0, b'x' * 8192)
    ops.snapshot(f'{mnt}/t/s', f'{mnt}/t/snapshot')
    for path in ('t/empty', 'ro'):
        set_read_only(f'{mnt}/{path}', True)
    img.umount()
    copy = img.copy(os.path.join(scratch, 'by-linux.img'))
    mnt = copy.mount()
    for path in ('ro', 't'):
        done = subprocess.run(['rm', '-rf', f'{mnt}/{path}'], stderr=subprocess.PIPE, check=False,
                              env={**os.environ, 'LC_ALL': 'C'})
        said = edit(img.path, 'rm', '-r', path)
        fails = path == 'ro'
        if bool(done.returncode) != fails or bool(said[0]) != fails:
            raise AssertionError(f'{path}: {done.stderr.decode()}; {said}')
        if fails and (os.strerror(errno.EROFS) not in done.stderr.decode() or os.strerror(errno.EROFS) not in said[1]):
            raise AssertionError(f'{path}: {done.stderr.decode()}; {said}')
    # Linux has removed what is writable below the read-only subvolume.
    set_read_only(f'{mnt}/ro', False)
    subprocess.run(['rm', '-rf', f'{mnt}/ro'], check=True)
    copy.umount()
    if edit('--force-readonly', img.path, 'rm', '-r', 'ro') != (0, ''):
        raise AssertionError('a read-only subvolume does not go')
    if left(img) != left(copy) or left(img) != ([], []):
        raise AssertionError(f'{left(img)}; by Linux {left(copy)}')
    image.run(image.BTRFS, 'check', '--check-data-csum', img.path)
    img.remove()
    copy.remove()


def received(scratch):
    """A received subvolume becomes writable only with -f, which clears its received UUID and says so; changed with
    --force-readonly it stays read-only."""
    img = image.Image(os.path.join(scratch, 'received.img'), '300M')
    img.mkfs()
    mnt = img.mount()
    ops.subvolume(f'{mnt}/s')
    ops.snapshot(f'{mnt}/s', f'{mnt}/sent', readonly=True)
    stream = image.run(image.BTRFS, 'send', f'{mnt}/sent')
    for folder in ('one', 'two'):
        os.mkdir(f'{mnt}/{folder}')
        image.run(image.BTRFS, 'receive', f'{mnt}/{folder}', input=stream)
    img.umount()

    for words in (('property', 'set', 'one/sent', 'ro', 'false'), ('mkdir', 'one/sent/new')):
        code, said = edit(img.path, *words)
        if code != 1 or os.strerror(errno.EPERM if words[0] == 'property' else errno.EROFS) not in said:
            raise AssertionError(f'{words}: {said}')
    for words in ((img.path, 'property', 'set', '-f', 'one/sent', 'ro', 'false'),
                  ('--force-readonly', img.path, 'mkdir', 'two/sent/new')):
        code, said = edit(*words)
        if code or 'cleared received_uuid ' not in said or said.count('\n') != 1:
            raise AssertionError(f'{words}: exit {code}: {said}')
    mnt = img.mount()
    for folder, flags in (('one', '-'), ('two', 'readonly')):
        shown = image.run(image.BTRFS, 'subvolume', 'show', f'{mnt}/{folder}/sent').decode()
        if not re.search(r'Received UUID:\s+-\n', shown) or not re.search(rf'Flags:\s+{flags}\n', shown):
            raise AssertionError(f'{folder}: {shown}')
    if not os.path.isdir(f'{mnt}/two/sent/new'):
        raise AssertionError('two: nothing was made')
    img.umount()
    image.run(image.BTRFS, 'check', img.path)
    img.remove()


def received_often(scratch):
    """More read-only snapshots of a received subvolume than the UUID tree has room for under one UUID."""
    img = image.Image(os.path.join(scratch, 'often.img'), '300M')
    img.mkfs('-n', '4096')
    mnt = img.mount()
    ops.subvolume(f'{mnt}/s')
    ops.snapshot(f'{mnt}/s', f'{mnt}/sent', readonly=True)
    os.mkdir(f'{mnt}/one')
    image.run(image.BTRFS, 'receive', f'{mnt}/one', input=image.run(image.BTRFS, 'send', f'{mnt}/sent'))
    img.umount()
    theirs = img.copy(os.path.join(scratch, 'often-linux.img'))
    script = ''.join(f'subvolume snapshot -r one/sent n{k}\n' for k in range(520)) + 'subvolume delete n5 n515\n'
    done = subprocess.run([BTRKIT, 'edit', img.path], input=script.encode(), stderr=subprocess.PIPE, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(done.stderr.decode())
    mnt = theirs.mount()
    try:
        for k in range(520):
            ops.snapshot(f'{mnt}/one/sent', f'{mnt}/n{k}', readonly=True)
        works = True
    except OSError as e:
        # Some kernels give up.
        if e.errno not in (errno.EOVERFLOW, errno.EROFS):
            raise
        works = False
    if works:
        for name in ('n5', 'n515'):
            ops.delete_subvolume(f'{mnt}/{name}')
    theirs.umount()
    for each in (img, theirs)[:1 + works]:
        image.run(BTRKIT, 'check', each.path)
        image.run(image.BTRFS, 'check', each.path)
        mnt = each.mount()
        listed = image.run(image.BTRFS, 'subvolume', 'list', '-rR', mnt).decode()
        each.umount()
        if len(re.findall(r'received_uuid [0-9a-f]{8}-', listed)) != 519:
            raise AssertionError(listed[-1000:])
        each.remove()
    if not works:
        theirs.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as scratch:
        local = os.path.join(scratch, 'local')
        with open(local, 'wb') as f:
            f.write(b'local')
        compare(scratch, local)
        with open(local, 'wb') as f:
            f.write(bytes(range(256)) * 40000)
        full(scratch, local)
        received(scratch)
        received_often(scratch)
        removed(scratch)
    return 0


if __name__ == '__main__':
    sys.exit(main())
