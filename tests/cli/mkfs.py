#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line of mkfs: usage errors, refusals, output, and interruption."""
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import tool
from tool import BTRKIT, check_failure, digest, run, watched

SIZE = 256 << 20
UUID = '1b4e28ba-2fa1-11d2-883f-0016d3cca427'
checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def misused(*args, says):
    said = check_failure('mkfs', None, run('mkfs', *args), status=2)
    check(says in said, f'{args}: {said!r} lacks {says!r}')


def refused(path, *args, says, spec=None, **how):
    """mkfs must fail with one line, and leave bytes and size as they are."""
    before = digest(path) if os.path.isfile(path) else None
    said = check_failure('mkfs', spec or path, run('mkfs', *args, spec or path, **how))
    check(says in said, f'{path} {args}: {said!r} lacks {says!r}')
    check(before is None or digest(path) == before, f'{path} {args}: refused, and yet changed')


def makes(path, *args):
    status, out, err = run('mkfs', *args, path)
    check(not status and not err, f'{args}: exit {status}: {err}')
    return out.decode()


def superblock(path, field):
    status, out, err = run('dump-super', path)
    assert not status, err
    return re.search(rf'^{field}\s+(.*)$', out.decode(), re.M).group(1)


def misuse(image):
    misused(says='too few arguments')
    for option in ('--subvol=s', '--inode-flags=nodatacow:f', '--compress=zstd', '--shrink', '--free=1m', '--size-only',
                   '--exclude=x', '--with-xattr=x', '--without-xattr=x', '--root-owner=1:2', '--whiteouts',
                   '--deterministic', '--threads=1', '--basedir=d'):
        misused(option, image, says=f"{option.split('=')[0]} needs --rootdir, --tar or --manifest")
    for source in ('--tar=x', '--manifest=x'):
        misused('--rootdir=d', source, image, says='--rootdir, --tar and --manifest cannot be combined')
    misused('--rootdir=d', '--basedir=d', image, says='--basedir needs --manifest')
    misused('--rootdir=d', '--whiteouts', image, says='--whiteouts needs --tar or --manifest')
    misused('--rootdir=d', '--subvol=default:a', '--subvol=default-ro:b', image, says='already a default subvolume')
    for bad in ('nodatacow', 'nodatacow,', ':x', 'compress:x', 'nodatacow,x:y'):
        misused('--rootdir=d', f'--inode-flags={bad}', image, says='--inode-flags: ')
    for bad in ('', 'no:1', 'lzo:2', 'zlib:10', 'zstd:16', 'zstd:x', 'zstd:-1', 'gzip', 'zst'):
        misused('--rootdir=d', f'--compress={bad}', image, says='--compress: ')
    for bad in ('1', '1:', ':1', '1:2:3', '-1:2', 'root:root', '4294967295:1'):
        misused('--rootdir=d', f'--root-owner={bad}', image, says=f"--root-owner: '{bad}' is not UID:GID")
    for bad in ('', '%', 'x%', '-1', '65536%', '4294967296%', '99999999999999999999%'):
        misused('--rootdir=d', f'--free={bad}', image, says='--free: ')
    for bad in ('0', '1025', '-1', 'x', ''):
        misused('--rootdir=d', f'--threads={bad}', image, says='--threads: ')
    misused('--format=xml', image, says="--format: 'xml' is unknown")
    for option in ('-d', '--data', '-m', '--metadata'):
        misused(option, 'raid1', image, says='profile RAID1 needs 2 devices, 1 given')
        misused(option, 'triple', image, says="'triple' is unknown")
    for option in ('--csum', '--checksum'):
        misused(option, 'md5', image, says="'md5' is unknown")
    misused('-O', 'no-holes,zoned', image, says="'zoned' is not supported")
    for feature in ('no-holes', 'squota', 'bgt', 'x'):
        misused('-R', f'quota,{feature}', image, says=f"--runtime-features: '{feature}' is unknown")
    misused('-O', 'no-hole', image, says="'no-hole' is unknown")
    misused('-O', '^no-hole', image, says="'no-hole' is unknown")
    for option in ('-n', '--nodesize', '-s', '--sectorsize', '-b', '--byte-count'):
        for bad in ('', 'x', '-1', '4x', '4kk', '0x1000', '99999999999999999999', '16777215e'):
            misused(option, bad, image, says=f"'{bad}' is")
    misused('-n', '4g', image, says='not a block size')
    for bad in ('', 'x', UUID[:-1], UUID + '0', UUID.replace('-', '0'), UUID.replace('b', 'g')):
        misused('-U', bad, image, says='is not a UUID')
        misused('--device-uuid', bad, image, says='is not a UUID')
    for bad in ('', 'x', '-1', '1.5', '9223372036854775808'):
        result = run('mkfs', image, env={**os.environ, 'SOURCE_DATE_EPOCH': bad})
        check('SOURCE_DATE_EPOCH' in check_failure('mkfs', None, result, status=2), bad)


