#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures while filling a filesystem: one clear message, and nothing that looks like an image. Also: what an image
takes from the host, and owners under fakeroot."""
import contextlib
import io
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

import tool
from tool import BTRKIT, SUPER_OFFSETS, run

K, M = 1 << 10, 1 << 20
MAGIC = b'_BHRfS_M'
checked = 0


def write(path, data=b''):
    with open(path, 'wb') as f:
        f.write(data)


def contents(path):
    with open(path, 'rb') as f:
        return f.read()


def make_tree(top, files=40):
    os.makedirs(f'{top}/dir')
    rng = random.Random(1)
    for number in range(files):
        write(f'{top}/dir/file{number:03}', rng.randbytes(rng.randrange(1, 200 * K)))
    return top


def no_image(path, was_there, keeps=0):
    """The file must not exist if it did not before; otherwise it is empty, or without a superblock if it must keep its
    size."""
    if not was_there:
        assert not os.path.lexists(path), 'there is a file'
        return
    size = os.path.getsize(path)
    assert size in (0, keeps), f'{size} bytes are left'
    with open(path, 'rb') as f:
        for at in SUPER_OFFSETS:
            assert MAGIC not in os.pread(f.fileno(), 4 * K, at), 'there is a superblock'


def told(says, code, out, err, status=1):
    """The failure is reported in one line."""
    global checked
    assert (code, out) == (status, b''), (says, code, out, err)
    assert re.fullmatch(r'btrkit mkfs: [^\n]*\n', err) and re.search(says, err), f'{err!r} does not say {says!r}'
    checked += 1


def fails(says, folder, *args, devices=1, keeps=0, **kwargs):
    """mkfs must fail, with target files that do not exist and with existing ones of another size."""
    paths = [f'{folder}/image{i}' for i in range(devices)]
    for was_there in (False, True):
        for path in paths if was_there else ():
            write(path, b'old' * 100000)
        told(says, *run('mkfs', '-q', '-f', *args, *paths, **kwargs))
        for path in paths:
            no_image(path, was_there, keeps)
            if was_there:
                os.unlink(path)


def untouched(says, folder, *args, status=1, **kwargs):
    """Errors that are detected before the contents are read leave an existing target file untouched."""
    path = f'{folder}/image'
    for was_there in (False, True):
        if was_there:
            write(path, b'old' * 1000)
        told(says, *run('mkfs', '-q', '-f', *args, path, **kwargs), status=status)
        assert os.path.lexists(path) == was_there, 'there is a file'
        assert not was_there or contents(path) == b'old' * 1000, 'it was written to'
    os.unlink(path)


def options_that_name_nothing(folder):
    tree = make_tree(f'{folder}/options')
    untouched(r'nowhere: cannot open directory: No such file', folder, '-r', f'{folder}/nowhere')
    untouched(r'file000: cannot open directory: Not a directory', folder, '-r', f'{tree}/dir/file000')
    untouched(r'no such directory in the source', folder, '-r', tree, '--subvol', 'dirr')
    untouched(r'no such directory in the source|not a directory', folder, '-r', tree, '--subvol', 'dir/file000')
    untouched(r'no such|not there', folder, '-r', tree, '--inode-flags', 'nodatacow:dir/none')
    untouched(r'nowhere: .*No such file', folder, '--tar', f'{folder}/nowhere')
    untouched(r'nowhere: .*No such file', folder, '--manifest', f'{folder}/nowhere')
    write(f'{folder}/manifest', b'/ 0 40755 1 0 0 0 1.0 - - -\n')
    untouched(r'nowhere: .*No such file', folder, '--manifest', f'{folder}/manifest', '--basedir', f'{folder}/nowhere')
    untouched('--rootdir, --tar and --manifest', folder, '-r', tree, '--tar', f'{folder}/nowhere', status=2)
    shutil.rmtree(tree)


def tar(*members, **options):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT, **options) as t:
        for name, data, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file(name, data=b'content'):
    return name, data, tarfile.REGTYPE, ''


def link(name, target, kind=tarfile.LNKTYPE):
    return name, b'', kind, target


def wrong_archives(folder):
    path, some = f'{folder}/a.tar', file('some', random.Random(2).randbytes(3 * M))

    def wrong(says, data):
        write(path, data)
        fails(says, folder, '--tar', path)

    whole = tar(some, file('more', bytes(range(256)) * 5000))
    wrong('broken archive', b'')
    wrong('broken archive', b'no archive at all' * 1000)
    for length in (1000, 2 * M, 3 * M + 512, 3 * M + 1024, 3 * M + 2000, len(whole.rstrip(b'\0'))):
        wrong('broken archive', whole[:length])
    damaged = bytearray(whole)
    damaged[3 * M + 512 + 100:3 * M + 512 + 110] = b'x' * 10
    wrong('broken archive', bytes(damaged))
    wrong(r'\.\./out: .*leads out of the tree', tar(some, file('../out')))
    wrong(r'a/\.\./\.\./out: .*leads out of the tree', tar(some, file('a/../../out')))
    wrong(r'/\.\./out: .*leads out of the tree', tar(some, file('/../out')))
    wrong(r'link to \.\./some: .*leads', tar(some, link('l', '../some')))
    wrong('some: duplicate entry', tar(some, file('./some')))
    wrong('some: not a directory, but has entries', tar(some, file('some/below')))
    wrong('s: not a directory, but has entries', tar(some, link('s', '/etc', tarfile.SYMTYPE), file('s/passwd')))
    wrong('l: hard link to none, which is missing', tar(some, link('l', 'none')))
    wrong('too long: 4096 bytes', tar(some, link('s', 't' * 4096, tarfile.SYMTYPE)))
    write(path, tar(some, link('s', 't' * 3950, tarfile.SYMTYPE)))
    fails('s: target of symbolic link is too long: 3950 bytes, maximum is 3949', folder, '-n', '4k', '--tar', path)
    wrong('name is too long: 256 bytes', tar(some, file('n' * 256)))
    wrong(r'\.wh\.some: whiteout', tar(some, file('.wh.some')))
    os.unlink(path)


def image_in_source(folder):
    """The target must not be part of the source: it would contain itself, and the source would be destroyed."""
    says, tree = 'is the target of the new filesystem', make_tree(f'{folder}/self', files=5)
    image = f'{folder}/self/image'
    told(f'image: {says}', *run('mkfs', '-q', '-r', tree, image))
    assert not os.path.lexists(image), 'there is a file'
    write(f'{folder}/manifest', b'/ 0 40755 1 0 0 0 1.0 - - -\n/f 3 100644 1 0 0 0 1.0 image - -\n')
    write(f'{folder}/a.tar', tar(file('some')))
    for target, *args in ((image, '-r', tree), (image, '--manifest', f'{folder}/manifest', '--basedir', tree),
                          (f'{folder}/manifest', '--manifest', f'{folder}/manifest'),
                          (f'{folder}/a.tar', '--tar', f'{folder}/a.tar')):
        write(image, b'old')
        before = contents(target)
        told(says, *run('mkfs', '-q', '-f', *args, target))
        assert contents(target) == before, f'{args}: it was written to'
    assert run('mkfs', '-q', '-f', '--exclude', 'image', '-r', tree, image)[0] == 0
    assert b'image' not in run('ls', image)[1], 'what is left out is in it'
    shutil.rmtree(tree)
    for name in ('manifest', 'a.tar'):
        os.unlink(f'{folder}/{name}')


def wrong_files(folder):
    """Unreadable files and directories."""
    tree = make_tree(f'{folder}/unreadable')
    paths = f'{tree}/dir/file007', f'{tree}/closed'
    os.mkdir(paths[1])
    for path in paths:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.chmod(path, 0)
        # A directory is opened before anything is written, a file only when its contents are read.
        check = untouched if os.path.isdir(path) else fails
        check(f'{os.path.basename(path)}: .*Permission denied', folder, '-r', tree, **tool.forbidden())
        os.chmod(path, mode)
    shutil.rmtree(tree)


class Held:
    """An mkfs that has begun to fill and waits in the middle, because it reads a pipe that is still open."""

    def __init__(self, folder, was_there, *args):
        self.path = f'{folder}/held'
        if was_there:
            write(self.path, b'old')
        self.was_there = was_there
        self.process = subprocess.Popen([BTRKIT, 'mkfs', '-q', '-f', *args, '--tar', '-', self.path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.data = tar(file('some', random.Random(3).randbytes(24 * M)))
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(self.data[:20 * M])
            self.process.stdin.flush()

    def end(self):
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out, err.decode()

    def done(self):
        no_image(self.path, self.was_there)
        if self.was_there:
            os.unlink(self.path)


def interrupted(folder):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for was_there in (False, True):
            held = Held(folder, was_there)
            held.process.send_signal(number)
            # The pipe is drained as long as data arrives.
            with contextlib.suppress(BrokenPipeError):
                held.process.stdin.write(held.data[20 * M:])
            told('interrupted: there is no filesystem on it now', *held.end())
            held.done()
    # A pipe that ends too early.
    for was_there in (False, True):
        held = Held(folder, was_there)
        told('broken archive', *held.end())
        held.done()


def changing(folder):
    """Files that change while they are read are detected, and the message names the file."""
    tree = f'{folder}/changing'
    make_tree(tree)
    # Large enough to be still being read when it changes.
    with open(f'{tree}/large', 'wb') as f:
        for number in range(192):
            f.write(random.Random(number).randbytes(1000) * 1048)
    size, path = os.path.getsize(f'{tree}/large'), f'{folder}/image'

    def shorten():
        os.truncate(f'{tree}/large', size // 2)

    def append():
        with open(f'{tree}/large', 'ab') as f:
            f.write(b'more')

    def touch():
        os.utime(f'{tree}/large')

    def replace():
        shutil.copy2(f'{tree}/dir/file001', f'{tree}/new')
        os.rename(f'{tree}/new', f'{tree}/large')

    def remove():
        os.unlink(f'{tree}/large')

    def changed(change, *options):
        process = subprocess.Popen([BTRKIT, 'mkfs', '-q', '-f', '--threads', '1', '--compress', 'zlib:9', '-r', tree,
                                    *options, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Once contents are written, the scan of the tree is complete.
        while process.poll() is None and not (os.path.exists(path) and os.path.getsize(path) > 0):
            time.sleep(0.001)
        change()
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err.decode()

    accept = '--accept-changes'
    for change in (touch, append, shorten):
        before = contents(f'{tree}/large')
        told(r': large: changed while it was read\n', *changed(change, accept))
        code, out, err = run('check', '--data', path)
        assert code == 0, (change, out, err)
        code, out, err = run('cat', path, 'large')
        half = size // 2
        assert (code, len(out), out[:half]) == (0, len(before), before[:half]), (change, code, err)
        assert out[half:].rstrip(b'\0') == before[half:half + len(out[half:].rstrip(b'\0'))], change
        os.unlink(path)
        write(f'{tree}/large', before[:size])
    for change in (touch, append, shorten, replace, remove):
        for options in ((), (accept,)) if change in (replace, remove) else ((),):
            told('large: (changed|was truncated|cannot|No such)', *changed(change, *options))
            no_image(path, False)
            write(f'{tree}/large', before[:size])
    code, out, err = run('mkfs', '-q', accept, '-r', tree, path)
    assert (code, out, err) == (0, b'', ''), (code, err)
    os.unlink(path)
    for options, says in ((('--tar', '/dev/null'), 'needs --rootdir'), ((), 'needs --rootdir'),
                          (('-r', tree, '--verify'), 'cannot be used with --verify or --reflink'),
                          (('-r', tree, '--reflink'), 'cannot be used with --verify or --reflink')):
        code, out, err = run('mkfs', accept, *options, path)
        assert code == 2 and says in err, (options, code, err)
    shutil.rmtree(tree)


def no_room(folder):
    """A size that is too small, and a file size limit."""
    tree = make_tree(f'{folder}/large', files=400)
    fails('too small', folder, '-b', '20m', '-r', tree, keeps=20 * M)
    fails('too small', folder, '-b', '4m', '-r', tree, keeps=4 * M)
    fails('image0: too small: (0|299008) bytes', folder, '-r', tree, '--undo', f'{folder}/undo', keeps=300000)
    fails('too small', folder, '-b', '45m', '-d', 'raid1', '-m', 'raid1', '-r', tree, devices=2, keeps=45 * M)

    def limited():
        import resource
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 * M, 10 * M))

    fails('File too large', folder, '-r', tree, preexec_fn=limited)
    shutil.rmtree(tree)


def guarded(folder):
    """A target that must not be overwritten must not be enlarged either."""
    tree, path = make_tree(f'{folder}/guarded', files=5), f'{folder}/guarded.img'
    assert run('mkfs', '-q', '-r', tree, path)[0] == 0
    size = os.path.getsize(path)
    told('contains btrfs: use -f', *run('mkfs', '-q', '-b', '500m', '-r', tree, path))
    assert os.path.getsize(path) == size, f'{os.path.getsize(path)} bytes, not {size}'
    assert run('mkfs', '-q', '-f', '-b', '500m', '-r', tree, path)[0] == 0 and os.path.getsize(path) == 500 * M
    os.unlink(path)
    shutil.rmtree(tree)


def links_without_extref(folder):
    tree = f'{folder}/links'
    os.mkdir(tree)
    write(f'{tree}/0')
    for number in range(1, 1500):
        os.link(f'{tree}/0', f'{tree}/{number}')
    fails('0: so many names in a directory require the feature extref', folder, '-O', '^extref', '-r', tree)
    for name in os.listdir(tree)[400:]:
        os.unlink(f'{tree}/{name}')
    assert run('mkfs', '-q', '-O', '^extref', '-r', tree, f'{folder}/few')[0] == 0
    os.unlink(f'{folder}/few')
    shutil.rmtree(tree)


def spare_room(folder):
    """Unused space of the filesystem is a hole in the image."""
    global checked
    tree, image = make_tree(f'{folder}/spare'), f'{folder}/spare.img'
    for options in ((), ('--free', '200m'), ('-d', 'dup')):
        assert run('mkfs', '-q', '-f', *options, '-r', tree, image)[0] == 0
        found = os.stat(image)
        assert found.st_size > 25 * M and found.st_blocks * 512 < 12 * M, (options, found)
        os.unlink(image)
        checked += 1
    shutil.rmtree(tree)


def owners(path):
    """Return (uid, gid, mode, rdev) of each inode, from the dump of the tree."""
    text = run('dump-tree', '-t', '5', path)[1].decode()
    return sorted(re.findall(r'mode (\d+) links \d+ uid (\d+) gid (\d+) rdev (\d+)', text))


def faked(folder):
    """Under fakeroot, files have the owners that it reports, and devices are devices."""
    global checked
    if not shutil.which('fakeroot'):
        print('without fakeroot')
        return
    tree, image = f'{folder}/faked', f'{folder}/faked.img'
    make_tree(tree, files=5)
    script = (f'cd {tree} && chown 12:34 dir/file001 && chown -R 56:78 dir/file002 && chmod 4711 dir/file001 &&'
              f' mknod device c 300 7000 && chown 1:2 . && "{BTRKIT}" mkfs -q -r . {image}')
    done = subprocess.run(['fakeroot', 'sh', '-c', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=600, env={**os.environ, 'HOME': '/', **tool.PRELOADED})
    assert (done.returncode, done.stderr) == (0, b''), done.stderr
    found = owners(image)
    for wanted in (('104711', '12', '34', '0'), ('100644', '56', '78', '0'), ('100644', '0', '0', '0'),
                   ('40755', '1', '2', '0'), ('40755', '0', '0', '0')):
        assert wanted in found, (wanted, found)
    assert [f[0][:2] for f in found if f[3] != '0'] == ['20'] and len(found) == 8, found
    os.unlink(image)
    checked += len(found)


def without_proc(folder):
    """Without /proc, as in a chroot, only paths that are too long fail, with a clear message."""
    if os.geteuid() or os.environ.get('SANITIZED'):
        print('/proc is hidden by root only, and not from the sanitizers')
        return
    tree, image = f'{folder}/hidden', f'{folder}/hidden.img'
    make_tree(tree, files=5)
    # Nothing about / is changed: in a chroot it need not be a mount point.
    hide = ('-m', '--propagation', 'unchanged', 'sh', '-c',
            'mount --make-private /proc && mount -t tmpfs none /proc && exec "$@"', 'sh')
    shown = subprocess.run(['unshare', *hide, BTRKIT, 'mkfs', '-q', '-r', tree, image],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600)
    assert (shown.returncode, shown.stderr) == (0, b''), shown.stderr
    os.unlink(image)
    top = os.open(tree, os.O_RDONLY)
    for _ in range(20):
        os.mkdir('d' * 250, dir_fd=top)
        below = os.open('d' * 250, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    code, out, err = run(*hide, BTRKIT, 'mkfs', '-q', '-r', tree, image, binary='unshare')
    told('cannot list attributes without /proc: No such file or directory', code, out, err)
    no_image(image, False)


def main():
    with tempfile.TemporaryDirectory(prefix='btrkit-fill-') as folder:
        options_that_name_nothing(folder)
        wrong_archives(folder)
        image_in_source(folder)
        wrong_files(folder)
        interrupted(folder)
        changing(folder)
        no_room(folder)
        guarded(folder)
        links_without_extref(folder)
        spare_room(folder)
        faked(folder)
        without_proc(folder)
    print(f'{checked} checked')
    return 0


if __name__ == '__main__':
    sys.exit(main())
