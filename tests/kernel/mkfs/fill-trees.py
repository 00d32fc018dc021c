#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make filesystems from real system trees by `btrkit mkfs`, from the directory and from a tar archive of it.

In Linux, paths, attributes, xattrs, links and contents are equal, a tar archive made from it is identical to that of
the source byte for byte, and btrfs check finds nothing.

    fill-trees.py [--linux] [TREE...]

With --linux the tree is the one named by LINUX_TREE. BTRKIT is the program under test. Exits with 77 if it cannot run.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

import everything
import image
import several_devices
from image import BTRFS, loop, mounted, run
from several_devices import BTRKIT, need

# The archive depends only on the tree: no process IDs, and no times that reading changes.
TAR = ('tar', 'c', '--format=posix', '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
       '--sort=name', '--numeric-owner', '--xattrs', '--xattrs-include=*', '--acls', '--selinux')
UNTOLD = {'directory': ('atime',), 'tar': ('atime', 'ctime')}


def archive(tree):
    return subprocess.Popen([*TAR, '-C', tree, '.'], stdout=subprocess.PIPE, env={**os.environ, 'LC_ALL': 'C.UTF-8'})


def digest(tree):
    """Digest of its archive."""
    found = hashlib.blake2b()
    with archive(tree) as process:
        while data := process.stdout.read(1 << 20):
            found.update(data)
    need(not process.returncode, f'tar of {tree}: exit {process.returncode}')
    return found.digest()


def make(source, tree, path):
    if source == 'directory':
        run(BTRKIT, 'mkfs', '-q', '--rootdir', tree, path)
        return
    with archive(tree) as process:
        run(BTRKIT, 'mkfs', '-q', '--compress', 'zstd', '--tar', '-', path, stdin=process.stdout)
    need(not process.returncode, f'tar of {tree}: exit {process.returncode}')


def check(tree, scratch):
    """@return number of compared paths"""
    # Hard links from outside of the tree do not exist in the filesystem.
    wanted, bytes_wanted, compared = everything.listing(tree, subvolumes=()), digest(tree), 0
    path, mnt = f'{scratch}/image', f'{scratch}/mnt'
    os.mkdir(mnt)
    for source in ('directory', 'tar'):
        make(source, tree, path)
        with loop(path) as device:
            run(BTRFS, 'check', '--check-data-csum', device)
            with mounted(device, mnt):
                found = everything.listing(mnt)
                lines = everything.differences(found, wanted, UNTOLD[source])
                need(not lines, f'from the {source}, not equal:\n' + '\n'.join(lines))
                need(digest(mnt) == bytes_wanted, f'from the {source}: its tar is another one')
        os.unlink(path)
        compared += len(found)
    return compared


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--linux', action='store_true', help='what LINUX_TREE names')
    parser.add_argument('trees', metavar='TREE', nargs='*')
    args = parser.parse_args()
    reason = image.missing()
    if not reason and args.linux and not os.environ.get('LINUX_TREE'):
        reason = 'set LINUX_TREE to a source tree of Linux'
    if reason:
        print(f'skipped: {reason}')
        return 77
    results = []
    for tree in [*args.trees, *([os.environ['LINUX_TREE']] if args.linux else [])]:
        with tempfile.TemporaryDirectory(prefix='btrkit-trees-') as scratch:
            results.append(several_devices.attempt(tree, check, tree, scratch))
    failed = results.count(None)
    print(f'{len(results)} trees, {sum(filter(None, results))} paths compared, {failed} failed')
    return 1 if failed or not results else 0


if __name__ == '__main__':
    sys.exit(main())
