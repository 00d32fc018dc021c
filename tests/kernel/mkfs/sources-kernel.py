#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sources that `btrkit mkfs` makes filesystems of, checked by Linux: layers are what overlayfs shows of them, as
directories and as archives of a container image; a file with more names than link(2) makes; inode flags of archives;
attributes on an overlay over a filesystem that has none.

    sources-kernel.py [--plans N]

BTRKIT is the program under test. Exits with 77 if it cannot run.
"""
import argparse
import contextlib
import io
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

import everything
import image
from image import BTRFS, loop, mounted, run
from several_devices import BTRKIT

NAMES = 'abcd'
checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


@contextlib.contextmanager
def filesystem(scratch, *options, check=(BTRFS, 'check', '--check-data-csum')):
    """A mounted filesystem made of a source, which Linux then changes, and btrfs check finds sound."""
    path, mnt = f'{scratch}/image', f'{scratch}/mnt'
    os.makedirs(mnt, exist_ok=True)
    run(BTRKIT, 'mkfs', '-q', '--verify', '--free', '64m', *options, path)
    with loop(path) as device:
        with mounted(device, mnt, '-o', 'rw'):
            yield mnt
            with open(f'{mnt}/written', 'wb') as f:
                f.write(b'by Linux' * 100000)
        run(*check, device)
    os.unlink(path)


@contextlib.contextmanager
def tmpfs(folder):
    os.mkdir(folder)
    run('mount', '-t', 'tmpfs', 'none', folder)
    try:
        yield folder
    finally:
        run('umount', folder)


@contextlib.contextmanager
def overlay(folder, layers):
    os.makedirs(folder, exist_ok=True)
    run('mount', '-t', 'overlay', '-o', 'ro,lowerdir=' + ':'.join(layers[::-1]), 'none', folder)
    try:
        yield folder
    finally:
        run('umount', folder)


def make_layer(rng, top, depth=0, files=None):
    """Names from a few, so that layers meet; whiteouts and opaque directories as overlayfs makes them."""
    files = [] if files is None else files
    for name in NAMES:
        path, kind = f'{top}/{name}', rng.randrange(14)
        # Most layers have some of the directories of others: an opaque one must have something to hide.
        if (kind < 3 or name in 'ab' and rng.randrange(2)) and depth < 3:
            os.mkdir(path)
            make_layer(rng, path, depth + 1, files)
            if rng.randrange(2):
                os.setxattr(path, 'trusted.overlay.opaque', b'y')
        elif kind < 5:
            with open(path, 'wb') as f:
                f.write(rng.randbytes(rng.choice((0, 5, 5000, 70000))))
            files.append(path)
        elif kind == 5:
            os.symlink(rng.choice('xyz'), path)
        elif kind == 6:
            os.mkfifo(path)
        elif kind < 9:
            os.mknod(path, stat.S_IFCHR, 0)
            continue
        elif kind < 11 and files:
            os.link(rng.choice(files), path)
            continue
        else:
            continue
        os.chown(path, rng.randrange(3), rng.randrange(3), follow_symlinks=False)
        if not os.path.islink(path):
            os.chmod(path, rng.choice((0o755, 0o700, 0o644)))
        if rng.randrange(2) and (os.path.isdir(path) or os.path.isfile(path)):
            os.setxattr(path, 'user.' + rng.choice('xy'), rng.randbytes(3), follow_symlinks=False)
    for name in os.listdir(top):
        os.utime(f'{top}/{name}', ns=(0, rng.randrange(1 << 30) * 10**9), follow_symlinks=False)
    os.utime(top, ns=(0, rng.randrange(1 << 30) * 10**9))


def members(top):
    """(path, its name in an archive) of everything in a layer."""
    for folder, dirs, names in os.walk(top):
        for name in (*dirs, *names):
            yield f'{folder}/{name}', os.path.relpath(f'{folder}/{name}', top)


def is_opaque(path):
    return 'trusted.overlay.opaque' in os.listxattr(path)


def leave_out(rng, top, below):
    """Directories of a layer that its archive has no members for, so that they are as in the layers below. Return
    them."""
    bare = set()
    for folder, dirs, _ in os.walk(top):
        name = os.path.relpath(folder, top)
        if rng.randrange(2) and os.path.isdir(f'{below}/{name}') and not os.path.islink(f'{below}/{name}'):
            for word in os.listxattr(folder):
                if word.startswith('user.'):
                    os.removexattr(folder, word)
            st = os.stat(f'{below}/{name}')
            os.chown(folder, st.st_uid, st.st_gid)
            shutil.copystat(f'{below}/{name}', folder)
            bare.add(name)
        # What is below an opaque directory is new.
        if is_opaque(folder):
            dirs.clear()
    return bare


def container_layer(rng, top, bare):
    """An archive of a layer as container images have it, without members for the directories @bare. Whiteouts may come
    before or behind what they hide."""
    out, first, links, others = io.BytesIO(), [], [], []
    known = {}
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as t:
        for path, name in [(top, '.'), *members(top)]:
            st = os.lstat(path)
            if stat.S_ISCHR(st.st_mode):
                info = tarfile.TarInfo(os.path.join(os.path.dirname(name), '.wh.' + os.path.basename(name)))
                others.append((info, None))
                continue
            info = t.gettarinfo(path, name)
            if stat.S_ISDIR(st.st_mode) and is_opaque(path):
                # For a directory with a member, a whiteout of its name in the same layer means that, too.
                whiteout = name not in bare and rng.randrange(2)
                mark = tarfile.TarInfo(os.path.join(os.path.dirname(name), '.wh.' + os.path.basename(name))
                                       if whiteout else f'{name}/.wh..wh..opq')
                # As far before the directory as can be, or anywhere.
                if rng.randrange(4):
                    first.insert(0, (mark, None))
                else:
                    others.append((mark, None))
            if name in bare:
                continue
            for word in os.listxattr(path, follow_symlinks=False):
                if word.startswith('user.'):
                    value = os.getxattr(path, word, follow_symlinks=False)
                    info.pax_headers[f'SCHILY.xattr.{word}'] = value.decode('utf-8', 'surrogateescape')
            info.mtime = int(st.st_mtime)
            data = path if stat.S_ISREG(st.st_mode) else None
            if (st.st_dev, st.st_ino) in known:
                info.type, info.linkname, info.size, data = tarfile.LNKTYPE, known[st.st_dev, st.st_ino], 0, None
                info.pax_headers.clear()
                links.append((info, data))
                continue
            if not stat.S_ISDIR(st.st_mode):
                known[st.st_dev, st.st_ino] = name
            if data:
                info.type, info.size = tarfile.REGTYPE, st.st_size
            (first if rng.randrange(2) else others).append((info, data))
        rng.shuffle(others)
        # A hard link comes behind its target.
        for info, data in [*first, *others, *links]:
            with open(data, 'rb') if data else io.BytesIO() as f:
                t.addfile(info, f if data else None)
    return out.getvalue()


def seen(top):
    """What matters of a tree. In a directory that only one layer has, overlayfs lists whiteouts, but does not find
    them."""
    skip = {os.path.relpath(f'{folder}/{name}', top) for folder, dirs, names in os.walk(top) for name in (*dirs, *names)
            if not os.path.lexists(f'{folder}/{name}')}
    found = everything.listing(top, skip={'written', *skip}, subvolumes=())
    for what in found.values():
        for word in ('atime', 'ctime'):
            del what[word]
    return found


def differences(found, wanted):
    return [(path, found.get(path), wanted.get(path)) for path in sorted({*found, *wanted})
            if found.get(path) != wanted.get(path)]


def reveal(scratch, layers, wanted):
    """Takes opaque marks and then whiteouts from layers. Return how many names each of both had hidden, as overlayfs
    shows them."""
    hidden = []
    for opaque in (True, False):
        for path in [path for layer in layers for path, _ in members(layer)]:
            mode = os.lstat(path).st_mode
            if opaque and stat.S_ISDIR(mode) and is_opaque(path):
                os.removexattr(path, 'trusted.overlay.opaque')
            elif not opaque and stat.S_ISCHR(mode):
                os.unlink(path)
        with overlay(f'{scratch}/overlay', layers) as merged:
            found = seen(merged)
        hidden.append(len({*found} - {*wanted}))
        wanted = found
    return hidden


def layers_are_an_overlay(scratch, plans):
    rng = random.Random(image.seed())
    names = hidden = bare = opaque = whiteouts = 0
    for number in range(plans):
        with tmpfs(f'{scratch}/layers') as top:
            layers = [f'{top}/{i}' for i in range(rng.choice((2, 3, 4, 6)))]
            os.mkdir(f'{top}/none')
            for number_of, layer in enumerate(layers):
                os.mkdir(layer)
                make_layer(rng, layer)
                left_out = set()
                if number_of:
                    # overlayfs wants two.
                    with overlay(f'{scratch}/overlay', [f'{top}/none', *layers[:number_of]]) as below:
                        left_out = leave_out(rng, layer, below)
                bare += len(left_out)
                with open(f'{layer}.tar', 'wb') as f:
                    f.write(container_layer(rng, layer, left_out))
            with overlay(f'{scratch}/overlay', layers) as merged:
                wanted = seen(merged)
            names += len(wanted)
            hidden += sum(1 for layer in layers for _ in members(layer)) - len(wanted)
            for option, suffix in (('--rootdir', ''), ('--tar', '.tar')):
                with filesystem(scratch, *(word for layer in layers for word in (option, layer + suffix))) as mnt:
                    wrong = differences(seen(mnt), wanted)
                check(not wrong, f'plan {number}: {option}: found and wanted: {wrong[:3]}')
            by_opaque, by_whiteouts = reveal(scratch, layers, wanted)
            opaque, whiteouts = opaque + by_opaque, whiteouts + by_whiteouts
        os.rmdir(f'{scratch}/layers')
    result = f'{plans} plans, {names} names, {hidden} hidden, {opaque} of them by opaque directories and {whiteouts} ' \
        f'by whiteouts, {bare} directories without members'
    check(names > 5 * plans and hidden > 10 * plans and bare > plans and 2 * opaque > plans and whiteouts > plans,
          result)
    return result


def marks_come_in_any_order(scratch):
    """An opaque directory in an archive: the mark or the whiteout that says so, its own member and what it contains."""
    rng = random.Random(image.seed())
    with tmpfs(f'{scratch}/layers') as top:
        for path in ('0/d', '1/d'):
            os.makedirs(f'{top}/{path}')
            with open(f'{top}/{path}/{path[0]}', 'wb') as f:
                f.write(path.encode())
        os.setxattr(f'{top}/1/d', 'trusted.overlay.opaque', b'y')
        os.chmod(f'{top}/1/d', 0o711)
        for i, layer in enumerate((f'{top}/0', f'{top}/1')):
            for path in (layer, *(path for path, _ in members(layer))):
                os.utime(path, (i, i))
        with open(f'{top}/0.tar', 'wb') as f:
            f.write(container_layer(rng, f'{top}/0', set()))
        with overlay(f'{scratch}/overlay', [f'{top}/0', f'{top}/1']) as merged:
            wanted = seen(merged)
        check({*wanted} >= {b'd', b'd/1'} and b'd/0' not in wanted, wanted)
        archives = {container_layer(rng, f'{top}/1', set()) for _ in range(30)}
        check(len(archives) > 5, len(archives))
        for number, archive in enumerate(sorted(archives)):
            with open(f'{top}/1.tar', 'wb') as f:
                f.write(archive)
            with filesystem(scratch, '--tar', f'{top}/0.tar', '--tar', f'{top}/1.tar') as mnt:
                wrong = differences(seen(mnt), wanted)
            check(not wrong, f'order {number}: found and wanted: {wrong}')
    os.rmdir(f'{scratch}/layers')


def many_names(scratch):
    """More than link(2) makes. mkfs.btrfs writes them too. Its check takes minutes for the names of one file."""
    path, count = f'{scratch}/links.tar', 70000
    with tarfile.open(path, 'w', format=tarfile.USTAR_FORMAT) as t:
        info = tarfile.TarInfo('first')
        info.size = 5000
        t.addfile(info, io.BytesIO(b'x' * 5000))
        for i in range(1, count):
            info = tarfile.TarInfo(f'd{i % 7}/{i}')
            info.type, info.linkname = tarfile.LNKTYPE, 'first'
            t.addfile(info)
    with filesystem(scratch, '--tar', path, check=(BTRKIT, 'check', '--data')) as mnt:
        check(os.lstat(f'{mnt}/d3/10').st_nlink == count, 'count of links')
        check(sum(len(names) for _, _, names in os.walk(mnt)) == count, 'names')
        for i in range(1, 100):
            os.unlink(f'{mnt}/d{i % 7}/{i}')
        check(os.lstat(f'{mnt}/first').st_nlink == count - 99, 'count of links after unlink')
    os.unlink(path)


def inode_flags(scratch):
    """What --tar writes, --tar takes; chattr(1) shows it."""
    path = f'{scratch}/flags.tar'
    with tarfile.open(path, 'w', format=tarfile.PAX_FORMAT) as t:
        for name, text, kind in (('immutable', 'schg', tarfile.REGTYPE), ('append', 'sappnd', tarfile.DIRTYPE),
                                 ('all', 'sappnd,nodump,sync,noatime', tarfile.REGTYPE),
                                 ('dir', 'nodump,dirsync', tarfile.DIRTYPE), ('plain', '', tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.pax_headers = {'SCHILY.fflags': text} if text else {}
            t.addfile(info)
    wanted = {'immutable': 'i', 'append': 'a', 'all': 'SadA', 'dir': 'Dd', 'plain': ''}
    for source in (path, f'{scratch}/again.tar'):
        with filesystem(scratch, '--tar', source) as mnt:
            for line in run('lsattr', '-d', *(f'{mnt}/{name}' for name in wanted)).decode().splitlines():
                flags, name = line.split()
                flags, name = set(flags.replace('-', '')), os.path.basename(name)
                # The second archive has those that were written.
                kept = set(wanted[name]) if source == path else set(wanted[name]) & set('iad')
                check(flags == kept, f'{source}: {line}')
            run('chattr', '-ia', f'{mnt}/immutable', f'{mnt}/append', f'{mnt}/all')
        if source == path:
            run(BTRKIT, 'mkfs', '-q', '--tar', path, f'{scratch}/first')
            with open(f'{scratch}/again.tar', 'wb') as f:
                subprocess.run([BTRKIT, 'extract', '--tar', '-', f'{scratch}/first'], stdout=f, check=True)


def attributes_of_an_overlay(scratch):
    """A squashfs without attributes says so of each of its files, and has the device number of the overlay's others."""
    if not shutil.which('mksquashfs'):
        print('without mksquashfs: no attributes of an overlay')
        return
    with tmpfs(f'{scratch}/upper') as top:
        for name in ('plain', 'top', 'work'):
            os.mkdir(f'{top}/{name}')
        for i in range(40):
            for folder in ('plain', 'top'):
                with open(f'{top}/{folder}/{folder}{i}', 'wb') as f:
                    f.write(b'x')
            os.setxattr(f'{top}/top/top{i}', 'security.capability', bytes.fromhex('0100000200040000' + 24 * '0'))
        run('mksquashfs', f'{top}/plain', f'{top}/squashfs', '-quiet', '-no-progress', '-no-xattrs')
        os.mkdir(f'{top}/lower')
        with mounted(f'{top}/squashfs', f'{top}/lower', '-o', 'ro,loop'), \
                overlay(f'{scratch}/merged', [f'{top}/lower', f'{top}/top']) as merged:
            for _ in range(3):
                with filesystem(scratch, '--rootdir', merged) as mnt:
                    found = [i for i in range(40) if 'security.capability' in os.listxattr(f'{mnt}/top{i}')]
                    check(found == [*range(40)] and os.path.exists(f'{mnt}/plain39'), f'{found}')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--plans', type=int, default=20)
    args = parser.parse_args()
    why = image.missing()
    with open('/proc/filesystems', encoding='ascii') as f:
        known = f.read()
    if why or '\toverlay\n' not in known:
        print(why or 'needs overlayfs')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-sources-') as scratch:
        print(layers_are_an_overlay(scratch, args.plans))
        marks_come_in_any_order(scratch)
        many_names(scratch)
        inode_flags(scratch)
        if '\tsquashfs\n' in known:
            attributes_of_an_overlay(scratch)
    print(f'{checks} checks')
    return 0


if __name__ == '__main__':
    sys.exit(main())