def bad_values(image):
    """Options that the library validates before it writes, alone and against the device."""
    before = digest(image)
    for args, says in (
            (('-n', '3000'), 'nodesize 3000'), (('-n', '128k'), 'nodesize 131072'), (('-s', '3000'), 'sectorsize 3000'),
            (('-s', '2k'), 'sectorsize 2048'), (('-s', '16k', '-n', '4k'), 'is less than sectorsize'),
            (('-M', '-n', '16k'), 'require equal'), (('-O', 'mixed-bg', '-n', '16k'), 'require equal'),
            (('-M', '-m', 'dup'), 'the same profile'), (('-M', '-d', 'dup'), 'the same profile'),
            (('-L', 'x' * 256), 'label'), (('-L', 'a\nb'), 'label')):
        misused('-f', *args, image, says=says)
    check(digest(image) == before, 'refused, and yet changed')
    for args, says in ((('-b', '50m'), 'too small'), (('-b', '1g'), f'the device has {SIZE}')):
        refused(image, '-f', *args, says=says)


def several(scratch, image):
    """A problem of one device is reported for that device, and nothing is written to any."""
    other, small = os.path.join(scratch, 'other.img'), os.path.join(scratch, 'small.img')
    for path, size in ((other, SIZE), (small, 60 << 20)):
        with open(path, 'wb') as f:
            f.truncate(size)
    link = os.path.join(scratch, 'link.img')
    os.symlink(other, link)
    before = digest(image)
    for bad, args, says in ((other, (image, other, other), 'is given twice'),
                            (link, (image, other, link), 'is given twice'),
                            (small, (image, small, other), 'too small: 62914560 bytes, at least 72351744 are needed'),
                            (f'{scratch}/none', (image, f'{scratch}/none'), 'No such file'),
                            (scratch, (image, other, scratch), 'is a directory')):
        said = check_failure('mkfs', bad, run('mkfs', '-f', *args))
        check(says in said and digest(image) == before, f'{args}: {said!r} lacks {says!r}')
    # Each device is large enough, but there is no space for a chunk.
    with open(small, 'r+b') as f:
        f.truncate(130 << 20)
    with open(other, 'r+b') as f:
        f.truncate(10 << 40)
    said = check_failure('mkfs', None, run('mkfs', '-f', '-d', 'raid1', '-m', 'raid1', small, other))
    check('too small: no space for a chunk with profile RAID1' in said, said)
    for path in (small, other):
        check(not os.stat(path).st_blocks, f'{path} was written to')
        os.unlink(path)
    os.unlink(link)


def make_ext4(path):
    program = shutil.which('mke2fs') or shutil.which('mke2fs', path='/usr/sbin:/sbin')
    if program:
        return not subprocess.run([program, '-q', '-F', '-t', 'ext4', path], check=False).returncode
    return False


