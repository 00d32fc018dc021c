#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that are open but unlinked when the machine stops: `btrkit edit` removes them as a mount does, in the subvolume
that it works on.

BTRKIT is the command. Exits with 77 if it cannot run.
"""
import os
import sys
import tempfile

import image
import ops

BTRKIT = os.environ.get('BTRKIT', 'btrkit')


def orphans(path):
    """Number of orphan items by subvolume."""
    found = {}
    for tree in ('5', '256'):
        said = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', tree, path).decode()
        found[tree] = said.count('(ORPHAN ORPHAN_ITEM ')
    return found


def one(work, form):
    linux = image.Image(f'{work}/linux', '300M')
    linux.mkfs(*form)
    mnt = linux.mount()
    ops.subvolume(f'{mnt}/sub')
    held = []
    for k in range(40):
        path = f'{mnt}/{"sub/" if k % 2 else ""}file{k}'
        held.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        for at in range(k * 4):
            os.pwrite(held[-1], b'x' * 5000, at * 16384)
        os.setxattr(path, 'user.x', b'y' * 1000)
        os.fsync(held[-1])
        os.unlink(path)
    ops.sync(mnt)
    ops.freeze(mnt)
    crashed = linux.copy(f'{work}/crashed')
    ops.freeze(mnt, thaw=True)
    for fd in held:
        os.close(fd)
    linux.umount()
    assert orphans(crashed.path) == {'5': 20, '256': 20}, orphans(crashed.path)
    image.run(BTRKIT, 'edit', crashed.path, 'mkdir', 'new')
    assert orphans(crashed.path) == {'5': 0, '256': 20}, orphans(crashed.path)
    image.run(BTRKIT, 'edit', '--subvol', 'sub', crashed.path, 'mkdir', 'new')
    assert orphans(crashed.path) == {'5': 0, '256': 0}, orphans(crashed.path)
    image.run(image.BTRFS, 'check', '--check-data-csum', crashed.path)
    # All their space is free again, as if Linux had removed them.
    used = []
    for im in (crashed, linux):
        mnt = im.mount()
        if im is linux:
            os.mkdir(f'{mnt}/new')
            os.mkdir(f'{mnt}/sub/new')
            ops.sync(mnt)
        st = os.statvfs(mnt)
        used.append(st.f_blocks - st.f_bfree)
        assert sorted(os.listdir(f'{mnt}/sub')) == ['new']
        complaints = im.log.complaints(im.loop)
        assert not complaints, complaints
        im.umount()
        im.remove()
    assert abs(used[0] - used[1]) <= 16, used
    return 40


def main():
    why = image.missing()
    if why:
        print(why)
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-orphans-') as work:
        n = sum(one(work, form) for form in (('-n', '4k'), ()))
    print(f'{n} files without names, in two subvolumes of two filesystems, all gone')
    return 0


sys.exit(main())
