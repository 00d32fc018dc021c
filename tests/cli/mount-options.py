#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""After a conversion of the free space cache, mount options in /etc/fstab and on the kernel's command line that now
stop the mount, or undo the conversion, are named. Linux says which do. Needs root, since other files are shown in the
place of these two."""
import os
import re
import stat
import sys
import tempfile

import tool
from tool import BTRKIT, run

import image

STOP = 'space_cache=v1', 'space_cache', 'nospace_cache'
OTHER = '1b4e28ba-2fa1-11d2-883f-0016d3cca427'
PARTUUID = '5e3c2a11-90ab-4cde-8f01-23456789abcd'
PARTITIONS = {f'by-partuuid/{PARTUUID}': '{path}', 'by-partuuid/0a1b2c3d-02': '{path}',
              f'by-partuuid/{OTHER}': '/dev/null', 'by-partlabel/a\\x20part\\x2f\\x22ä': '{path}',
              'by-partlabel/other': '/dev/null'}
compared = 0


def convert(scratch, path, kind, fstab='', cmdline='', *options):
    """Return the warnings and the line about mount options. The paths of both files, and the links to the partitions
    in /dev, are those of a private mount namespace."""
    for name, text in ('fstab', fstab), ('cmdline', cmdline):
        with open(f'{scratch}/{name}', 'w', encoding='utf-8') as f:
            f.write(text + '\n')
    command = (f'mount --bind {scratch}/fstab /etc/fstab && mount --bind {scratch}/cmdline /proc/cmdline && '
               f'mount --bind /dev/shm {scratch}/dev/shm && mount --rbind {scratch}/dev /dev && exec "$@"')
    status, out, err = run('-m', 'sh', '-c', command, 'sh', BTRKIT, 'space-cache', 'convert', *options, f'--to={kind}',
                           path, binary='unshare')
    assert not status, err
    return err.splitlines(), re.findall(r'^mount options:\t\t(.*)$', out.decode(), re.M)


def make_dev(scratch):
    """A /dev with links to partitions as udev makes them."""
    for name in 'shm', 'disk/by-partuuid', 'disk/by-partlabel':
        os.makedirs(f'{scratch}/dev/{name}')
    for name in 'null', 'zero', 'random', 'urandom':
        made = f'{scratch}/dev/{name}'
        os.mknod(made, 0o600 | stat.S_IFCHR, os.stat(f'/dev/{name}').st_rdev)
    for name, target in PARTITIONS.items():
        os.symlink(target.format(path=f'{scratch}/fs.img'), f'{scratch}/dev/disk/{name}')


def prepare(path, kind):
    """A filesystem that has the other kind, and its fsid."""
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert not run('mkfs', '-q', '-f', '-L', 'a label', '-O', '^bgt', path)[0]
    if kind == 'v2':
        assert not run('space-cache', 'convert', '--to=v1', path)[0]
    return re.search(r'^fsid\s+(\S+)', run('dump-super', path)[1].decode(), re.M)[1]


def warns(scratch, kind, options, says, fstab='{spec} / btrfs {options} 0 0', spec='UUID={fsid}', cmdline=''):
    """@says: what the warning says, None for no warning"""
    global compared
    path = f'{scratch}/fs.img'
    fsid = prepare(path, kind)
    spec = spec.format(fsid=fsid, upper=fsid.upper(), path=path)
    lines, _ = convert(scratch, path, kind, '# a comment\n/dev/none /none ext4 defaults 0 0\n' +
                       fstab.format(spec=spec, options=options), cmdline.format(spec=spec, options=options))
    what = f'{kind} {options} {spec} {fstab} {cmdline}: {lines}'
    assert len(lines) == (says is not None), what
    place = '/etc/fstab' if fstab else "the kernel's command line"
    assert says is None or lines[0].startswith(f'btrkit space-cache: {path}: {place} has the mount option ') and \
        says in lines[0], what
    compared += 1
    return path


def mounts(path, options):
    made = image.Image(path, None)
    try:
        made.mount(options)
    except RuntimeError:
        made.umount()
        return False
    made.umount()
    return True


def main():
    # In a chroot whose top is no mount point, mounts cannot be made private.
    if os.geteuid() or run('-m', 'true', binary='unshare')[0]:
        print('skipped: needs root, and mounts of its own')
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        make_dev(scratch)
        for options in STOP:
            path = warns(scratch, 'v2', f'noatime,{options}', f'{options}, with which Linux now refuses')
            assert not mounts(path, options), f'Linux mounts with {options}'
            warns(scratch, 'v1', options, None)
        assert mounts(warns(scratch, 'v2', 'defaults', None), '')
        for options in ('space_cache=v2', 'clear_cache,space_cache=v1', 'space_cache=v1,space_cache=v2'):
            assert mounts(warns(scratch, 'v2', options, None), options), f'Linux does not mount with {options}'
        path = warns(scratch, 'v1', 'space_cache=v2', 'makes the free space tree again')
        assert mounts(path, 'space_cache=v2')
        assert b'FREE_SPACE_TREE' in run('dump-super', path)[1]
        for spec in ('UUID={upper}', 'UUID="{fsid}"', "UUID='{upper}'", 'LABEL=a\\040label', 'LABEL="a\\040label"',
                     f'PARTUUID={PARTUUID}', f'PARTUUID="{PARTUUID.upper()}"', 'PARTUUID=0a1b2c3d-02',
                     'PARTLABEL="a\\040part/"ä"', '{path}'):
            warns(scratch, 'v2', STOP[0], 'refuses', spec=spec)
        for spec in (f'UUID={OTHER}', f'UUID="{OTHER}"', 'UUID="{fsid}', 'UUID="', 'LABEL=other', 'LABEL=""',
                     '/dev/null', 'UUID=', 'UUID=zz', f'PARTUUID={OTHER}', 'PARTUUID=',
                     f'PARTUUID=../by-partuuid/{PARTUUID}',
                     'PARTLABEL=other', 'PARTLABEL="', 'PARTLABEL=' + 'a' * 2000):
            warns(scratch, 'v2', STOP[0], None, spec=spec)
        for types in 'auto', 'btrfs,ext4', 'ext4,btrfs':
            warns(scratch, 'v2', STOP[0], 'refuses', fstab='{spec} / ' + types + ' {options} 0 0')
        for types in 'ext4', 'ext4,xfs', 'btrfs2':
            warns(scratch, 'v2', STOP[0], None, fstab='{spec} / ' + types + ' {options} 0 0')
        for cmdline in ('quiet root={spec} ro rootflags=subvol=@,{options} splash', 'rootflags={options} root={spec}'):
            warns(scratch, 'v2', STOP[0], 'refuses', fstab='', cmdline=cmdline)
        # Linux takes blanks within double quotes as part of a word, and removes the quotes.
        for cmdline in ('quiet root="LABEL=a label" rootflags={options}',
                        'root=LABEL="a label" rootflags="{options}" ro',
                        'x="y z" "root=LABEL=a label" "rootflags={options}"'):
            warns(scratch, 'v2', STOP[0], 'refuses', fstab='', cmdline=cmdline)
        warns(scratch, 'v2', STOP[0], None, fstab='', cmdline='x="root={spec} rootflags={options}"')
        warns(scratch, 'v2', STOP[0], None, fstab='', cmdline=f'root=UUID={OTHER} rootflags={{options}}')
        warns(scratch, 'v2', STOP[0], None, fstab='', cmdline='root={spec} {options}')
        path = f'{scratch}/fs.img'
        for kind, says in (('v2', 'space_cache=v1 and nospace_cache {} stop the mount'),
                           ('v1', 'space_cache=v2 {} makes the free space tree again')):
            prepare(path, kind)
            before = tool.digest(path)
            assert convert(scratch, path, kind, '', '', '--dry-run')[1] == [says.format('then')]
            assert tool.digest(path) == before
            assert convert(scratch, path, kind)[1] == [says.format('now')]
    print(f'{compared} conversions')
    return 0


if __name__ == '__main__':
    sys.exit(main())
