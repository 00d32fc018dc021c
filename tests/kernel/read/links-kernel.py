#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths lead where a mounted system leads: random links, relative, absolute and upwards, and names, dots, two dots and
slashes, also between subvolumes, are followed by stat, cat, ls, fiemap, extract and edit, and by Linux in a chroot of
the mounted subvolume. Names that cannot be changed, since they are dots, are refused as Linux refuses them.

Exits with 77 if it cannot run.
"""
import ctypes
import errno
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile

import image
import ops

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
PATHS = 400

SYS_OPENAT2, RESOLVE_NO_SYMLINKS = 437, 4


def fill(mnt, rng):
    """Directories, files and links below the top and in two subvolumes."""
    folders = ['']
    for name in ('sub', 'a/nested', *(f'{rng.choice("abcd")}/{k}' for k in range(12))):
        path = f'{mnt}/{name}'
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name in ('sub', 'a/nested'):
            ops.subvolume(path)
        else:
            os.makedirs(path, exist_ok=True)
    for at, dirs, _ in os.walk(mnt):
        folders += [os.path.relpath(f'{at}/{name}', mnt) for name in dirs]
    for folder in folders:
        with open(f'{mnt}/{folder}/file', 'wb') as f:
            f.write(f'contents of {folder}\n'.encode() * 500)
    for k in range(90):
        at, to = rng.choice(folders), rng.choice(folders)
        goal = rng.choice((to, f'{to}/file', f'{rng.choice(folders)}/l{rng.randrange(90)}', f'{to}/none', f'{to}/'))
        kind = rng.randrange(4)
        if kind == 0:
            goal = f'/{goal}'
        elif kind == 1:
            goal = '../' * rng.randrange(5) + goal
        elif kind == 2:
            goal = os.path.relpath(goal or '.', at or '.') + rng.choice(('', '/', '/.', '//file'))
        os.symlink(goal or '.', f'{mnt}/{at}/l{k}')
    os.symlink('loop', f'{mnt}/loop')
    os.symlink('c0', f'{mnt}/chain')
    for k in range(42):
        os.symlink(f'c{k + 1}' if k < 41 else 'file', f'{mnt}/c{k}')
    os.symlink('x/' * 2000 + '..', f'{mnt}/long')
    os.makedirs(f'{mnt}/a/b')
    os.symlink('a/b', f'{mnt}/way')
    return {folder: sorted(os.listdir(f'{mnt}/{folder}')) for folder in folders}


def some_paths(folders, rng):
    """Paths below @folders, the names in each directory: most of them exist as far as their first name or two."""
    found = ['c0', 'c1', 'c2', 'c3', 'chain', 'loop', 'loop/', 'loop/x', 'c2/', 'long', 'long/', 'file/', 'file/x',
             '..', '../..', '/..//.', '../file', 'file/..', 'none/..', 'loop/..', 'way/..', 'way/../b/../../file',
             'sub/../file', 'a/nested/../..', 'a/nested/../nested/file', 'file/.', '.', './', '//..//', 'c2/..']
    while len(found) < PATHS:
        path = rng.choice(list(folders))
        path += '/' + rng.choice(folders[path])
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            path += '/' + rng.choice(('file', '.', '', '..', '..', *rng.choice(list(folders.values()))))
        found.append((path + rng.choice(('', '', '', '', '/', '//', '/.', '/..'))).lstrip('/') or '/')
    return found


def without_links(path):
    """What openat2 finds if no link may be followed: one that is the last name is found itself."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS)
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_OPENAT2, -100, path.encode(), how, ctypes.sizeof(how))
    if fd < 0:
        # A link is like a file for btrkit.
        error = ctypes.get_errno()
        return os.strerror(errno.ENOTDIR if error == errno.ELOOP else error)
    st = os.fstat(fd)
    os.close(fd)
    return [st.st_ino, st.st_mode]


