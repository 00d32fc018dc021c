#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes an empty filesystem in a sparse file, beside mkfs.btrfs with the same options: one that is new each time, and
one that holds the filesystem of the run before."""
import os
import shutil
import sys
import time

import pairs
from pairs import image

SIZES = (('20 GB', 20 * 10 ** 9), ('15 TB', 15 * 10 ** 12))


def way(path, size, *command):
    def run():
        if size:
            with open(path, 'wb') as f:
                f.truncate(size)
        start = time.perf_counter()
        image.run(*command, path)
        return (time.perf_counter() - start) * 1e3
    return run


def main():
    os.makedirs(pairs.FOLDER, exist_ok=True)
    ours, theirs = (os.path.join(pairs.FOLDER, name) for name in ('mkfs-ours.img', 'mkfs-theirs.img'))
    if not shutil.which(image.MKFS):
        sys.exit('needs mkfs.btrfs')
    try:
        for name, size in SIZES:
            for state, new in (('new', size), ('used', 0)):
                pairs.compare(f'mkfs-empty, {name}, {state} file',
                              way(ours, new, pairs.BTRKIT, 'mkfs', '-q', '-f'),
                              {'mkfs.btrfs': way(theirs, new, image.MKFS, '-q', '-f')}, 1.0)
    finally:
        for path in (ours, theirs):
            if os.path.exists(path):
                os.unlink(path)


if __name__ == '__main__':
    main()
