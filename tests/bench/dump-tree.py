#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dumps all trees of the filesystem of fiemap-snapshot, beside btrfs-progs."""
import hashlib
import os

import pairs
import workloads
from pairs import image

os.environ['TZ'] = 'UTC'

pairs.skip_unless_possible()
path = pairs.made('snap.img', workloads.snapshot_extents)
sums = []
for command in ((image.BTRFS, 'inspect-internal', 'dump-tree', path), (pairs.BTRKIT, 'dump-tree', path)):
    text = image.run(*command)
    size = len(text)
    sums.append(hashlib.sha256(memoryview(text)[text.index(b'\n'):]).digest())
    del text
if sums[0] != sums[1]:
    raise RuntimeError('the texts differ')
pairs.compare(f'dump-tree, {size / 1e6:.0f} MB of text', pairs.process(pairs.BTRKIT, 'dump-tree', path),
              {'btrfs-progs': pairs.process(image.BTRFS, 'inspect-internal', 'dump-tree', path)}, 1 / 8)
