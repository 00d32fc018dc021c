#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit edit` puts local files and directories into images, and extraction gives them back unchanged; permissions are
changed as by chmod(1) with the same arguments."""
import os
import random
import stat
import subprocess
import sys
import tempfile

import editing
from editing import check, refused, works
from tool import BTRKIT, PRELOADED, run


def make_tree(top, rng):
    for folder in ('', '/a', '/a/b', '/a b\n\\"', '/empty'):
        os.mkdir(top + folder)
        for name in ('f', 'g'):
            with open(f'{top}{folder}/{name}', 'wb') as f:
                f.write(rng.randbytes(rng.choice((0, 10, 5000, 70000))))
            os.chmod(f'{top}{folder}/{name}', rng.choice((0o600, 0o4755, 0o644)))
        os.symlink('f', f'{top}{folder}/link')
    for name in ('f', 'g', 'link'):
        os.unlink(f'{top}/empty/{name}')
    os.mkfifo(f'{top}/a/fifo')
    with open(f'{top}/a/sparse', 'wb') as f:
        f.truncate(1 << 20)
        os.pwrite(f.fileno(), b'x', 500000)
    # Hard links; some of the names are outside of the tree.
    for name, others in (('a/f', ('a/b/again', 'third')), ('a/link', ('b',)), ('a/fifo', ('a/b/fifo',)),
                         ('g', ('../outside', 'empty/g'))):
        for other in others:
            os.link(f'{top}/{name}', f'{top}/{other}', follow_symlinks=False)
    os.symlink('top/a', f'{top}/../way')
    names = [os.path.join(at, name) for at, folders, files in os.walk(top, topdown=False) for name in folders + files]
    with_attributes = True
    for name in names + [top]:
        if rng.randrange(2) and not os.path.islink(name) and not stat.S_ISFIFO(os.lstat(name).st_mode):
            try:
                os.setxattr(name, 'user.x', rng.randbytes(rng.choice((0, 10, 1000))))
            except OSError:
                with_attributes = False
        when = rng.randrange(1, 1 << 61)
        os.utime(name, ns=(when, when + 12345), follow_symlinks=False)
    return with_attributes


def describe(top, times):
    """Describe the contents of a directory."""
    found, first = {}, {}
    for at, folders, files in os.walk(top):
        folders.sort()
        for name in [''] + sorted(folders + files):
            path = os.path.join(at, name) if name else at
            st = os.lstat(path)
            row = [oct(st.st_mode), st.st_uid, st.st_gid]
            if stat.S_ISREG(st.st_mode):
                with open(path, 'rb') as f:
                    row.append(f.read())
            if stat.S_ISLNK(st.st_mode):
                row.append(os.readlink(path))
            if times:
                row.append(st.st_mtime_ns)
                row += sorted((x, os.getxattr(path, x, follow_symlinks=False))
                              for x in os.listxattr(path, follow_symlinks=False) if x.startswith('user.'))
            found[os.path.relpath(path, top)] = row
            if not stat.S_ISDIR(st.st_mode):
                row.append(first.setdefault(st.st_ino, os.path.relpath(path, top)))
    return found


def trees(path, scratch, rng):
    top, out = os.path.join(scratch, 'top'), os.path.join(scratch, 'out')
    make_tree(top, rng)
    works(path, f'put -rp {top}/ kept\nput -r {top} plain\nput -p {top}/a/f f\nput {top}/a/f g\n'.encode())
    os.mkdir(out)
    code, _, err = run('extract', '-C', out, path)
    check(code == 0, err)
    check(describe(top, True) == describe(f'{out}/kept', True))
    check(describe(top, False) == describe(f'{out}/plain', False))
    check(os.stat(f'{top}/a/f').st_mtime_ns == os.stat(f'{out}/f').st_mtime_ns != os.stat(f'{out}/g').st_mtime_ns)
    # A trailing slash follows the symbolic link.
    works(path, f'put -r {scratch}/way way\nput -r {scratch}/way/ way2\nput -rp {scratch}/way// way3\n'.encode())
    check(run('ls', path, 'way2')[1] == run('ls', path, 'way3')[1] == run('ls', path, 'plain/a')[1])
    check(run('ls', '-l', path, 'way')[1].startswith(b'l'))
    works(path, b'rm -r way way2 way3\n')
    # Onto existing files and directories.
    refused(path, f'put -f {top}/a/f /\n'.encode(), says='Is a directory', line=1)
    refused(path, f'put -rf {top}/a/f /\n'.encode(), says='Is a directory', line=1)
    refused(path, b'rm /\n', says='Is a directory', line=1)
    refused(path, f'put -r {top} plain\n'.encode(), says='exists', line=1)
    works(path, f'rm plain/a/f\nrm -r plain/a/b\nput /dev/null plain/other\nput -rf {top} plain\n'
                f'put -rf {top}/a /\n'.encode())
    refused(path, f'rm plain/f\nmkdir plain/f\nput -rf {top} plain\n'.encode(), says='Is a directory', line=3)
    refused(path, f'put -r {top}/absent x\n'.encode(), says='No such file', line=1)
    out += '2'
    os.mkdir(out)
    check(run('extract', '-C', out, path)[0] == 0)
    found = describe(f'{out}/plain', False)
    check(found.pop('other') and found == describe(top, False))
    check(describe(f'{out}/b', False) == describe(f'{top}/a/b', False))
    works(path, b'rm -r kept plain f g b sparse fifo link\n')


def links(path, scratch):
    """Hard links do not cross subvolumes: each subvolume gets a file of its own, with the names that belong there."""
    top, out = os.path.join(scratch, 'links'), os.path.join(scratch, 'links-out')
    os.makedirs(f'{top}/s')
    os.mkdir(out)
    with open(f'{top}/f', 'wb') as f:
        f.write(b'linked' * 1000)
    for name in ('s/a', 's/b', 'g'):
        os.link(f'{top}/f', f'{top}/{name}')
    works(path, f'mkdir t\nsubvolume create t/s\nput -rf {top} t\n'.encode())
    check(run('extract', '-C', out, path, 't')[0] == 0)
    inodes = [os.stat(f'{out}/t/{name}').st_ino for name in ('f', 'g', 's/a', 's/b')]
    check(inodes[0] == inodes[1] != inodes[2] == inodes[3], inodes)
    # Overwrite what is there.
    works(path, f'put -rf {top} t\n'.encode())
    check(run('cat', path, 't/s/b')[1] == b'linked' * 1000)
    works(path, b'rm -r t\n')


def sizes(path):
    """Files in /proc and /sys, whose size is not known before they are read."""
    for local in ('/proc/version', '/sys/kernel/mm/transparent_hugepage/enabled'):
        if os.path.exists(local):
            works(path, f'put {local} made-up\n'.encode())
            with open(local, 'rb') as f:
                check(run('cat', path, 'made-up')[1] == f.read(), local)
            works(path, b'rm made-up\n')


def inherited(path, scratch):
    """With -p, the local file's mode, owner and ACL replace inherited ones. A symbolic link does not get its target's
    attributes."""
    top = os.path.join(scratch, 'inherited')
    os.makedirs(f'{top}/d')
    for name, mode in (('d/f', 0o640), ('d/id', 0o4750)):
        os.close(os.open(f'{top}/{name}', os.O_CREAT, 0o600))
        os.chmod(f'{top}/{name}', mode)
    os.symlink('d/f', f'{top}/link')
    os.symlink('x', f'{top}/d/link')
    owner = f'{os.getuid()} {os.getgid()}'.split()
    works(path, f'mkdir h\nchown 0:{int(owner[1]) + 1} h\nchmod 2775 h\nsetfacl -m d:u:5:rwx,d:g:7:rw h\n'
                f'put -rp {top}/d h/d\nput -p {top}/d/f h/f\nput -p {top}/link h/link\n'.encode())
    code, out, err = run('dump-tree', '-t', '5', path)
    check(code == 0 and out.count(b'name: system.posix_acl') == 1, 'the ACL of h only', out)
    for folder, names in (('h', ('d', 'f', 'link')), ('h/d', ('f', 'id', 'link'))):
        rows = [row.split() for row in run('ls', '-l', path, folder)[1].decode().splitlines()]
        found = {row[-1] if '->' not in row else row[row.index('->') - 1]: row for row in rows}
        for name in names:
            local = f'{top}/{folder[2:]}/{name}' if folder != 'h' else f'{top}/d/f' if name != 'd' else f'{top}/d'
            check(found[name][0] == stat.filemode(os.lstat(local).st_mode), found[name])
            check([w for w in found[name] if w.isdigit()][1:3] == owner, found[name])
    works(path, b'rm -r h\n')
    try:
        os.setxattr(f'{top}/d/f', 'user.x', b'of-the-file')
    except OSError:
        return
    works(path, f'put -p {top}/link link\n'.encode())
    check(b'of-the-file' in run('dump-tree', '-t', '5', path)[1], 'an attribute of what a link leads to')
    works(path, b'rm link\n')


def swapped(path, scratch):
    """If a name is replaced between stat and open, nothing from outside of the tree may get in and nothing may block,
    neither here nor in mkfs."""
    library = os.environ.get('SWAPPED_LIBRARY')
    if not library:
        return
    top, outside, image = (os.path.join(scratch, name) for name in ('swapped', 'outside-of-it', 'swapped.img'))
    for folder in (f'{top}/dir', outside):
        os.makedirs(folder)
        with open(f'{folder}/file', 'wb') as f:
            f.write(folder.encode() * 100)
    env = {**os.environ, 'LD_PRELOAD': ' '.join([library, os.environ.get('LD_PRELOAD', '')]), **PRELOADED}
    plants = {'link': lambda new: os.symlink(f'{outside}/file', new), 'directory': lambda new: os.symlink(outside, new),
              'fifo': os.mkfifo, 'another': lambda new: os.link(f'{outside}/file', new)}
    for what, plant in plants.items():
        for words in (['edit', path, 'put', '-r', top, 'in'], ['mkfs', '-qb', '128m', '--rootdir', top, image]):
            old = f'{top}/dir' if what == 'directory' else f'{top}/dir/file'
            plant(f'{old}.new')
            code, out, err = run(*words, env={**env, 'SWAP': os.path.basename(old)})
            os.rename(f'{old}.new', f'{scratch}/old')
            os.unlink(old)
            os.rename(f'{scratch}/old', old)
            check(code == 1 and not out and err.count('\n') == 1, what, words, code, err)
            check('changed while it was read' in err or 'Illegal seek' in err, what, words, err)
            check(run('ls', path, 'in')[0] == 1 and not os.path.exists(image), what)
    # Without interference it works, at any depth.
    deep = '/d' * 1500
    at = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir('d', dir_fd=at)
        inner = os.open('d', os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    works(path, f'put -rp {top} in\n'.encode())
    check(run('cat', path, 'in/dir/file')[1] == f'{top}/dir'.encode() * 100)
    check(run('stat', path, 'in' + deep)[0] == 0, 'the deepest')
    works(path, b'rm -r in\n')
    subprocess.run(['rm', '-r', f'{top}/d'], check=True)


def nested(path, scratch):
    """Directories within each other are looked up once for each, not once for each below them."""
    library = os.environ.get('SWAPPED_LIBRARY')
    if not library:
        return
    depth, top, counted = 700, f'{scratch}/nested', f'{scratch}/lookups'
    os.mkdir(top)
    here = os.open(top, os.O_RDONLY)
    for k in range(depth):
        for name in 'f', 'd':
            if name == 'f':
                os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=here))
            else:
                os.mkdir(name, dir_fd=here)
        below = os.open('d', os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    works(path, b'mkdir in\nln -s in way\n')
    for to in 'in/plain', 'way/./again', 'way/again':
        done = subprocess.run([BTRKIT, 'edit', path, 'put', '-rpf', top, to], check=False, stderr=subprocess.PIPE,
                              env={**os.environ, 'LD_PRELOAD': library, 'LOOKUPS': counted, **PRELOADED})
        check(done.returncode == 0, done)
        with open(counted, encoding='ascii') as f:
            number = int(f.read())
        # None is seen if the library is linked statically.
        check(number == 0 or 2 * depth < number < 12 * depth, number)
    for to in 'in/plain', 'in/again':
        listed = run('ls', '-R', path, to)[1].split(b'\n')
        check(listed.count(b'f') == depth and listed.count(b'd') == depth, len(listed))
    works(path, b'rm -r in way\n')


def standard_input(path):
    done = subprocess.run([BTRKIT, 'edit', path, 'put', '-', 'input'], input=b'input' * 10000, check=False)
    check(done.returncode == 0 and run('cat', path, 'input')[1] == b'input' * 10000)
    done = subprocess.run([BTRKIT, 'edit', path, 'write', 'input', '5', '-'], input=b'INPUT', check=False)
    check(done.returncode == 0 and run('cat', path, 'input')[1][:15] == b'inputINPUTinput')
    refused(path, b'put - x\n', says='the script', line=1)
    works(path, b'rm input\n')


def random_mode(rng):
    def permissions():
        return rng.choice('ugo') if not rng.randrange(4) else ''.join(rng.choices('rwxXst', k=rng.randrange(4)))

    return ','.join(''.join(rng.choices('ugoa', k=rng.randrange(3))) +
                    ''.join(rng.choice('+-=') + permissions() for _ in range(rng.choice((1, 1, 2))))
                    for _ in range(rng.choice((1, 1, 2, 3))))


def modes(path, scratch, rng):
    """Apply 150 random modes to a file and to a directory each, under this process's umask."""
    lines, expected = [], {}
    for k in range(150):
        mode, start = random_mode(rng), rng.choice((0, 0o644, 0o755, 0o7777, rng.randrange(0o10000)))
        for kind in 'fd':
            local = os.path.join(scratch, f'{kind}{k}')
            os.mkdir(local) if kind == 'd' else os.close(os.open(local, os.O_CREAT, 0o600))
            os.chmod(local, start)
            subprocess.run(['chmod', '--', mode, local], check=True, stderr=subprocess.DEVNULL)
            expected[f'{kind}{k}'] = (os.stat(local).st_mode & 0o7777, mode, oct(start))
            lines.append(f'{"mkdir" if kind == "d" else "put /dev/null"} m/{kind}{k}\n'
                         f'chmod {start:o} m/{kind}{k}\nchmod {mode} m/{kind}{k}\n')
            os.chmod(local, 0o700)
    works(path, ('mkdir m\n' + ''.join(lines)).encode())
    code, out, err = run('ls', '-l', path, 'm')
    check(code == 0, err)
    found = {row.split()[-1]: row.split()[0] for row in out.decode().splitlines()}
    for name, (mode, *how) in expected.items():
        kind = stat.S_IFDIR if name[0] == 'd' else stat.S_IFREG
        check(found[name] == stat.filemode(kind | mode), name, oct(mode), how, found[name])
    works(path, b'chmod 700 m\nchmod -x m\nchmod -- -w m\n')
    check(run('ls', '-l', path)[1].startswith(b'dr--------'), run('ls', '-l', path))
    for bad in ('u', 'u+q', 'rw', 'u+r,', ',u+r', 'u+ur', 'z+r', '""', '+r,,+w', '888', '1234567'):
        refused(path, f'chmod {bad} m\n'.encode(), says='Invalid argument', line=1)


def main():
    rng = random.Random(int(os.environ.get('SEED', '1')))
    with tempfile.TemporaryDirectory() as scratch:
        path = editing.make_image(scratch)
        trees(path, scratch, rng)
        nested(path, scratch)
        links(path, scratch)
        sizes(path)
        inherited(path, scratch)
        swapped(path, scratch)
        standard_input(path)
        modes(path, scratch, rng)
    print(f'{editing.checks} checks')


if __name__ == '__main__':
    sys.exit(main())
