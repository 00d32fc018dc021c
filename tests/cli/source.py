#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A directory as a source: entries match lstat(2), sorted by name, with one thread or several, in any locale, at any
depth, and with the owners of fakeroot.

SOURCE_LIST is the program that prints a source as text.
"""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import tool
from tool import TABLE, crc32c

LIST = os.environ['SOURCE_LIST']
compared = 0


def source(path, *options, command=(), **kwargs):
    environment = {**os.environ, **kwargs.pop('env', {})}
    done = subprocess.run([*command, LIST, *options, 'directory', path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600, env=environment, **kwargs)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def good(path, *options, **kwargs):
    status, out, err = source(path, *options, **kwargs)
    assert (status, err) == (0, ''), (status, err)
    return out


def bad(message, path, *options, **kwargs):
    global compared
    status, out, err = source(path, *options, **kwargs)
    assert (status, out) == (1, ''), (message, status, out, err)
    assert re.search(message, err) and err.count('\n') == 1, f'{err!r} does not say {message!r}'
    compared += 1


def escape(name):
    return ''.join(chr(b) if 0x20 < b < 0x7f and b not in b'\\=' else f'\\x{b:02x}' for b in name)


def name_hash(name):
    crc = 0xFFFFFFFE
    for byte in name:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc


def when(ns):
    return f'{ns // 10**9}.{ns % 10**9:09}'


def expected(top):
    """The expected output, computed independently."""
    numbers, inodes, lines, count = {}, [], [], {}

    def collect(path, shown):
        st = os.lstat(path)
        key = (st.st_dev, st.st_ino)
        count[key] = count.get(key, 0) + 1
        if key in numbers:
            return
        numbers[key] = len(inodes)
        inodes.append((path, shown, st))
        if stat.S_ISDIR(st.st_mode):
            for name in sorted(os.listdir(path)):
                collect(path + b'/' + name, shown + b'/' + name)

    collect(os.fsencode(top), b'')
    for path, shown, st in inodes:
        key = (st.st_dev, st.st_ino)
        size = st.st_size if stat.S_ISREG(st.st_mode) or stat.S_ISLNK(st.st_mode) else 0
        rdev = os.major(st.st_rdev) << 20 | os.minor(st.st_rdev)
        line = f'inode {"/" + escape(shown)[1:] if shown else "/"} 0:{numbers[key]} mode={st.st_mode:o} ' \
               f'nlink={1 if stat.S_ISDIR(st.st_mode) else count[key]} owner={st.st_uid}:{st.st_gid} size={size} ' \
               f'rdev={rdev} flags=0 mtime={when(st.st_mtime_ns)}'
        if stat.S_ISREG(st.st_mode):
            with open(path, 'rb') as f:
                line += f' crc={crc32c(f.read()):08x}'
        if stat.S_ISLNK(st.st_mode):
            line += ' -> ' + escape(os.readlink(path))
        for name in sorted(map(os.fsencode, os.listxattr(path, follow_symlinks=False))):
            line += f' {escape(name)}={escape(os.getxattr(path, name, follow_symlinks=False))}'
        lines.append(line)
        if stat.S_ISDIR(st.st_mode):
            names = sorted(os.listdir(path))
            order = sorted(range(len(names)), key=lambda i: (name_hash(names[i]), i))
            for i, name in enumerate(names):
                child = os.lstat(path + b'/' + name)
                lines.append(f'entry {escape(shown)}/{escape(name)} {i + 2} {name_hash(name):08x} '
                             f'0:{numbers[child.st_dev, child.st_ino]} by_hash={order[i]}')
    return '\n'.join(lines) + f'\nsubvolume  in -1 inodes={len(inodes)}\ncut 0\n'


def make_tree(top):
    os.makedirs(f'{top}/dir/many')
    for i in range(3000):
        with open(f'{top}/dir/many/{i * 7919 % 3001}', 'w', encoding='ascii') as f:
            f.write(str(i) if i % 10 == 0 else '')
    for first in range(1, 256, 64):
        name = bytes(b for b in range(first, min(first + 64, 256)) if b != ord('/'))
        with open(os.fsencode(top) + b'/dir/' + name, 'wb'):
            pass
    for name in ('n' * 255, 'é', 'Z', 'a', '.hidden', '..dots'):
        os.mkdir(f'{top}/dir/{name}')
    for i in range(50):
        os.link(f'{top}/dir/many/10', f'{top}/dir/{"Za"[i % 2]}/{i}')
    os.symlink('x' * 3949, f'{top}/dir/symlink')
    os.link(f'{top}/dir/symlink', f'{top}/dir/a/symlink', follow_symlinks=False)
    os.mkfifo(f'{top}/fifo')
    os.utime(f'{top}/fifo', ns=(1, -1))
    if os.getuid() == 0:
        os.mknod(f'{top}/device', 0o60600, os.makedev(300, 70000))
        os.chown(f'{top}/fifo', 3000000000, 7)
    try:
        for i in range(40):
            os.setxattr(f'{top}/dir/many/{i}', f'user.{i % 3}', b'value')
        os.setxattr(f'{top}/dir', 'user.dir', b'\0' * 100)
        # Values around the usual buffer size, and more names than the usual buffer holds.
        for size in (511, 512, 513):
            os.setxattr(f'{top}/dir/a', f'user.{"n" * 200}{size}', b'v' * size)
    except OSError as e:
        print(f'without attributes: {e}')


def every_way_is_the_same(folder):
    global compared
    tree = f'{folder}/tree'
    make_tree(tree)
    wanted = expected(tree)
    assert wanted.count('\n') > 6000
    ways = [{}, {}, {'env': {'LD_PRELOAD': ''}}, {'env': {'LC_ALL': 'C'}}, {'env': {'LC_ALL': 'en_US.UTF-8'}},
            {'preexec_fn': lambda: os.umask(0o777)}]
    if shutil.which('taskset'):
        ways.append({'command': ('taskset', '-c', '0')})
    for way in ways:
        got = good(tree, '-n', **way)
        assert got == wanted, (way, [pair for pair in zip(got.splitlines(), wanted.splitlines())
                                     if pair[0] != pair[1]][:3])
        compared += 1
    assert good('tree', '-n', cwd=folder) == good(f'{tree}/dir/../', '-n') == wanted
    os.symlink('tree', f'{folder}/link')
    assert good(f'{folder}/link', '-n') == wanted


def deep_trees_are_read(folder):
    global compared
    depth, name, tree = 1010, 'a name of some length', f'{folder}/deep'
    os.mkdir(tree)
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    with open(os.open('leaf', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd), 'wb') as f:
        f.write(b'leaf')
    os.symlink('target', 'symlink', dir_fd=fd)
    os.close(fd)
    # A few file descriptors are enough.
    out = good(tree, '-n', command=('sh', '-c', 'ulimit -n 24; exec "$@"', 'sh'))
    assert f'/leaf 0:{depth + 1} mode=100644 nlink=1' in out and f' crc={crc32c(b"leaf"):08x}' in out
    assert f'/symlink 0:{depth + 2} ' in out and ' -> target\n' in out
    compared += 1


def what_cannot_be_read_is_told(folder):
    global compared
    tree = f'{folder}/unreadable'
    os.makedirs(f'{tree}/dir/closed')
    with open(f'{tree}/dir/file', 'wb') as f:
        f.write(b'x')
    user = tool.forbidden()
    os.chmod(f'{tree}/dir/closed', 0)
    bad('dir/closed: cannot open directory: Permission denied', tree, **user)
    good(tree, '-x', 'closed', **user)
    os.chmod(f'{tree}/dir/closed', 0o755)
    os.chmod(f'{tree}/dir/file', 0)
    bad('dir/file: cannot open file: Permission denied', tree, **user)
    os.chmod(f'{tree}/dir/file', 0o644)
    os.chmod(f'{tree}/dir', 0o644)
    bad('dir/(file|closed): cannot stat file: Permission denied', tree, **user)
    os.chmod(f'{tree}/dir', 0o755)
    good(tree, **user)
    bad('nowhere: cannot open directory: No such file', f'{folder}/nowhere')
    bad('file: cannot open directory: Not a directory', f'{tree}/dir/file')
    with open(f'{tree}/big', 'wb') as f:
        f.write(b'x')
    os.symlink('t' * 3950, f'{tree}/dir/long')
    bad('dir/long: target of symbolic link is too long: 3950 bytes, maximum is 3949', tree)
    os.unlink(f'{tree}/dir/long')
    try:
        # Linux stores and lists an empty value, and cannot read it.
        os.setxattr(f'{tree}/dir/file', 'security.capability', b'')
    except OSError:
        return
    bad('dir/file: cannot read attribute security.capability: Invalid argument', tree)
    good(tree, '-o', 'security.capability')


def faked_owners_are_taken(folder):
    global compared
    for number, fakeroot in enumerate(('fakeroot', 'fakeroot-pseudo')):
        if not shutil.which(fakeroot):
            print(f'without {fakeroot}')
            continue
        tree = f'{folder}/fake{number}'
        os.makedirs(f'{tree}/dir')
        os.makedirs(f'{folder}/state', exist_ok=True)
        # Otherwise a program with sanitizers insists on being the first library.
        env = {**os.environ, 'PSEUDO_LOCALSTATEDIR': f'{folder}/state',
               'ASAN_OPTIONS': f'{os.environ.get("ASAN_OPTIONS", "")}:verify_asan_link_order=0:detect_leaks=0'}
        script = 'cd "$2" && touch file && chown 7:8 file && chown 9:10 dir && mknod device b 8 1 && chown 3:4 . && ' \
                 'ln file dir/link && exec "$1" -n directory .'
        done = subprocess.run([fakeroot, '--', 'sh', '-c', script, 'sh', LIST, tree], stdout=subprocess.PIPE,
                              check=True, timeout=600, env=env)
        for line in (r'inode / 0:0 mode=40755 nlink=1 owner=3:4 ', r'inode /dir 0:2 mode=40755 nlink=1 owner=9:10 ',
                     r'inode /device 0:1 mode=60\d* nlink=1 owner=0:0 size=0 rdev=8388609 ',
                     r'inode /dir/link 0:3 mode=100\d* nlink=2 owner=7:8 '):
            assert re.search(f'^{line}', done.stdout.decode(), re.M), (line, done.stdout.decode())
            compared += 1


def main():
    with tempfile.TemporaryDirectory() as folder:
        every_way_is_the_same(folder)
        what_cannot_be_read_is_told(folder)
        faked_owners_are_taken(folder)
        try:
            deep_trees_are_read(folder)
        finally:
            # shutil.rmtree() would recurse too deeply.
            subprocess.run(['rm', '-rf', f'{folder}/deep'], check=True)
    print(f'{compared} directories')
    return 0 if compared >= 12 else 1


if __name__ == '__main__':
    sys.exit(main())
