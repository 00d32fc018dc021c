#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is read in a transaction is what Linux reads after its commit: names in their order, inodes, attributes and
contents, after random changes in a transaction that is committed and continued several times."""
import os
import subprocess
import sys
import tempfile

import image

BTRKIT, TXN_READ = os.environ['BTRKIT'], os.environ['TXN_READ']
FORMS = (('-n', '4096'), ('-n', '16384', '--csum', 'xxhash'), ('-n', '65536'))


def listed(top, contents):
    """Yield the line of each name, as txn-read prints it, and compare its contents."""
    # Linux returns names in the order of their indexes.
    with os.scandir(top) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        path = f'{top}/{name}'
        st = os.lstat(path)
        # The order of attributes is that of their hashes for both.
        attributes = ''.join(f' {a}={os.getxattr(path, a, follow_symlinks=False).hex()}'
                             for a in os.listxattr(path, follow_symlinks=False))
        yield (path, f'{st.st_ino} {st.st_mode:o} {st.st_nlink} {st.st_uid} {st.st_gid} {st.st_size} '
                     f'{int(st.st_mtime)}{attributes}')
        if os.path.islink(path):
            data = os.readlink(path).encode()
        elif os.path.isdir(path):
            yield from listed(path, contents)
            continue
        else:
            with open(path, 'rb') as f:
                data = f.read()
        with open(f'{contents}/{st.st_ino}', 'rb') as f:
            assert f.read() == data, f'{path}: other contents'


def compare(form, seed):
    with tempfile.TemporaryDirectory(prefix='btrkit-txn-read-') as scratch:
        path, contents = f'{scratch}/image', f'{scratch}/contents'
        os.mkdir(contents)
        made = image.Image(path, size='600M')
        subprocess.run([BTRKIT, 'mkfs', '-q', *form, path], check=True)
        printed = subprocess.run([TXN_READ, path, contents, str(seed)], stdout=subprocess.PIPE, check=True).stdout
        mnt = made.mount()
        try:
            found = [f'{name[len(mnt):]} {line}' for name, line in listed(mnt, contents)]
        finally:
            made.umount()
        wanted = printed.decode().splitlines()
        for ours, theirs in zip(wanted, found):
            assert ours == theirs, f'{form}, seed {seed}: read in the transaction:\n{ours}\nby Linux:\n{theirs}'
        assert len(wanted) == len(found) > 40, f'{len(wanted)} and {len(found)} names'
        check = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               check=False)
        assert not check.returncode, check.stdout.decode()
        return len(found)


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    names = sum(compare(form, image.seed() * 100 + i) for i, form in enumerate(FORMS))
    print(f'{names} names in {len(FORMS)} filesystems read alike')
    return 0


if __name__ == '__main__':
    sys.exit(main())
