#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Create 100,000 files in one directory: the number of batches in which their index items are inserted, for names of 8
and of 80 bytes, and the time compared with inserting files one by one."""
import os

import pairs
from pairs import image

FILES = 100000
ROOM = 16283  # usable bytes in a leaf of 16 KiB
HEADERS = 55  # of an item and of a directory entry


def run(path, name, one_by_one):
    if os.path.exists(path):
        os.unlink(path)
    image.run('truncate', '-s', '4G', path)
    image.run(image.MKFS, '-q', '-m', 'single', '-d', 'single', '-n', '16k', path)
    said = image.run(pairs.program('bench-create'), path, '1', str(FILES), str(name),
                     *(['one-by-one'] if one_by_one else [])).split()
    image.run(image.BTRFS, 'check', path)
    return float(said[0]), int(said[3]), int(said[4])


def main():
    pairs.skip_unless_possible()
    os.makedirs(pairs.FOLDER, exist_ok=True)
    path = os.path.join(pairs.FOLDER, 'batch.img')
    try:
        for name in (8, 80):
            seconds, batches, items = run(path, name, False)
            slow, each, _ = run(path, name, True)
            # One more batch for the entry of the directory itself.
            goal = -(-FILES // (ROOM // (HEADERS + name))) + 1
            print(f'names of {name} bytes: {items} index items in {batches} batches, goal {goal}: '
                  f'{"reached" if batches <= goal else "not reached"}; {seconds:.2f} s, one by one {slow:.2f} s in '
                  f'{each} batches')
    finally:
        os.unlink(path)


if __name__ == '__main__':
    main()