def signatures(scratch, image):
    refused(image, says='contains btrfs: use -f')
    disk = os.path.join(scratch, 'disk.img')
    with open(disk, 'wb') as f:
        f.truncate(SIZE)
        f.seek(446)
        f.write(struct.pack('<B3xB3xII', 0, 0x83, 2048, (SIZE >> 9) - 2048) + bytes(48) + b'\x55\xaa')
    refused(disk, says='contains dos: use -f')
    # The signature of the disk does not matter for a partition, and vice versa.
    part = f'{disk}?partition=1'
    check(f'Filesystem size:    {(SIZE >> 20) - 1}.00MiB' in makes(part), part)
    with open(disk, 'rb') as f:
        f.seek(510)
        check(f.read(2) == b'\x55\xaa', 'the partition table is gone')
    refused(disk, spec=part, says='contains btrfs: use -f')
    makes(part, '-f', '-q')
    makes(disk, '-f', '-q')
    if make_ext4(image):
        refused(image, says='contains ext4: use -f')
        makes(image, '-f', '-q')
    else:
        print('no mke2fs: not tried over ext4')


def not_devices(scratch, variants):
    def make(name, size):
        path = os.path.join(scratch, name)
        with open(path, 'wb') as f:
            f.truncate(size)
        return path

    for args in variants:
        refused(scratch, *args, says='is a directory')
        refused('/dev/null', *args, says='neither a block device nor a regular file')
        refused(os.path.join(scratch, 'missing'), *args, says='No such file')
        refused(make('empty', 0), *args, says='too small: 0 bytes')
        refused(make('small', 109 * 1048576 - 1), *args, says='too small')
        refused(make('tiny', 1000), '-m', 'single', *args, says='too small')
    fifo = os.path.join(scratch, 'fifo')
    os.mkfifo(fifo)
    refused(fifo, '-f', says='neither a block device nor a regular file')
    locked = make('read-only', SIZE)
    os.chmod(locked, 0o444)
    refused(locked, '-f', says='Permission denied', **tool.forbidden())
    makes(make('smallest', 109 * 1048576), '-q', '-f')


