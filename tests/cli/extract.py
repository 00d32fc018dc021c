#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""extract: options, extraction without root, damaged files, full targets, signals, archives.

BTRKIT is the program under test.
"""
import io
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import tarfile
import tempfile

from tool import BTRKIT, check_failure, forbidden, make_filesystem, run, watched

BIG = bytes(i % 251 for i in range(300000))
DAMAGED = BIG[:163840] + bytes(4096) + BIG[163840 + 4096:]


def fill(folder):
    os.makedirs(f'{folder}/dir/below')
    with open(f'{folder}/dir/below/set', 'wb') as f:
        f.write(b'set')
    os.chmod(f'{folder}/dir/below/set', 0o6755)
    os.chmod(f'{folder}/dir/below', 0o555)
    os.symlink('small', f'{folder}/dir/link')
    for k in range(200):
        with open(f'{folder}/dir/file{k}', 'wb') as f:
            f.write(b'%d' % k * 3000)


def names(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, dirs, files in os.walk(folder)
                  for name in dirs + files)


def empty(scratch):
    target = f'{scratch}/target'
    if os.path.exists(target):
        subprocess.run(['chmod', '-R', 'u+w', target], check=True)
        shutil.rmtree(target)
    os.mkdir(target)
    return target


def plain(path, scratch):
    target = empty(scratch)
    assert run('extract', '-C', target, path) == (0, b'', '')
    assert len(names(target)) == 206
    with open(f'{target}/big', 'rb') as f:
        assert f.read() == BIG
    assert os.readlink(f'{target}/dir/link') == 'small' and os.stat(f'{target}/dir/below').st_mode & 0o777 == 0o555
    # Extract selected paths into the current directory.
    target = empty(scratch)
    assert run('extract', path, '/dir/below/', 'dir/link', cwd=target) == (0, b'', '')
    assert names(target) == ['dir', 'dir/below', 'dir/below/set', 'dir/link'], names(target)


def refusals(path, scratch):
    target = empty(scratch)
    for bad in ((), ('--nothing', path), ('-C',), ('--format', 'json', path)):
        status, out, err = run('extract', *bad)
        assert status == 2 and not out and err.count('\n') == 1, (bad, status, out, err)
    check_failure('extract', '/dev/null/x', run('extract', '-C', target, '/dev/null/x'))
    said = check_failure('extract', path, run('extract', '-C', f'{scratch}/none', path))
    assert said == f'{scratch}/none: No such file or directory', said
    assert '999' in check_failure('extract', path, run('extract', '-C', target, '--subvol', '999', path))
    result = run('extract', '-C', target, path, 'none', 'dir/link')
    assert check_failure('extract', path, result) == 'no such file or directory: none'
    assert names(target) == ['dir', 'dir/link']
    result = run('extract', '-C', target, path, 'dir/link/x')
    assert check_failure('extract', path, result) == 'dir/link/x: Not a directory', result


def over_itself(path, scratch):
    """The image being read, or the file behind its loop device, is not replaced by a file, link or directory in it."""
    target = empty(scratch)
    with open(path, 'rb') as f:
        before = f.read()
    for name, kind in ('big', 'file'), ('dir/file1', 'file'), ('dir/link', 'symbolic link'), ('dir', 'directory'):
        os.makedirs(f'{target}/{os.path.dirname(name)}', exist_ok=True)
        image = f'{target}/{name}'
        shutil.copyfile(path, image)
        for device in image, f'{image}?offset=0':
            result = run('extract', '--noscan', '-C', target, device, name, 'dir/file2')
            problem = f'cannot create {kind} in place of what is being read: Device or resource busy'
            said = result[2].splitlines()
            assert result[0] == 1 and said[0].endswith(f': {name}: {problem}'), result
            assert len(said) == 1 + (name == 'dir'), said
            assert name == 'dir' or os.path.exists(f'{target}/dir/file2')
            with open(image, 'rb') as f:
                assert f.read() == before
        loop = subprocess.run(['losetup', '--show', '-rf', image], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False) if os.getuid() == 0 else None
        if loop and not loop.returncode:
            result = run('extract', '--noscan', '-C', target, loop.stdout.strip(), name)
            subprocess.run(['losetup', '-d', loop.stdout.strip()], check=True)
            assert result[0] == 1 and result[2].endswith(f': {name}: {problem}\n'), result
        # A symbolic link to the image may be replaced, and so may other files.
        os.rename(image, f'{scratch}/image')
        os.symlink(f'{scratch}/image', image)
        assert run('extract', '-C', target, f'{scratch}/image', name) == (0, b'', '')
        assert os.path.islink(image) == (name == 'dir/link')
        with open(f'{scratch}/image', 'rb') as f:
            assert f.read() == before
        target = empty(scratch)


def without_root(path):
    """Without root, extracted files belong to the caller, and set-user-ID bits of foreign owners are dropped."""
    if os.getuid():
        return
    # The test directory may be inaccessible to other users, and so may that of the program, as below /root: copy the
    # program, with the library if its run path refers to it.
    with tempfile.TemporaryDirectory(dir='/var/tmp') as place:
        os.chmod(place, 0o755)
        theirs, target = f'{place}/fs.img', f'{place}/to'
        shutil.copyfile(path, theirs)
        os.mkdir(target)
        os.chmod(target, 0o777)
        binary, library = os.path.abspath(BTRKIT), 'lib/libbtrkit.so.1'
        for part in ('cmd', 'lib'):
            os.mkdir(f'{place}/{part}')
            os.chmod(f'{place}/{part}', 0o755)
        shutil.copy(binary, f'{place}/cmd/btrkit')
        if os.path.exists(os.path.join(os.path.dirname(binary), '..', library)):
            shutil.copy(os.path.join(os.path.dirname(binary), '..', library), f'{place}/{library}')
        done = subprocess.run([f'{place}/cmd/btrkit', 'extract', '-C', target, theirs], user=65534, group=65534,
                              extra_groups=[], stderr=subprocess.PIPE, check=False)
        # The directory belongs to somebody else: its mode and times cannot be set, which is reported.
        lines = done.stderr.decode().splitlines()
        assert done.returncode == 1 and [line.partition(f'{theirs}: ')[2] for line in lines] == [
            f'/: cannot {what}: Operation not permitted' for what in ('change mode', 'set times')], lines
        st = os.stat(f'{target}/dir/below/set')
        assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (65534, 65534, 0o755), st
        with open(f'{target}/big', 'rb') as f:
            assert f.read() == BIG


def damaged(path, scratch):
    """Of a damaged file, everything but the bad sector is extracted, with its attributes; and so are all other
    files."""
    row = json.loads(run('fiemap', '--format', 'json', path, 'big')[1].splitlines()[1])
    place = re.search(rb'physical (\d+)', run('map-logical', path, row['physical'])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 40 * 4096 + 17)
        f.write(b'damage')
    target = empty(scratch)
    said = check_failure('extract', path, run('extract', '-C', target, path))
    assert said.startswith('big: bytes 163840 to 167935 cannot be read: data checksum mismatch'), said
    assert len(names(target)) == 206
    with open(f'{target}/big', 'rb') as f:
        assert f.read() == DAMAGED
        assert os.fstat(f.fileno()).st_mode == 0o100644


def signals(path, scratch):
    target = empty(scratch)
    status, out, said = watched('extract', '-C', target, path)
    assert (status, out) == (0, b'') and re.match(r'\rextracting: \d+ files, \d+ MiB', said), said
    assert said.endswith('\r\x1b[K'), said
    target = empty(scratch)
    status, out, said = watched('extract', '-C', target, path, number=signal.SIGINT)
    assert status == 1 and not out and len(names(target)) < 206, (status, out, said)
    assert said.endswith(f'btrkit extract: {path}: interrupted\r\n'), said


def full(path, scratch):
    """Owners that cannot be set are reported once, not for each file."""
    if os.getuid():
        return
    target = empty(scratch)
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', target], check=False).returncode:
        return
    try:
        said = check_failure('extract', target, run('extract', '-C', target, path, 'big', 'dir'))
        assert said == 'big: cannot write: No space left on device', said
    finally:
        subprocess.run(['umount', target], check=True)


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return {m.name: (m, t.extractfile(m).read() if m.isreg() else None) for m in t}


def acl(*entries, mask=7):
    """An ACL as it is stored: the owner and the group have all permissions, others none; entries of users."""
    rows = [(1, 7, -1), *((2, allowed, user) for user, allowed in entries), (4, 7, -1), (16, mask, -1), (32, 0, -1)]
    return struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)


def inherited(scratch):
    """Neither an ACL that the target directory passes on, nor that of an existing directory, stays on what is
    extracted, also by name: with the mode of the file it would grant rights."""
    access, default = 'system.posix_acl_access', 'system.posix_acl_default'
    source, path = f'{scratch}/source', f'{scratch}/acl.img'
    os.makedirs(f'{source}/d/e')
    for name, mode in ('f', 0o640), ('d/g', 0o660), ('own', 0o640):
        with open(f'{source}/{name}', 'wb') as f:
            f.write(b'secret')
        os.chmod(f'{source}/{name}', mode)
    os.mkfifo(f'{source}/fifo')
    os.chmod(f'{source}/fifo', 0o660)
    os.chmod(f'{source}/d', 0o750)
    os.chmod(f'{source}/d/e', 0o770)
    target = empty(scratch)
    try:
        os.setxattr(target, default, acl((12345, 7)))
        os.setxattr(f'{source}/own', access, acl((23456, 4)))
    except OSError:
        return
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '--rootdir', source, path)[0] == 0
    os.makedirs(f'{target}/d/e')
    assert access in os.listxattr(f'{target}/d')
    for words in (('f', 'fifo', 'own', 'd/g'), ('d',), ()):
        if not words:
            os.setxattr(target, default, acl((12345, 7)))
            os.setxattr(target, access, acl((12345, 7)))
        assert run('extract', '-C', target, path, *words) == (0, b'', ''), words
        for name in words or ('', 'f', 'fifo', 'own', 'd', 'd/g', 'd/e'):
            assert os.listxattr(f'{target}/{name}') == ([access] if name == 'own' else []), (words, name)
            assert name == '' or os.lstat(f'{target}/{name}').st_mode == os.lstat(f'{source}/{name}').st_mode, name
        assert words == ('d',) or os.getxattr(f'{target}/own', access) == os.getxattr(f'{source}/own', access)
        # A directory above what was requested is not ours.
        assert (default in os.listxattr(target)) == bool(words)
        subprocess.run(['rm', '-rf', *(f'{target}/{name}' for name in ('f', 'fifo', 'own', 'd/g'))], check=True)


def owners(path, scratch):
    """--no-same-owner; and without its owner, a file does not keep its set-ID bits."""
    if os.getuid():
        return
    source, image = f'{scratch}/owned', f'{scratch}/owned.img'
    os.mkdir(source)
    for name, owner, group in ('both', 0, 0), ('user', 1234, 0), ('group', 0, 1234), ('other', 1234, 1234):
        with open(f'{source}/{name}', 'wb') as f:
            f.write(b'set')
        os.chown(f'{source}/{name}', owner, group)
        os.chmod(f'{source}/{name}', 0o6755)
    with open(image, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '--rootdir', source, image)[0] == 0
    expected = {'both': 0o6755, 'user': 0o2755, 'group': 0o4755, 'other': 0o755}

    def modes():
        found = {name: os.stat(f'{target}/{name}') for name in expected}
        assert all((st.st_uid, st.st_gid) == (0, 0) for st in found.values()), found
        return {name: stat.S_IMODE(st.st_mode) for name, st in found.items()}
    target = empty(scratch)
    assert run('extract', '--no-same-owner', '-C', target, image) == (0, b'', '')
    assert modes() == expected, modes()
    status, out, err = run('extract', '--no-same-owner', '--tar', '-', image)
    assert status == 2 and not out and err.count('\n') == 1, err
    # In a user namespace that has only our own ID, setting another owner fails.
    target = empty(scratch)
    if subprocess.run(['unshare', '-Ur', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        return
    done = subprocess.run(['unshare', '-Ur', BTRKIT, 'extract', '-C', target, image], stderr=subprocess.PIPE,
                          check=False)
    assert done.returncode == 1 and done.stderr.count(b'cannot change owner: Invalid argument') == 3, done
    assert modes() == expected, modes()


def archives(path, scratch):
    """Write archives to a file and to standard output; an incomplete file is removed."""
    status, out, err = run('extract', '--tar', '-', path)
    if 'made without libarchive' in err:
        check_failure('extract', path, (status, out, err))
        return False
    assert (status, err) == (0, '') and len(out) % 10240 == 0, (status, err)
    found = members(out)
    assert len(found) == 207 and found['big'][1] == BIG and found['.'][0].isdir(), found.keys()
    assert found['dir/below/set'][0].mode == 0o6755 and found['dir/link'][0].linkname == 'small'
    archive = f'{scratch}/some.tar'
    assert run('extract', '--tar', archive, path, 'dir/below', 'dir/link') == (0, b'', '')
    with open(archive, 'rb') as f:
        assert members(f.read()).keys() == {'dir/below', 'dir/below/set', 'dir/link'}
    status, out, err = run('extract', '--tar', archive, '-C', scratch, path)
    assert status == 2 and not out and err.count('\n') == 1, err
    # An incomplete or failed archive leaves the previous file in place.
    for kind in 'old', 'none':
        with open(archive, 'rb') as f:
            old = f.read()
        if kind == 'none':
            os.unlink(archive)
        assert watched('extract', '--tar', archive, path, number=signal.SIGINT)[0] == 1
        result = run('extract', '--tar', archive, path, 'none')
        assert check_failure('extract', path, result) == 'no such file or directory: none', result
        if kind == 'none':
            assert not os.path.exists(archive)
        else:
            with open(archive, 'rb') as f:
                assert f.read() == old
    result = run('extract', '--tar', archive, path, 'none', 'dir/link')
    assert check_failure('extract', path, result) == 'no such file or directory: none', result
    with open(archive, 'rb') as f:
        assert members(f.read()).keys() == {'dir/link'}
    os.chmod(archive, 0o400)
    result = run('extract', '--tar', archive, path, 'dir/link', **forbidden())
    assert check_failure('extract', archive, result) == 'Permission denied', result
    assert [name for name in os.listdir(scratch) if name.startswith('some.tar')] == ['some.tar'], os.listdir(scratch)
    result = run('extract', '--tar', '/dev/full', path)
    assert check_failure('extract', '/dev/full', result) == 'No space left on device', result
    # The image being read is not overwritten, under any name.
    os.symlink(path, f'{scratch}/alias')
    with open(path, 'rb') as f:
        before = f.read()
    for name, device in ((path, path), (f'{scratch}/alias', path), (path, f'{path}?offset=0')):
        result = run('extract', '--noscan', '--tar', name, device)
        assert check_failure('extract', name, result) == 'is a device of the filesystem', result
    with open(path, 'r+b') as out:
        done = subprocess.run([BTRKIT, 'extract', '--tar', '-', path], stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and done.stderr.endswith(b': is a device of the filesystem\n'), done
    with open(path, 'rb') as f:
        assert f.read() == before
    result = run('extract', '--tar', f'{scratch}/none/some.tar', path)
    assert check_failure('extract', f'{scratch}/none/some.tar', result) == 'No such file or directory', result
    with open('/dev/full', 'wb') as out:
        done = subprocess.run([BTRKIT, 'extract', '--tar', '-', path], stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and done.stderr == b'btrkit extract: standard output: No space left on device\n', done
    with subprocess.Popen([BTRKIT, 'extract', '--tar', '-', path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b'' and process.wait() == 1, 'a closed pipe is a failure without words'
    master, slave = os.openpty()
    done = subprocess.run([BTRKIT, 'extract', '--tar', '-', path], stdout=slave, stderr=subprocess.PIPE, check=False)
    os.close(slave)
    os.close(master)
    assert done.returncode == 2 and b'refusing to write an archive to a terminal' in done.stderr, done
    return True


# Sparse files: ranges with data, and size.
SPARSE = {
    'begins': ([(0, 5)], 100000), 'begins late': ([(100, 5)], 100000), 'ends': ([(1 << 20, 5000)], (1 << 20) + 5000),
    'middle': ([(8192, 1), (70000, 4096)], 99999), 'hole': ([], 12345), 'one': ([], 1), 'empty': ([], 0),
    'many': ([(k << 16, 3000 + k) for k in range(64)], 1 << 22), 'whole': ([(0, 20000)], 20000),
    'largest': ([(0, 5), (1 << 50, 5), ((1 << 62) + 1, 70000)], (1 << 63) - 1), 'largest hole': ([], (1 << 63) - 1),
}


def holes(scratch):
    """Huge sparse files are archived without reading or writing their holes."""
    path, data = f'{scratch}/sparse.img', f'{scratch}/data'
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', path)[0] == 0
    lines = []
    for name, (parts, size) in SPARSE.items():
        lines.append(f"put /dev/null '{name}'")
        for offset, length in parts:
            with open(f'{data}{length}', 'wb') as f:
                f.write(BIG[1:length + 1])
            lines.append(f"write '{name}' {offset} {data}{length}")
        lines.append(f"truncate '{name}' {size}")
    done = subprocess.run([BTRKIT, 'edit', path], input='\n'.join(lines).encode(), check=False)
    assert done.returncode == 0
    done = subprocess.run([BTRKIT, 'extract', '--tar', '-', path], stdout=subprocess.PIPE, check=True, timeout=60)
    out = done.stdout
    assert len(out) < 20 << 20, len(out)
    with tarfile.open(fileobj=io.BytesIO(out)) as t:
        found = {m.name: m for m in t}
        for name, (parts, size) in SPARSE.items():
            file = t.extractfile(found[name])
            assert found[name].size == size, (name, found[name].size)
            if size < 1 << 30:
                expected = bytearray(size)
                for offset, length in parts:
                    expected[offset:offset + length] = BIG[1:length + 1]
                assert file.read() == expected, name
            for offset, length in parts:
                file.seek(offset)
                assert file.read(length) == BIG[1:length + 1], (name, offset)
    target = empty(scratch)
    assert run('extract', '-C', target, path, 'middle', 'many') == (0, b'', '')
    assert os.stat(f'{target}/many').st_size == 1 << 22 and os.stat(f'{target}/many').st_blocks < 1 << 12


def attribute_names(scratch):
    """Those that readers of archives would take for others are reported, and not stored."""
    path = f'{scratch}/attributes'
    with open(path, 'wb') as f:
        f.truncate(120 << 20)
    assert not run('mkfs', '-q', path)[0] and not run('edit', path, 'mkdir', 'a')[0]
    for name in 'user.plain', 'user.a b', 'user.a=b', 'user.a%b', 'user.\u00e9', 'user.~!':
        assert not run('edit', path, 'setxattr', name, 'x', 'a')[0]
    status, out, err = run('extract', '--tar', '-', path, 'a')
    lines = err.splitlines()
    assert status == 1 and len(lines) == 4 and all(': a: cannot store attribute ' in line for line in lines), lines
    (member,) = tarfile.open(fileobj=io.BytesIO(out)).getmembers()
    names = {key for key in member.pax_headers if key.startswith('SCHILY.xattr.')}
    assert names == {'SCHILY.xattr.user.plain', 'SCHILY.xattr.user.~!'}, names


def damaged_archive(path):
    """The bad sector is filled with zeros; what is behind it, and later members, are intact."""
    status, out, err = run('extract', '--tar', '-', path)
    said = check_failure('extract', path, (status, b'', err))
    assert said.startswith('big: bytes 163840 to 167935 cannot be read: data checksum mismatch'), said
    found = members(out)
    assert len(found) == 207 and found['big'][1] == DAMAGED, len(found)
    assert found['dir/below/set'][1] == b'set'


def main():
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as scratch:
        path = f'{scratch}/fs.img'
        fill(f'{scratch}/folder')
        make_filesystem(path, f'{scratch}/folder')
        plain(path, scratch)
        refusals(path, scratch)
        over_itself(path, scratch)
        without_root(path)
        signals(path, scratch)
        full(path, scratch)
        inherited(scratch)
        owners(path, scratch)
        has_archives = archives(path, scratch)
        if has_archives:
            holes(scratch)
            attribute_names(scratch)
        damaged(path, scratch)
        if has_archives:
            damaged_archive(path)
        empty(scratch)
        subprocess.run(['chmod', '-R', 'u+w', f'{scratch}/folder'], check=True)


main()
