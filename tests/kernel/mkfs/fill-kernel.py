#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fill filesystems by `btrkit mkfs` from a directory with everything: paths, attributes and contents are equal in
Linux, btrfs check finds nothing, and Linux then writes to them, balances and snapshots them, or removes everything.

    fill-kernel.py [--deep] [--only PATTERN] [--part I/N] [--list]

BTRKIT is the program under test; BTRFS is from btrfs-progs. Exits with 77 if it cannot run.
"""
import fnmatch
import os
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile

import contents
import everything
import image
import ops
import several_devices
from image import BTRFS, run
from several_devices import BTRKIT, K, need

# Large parts of the directory.
LARGE = ('many', 'links', 'big')
SUBVOLUMES = ('cut/sub', 'cut/sub/nested', 'cut/beside')
# What archives and manifests do not contain.
UNTOLD = {'directory': (), 'tar': ('atime', 'ctime'), 'manifest': ('atime', 'ctime')}


def subvolume_options():
    return [word for path, kind in zip(SUBVOLUMES, ('rw', 'rw', 'ro')) for word in ('--subvol', f'{kind}:{path}')]


class Row:
    """A filesystem to make."""

    def __init__(self, devices, *options, source='directory', parts=(), room='256M', cut=False):
        self.devices, self.options, self.source, self.parts = devices, options, source, parts
        # To balance, Linux needs more space than the largest group.
        self.room, self.cut = '2G' if room and 'big' in parts else room, cut

    def __str__(self):
        words = [f'{self.devices} device{"s"[self.devices == 1:]}', self.source, *self.options, *self.parts,
                 *(['subvolumes'] if self.cut else []), f'free {self.room}' if self.room else 'exact']
        return ' '.join(words)


ROWS = [
    Row(1, room=None),
    Row(1, parts=('links', 'many')),
    Row(1, '--compress', 'zstd', '-n', '4k', cut=True),
    Row(2, '-d', 'raid1', '-m', 'raid1', '--csum', 'xxhash', '--compress', 'lzo', source='tar'),
    Row(1, '-d', 'dup', '--csum', 'blake2', '-n', '64k', source='manifest', room='512M'),
    Row(3, '-d', 'raid0', '-m', 'raid1c3', '--csum', 'sha256', '--compress', 'zlib:9', '-O', 'quota', cut=True),
    Row(1, '-M', '-O', '^no-holes', room=None),
    Row(1, '-m', 'single', '-n', '4k', room=None),
]
NODES = ('4k', '8k', '16k', '32k', '64k')
KINDS = ('no', 'zlib', 'lzo', 'zstd', 'zlib:1', 'zstd:15')
SOURCES = ('directory', 'tar', 'manifest')
DEEP = '--deep' in sys.argv


def deep_rows():
    for number, (sums, kind) in enumerate((s, k) for s in several_devices.CHECKSUMS for k in KINDS):
        yield Row(1, '--csum', sums, '--compress', kind, '-n', NODES[number % 5], source=SOURCES[number % 3],
                  parts=('many', 'big') if number % 4 == 0 else (), cut=number % 2 == 0)
    for number, node in enumerate(NODES):
        for m, parts in (('single', ('many',)), ('dup', ('many', 'links'))):
            yield Row(1, '-n', node, '-m', m, room=None, parts=parts)
            yield Row(1, '-n', node, '-m', m, room=None, cut=True)
        yield Row(1, '-n', node, parts=LARGE, source=SOURCES[number % 3])
    for number, (name, smallest) in enumerate(several_devices.PROFILES.items()):
        if name in ('raid5', 'raid6'):
            continue
        for count in sorted({smallest, smallest + 1, 4 + smallest % 2, 6}):
            yield Row(count, '-d', name, '-m', name, '--compress', KINDS[(number + count) % 4],
                      source=SOURCES[(number + count) % 3], cut=count == smallest)
            yield Row(count, '-d', name, '-m', name, '-n', NODES[(number + count) % 5], room=None, parts=('big',))
        yield Row(smallest, '-M', '-d', name, '-m', name, cut=True)
        yield Row(smallest, '-M', '-d', name, '-m', name, '--compress', 'zstd', room=None)
    for number, features in enumerate(('^no-holes', '^skinny-metadata', '^free-space-tree', '^block-group-tree',
                                       'quota', '^no-holes,^skinny-metadata,^free-space-tree', 'quota,^no-holes')):
        for compress in ('no', 'zstd'):
            yield Row(1, '-O', features, '--compress', compress, cut=True)
            yield Row(2, '-O', features, '--compress', compress, room=None, source=SOURCES[number % 3])
    yield Row(1, '-R', 'quota', '-O', '^block-group-tree', cut=True)


class Source:
    """The directory with everything, and its other forms."""

    def __init__(self, scratch, deep, seed=6):
        self.scratch, self.top, self.known, self.listings = scratch, f'{scratch}/source/top', {}, {}
        os.mkdir(f'{scratch}/source')
        run('mount', '-t', 'tmpfs', '-o', 'noatime,size=8g,nr_inodes=0', 'btrkit', f'{scratch}/source')
        try:
            everything.make(self.top, random.Random(seed), deep)
            os.utime(self.top, ns=(3, 1))
        except BaseException:
            self.release()
            raise

    def release(self):
        run('umount', f'{self.scratch}/source')

    def limits(self, nodesize):
        """What fits only into nodes of that size."""
        path = f'{self.top}/limits'
        if os.path.exists(path):
            shutil.rmtree(path)
        everything.make_limits(path, nodesize, random.Random(nodesize))
        self.known.clear()

    def listing(self, skip, cut):
        return everything.listing(self.top, skip, SUBVOLUMES if cut else (), self.known)

    def options(self, row, skip):
        """The options that select it."""
        if row.source == 'directory':
            return ['--rootdir', self.top, *(w for name in skip for w in ('--exclude', f'{name}'))]
        path = f'{self.scratch}/source/{row.source}'
        if row.source == 'tar':
            run('tar', 'cf', path, '-C', self.top, '--format=posix', '--xattrs', '--xattrs-include=*', '--acls',
                '--selinux', '--sparse', '--numeric-owner', '--anchored',
                *(f'--exclude=./{name}' for name in skip), '.',
                env={**os.environ, 'LC_ALL': 'C.UTF-8'}, input=b'')
            return ['--tar', path]
        with open(path, 'wb') as f:
            f.write(everything.dumpfile(self.top, skip))
        return ['--manifest', path, '--basedir', self.top]


def nodesize_of(options):
    text = several_devices.option(options, '-n') or ('4k' if '-M' in options else '16k')
    return int(text[:-1]) * K


def need_warning(row, said):
    if row.cut:
        cut = re.search(r'(\d+) hard links across', said)
        need(cut and int(cut[1]) == 2 * 3 + 1, f'about hard links: {said!r}')
    else:
        need('hard links' not in said, said)


def make(row, volume, source, skip):
    options = [*row.options, *source.options(row, skip)]
    if row.room:
        options += ['--free', row.room]
    if row.cut:
        options += subvolume_options()
    done = subprocess.run([BTRKIT, 'mkfs', '-q', *options, *volume.paths], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors='replace')
    need(not done.returncode, f'mkfs: exit {done.returncode}: {said}')
    need_warning(row, said)


def without_what_tar_loses(listing):
    """GNU tar omits sockets, does not detect hard links of fifos, and escapes names with "=" in its own way, which
    libarchive does not know; nor does libarchive support fractions of a second before the epoch.
    """
    kept = {}
    for path, of in listing.items():
        mode = int(of['mode'], 8)
        lost = [what for what in of if '=' in what or '%3D' in what
                or stat.S_ISFIFO(mode) and what in ('nlink', 'first')
                or path == b'kinds/time2' and what == 'mtime']
        if not stat.S_ISSOCK(mode):
            kept[path] = {what: value for what, value in of.items() if what not in lost}
    return kept


def need_equal(mnt, row, wanted):
    found = everything.listing(mnt)
    if row.source == 'tar':
        found, wanted = without_what_tar_loses(found), without_what_tar_loses(wanted)
    lines = everything.differences(found, wanted, UNTOLD[row.source])
    need(not lines, 'not equal:\n' + '\n'.join(lines))
    return len(found)


def need_subvolumes(mnt):
    text = run(BTRFS, 'subvolume', 'list', '-o', mnt).decode() + run(BTRFS, 'subvolume', 'list', mnt).decode()
    need(all(f'path {path}\n' in text for path in SUBVOLUMES), text)
    for path, wanted in zip(SUBVOLUMES, (b'false', b'false', b'true')):
        need(wanted in run(BTRFS, 'property', 'get', '-ts', f'{mnt}/{path}', 'ro'), f'{path}: another ro')


def need_quota(mnt):
    """A rescan by Linux gives the same counts."""
    def shown():
        return re.findall(rb'^(\d/\d+) +(\d+) +(\d+)', run(BTRFS, 'qgroup', 'show', '--raw', mnt), re.M)
    before = shown()
    run(BTRFS, 'quota', 'rescan', '-w', mnt)
    after = shown()
    need(before and before == after, f'qgroups {before}, Linux counts {after}')


def write_to(mnt, row, rng):
    # A new data group of Linux takes a tenth of all devices: with three copies, some of them would leave no space for a
    # metadata group, on filesystems of mkfs.btrfs too. So balance metadata while there is space.
    crowded = several_devices.option(row.options, '-d') in ('raid1c3', 'raid1c4') and '-M' not in row.options
    if crowded:
        ops.balance(mnt, ops.BALANCE_METADATA)
    ops.subvolume(f'{mnt}/written')
    contents.fill(f'{mnt}/written', rng, files=20, steps=60, limit=200 * K)
    ops.snapshot(mnt, f'{mnt}/snapshot')
    ops.balance(mnt, ops.BALANCE_DATA | (0 if crowded else ops.BALANCE_METADATA))
    for path in ('kinds/plain', 'files/mixed131073', 'some/a/17'):
        with open(f'{mnt}/{path}', 'r+b') as f:
            f.write(b'another beginning')
    need(os.path.getsize(f'{mnt}/snapshot/files/mixed131073') == 131073, 'the snapshot')
    several_devices.scrub(mnt)


def remove_all(mnt):
    for name in os.listdir(mnt):
        path = f'{mnt}/{name}'
        for _ in range(2):
            # Read-only subvolumes keep their contents until they are deleted as a whole.
            done = subprocess.run(['rm', '-rf', path], stderr=subprocess.PIPE, check=False)
            if not done.returncode:
                break
            need(b'No space' not in done.stderr, f'rm: {done.stderr[:300]}')
            for inner in SUBVOLUMES[::-1]:
                if os.path.exists(f'{mnt}/{inner}'):
                    run(BTRFS, 'subvolume', 'delete', f'{mnt}/{inner}')
        need(not os.path.lexists(path), f'{name} is still there')
    ops.sync(mnt)


def check(row, volume, ours=False):
    """btrfs check compares each link with each other one, which takes a minute: only in deep runs, and only for ours.
    """
    if 'links' not in row.parts or DEEP and ours:
        volume.check()


def check_row(row, scratch, source, seed):
    """@return number of compared paths"""
    rng = random.Random(seed)
    skip = tuple(name for name in LARGE if name not in row.parts and os.path.exists(f'{source.top}/{name}'))
    source.limits(nodesize_of(row.options))
    wanted = source.listing(skip, row.cut)
    volume = several_devices.Fresh(scratch, row.devices)
    make(row, volume, source, skip)
    volume.attach()
    check(row, volume, ours=True)
    mnt = volume.mount('noatime', readonly=True)
    several_devices.need_profiles(mnt, row.devices, row.options)
    count = need_equal(mnt, row, wanted)
    if row.cut:
        need_subvolumes(mnt)
    volume.unmount()
    mnt = volume.mount('noatime')
    if several_devices.has_quota(row.options):
        need_quota(mnt)
    if row.room:
        write_to(mnt, row, rng)
    else:
        remove_all(mnt)
    several_devices.count_again(mnt, row.options)
    volume.unmount()
    check(row, volume)
    mnt = volume.mount('noatime', readonly=True)
    need(row.room or not os.listdir(mnt), 'not empty')
    volume.unmount()
    volume.remove()
    return count


def refused(scratch, source):
    """One byte more than fits."""
    top = f'{scratch}/source/refused'
    os.mkdir(top)
    for nodesize in (4 * K, 16 * K, 64 * K):
        room = nodesize - everything.LEAF
        most = min(room - everything.INLINE, 4095)
        for what in ('symlink', 'attribute', 'names', 'attributes'):
            path = f'{top}/{what}'
            if what == 'symlink':
                if most == 4095:
                    continue
                os.symlink('s' * (most + 1), path)
            elif what == 'attribute':
                everything.write(path)
                os.setxattr(path, 'user.limit', bytes(room - everything.ENTRY - 9))
            elif what == 'names':
                os.mkdir(path)
                for name in everything.same_hash(room // 74 + 1):
                    everything.write(f'{path}/{name}')
            else:
                everything.write(path)
                for name in everything.same_hash(room // 79 + 1):
                    os.setxattr(path, f'user.{name}', b'')
            done = subprocess.run([BTRKIT, 'mkfs', '-q', '-n', str(nodesize), '-r', top, f'{scratch}/no.img'],
                                  stderr=subprocess.PIPE, check=False)
            said = done.stderr.decode()
            need(done.returncode == 1 and said.count('\n') == 1 and f'{what}: ' in said, f'{nodesize}: {said!r}')
            need(not os.path.exists(f'{scratch}/no.img'), f'{what}: there is an image')
            run('rm', '-r', path)
    return 1


def main():
    args = several_devices.options(__doc__)
    part, parts = map(int, args.part.split('/'))
    rows = [(seed, row) for seed, row in enumerate(deep_rows() if args.deep else ROWS)
            if fnmatch.fnmatch(str(row), args.only) and seed % parts == part - 1]
    if args.list:
        print(*(row for _, row in rows), sep='\n')
        return 0
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    results = []
    with tempfile.TemporaryDirectory(prefix='btrkit-fill-') as scratch:
        source = Source(scratch, args.deep)
        try:
            results.append(several_devices.attempt('one more is refused', refused, scratch, source))
            for seed, row in rows:
                with tempfile.TemporaryDirectory(prefix='row-', dir=scratch) as folder:
                    results.append(several_devices.attempt(str(row), check_row, row, folder, source, seed))
        finally:
            source.release()
    failed = results.count(None)
    print(f'{len(rows)} filesystems, {sum(filter(None, results))} paths compared, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
