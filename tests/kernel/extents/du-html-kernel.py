#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of `btrkit du --html` in a headless Chromium, for filesystems with many snapshots that Linux made: it must
agree with `btrkit du` on what random subsets free, what adding one more frees, what Linux would refuse to delete, and
the directories. du-kernel.py compares `btrkit du` with Linux.

    du-html-kernel.py [--plans N] [--seed N]

BTRKIT is the program under test, CHROMIUM the browser; BTRFS and MKFS are from btrfs-progs. Exits with 77 if it cannot
run."""
import argparse
import os
import random
import sys
import tempfile

import image
import ops
import plan
from image import Image

import browser
import du_page

OPERATIONS, SNAPSHOTS, SUBSETS = 500, 40, 60


def fill(mnt, seed, rng):
    """A random plan, and chains of snapshots with changes in between and data cloned from one chain to another."""
    plan.Plan(mnt, seed).run(OPERATIONS)
    for name in 'ab':
        ops.subvolume(f'{mnt}/{name}')
        os.mkdir(f'{mnt}/{name}/dir')
        for i in range(8):
            ops.write(f'{mnt}/{name}/dir/{i}', 0, ops.incompressible(256 << 10, i))
    os.mkdir(f'{mnt}/snapshots')
    for i in range(SNAPSHOTS):
        name = rng.choice('ab')
        for _ in range(6):
            offset = rng.randrange(64) * 4096
            ops.write(f'{mnt}/{name}/dir/{rng.randrange(8)}', offset, ops.incompressible(8192, i), sync=True)
        ops.clone(f'{mnt}/a/dir/{rng.randrange(8)}', 0, 65536, f'{mnt}/b/dir/{rng.randrange(8)}', 65536)
        ops.snapshot(f'{mnt}/{name}', f'{mnt}/snapshots/{name}{i}', readonly=rng.random() < 0.5)
    ops.subvolume(f'{mnt}/snapshots/in')
    ops.subvolume(f'{mnt}/snapshots/in/side')
    ops.subvolume(f'{mnt}/snapshots/in/side/deep')
    for i in rng.sample(range(SNAPSHOTS), 5):
        for name in 'ab':
            if os.path.exists(f'{mnt}/snapshots/{name}{i}'):
                ops.delete_subvolume(f'{mnt}/snapshots/{name}{i}')


def check(chromium, folder, seed):
    rng = random.Random(seed)
    path = os.path.join(folder, 'fs.img')
    made = Image(path, '500M')
    made.mkfs('-n', rng.choice(('4096', '16384')))
    fill(made.mount('noatime'), seed, rng)
    made.umount()
    file = du_page.make_page(path, os.path.join(folder, 'page.html'), '--paths')
    page = browser.Page(chromium, file)
    ids = du_page.verify_image(page, path, rng, SUBSETS)
    du_page.check(len(ids) >= SNAPSHOTS, ids)
    du_page.check_directories(page, path, file)
    du_page.verify_clean(page, seed)
    page.close()
    made.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plans', type=int, default=1)
    parser.add_argument('--seed', type=int, default=image.seed())
    args = parser.parse_args()
    reason = image.missing() or (None if browser.CHROMIUM else 'needs Chromium')
    if reason:
        print(f'skipped: {reason}')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='btrkit-du-html-') as folder, browser.Browser() as chromium:
        for seed in range(args.seed, args.seed + args.plans):
            print(f'seed {seed}', flush=True)
            check(chromium, folder, seed)
    print(', '.join(f'{n} {what}' for what, n in du_page.counts.items()))


if __name__ == '__main__':
    main()
