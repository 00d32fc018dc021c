#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""List all files of a filesystem with 30 snapshots, compared with a program that uses the FIEMAP ioctl for each file;
both must give the same result."""
import hashlib
import os
import tempfile

import pairs
import workloads
from pairs import image

ORACLE = os.path.join(os.path.dirname(os.path.dirname(pairs.BTRKIT)), 'tests/kernel/fiemap-oracle')


def digest(*args):
    return hashlib.sha256(image.run(*args)).hexdigest()


pairs.skip_unless_possible()
path = pairs.made('many-snapshots.img', workloads.many_snapshots)
ours = (pairs.BTRKIT, 'fiemap', '-a', '--format', 'tsv', path)
with tempfile.TemporaryDirectory(prefix='btrkit-fiemap-') as mnt:
    image.run('mount', '-o', 'loop,ro', path, mnt)
    try:
        if digest(*ours) != digest(ORACLE, mnt):
            raise RuntimeError('Linux lists other extents')
        pairs.compare('fiemap -a of 31 subvolumes', pairs.process(*ours),
                      {'ioctl for each file': pairs.process(ORACLE, mnt)}, 1 / 10, pairs=3)
    finally:
        image.run('umount', mnt)
