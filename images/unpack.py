#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unpacks images into a folder, sparse, and verifies their sums. Usage: unpack.py NAME... DIR; prints the paths."""
import hashlib
import os
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def sums():
    with open(os.path.join(HERE, 'SHA256SUMS'), encoding='ascii') as f:
        return {name: value for value, name in (line.split() for line in f)}


def file_sum(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def unpack(name, folder, quick=False):
    """The path of the image; quick: that the archive is the right one is enough."""
    archive, path = os.path.join(HERE, f'{name}.tar.xz'), os.path.join(folder, f'{name}.img')
    expected = sums()
    if file_sum(archive) != expected[f'{name}.tar.xz']:
        raise ValueError(f'{archive} is not the one in SHA256SUMS')
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(archive) as tar:
        tar.extract(f'{name}.img', folder)
    if not quick and file_sum(path) != expected[f'{name}.img']:
        raise ValueError(f'{path} is not the one in SHA256SUMS')
    return path


if __name__ == '__main__':
    for each in sys.argv[1:-1]:
        print(unpack(each, sys.argv[-1]))
