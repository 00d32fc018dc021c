#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree and dump-super of committed images with every option, compared with hashes of the output of btrfs-progs
7.3, or 7.1 where that opens an image that 7.3 refuses, and with --compat of that of 6.19.

    dump-golden.py [--update]

--update rewrites the lines in dump-golden.sum that $BTRFS can make: it must be 6.19, 7.1 or 7.3.
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

import unpack


def texts(name, dump_tree, dump_super, compat):
    """Generate each command line of ours and the text. Image names are relative to the current directory. @compat:
    options of ours for the text of this version"""
    image = f'{name}.img'
    more = LOG_OPTIONS if name == 'good-log-tree' else []
    places = must(*dump_tree, '-r', image)
    for options in TREE_OPTIONS + more + block_options(places):
        yield ' '.join(['dump-tree', *compat, *options, image]), peer_text(options, must(*dump_tree, *options, image))
    for options in SUPER_OPTIONS:
        # These images end before the second superblock copy, so they have only one.
        if '1' not in options and '67108864' not in options:
            yield ' '.join(['dump-super', *options, image]), must(*dump_super, *options, image)


def read_sums():
    with open(SUMS, encoding='ascii') as f:
        return {line: value for value, line in (entry.rstrip('\n').split(' ', 1) for entry in f)}


def update():
    if compare.progs_version() not in ((6, 19), (7, 1), (7, 3)):
        sys.exit(f'{BTRFS} is not 6.19, 7.1 or 7.3')
    inspect, sums = (BTRFS, 'inspect-internal'), read_sums()
    for name in NAMES:
        if compare.run(*inspect, 'dump-tree', '-r', f'{name}.img').stdout.count(b'\n') > 1:
            for line, text in texts(name, (*inspect, 'dump-tree'), (*inspect, 'dump-super'), compare.compat_options()):
                sums[line] = hashlib.sha256(text).hexdigest()[:32]
    with open(SUMS, 'w', encoding='ascii') as f:
        f.writelines(f'{value} {line}\n' for line, value in sums.items())


def ours(name):
    """Generate those of texts() for both texts of dump-tree."""
    yield from texts(name, (BTRKIT, 'dump-tree'), (BTRKIT, 'dump-super'), [])
    before = ['--compat', '6.19']
    for line, text in texts(name, (BTRKIT, 'dump-tree', *before), (BTRKIT, 'dump-super'), before):
        if line.startswith('dump-tree'):
            yield line, text


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            unpack.unpack(name, scratch, quick=True)
        os.chdir(scratch)
        if sys.argv[1:] == ['--update']:
            update()
            return 0
        golden = read_sums()
        compared = lines = failed = 0
        for name in NAMES:
            for line, text in ours(name):
                compared += 1
                lines += text.count(b'\n')
                if golden.get(line) != hashlib.sha256(text).hexdigest()[:32]:
                    failed += 1
                    print(f'{line}: another text than that of btrfs-progs')
    print(f'{compared} texts, {lines} lines compared, {failed} differ')
    return 0 if compared == len(golden) and lines and not failed else 1


if __name__ == '__main__':
    sys.exit(main())
