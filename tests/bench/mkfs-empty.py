#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Create an empty filesystem in sparse files, compared with mkfs.btrfs with the same options: in new files each time,
and in files that contain the filesystem of the previous run."""
import os
import shutil
import sys
import time

import pairs
from pairs import image

# Number of files, size, and options.
KINDS = ((1, '20 GB', 20 * 10 ** 9, ()), (1, '15 TB', 15 * 10 ** 12, ()), (8, '15 TB', 15 * 10 ** 12, ()),
         (8, '15 TB', 15 * 10 ** 12, ('-d', 'raid6', '-m', 'raid1c4')))


def way(paths, size, *command):
    def run():
        for path in paths if size else ():
            with open(path, 'wb') as f:
                f.truncate(size)
        start = time.perf_counter()
        image.run(*command, *paths)
        return (time.perf_counter() - start) * 1e3
    return run


def main():
    os.makedirs(pairs.FOLDER, exist_ok=True)
    if not shutil.which(image.MKFS):
        sys.exit('needs mkfs.btrfs')
    ours, theirs = ([os.path.join(pairs.FOLDER, f'mkfs-{whose}-{number}.img') for number in range(8)]
                    for whose in ('ours', 'theirs'))
    try:
        for count, name, size, options in KINDS:
            for state, new in (('new', size), ('used', 0)):
                pairs.compare(' '.join([f'mkfs-empty, {count} x {name},', *options, f'{state} files']),
                              way(ours[:count], new, pairs.BTRKIT, 'mkfs', '-q', '-f', *options),
                              {'mkfs.btrfs': way(theirs[:count], new, image.MKFS, '-q', '-f', *options)}, 1.0)
    finally:
        for path in ours + theirs:
            if os.path.exists(path):
                os.unlink(path)


if __name__ == '__main__':
    main()
