#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Conversions of the checksum type and of the fsid in one transaction, one after the other: Linux mounts each result
and writes to it, and `btrfs check` finds nothing, neither before nor after that."""
import os
import subprocess
import sys
import tempfile

import image

BTRKIT, CONVERSION = os.environ['BTRKIT'], os.environ['CONVERSION']
CRC32C, XXHASH, SHA256, BLAKE2 = range(4)
# Each begins with the result of the one before.
STEPS = ((XXHASH, '-'), (SHA256, '-'), (BLAKE2, '-'), (CRC32C, '-'), (CRC32C, '1'), (CRC32C, '2', 'keep'),
         (CRC32C, '3', 'keep'), (XXHASH, '-'), (XXHASH, '4'), (SHA256, '5'), (CRC32C, '6'))
FILES = 300


def must_be_whole(path):
    done = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert not done.returncode, done.stdout.decode()
    subprocess.run([BTRKIT, 'check', path], stdout=subprocess.DEVNULL, check=True)


def fill(top):
    """Small files have their data in the tree; no other data has checksums here."""
    os.makedirs(f'{top}/dir')
    for i in range(FILES):
        with open(f'{top}/dir/{i}', 'w', encoding='ascii') as f:
            f.write(f'contents of {i}')
        os.setxattr(f'{top}/dir/{i}', 'user.a', b'x' * (i % 50))


def expect(top, step):
    for i in range(FILES):
        with open(f'{top}/dir/{i}', encoding='ascii') as f:
            assert f.read() == f'contents of {i}'
    for before in range(step):
        assert os.path.exists(f'{top}/after {before}')
    with open(f'{top}/after {step}', 'w', encoding='ascii') as f:
        f.write(str(step))


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-conversion-') as scratch:
        made = image.Image(f'{scratch}/image', size='600M')
        subprocess.run([BTRKIT, 'mkfs', '-q', made.path], check=True)
        fill(made.mount())
        made.umount()
        for number, (csum, fsid, *keep) in enumerate(STEPS):
            subprocess.run([CONVERSION, made.path, str(csum), fsid, *keep], check=True)
            must_be_whole(made.path)
            expect(made.mount(), number)
            made.umount()
            must_be_whole(made.path)
    print(f'{len(STEPS)} conversions judged by Linux')
    return 0


if __name__ == '__main__':
    sys.exit(main())
