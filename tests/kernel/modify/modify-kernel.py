#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare `btrkit edit` with Linux: random plans are run by Linux on a mounted copy, and by edit scripts. Each
operation must end with the same errno, and Linux must see the same result in both. Linux then continues with both, and
edit continues with what Linux wrote, with the same result again. `btrfs check` is clean each time.

    modify-kernel.py [--plans N] [--seed N] [--ops N] [--deep]

Exits with 77 if it cannot run.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

import attributes
import image
import modify_edges
from modify_pair import Pair, counts
from modify_plan import Local, Plan

# Options of mkfs, mount and edit, and whether files of the machine are copied in first.
FORMS = (
    ((), '', (), False),
    (('-n', '4096', '-O', '^no-holes'), '', (), True),
    (('-n', '65536', '--csum', 'xxhash'), '', (), False),
    (('-M', '-n', '4096'), '', (), False),
    (('-n', '4096', '--csum', 'blake2'), 'compress-force=zstd', ('--compress', 'zstd'), False),
    (('-O', '^free-space-tree'), 'nospace_cache', (), False),
    (('--csum', 'sha256', '-O', '^no-holes'), 'compress-force=zlib', ('--compress', 'zlib'), True),
    (('-n', '65536'), 'compress-force=lzo', ('--compress', 'lzo'), False),
)


def fill(mnt, most):
    """Initial contents, with the given number of files of the machine."""
    os.makedirs(f'{mnt}/old/deep')
    for k in range(10):
        with open(f'{mnt}/old/file{k}', 'wb') as f:
            f.write(b'old %d ' % k * (700 * k * k))
    for folder, _, names in sorted(os.walk('/usr/share/doc')) if most else ():
        for each in sorted(names):
            path = os.path.join(folder, each)
            if os.path.isfile(path) and not os.path.islink(path) and most > 0:
                most -= 1
                to = f'{mnt}/usr/{os.path.basename(folder)}'
                os.makedirs(to, exist_ok=True)
                shutil.copy2(path, to)


def run_plan(folder, seed, count, same_hash):
    options, mount, edit_options, machine = FORMS[seed % len(FORMS)]
    pair = Pair(folder, options, mount, edit_options)
    try:
        fill(pair.ours.mount(pair.mount_options), count // 2 if machine else 0)
        pair.begin()
        node = int(options[options.index('-n') + 1]) if '-n' in options else 16384
        plan = Plan(seed, Local(folder), node, same_hash)
        plan.adopt(pair.theirs.mnt)
        plan.flags += '' if mount.startswith('compress') else 'c'
        pair.by_edit(pair.by_linux(plan.some(count), plan.done), pieces(plan.rng, count))
        pair.compare('after edit')
        plan.compression = False
        # Without no-holes, Linux forgets the next size change of an inode that it has read with preallocation past its
        # end. Remount before and after it continues, so that both lose it.
        anew = '^no-holes' in options
        if anew:
            plan.top = os.fsencode(pair.read_anew())
        # Linux continues with both.
        pair.by_linux_with_ours(pair.by_linux(plan.some(count // 2), plan.done))
        pair.compare('after Linux went on')
        pair.leave()
        if anew:
            plan.top = os.fsencode(pair.read_anew())
        # Edit continues with what Linux wrote.
        pair.by_edit(pair.by_linux(plan.some(count // 2), plan.done), pieces(plan.rng, count // 2))
        pair.compare('after edit went on')
        pair.leave()
    finally:
        pair.end()


def pieces(rng, count):
    """How edit runs them: in one commit, in several commits, in several runs."""
    return rng.choice((
        (), ((count, ('--commit-every', str(rng.randrange(1, 90)))),),
        ((count // 3, ()), (count // 3, ('--commit-every', str(rng.randrange(1, 90))))),
        tuple((count // 9, ()) for _ in range(8))))


def run_edges(folder, deep):
    paths = Local(folder).paths
    local = paths[1]
    modify_edges.run_kept(folder, paths[12])
    print('space behind the end', flush=True)
    for node in attributes.MAX:
        sealed = modify_edges.run_small(folder, node, local)
        print(f'edges, nodes of {node}' + ('' if sealed else '; this kernel has no fs-verity'), flush=True)
    for node in attributes.MAX if deep else (4096,):
        sizes = (100000, modify_edges.LINKS + 1, 1000) if deep else (2000, 1000, 300)
        modify_edges.run_large(folder, node, local, *sizes, deep)
        print('{} files in a directory, {} links, {} levels, nodes of {}'.format(*sizes, node), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plans', type=int)
    parser.add_argument('--ops', type=int)
    parser.add_argument('--seed', type=int, default=image.seed())
    parser.add_argument('--deep', action='store_true')
    args = parser.parse_args()
    plans, length = args.plans or (24 if args.deep else 3), args.ops or (2000 if args.deep else 150)
    why = image.missing()
    if why:
        print(f'skipped: {why}')
        return 77
    os.umask(0)
    same_hash = [tuple(n.encode()[5:] for n in names) for names in attributes.collisions()]
    with tempfile.TemporaryDirectory(prefix='btrkit-modify-') as folder:
        for seed in range(args.seed, args.seed + plans):
            form, began = FORMS[seed % len(FORMS)], time.time()
            what = f'seed {seed}, {" ".join((*form[0], form[1])).strip() or "defaults"}'
            try:
                run_plan(folder, seed, length, same_hash)
            except AssertionError as e:
                print(f'{what}: {e}')
                return 1
            print(f'{what}: {time.time() - began:.1f} s', flush=True)
        if not args.plans:
            run_edges(folder, args.deep)
    print(', '.join(f'{number} {word}' for word, number in counts.items()))
    return 0


if __name__ == '__main__':
    sys.exit(main())