def locked(image):
    """An open file description lock, as other image tools use it."""
    with open(image, 'r+b') as f:
        fcntl.fcntl(f, fcntl.F_OFD_SETLK if hasattr(fcntl, 'F_OFD_SETLK') else 37,
                    struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        # digest() only reads, which is not affected by the lock.
        refused(image, '-f', says='another program holds a lock')
    makes(image, '-f', '-q')


def listed_features(listed, link):
    """Scripts read the list of mkfs.btrfs: ReaR takes first words, but neither the first line nor aliases; others read
    the standard error only. Names, aliases and versions are those of mkfs.btrfs, as far as it knows them."""
    def parsed(text):
        lines = text.splitlines()
        check(lines[0] == 'Filesystem features available:' and all(' - ' in line for line in lines[1:]), text)
        versions = {line.split()[0]: re.search(r'(\([a-z]+=[^)]*\)|alias)$', line)[1] for line in lines[1:]}
        return versions, [name for name, what in versions.items() if what != 'alias']
    os.symlink(os.path.realpath(BTRKIT), link)
    status, out, err = run('-O', 'list-all', binary=link)
    os.unlink(link)
    check(not status and not out and err == listed, err)
    ours, names = parsed(listed)
    check(names == ['mixed-bg', 'quota', 'extref', 'raid56', 'skinny-metadata', 'no-holes', 'free-space-tree',
                    'raid1c34', 'block-group-tree', 'squota'], names)
    peer = shutil.which(os.environ.get('MKFS', 'mkfs.btrfs'))
    if peer and b'v7.3' in subprocess.run([peer, '-V'], capture_output=True, check=True).stdout:
        theirs, _ = parsed(subprocess.run([peer, '-O', 'list-all'], capture_output=True, check=True).stderr.decode())
        theirs.pop('zoned', None)
        check(ours == theirs, (ours, theirs))


def printed(image):
    check(makes(image, '-f', '-q') == '', '-q')
    text = makes(image, '-f')
    check(re.match(r'btrkit [0-9.]+\n\nLabel: {14}\(null\)\nUUID: {15}[0-9a-f-]{36}\nNode size: {10}16384\n'
                   r'Sector size: {8}4096\t\(CPU page size: \d+\)\nFilesystem size: {4}256\.00MiB\n'
                   r'Block group profiles:\n  Data: {13}single {12}8\.00MiB\n  Metadata: {9}DUP {14}\d\d\.00MiB\n'
                   r'  System: {11}DUP {15}8\.00MiB\nSSD detected: {7}no\nZoned device: {7}no\n'
                   r'Features: {11}extref, skinny-metadata, no-holes, free-space-tree, block-group-tree\n'
                   r'Checksum: {11}crc32c\nNumber of devices:  1\nDevices:\n   ID        SIZE  PATH\n'
                   rf'    1   256\.00MiB  {re.escape(image)}\n\n$', text), text)
    check(superblock(image, 'fsid') == re.search(r'^UUID: +(.*)$', text, re.M).group(1), 'UUID')
    more = makes(image, '-f', '-v', '-L', 'a label', '-U', UUID)
    check('Device UUID:' in more and re.search(r'Metadata: .*  at \d+\n', more), more)
    check(f'UUID:               {UUID}\n' in more and 'Label:              a label\n' in more, more)
    check(f'Device UUID:        {UUID}\n' in makes(image, '-f', '--device-uuid', UUID), '--device-uuid')
    mixed = makes(image, '-f', '-M')
    check('  Data+Metadata:    single ' in mixed and 'Node size:          4096\n' in mixed, mixed)
    check('Filesystem size:    200.00MiB\n' in makes(image, '-f', '-b', '200m'), '-b')
    for args in (('-O', 'list-all'), ('-O', '^no-holes,list-all')):
        status, out, err = run('mkfs', *args)
        check(not status and not err and b'\nfree-space-tree ' in out and b'zoned' not in out, args)
    listed_features(out.decode(), os.path.join(os.path.dirname(image), 'mkfs.btrfs'))
    status, out, err = run('mkfs', '-R', 'list-all')
    check(not status and not err and re.findall(rb'^\S+', out, re.M) == [b'Runtime', b'quota', b'free-space-tree'], out)
    status, out, err = run('mkfs', '-V')
    check(not status and not err and re.match(rb'btrkit mkfs, part of btrkit [0-9.]+\nbuilt with ( ?[+-]\w+)+\n$', out),
          '-V')
    status, out, err = run('mkfs', '-f', '-q', '-O', '^no-holes', image)
    check(not status and not out and err.startswith(f'btrkit mkfs: {image}: without block-group-tree'), err)
    status, out, err = run('mkfs', '-f', '-q', '-O', '^no-holes,^bgt', image)
    check(not status and not out and not err, err)
    status, out, err = run('mkfs', '-f', '-q', '-s', '64k', '-n', '64k', image)
    check(not status and not out and ('page size' in err) == (os.sysconf('SC_PAGESIZE') != 65536), err)


def approved(image):
    """In FIPS mode libgcrypt ends the program if an algorithm is not approved, so it must not be called."""
    env = {**os.environ, 'LIBGCRYPT_FORCE_FIPS_MODE': '1'}
    status, _, err = run('mkfs', '-f', '--csum', 'blake2', image, env=env)
    check(status == 2 and 'checksum blake2b is not supported' in err and err.count('\n') == 1, err)
    check(run('mkfs', '-f', '--csum', 'sha256', image, env=env)[0] == 0, 'sha256 in FIPS mode')
    makes(image, '-f', '--csum', 'blake2')
    status, _, err = run('check', image, env=env)
    check(status == 8 and 'blake2b is not supported' in err and err.count('\n') == 1, err)


def discarded(image):
    """Bytes that no tree covers are kept with -K, and only then."""
    at = 200 << 20
    for option, kept in (('-K', True), ('--nodiscard', True), ('-q', False)):
        with open(image, 'r+b') as f:
            f.seek(at)
            f.write(b'kept')
        makes(image, '-f', '-q', option)
        with open(image, 'rb') as f:
            f.seek(at)
            check((f.read(4) == b'kept') == kept, option)
    # Bytes past the given size are discarded too, up to the last one.
    for at in (200 << 20, SIZE - 4):
        with open(image, 'r+b') as f:
            f.seek(at)
            f.write(b'kept')
        makes(image, '-f', '-q', '-b', '200m')
        with open(image, 'rb') as f:
            f.seek(at)
            check(f.read(4) == b'kept', f'the byte at {at} behind -b')


def other_name(scratch, image):
    link = os.path.join(scratch, 'mkfs.btrfs')
    os.symlink(os.path.abspath(BTRKIT), link)
    status, out, err = run('-f', '-L', 'other name', image, binary=link)
    check(not status and not err and b'other name' in out, err)
    status, out, err = run('--no-such-option', image, binary=link)
    check(status == 1 and not out and err.count('\n') == 1, err)
    check(run('-f', '-b', '1', image, binary=link)[0] == 1, 'a failure')


def interrupted(scratch):
    """Interrupt at the first progress output, during discarding."""
    path = os.path.join(scratch, 'large.img')
    with open(path, 'wb') as f:
        f.truncate(500 << 30)
    for number in (signal.SIGINT, signal.SIGTERM):
        makes(path, '-q', '-f')
        status, out, said = watched('mkfs', '-f', path, number=number)
        check(status == 1 and not out, (status, out))
        check(said.endswith(f'btrkit mkfs: {path}: interrupted: there is no filesystem on it now\r\n'), said)
        with open(path, 'rb') as f:
            for offset in (*tool.SUPER_OFFSETS, 256 << 30):
                f.seek(offset)
                check(f.read(4096) == bytes(4096), f'a superblock at {offset} after {number}')
    os.unlink(path)


def filled(scratch):
    """Progress on a terminal, and what is left after an interruption during filling."""
    path, source = os.path.join(scratch, 'filled.img'), os.path.join(scratch, 'source')
    os.mkdir(source)
    for number in range(40):
        with open(f'{source}/{number}', 'wb') as f:
            f.write(os.urandom(1 << 19))
    status, out, said = watched('mkfs', '-f', '--rootdir', source, path)
    check(not status and re.match(rb'btrkit .*\n\nRootdir from: ', out), (status, out))
    check(re.match(r'\rfilling: \d+ %, \d+\.\d MiB/s, \d+ of 40 files\x1b\[K', said), said)
    check(said.endswith('\r\x1b[K'), said)
    whole = os.path.getsize(path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        status, out, said = watched('mkfs', '-f', '--rootdir', source, path, number=number)
        check(status == 1 and not out, (status, out))
        check(said.endswith(f'btrkit mkfs: {path}: interrupted: there is no filesystem on it now\r\n'), said)
        check(whole and os.path.getsize(path) == 0, 'an image is left')
        new = os.path.join(scratch, 'new.img')
        status, _, _ = watched('mkfs', '--rootdir', source, new, number=number)
        check(status == 1 and not os.path.exists(new), 'a new image is left')


def main():
    with tempfile.TemporaryDirectory() as scratch:
        image = os.path.join(scratch, 'fs.img')
        with open(image, 'wb') as f:
            f.truncate(SIZE)
        empty = digest(image)
        misuse(image)
        bad_values(image)
        several(scratch, image)
        check(digest(image) == empty, 'something was written by now')
        makes(image, '-q', '-f')
        blkid = b'+blkid' in run('--version')[1]
        if blkid:
            signatures(scratch, image)
        else:
            refused(image, says='needs a build with libblkid')
        not_devices(scratch, ((), ('-f',)) if blkid else (('-f',),))
        locked(image)
        printed(image)
        if b'+gcrypt' in run('--version')[1]:
            approved(image)
        discarded(image)
        other_name(scratch, image)
        interrupted(scratch)
        filled(scratch)
    print(f'{checks} checks')


if __name__ == '__main__':
    sys.exit(main())
