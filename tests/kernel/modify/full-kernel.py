#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much fits into a filesystem that was made for a directory, with space left for more: by `btrkit edit` nearly as
much as by Linux on a copy, in one large file and in many small ones. Linux then deletes the files and writes again, and
so does `btrkit edit`.

Exits with 77 if it cannot run.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import image
from image import run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
PIECE, SMALL = 1 << 20, 64 << 10
# MiB
ROOM = {'large': 1000, 'small': 400}
FEWER = .02


def pieces(kind):
    """Return the size of a piece, and how many certainly do not fit."""
    size = PIECE if kind == 'large' else SMALL
    return size, (ROOM[kind] + 100) * PIECE // size


def by_linux(img, kind):
    """Return the bytes that Linux stores before it has no space."""
    size, many = pieces(kind)
    top = img.mount('nodiscard')
    done = 0
    try:
        for number in range(many):
            path = f'{top}/large' if kind == 'large' else f'{top}/f{number}'
            with open(path, 'ab') as f:
                f.write(b'x' * size)
            done += size
    except OSError:
        pass
    try:
        image.sync(top)
    finally:
        img.umount()
    return done


def by_edit(img, kind, scratch):
    """Return the bytes that `edit` stores. Operations without space fail alone."""
    size, many = pieces(kind)
    local = os.path.join(scratch, 'piece')
    with open(local, 'wb') as f:
        f.write(b'x' * size)
    if kind == 'large':
        script = ['put /dev/null /large'] + [f'-write /large {number * size} {local}' for number in range(many)]
    else:
        script = [f'-put {local} /f{number}' for number in range(many)]
    done = subprocess.run([BTRKIT, 'edit', img.path], input='\n'.join(script).encode() + b'\n',
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # Everything else must have worked.
    said = done.stdout.decode().splitlines()
    other = [line for line in said if 'No space left' not in line]
    if other or not said:
        raise AssertionError('\n'.join(other) or 'everything fits')
    return (many - len(said)) * size


def check_clean(img):
    run(BTRKIT, 'check', img.path)
    run(image.BTRFS, 'check', img.path)


def check_usable(img, kind):
    """The full filesystem is still written: by Linux, and then by `edit`."""
    top = img.mount('nodiscard')
    names = [name for name in os.listdir(top) if name != 'source']
    for name in names[::2]:
        os.unlink(f'{top}/{name}')
    image.sync(top)
    with open(f'{top}/again', 'wb') as f:
        f.write(b'y' * SMALL)
    img.umount()
    check_clean(img)
    run(BTRKIT, 'edit', img.path, 'rm', '/again', *(f'/{name}' for name in names[1::2]))
    check_clean(img)


def compare(scratch, kind):
    source = os.path.join(scratch, 'directory')
    os.makedirs(source, exist_ok=True)
    with open(f'{source}/source', 'wb') as f:
        f.write(b'source')
    ours, theirs = (image.Image(os.path.join(scratch, f'{who}.img'), None) for who in ('ours', 'theirs'))
    run(BTRKIT, 'mkfs', '-q', '-f', '--rootdir', source, '--free', f'{ROOM[kind]}m', ours.path)
    shutil.copyfile(ours.path, theirs.path)
    wanted, got = by_linux(theirs, kind), by_edit(ours, kind, scratch)
    print(f'{kind}: {got >> 20} MiB by edit, {wanted >> 20} MiB by Linux')
    if got < wanted * (1 - FEWER):
        raise AssertionError(f'{kind}: {got} bytes fit by edit, {wanted} by Linux')
    check_clean(ours)
    check_usable(ours, kind)
    for img in (ours, theirs):
        os.unlink(img.path)


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as scratch:
        for kind in ('large', 'small'):
            compare(scratch, kind)
    return 0


if __name__ == '__main__':
    sys.exit(main())
