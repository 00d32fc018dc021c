#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems made by Linux, with a bit of everything in them, have no errors, including data and parity; and mounted
filesystems are refused unless --force is given. BTRKIT is the program under test."""
import mmap
import os
import random
import subprocess
import sys
import tempfile

import image
import ops
import volumes
from image import run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
K, M = 1 << 10, 1 << 20
SCRIBBLES = 400

# Number of devices, mkfs.btrfs options, mount options.
FORMS = {
    'default': (1, (), ''),
    'compressed': (1, ('-n', '4k'), 'compress-force=zstd'),
    'large nodes': (1, ('-n', '64k', '--csum', 'sha256'), 'compress=lzo'),
    'v1': (1, ('-O', '^free-space-tree,^block-group-tree,^no-holes'), 'space_cache=v1'),
    'mixed': (1, ('-M',), ''),
    'old': (1, ('-O', '^skinny-metadata,^extref'), 'nodatasum'),
    'quota': (1, ('-O', 'quota'), ''),
    'xxhash': (1, ('--csum', 'xxhash', '-O', 'block-group-tree'), 'autodefrag'),
    'raid1': (2, ('-d', 'raid1', '-m', 'raid1'), ''),
    'raid10': (4, ('-d', 'raid10', '-m', 'raid10'), ''),
    'raid5': (3, ('-d', 'raid5', '-m', 'raid1'), ''),
    'raid5 without checksums': (3, ('-d', 'raid5', '-m', 'raid5'), 'nodatasum'),
    'raid6 without checksums': (5, ('-d', 'raid6', '-m', 'raid1'), 'nodatacow'),
    'raid6': (4, ('-d', 'raid6', '-m', 'raid1c3'), 'compress=zlib'),
}


def fill(mnt, quota):
    """Files, holes, preallocation, clones, links, attributes, subvolumes, snapshots, and leftovers of deletions."""
    if quota:
        run(image.BTRFS, 'quota', 'rescan', '-w', mnt)
    ops.subvolume(f'{mnt}/sub')
    os.makedirs(f'{mnt}/sub/dir/below')
    for i in range(150):
        ops.write(f'{mnt}/sub/dir/{i}', 0, (b'%d ' % i) * (i * 20))
    ops.write(f'{mnt}/sub/big', 0, ops.incompressible(3 * M))
    ops.write(f'{mnt}/sub/zeros', M, bytes(M))
    ops.write(f'{mnt}/sub/holes', 3 * M, b'behind a hole')
    ops.punch(f'{mnt}/sub/big', M, 128 * K)
    ops.fallocate(f'{mnt}/sub/holes', 8 * M, M, ops.KEEP_SIZE)
    ops.write(f'{mnt}/sub/clone', 0, b'')
    ops.clone(f'{mnt}/sub/big', 0, M, f'{mnt}/sub/clone', 64 * K)
    os.link(f'{mnt}/sub/big', f'{mnt}/sub/dir/link')
    os.symlink('big', f'{mnt}/sub/symlink')
    os.mkfifo(f'{mnt}/sub/fifo')
    os.setxattr(f'{mnt}/sub/big', 'user.long', b'x' * 900)
    ops.sync(mnt)
    for number in range(3):
        ops.snapshot(f'{mnt}/sub', f'{mnt}/snap{number}', readonly=number == 1)
        ops.write(f'{mnt}/sub/big', number * 64 * K, ops.incompressible(100 * K, number + 1))
        for i in range(number, 150, 7):
            os.unlink(f'{mnt}/sub/dir/{i}') if os.path.exists(f'{mnt}/sub/dir/{i}') else None
        os.rename(f'{mnt}/sub/zeros', f'{mnt}/sub/zeros.new')
        os.rename(f'{mnt}/sub/zeros.new', f'{mnt}/sub/zeros')
    ops.delete_subvolume(f'{mnt}/snap0')
    ops.sync(mnt)


def scribble(mnt):
    """Random changes of files, some without checksums, also with direct I/O: parity must follow all of them."""
    rng = random.Random(7)
    buffer = mmap.mmap(-1, 256 * K)
    files = [f'{mnt}/scribble{i}' for i in range(6)]
    for i, path in enumerate(files):
        for each in (path, f'{path}.clone'):
            ops.write(each, 0, b'')
            if i % 2:
                ops.nocow(each)
        if i % 3:
            ops.fallocate(path, 0, 4 * M)
    for step in range(SCRIBBLES):
        path, at = rng.choice(files), rng.randrange(6 * M // (4 * K)) * 4 * K
        length = rng.choice((4, 8, 64, 128, 256)) * K
        kind = rng.randrange(10)
        if kind < 7:
            buffer[:length] = rng.randbytes(length)
            fd = os.open(path, os.O_WRONLY | (os.O_DIRECT if rng.random() < 0.4 else 0))
            os.pwritev(fd, [memoryview(buffer)[:length]], at)
            os.close(fd)
        elif kind == 7:
            ops.punch(path, at, length)
        elif kind == 8:
            os.truncate(path, at)
        else:
            run('cp', '--reflink=always', path, f'{path}.clone')
        if step % 50 == 49:
            ops.sync(mnt)


def check(paths, *args):
    done = subprocess.run([BTRKIT, 'check', '--data', *args, *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.returncode, done.stdout.decode(errors='replace')


def clean(name, paths):
    return checked(name, *check(paths))


def checked(name, status, said):
    """Only the summary line is allowed, and leftovers of mkfs.btrfs 6.2."""
    lines = said.splitlines()
    assert status == 0 and all(line.startswith('BTR-SPACE-LEFTOVER ') for line in lines[:-1]), f'{name}: {said}'
    assert ': no errors' in lines[-1] and lines[-1].startswith('checked '), f'{name}: {said}'
    return int(lines[-1].split()[1])


def refused(form):
    """While mounted it is refused, through the device and through the backing file."""
    for what in (form.loops[0], form.paths[0]):
        status, said = check([what])
        assert status == 8 and said.startswith(f'btrkit check: {what}: in use'), (what, status, said)


def logged(form, folder):
    """Copies of the devices with a log tree, which the next commit would remove."""
    copies = [f'{folder}/copy{i}' for i in range(len(form.paths))]

    def copy():
        for path, to in zip(form.paths, copies):
            run('cp', '--sparse=always', path, to)

    def attempt():
        ops.write(f'{form.mnt}/sub/big', 0, b'in the log', sync=True)
        image.still(form.paths, copy)
        return image.Image(copies[0], None).log_root()

    image.until(attempt, 'log tree')
    return copies


def one(name, folder):
    devices, options, mount = FORMS[name]
    form = volumes.Volume(folder, devices, '256M')
    try:
        form.mkfs_newer(*options)
        blocks = clean(f'{name}, empty', form.paths)
        fill(form.mount(mount), name == 'quota')
        if '-d' in options and options[options.index('-d') + 1].upper() in volumes.PARITY:
            scribble(form.mnt)
        refused(form)
        # Data that Linux has not written yet does not matter.
        checked(f'{name}, mounted', *image.still(form.paths, lambda: check(form.paths, '--force')))
        if name in ('default', 'raid1', 'v1'):
            clean(f'{name}, with a log', logged(form, folder))
        form.umount()
        return blocks + clean(name, form.paths)
    finally:
        form.remove()


def clone_logged(form, folder):
    """Copy with preallocated space of one file, and a log that has a clone of what was written there since; or None."""
    mnt = form.mnt
    for name in ('kept', 'clone'):
        if os.path.exists(f'{mnt}/{name}'):
            os.unlink(f'{mnt}/{name}')
    ops.write(f'{mnt}/kept', 0, b'')
    ops.fallocate(f'{mnt}/kept', 0, 256 * K)
    ops.sync(mnt)
    generation = form.generation()
    ops.write(f'{mnt}/kept', 0, ops.incompressible(256 * K))
    ops.write(f'{mnt}/clone', 0, b'')
    ops.clone(f'{mnt}/kept', 0, 256 * K, f'{mnt}/clone', 0)
    ops.fsync(f'{mnt}/clone')
    copy = form.copy(f'{folder}/copy')
    return copy if copy.log_root() and copy.generation() == generation else None


def kept(folder):
    """
    A log brings a reference from another file to preallocated space: its checksums exist, and stay when the other
    file is deleted.
    """
    form = volumes.Volume(folder, 1, '256M')
    try:
        form.mkfs()
        mnt = form.mount()
        copy = image.until(lambda: clone_logged(form, folder), 'log tree')
        form.umount()
        os.rename(copy.path, form.path)
        mnt = form.mount()
        ops.write(f'{mnt}/two', 0, b'')
        ops.clone(f'{mnt}/kept', 0, 256 * K, f'{mnt}/two', 0)
        form.umount()
        blocks = clean('kept', form.paths)
        for left in ('clone', 'two'):
            mnt = form.mount()
            os.unlink(f'{mnt}/{left}')
            form.umount()
            status, said = check(form.paths)
            lines = [line for line in said.splitlines() if not line.startswith('BTR-SPACE-LEFTOVER ')]
            assert status == 0 and lines[0].startswith('BTR-FILE-CSUM-KEPT leftover') and len(lines) == 2, said
        return blocks
    finally:
        form.remove()


def simple_quota(folder):
    """Three levels of qgroups that subvolumes are added to, before and after they are written, and removed from."""
    form = volumes.Volume(folder, 1, '256M')
    try:
        form.mkfs()
        mnt = form.mount()
        ops.quota(mnt, simple=True)

        def ask(*words):
            run(image.BTRFS, 'qgroup', *words, mnt)

        for group in ('1/0', '1/1', '2/0', '3/0'):
            ask('create', group)
        ask('assign', '1/0', '2/0')
        ask('assign', '2/0', '3/0')
        for i, group in enumerate(('1/0', '1/1', '1/0', '1/1')):
            ops.subvolume(f'{mnt}/sub{i}')
            member = f'0/{ops.root_id(f"{mnt}/sub{i}")}'
            for part in range(2):
                ops.write(f'{mnt}/sub{i}/file{part}', 0, ops.incompressible((i + 1) * M))
                ops.sync(mnt)
                if part == i % 2:
                    ask('assign', member, group)
            ops.snapshot(f'{mnt}/sub{i}', f'{mnt}/snap{i}')
        ask('assign', '1/1', '2/0')
        blocks = 0
        for i, words in enumerate((('remove', '1/0', '2/0'), ('assign', '1/0', '3/0'), ('remove', '1/1', '2/0'))):
            form.umount()
            blocks += clean(f'simple quota before {words}', form.paths)
            mnt = form.mount()
            ops.delete_subvolume(f'{mnt}/sub{i}')
            ops.sync(mnt)
            ask(*words)
        form.umount()
        return blocks + clean('simple quota', form.paths)
    finally:
        form.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    blocks = 0
    for name in sys.argv[1:] or FORMS:
        with tempfile.TemporaryDirectory(prefix='btrkit-check-') as folder:
            blocks += one(name, folder)
    with tempfile.TemporaryDirectory(prefix='btrkit-check-') as folder:
        blocks += kept(folder)
        blocks += simple_quota(folder)
    print(f'{len(FORMS) + 2} forms of filesystems, {blocks} tree blocks, no errors')
    return 0


if __name__ == '__main__':
    sys.exit(main())
