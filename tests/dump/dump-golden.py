#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree and dump-super of committed images with every option, compared with hashes of the output of btrfs-progs
6.19.

    dump-golden.py [--update]

--update rewrites dump-golden.sum using $BTRFS, which must be 6.19 or later.
"""
import hashlib
import os
import sys
import tempfile

import compare
from compare import BTRFS, BTRKIT, SUPER_OPTIONS, TREE_OPTIONS, block_options, must, peer_text

HERE = os.path.dirname(os.path.realpath(__file__))
SUMS = os.path.join(HERE, 'dump-golden.sum')
IMAGES = os.path.join(HERE, '..', '..', 'images')
NAMES = ('good-default', 'good-generations', 'good-log-tree', 'good-mixed', 'good-quota-simple', 'good-zoned',
         'unsupported-raid-stripe-tree')
LOG_OPTIONS = [['-t', 'tree-log'], ['--dfs', '-t', 'TREE_LOG', '--csum-headers']]

sys.path.insert(0, IMAGES)
import unpack  # noqa: E402


def texts(name, dump_tree, dump_super):
    """Generate each command line and its text. Image names are relative to the current directory."""
    image = f'{name}.img'
    more = LOG_OPTIONS if name == 'good-log-tree' else []
    places = must(*dump_tree, '-r', image)
    for options in TREE_OPTIONS + more + block_options(places):
        yield ' '.join(['dump-tree', *options, image]), peer_text(options, must(*dump_tree, *options, image))
    for options in SUPER_OPTIONS:
        # These images end before the second superblock copy, so they have only one.
        if '1' not in options and '67108864' not in options:
            yield ' '.join(['dump-super', *options, image]), must(*dump_super, *options, image)


def update():
    if compare.progs_version() < (6, 19):
        sys.exit(f'{BTRFS} is not 6.19')
    inspect = (BTRFS, 'inspect-internal')
    with open(SUMS, 'w', encoding='ascii') as f:
        for name in NAMES:
            for line, text in texts(name, (*inspect, 'dump-tree'), (*inspect, 'dump-super')):
                print(hashlib.sha256(text).hexdigest()[:32], line, file=f)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            unpack.unpack(name, scratch, quick=True)
        os.chdir(scratch)
        if sys.argv[1:] == ['--update']:
            update()
            return 0
        with open(SUMS, encoding='ascii') as f:
            golden = {line: value for value, line in (entry.rstrip('\n').split(' ', 1) for entry in f)}
        compared = lines = failed = 0
        for name in NAMES:
            for line, text in texts(name, (BTRKIT, 'dump-tree'), (BTRKIT, 'dump-super')):
                compared += 1
                lines += text.count(b'\n')
                if golden.get(line) != hashlib.sha256(text).hexdigest()[:32]:
                    failed += 1
                    print(f'{line}: another text than that of btrfs-progs')
    print(f'{compared} texts, {lines} lines compared, {failed} differ')
    return 0 if compared == len(golden) and lines and not failed else 1


if __name__ == '__main__':
    sys.exit(main())