def in_chroot(root, work):
    """Runs @work as a process for which @root is the root directory. Returns what it returned."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.chroot(root)
        os.chdir('/')
        with os.fdopen(write, 'w') as f:
            json.dump(work(), f)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        answer = json.load(f)
    assert os.waitpid(child, 0)[1] == 0
    return answer


def by_linux(root, paths):
    """The inode and contents: of a link itself, of what it leads to, and if no links are followed."""
    def ask():
        rows = []
        for path in paths:
            row = []
            for call in os.lstat, os.stat:
                try:
                    st = call(f'/{path}')
                    row.append([st.st_ino, st.st_mode])
                except OSError as e:
                    row.append(e.strerror)
            try:
                with open(f'/{path}', encoding='ascii') as f:
                    row.append(f.read())
            except OSError as e:
                row.append(None)
            rows.append((*row, without_links(f'/{path}')))
        return rows
    return in_chroot(root, ask)


# Each operation of edit beside the call that does it in Linux. All of them fail for a path that ends with dots.
REFUSED = (('rm {}', os.unlink), ('rmdir {}', os.rmdir), ('mkdir {}', os.mkdir),
           ('mv {} new', lambda path: os.rename(path, '/new')), ('mv file {}', lambda path: os.rename('/file', path)),
           ('mv none {}', lambda path: os.rename('/none', path)), ('ln file {}', lambda path: os.link('/file', path)),
           ('ln none {}', lambda path: os.link('/none', path)), ('ln -s x {}', lambda path: os.symlink('x', path)),
           ('mknod {} p', os.mkfifo), ('put /dev/null {}', None))


def refused_by_linux(root, paths):
    def ask():
        rows = []
        for path in paths:
            row = []
            for _, call in REFUSED:
                try:
                    if call:
                        call(f'/{path}')
                    else:
                        os.close(os.open(f'/{path}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                    row.append(None)
                except OSError as e:
                    row.append(e.strerror)
            rows.append(row)
        return rows
    return in_chroot(root, ask)


def btrkit(*args):
    done = subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def raw(*args):
    return subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, check=True).stdout


def said(text):
    """The errno in a message: a file that does not exist is reported in words of btrkit."""
    return 'No such file or directory' if 'no such file or directory' in text else text.strip().rpartition(': ')[2]


def compare_readers(img, subvol, paths, rows, scratch):
    compared = 0
    for path, (itself, target, contents, direct) in zip(paths, rows):
        code, out, err = btrkit('stat', '--format', 'json', '--subvol', subvol, img, path)
        if isinstance(itself, str):
            assert code == 1 and said(err) == itself, (path, itself, err)
        else:
            got = json.loads(out.splitlines()[1])
            assert code == 0 and [got['inode'], got['mode']] == itself, (path, itself, out)
        code, out, err = btrkit('stat', '--no-dereference', '--format', 'json', '--subvol', subvol, img, path)
        if isinstance(direct, str):
            assert code == 1 and said(err) == direct, (path, direct, err)
        else:
            got = json.loads(out.splitlines()[1])
            assert code == 0 and [got['inode'], got['mode']] == direct, (path, direct, out)
        code, out, err = btrkit('cat', '--subvol', subvol, img, path)
        if contents is not None:
            assert (code, out, err) == (0, contents, ''), (path, contents[:50], out[:50], err)
        elif isinstance(target, str):
            assert code == 1 and said(err) == target, (path, target, err)
        else:
            assert code == 1 and 'not a regular file' in err, (path, err)
        code, out, err = btrkit('fiemap', '--format', 'tsv', '--subvol', subvol, img, path)
        assert (code == 0) == (contents is not None), (path, contents, err)
        if code == 0:
            assert out.splitlines()[-1].split('\t')[1] == str(target[0]), (path, target, out)
        code, out, err = btrkit('ls', '-id', '--subvol', subvol, img, path)
        assert (code == 0) == (not isinstance(itself, str)), (path, itself, err)
        assert code or int(out.split()[0]) == itself[0], (path, itself, out)
        compared += 5
        code, out, err = btrkit('cat', '--no-dereference', '--subvol', subvol, img, path)
        assert code == (contents is None or itself != target) or 'l' in path, (path, err)
    for path, (itself, _, contents, _) in list(zip(paths, rows))[:200]:
        around = tempfile.mkdtemp(dir=scratch)
        to = f'{around}/deep/to'
        os.makedirs(to)
        code, _, err = btrkit('extract', '-C', to, '--subvol', subvol, img, path)
        assert (code == 0) == (not isinstance(itself, str)), (path, itself, err)
        # Nothing is written outside of the target, and two dots make no directory in it.
        assert os.listdir(around) == ['deep'] and os.listdir(f'{around}/deep') == ['to'], path
        if code == 0:
            assert os.lstat(to + os.path.normpath(f'//{path}')[1:].rstrip('/')).st_mode == itself[1], (path, itself)
            with tarfile.open(fileobj=io.BytesIO(raw('extract', '--tar', '-', '--subvol', subvol, img, path))) as tar:
                assert not any(n[:1] == '/' or '..' in n.split('/') for n in tar.getnames()), path
            compared += 1
        shutil.rmtree(around)
    return compared


def compare_edit(img, subvol, paths, rows):
    """An operation that follows the last name, and one that does not; the script then fails, so nothing is written."""
    compared = 0
    for path, (itself, target, _, _) in zip(paths, rows):
        for words, expected in ((f'chown 7 {path}', target), (f'touch -h @5 {path}', itself)):
            done = subprocess.run([BTRKIT, 'edit', '--subvol', subvol, img], input=f'{words}\nfail\n'.encode(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            err = done.stderr.decode()
            if isinstance(expected, str):
                assert ': line 1: ' in err and expected in err, (words, expected, err)
            else:
                assert ': line 2: ' in err, (words, expected, err)
            compared += 1
    return compared


def compare_refused(img, subvol, paths, rows):
    """Scripts of one line, which fail as Linux says."""
    for path, row in zip(paths, rows):
        for (words, _), expected in zip(REFUSED, row):
            code, _, err = btrkit('edit', '--subvol', subvol, img, *words.format(path).split())
            assert expected and code == 1 and expected in err, (words, path, expected, err)
        for words in (f'rm -r {path}', f'rm -rf {path}'):
            code, _, err = btrkit('edit', '--subvol', subvol, img, *words.split())
            gone = 'No such file' in row[0] and '-rf' in words
            assert code == (not gone), (words, row, err)
    return len(rows) * len(REFUSED)


def new_links(img):
    """Links that the same script has made are followed, and with --no-dereference none is."""
    script = b'mkdir -p n/d/e\nln -s d n/l\nln -s /n/l/e far\nln -s l/../l/e n/up\nmkdir far/new n/up/newer\n' \
             b'put /dev/null n/l/e/f\nln -s f n/d/e/to\ntruncate far/to 77\nln far/f n/l/hard\nmkdir -p n/l/x/y\n'
    done = subprocess.run([BTRKIT, 'edit', img], input=script, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    assert btrkit('ls', img, 'n/d/e', 'n/d/x')[1].split() == ['n/d/e:', 'f', 'new', 'newer', 'to', 'n/d/x:', 'y']
    assert json.loads(btrkit('stat', '--format', 'json', img, 'n/d/hard')[1].splitlines()[1])['size'] == 77
    # Two dots in a script lead to what it has made, and away from what it has removed.
    script = b'mkdir -p u/v/../w/x/../../y\n' \
             b'mkdir u/y/../z\nln -s v/../w u/l\nmkdir u/l/../w/x/deep\n' \
             b'put /dev/null u/l/../f\nmv u/z u/w/z\n' \
             b'mkdir u/w/z/../q\n-rmdir u/v/../none\nrmdir u/w/../v\n-mkdir u/v/../no\n'
    done = subprocess.run([BTRKIT, 'edit', img], input=script, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    assert btrkit('ls', img, 'u', 'u/w', 'u/w/x')[1].split() == ['u:', 'f', 'l', 'w', 'y', 'u/w:', 'q', 'x', 'z',
                                                                'u/w/x:', 'deep']
    for words in (['mkdir', 'far/more'], ['truncate', 'far', '5'], ['truncate', 'n/d/e/to', '5']):
        code, _, err = btrkit('edit', '--no-dereference', img, *words)
        assert code == 1 and ('Not a directory' in err or 'Invalid' in err), err


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    rng = random.Random(image.seed())
    compared = 0
    with tempfile.TemporaryDirectory() as scratch:
        img = image.Image(os.path.join(scratch, 'fs.img'), '300M')
        img.mkfs()
        folders = fill(img.mount(), rng)
        img.umount()
        new_links(img.path)
        for subvol in '/', 'sub', 'a/nested':
            inside = {f if subvol == '/' else f[len(subvol):].strip('/'): names for f, names in folders.items()
                      if subvol == '/' or f'{f}/'.startswith(f'{subvol}/')}
            paths = some_paths(inside, rng)[:PATHS if subvol == '/' else 90]
            dots = [path for path in paths if path.rstrip('/').rpartition('/')[2] in ('.', '..')][:20] + ['', 'none/.']
            root = f'{img.mount()}/{subvol}'
            rows = by_linux(root, paths)
            refused = refused_by_linux(root, dots)
            img.umount()
            followed = sum(row[0] != row[1] for row in rows), len({str(row[1]) for row in rows})
            assert subvol != '/' or followed > (40, 25), followed
            compared += compare_readers(img.path, subvol, paths, rows, scratch)
            compared += compare_edit(img.path, subvol, paths, rows)
            compared += compare_refused(img.path, subvol, [path or '/' for path in dots], refused)
        img.remove()
    print(f'{compared} answers as in a chroot')
    return 0


sys.exit(main())
