#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare ls, stat and cat on filesystems that Linux made with what Linux reports for the mounted filesystem.

BTRKIT is the program under test. Exits with 77 if it cannot run.
"""
import importlib.util
import json
import os
import random
import stat
import subprocess
import sys
import tempfile

import contents
import image

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
TYPES = {stat.S_IFREG: 'regular file', stat.S_IFDIR: 'directory', stat.S_IFLNK: 'symbolic link',
         stat.S_IFCHR: 'character device', stat.S_IFBLK: 'block device', stat.S_IFIFO: 'fifo', stat.S_IFSOCK: 'socket'}
FORMS = [((), 'compress=zstd'), (('-n', '4k', '-O', '^no-holes'), 'compress-force=lzo'), (('-M',), '')]

_spec = importlib.util.spec_from_file_location('namespace', os.path.join(os.path.dirname(__file__),
                                                                         'namespace-kernel.py'))
namespace = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(namespace)


def ours(*args):
    done = subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, check=False)
    assert not done.returncode, (args[:4], done.returncode)
    return done.stdout


def rows(*args):
    lines = ours(*args).split(b'\n')
    return [json.loads(line) for line in lines[1:-1]]


def name_of(row, key='path'):
    return row[key].encode(errors='surrogateescape')


def stamp(time):
    return time['sec'] * 10 ** 9 + time['nsec']


def fill(mnt, rng):
    image.run(image.BTRFS, 'subvolume', 'create', f'{mnt}/contents')
    contents.fill(f'{mnt}/contents', rng)
    namespace.fill(mnt, rng)
    for k, name in enumerate(sorted(os.listdir(mnt))[:40]):
        path = f'{mnt}/{name}'
        if os.path.islink(path):
            os.setxattr(path, 'security.linked', b'label', follow_symlinks=False)
        elif os.path.isdir(path) or os.path.isfile(path):
            os.setxattr(path, f'user.{"n" * k}x', bytes(rng.randrange(256) for _ in range(k * 20)))
            os.setxattr(path, 'trusted.t', b'')


def walk(mnt):
    """Every name below, as (path, status, subvolume)."""
    found = []

    def visit(folder, shown, root):
        for entry in os.scandir(folder):
            st = entry.stat(follow_symlinks=False)
            below = root
            if stat.S_ISDIR(st.st_mode) and st.st_ino == 256:
                below = namespace.root_of(entry.path)
            found.append((shown + entry.name, st, below if st.st_ino != 2 else root))
            if stat.S_ISDIR(st.st_mode) and st.st_ino != 2:
                visit(entry.path, shown + entry.name + b'/', below)

    visit(mnt.encode(), b'', 5)
    return found


def same_inode(row, st, root, where):
    told = [row['root'], row['inode'], row['mode'], row['nlink'], row['uid'], row['gid'], row['size'],
            stamp(row['mtime']), row['type']]
    linux = [root, st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns,
             TYPES[stat.S_IFMT(st.st_mode)]]
    assert told == linux, (where, told, linux)
    device = stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode)
    assert (row.get('major'), row.get('minor')) == (
        (os.major(st.st_rdev), os.minor(st.st_rdev)) if device else (None, None)), (where, row)


def compare_list(fs, mnt, linux):
    listed = {name_of(row): row for row in rows('ls', '-lR', '--format', 'json', fs.path)}
    short = rows('ls', '-R', '--format', 'json', fs.path)
    assert [name_of(row) for row in short] == list(listed) and all(row.keys() <= {'path', 'root', 'inode', 'type'}
                                                                    for row in short)
    assert listed.keys() == {path for path, _, _ in linux}, listed.keys() ^ {path for path, _, _ in linux}
    for path, st, root in linux:
        row = listed[path]
        if st.st_ino == 2:
            assert (row['inode'], row['type']) == (2, 'directory') and 'mode' not in row, row
            continue
        same_inode(row, st, root, path)
        if stat.S_ISLNK(st.st_mode):
            assert name_of(row, 'target') == os.readlink(mnt.encode() + b'/' + path), path
    # Each directory is sorted by name.
    order = [path.rpartition(b'/') for path in listed]
    assert all(a[2] < b[2] for a, b in zip(order, order[1:]) if a[0] == b[0])
    return len(linux)


def compare_stat(fs, mnt, linux):
    linux = [entry for entry in linux if entry[1].st_ino != 2]
    for at in range(0, len(linux), 300):
        part = linux[at:at + 300]
        told = rows('stat', '--format', 'json', fs.path, *(path for path, _, _ in part))
        # stat(1) prints birth times; Python does not.
        births = image.run('stat', '--printf', '%.9W\n', *(mnt.encode() + b'/' + path for path, _, _ in part))
        for (path, st, root), row, birth in zip(part, told, births.decode().split(), strict=True):
            same_inode(row, st, root, path)
            whole = mnt.encode() + b'/' + path
            sec, nsec = birth.split('.')
            assert name_of(row) == path
            assert [stamp(row[key]) for key in ('atime', 'ctime', 'otime')] == [
                st.st_atime_ns, st.st_ctime_ns, int(sec) * 10 ** 9 + int(nsec)], (path, row, birth)
            attributes = {name: os.getxattr(whole, name, follow_symlinks=False)
                          for name in os.listxattr(whole, follow_symlinks=False)}
            assert {x['name']: bytes.fromhex(x['value']) for x in row.get('xattrs', ())} == attributes, path
            if stat.S_ISREG(st.st_mode):
                assert (row['nbytes'] + 4095) // 4096 * 8 == st.st_blocks, (path, row['nbytes'])
                data = row['extents']['inline'] + row['extents']['regular']
                assert (data > 0) == has_data(whole), path
    return len(linux)


def has_data(path):
    with open(path, 'rb') as f:
        try:
            return os.lseek(f.fileno(), 0, os.SEEK_DATA) >= 0
        except OSError:
            return False


def compare_contents(fs, mnt, linux):
    files = [path for path, st, _ in linux if stat.S_ISREG(st.st_mode) and st.st_size < 4 << 20]
    size = 0
    for at in range(0, len(files), 40):
        part = files[at:at + 40]
        expected = bytearray()
        for path in part:
            with open(mnt.encode() + b'/' + path, 'rb') as f:
                expected += f.read()
        assert ours('cat', fs.path, *part) == expected, part
        size += len(expected)
    return size


def change_beneath(scratch):
    """Data that Linux writes after the device was first read must be seen: while mounted, or later through a device
    that another process keeps open."""
    fs = image.Image(f'{scratch}/fs.img', '300M')
    fs.mkfs()
    mnt = fs.mount('nodatacow')
    compared = 0

    def compare(data):
        nonlocal compared
        assert ours('cat', fs.loop, 'f') == data, 'what was there before'
        compared += len(data)

    with open(fs.loop, 'rb'):
        for byte in b'abc':
            data = bytes((byte,)) * (1 << 20)
            with open(f'{mnt}/f', 'r+b' if compared else 'wb') as f:
                f.write(data)
            image.sync(mnt)
            compare(data)
        with open(f'{mnt}/f', 'r+b') as f:
            f.write(b'd' * (1 << 20))
        image.run('umount', mnt)
        compare(b'd' * (1 << 20))
    fs.umount()
    fs.remove()
    return compared


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    counts = [0, 0, 0]
    with tempfile.TemporaryDirectory(prefix='btrkit-files-') as scratch:
        for k, (mkfs, mount) in enumerate(FORMS):
            fs = image.Image(f'{scratch}/fs.img', '1G')
            fs.mkfs(*mkfs)
            fill(fs.mount(mount), random.Random(image.seed() + k))
            fs.umount()
            mnt = fs.mount(readonly=True)
            linux = walk(mnt)
            counts = [a + b for a, b in zip(counts, (compare_list(fs, mnt, linux), compare_stat(fs, mnt, linux),
                                                     compare_contents(fs, mnt, linux)))]
            fs.umount()
            fs.remove()
        counts[2] += change_beneath(scratch)
    print(f'{counts[0]} names and {counts[1]} inodes compared, {counts[2]} bytes of files')
    return 0 if all(counts) else 1


sys.exit(main())
