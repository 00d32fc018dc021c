#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare `fiemap`, dump-tree and dump-super with Linux and btrfs-progs on filesystems that the kernel makes.

The audit must find no inconsistency in any of them.

    fiemap-kernel.py [--only PATTERN] [--plans N] [--seed N] [--keep] [--listing-only] [--list]

BTRKIT and AUDIT are the programs under test, ORACLE is the reference; BTRFS, MKFS and BTRFSTUNE are from btrfs-progs.
Repeat a plan by `--only random --plans 1 --seed N`. Exits with 77 if it cannot run.
"""
import argparse
import concurrent.futures
import fnmatch
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import image
import ops
import plan
from listing import Counts, Difference, compare, compare_text, without_paths
from scenarios import SCENARIOS, Scenario

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
ORACLE = os.environ.get('ORACLE', 'fiemap-oracle')
AUDIT = os.environ.get('AUDIT', 'audit-image')
ALONE = 6       # files of a subvolume that are listed by themselves
ENV = dict(os.environ, TZ='UTC', LC_ALL='C')


def command(*args):
    return image.run(*args, env=ENV)


def progs_version():
    found = re.search(rb'v(\d+)\.(\d+)', command(image.BTRFS, '--version'))
    return tuple(map(int, found.groups()))


class Trial:
    """One filesystem: made, filled, listed by Linux while mounted, then by btrkit."""

    def __init__(self, scenario, folder, text, dumps):
        self.scenario, self.folder, self.text, self.dumps = scenario, folder, text, dumps
        self.options = scenario.options
        self.image = image.Image(self.path('fs.img'), scenario.size)
        self.listing = None
        self.others = []            # images to compare after this one
        self.live = False           # the image was copied while it was mounted
        self.notes = ''

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def mnt(self):
        return self.image.mnt

    def oracle(self, *opened):
        return command(ORACLE, self.mnt, *opened)

    def btrfs(self, *args):
        return command(image.BTRFS, *args)

    def remount(self):
        self.image.umount()
        self.image.mount(self.scenario.mount)

    def use_copy(self, copy=None):
        """Continue with a copy of the mounted image, made now or given."""
        copy = copy or self.image.copy(self.path('copy.img'))
        self.image.umount()
        self.image, self.live = copy, True

    def matches(self, which, tree, *patterns):
        """Whether the dump of a tree, or of all trees if None, matches every pattern."""
        trees = ['-t', tree] if tree else []
        text = self.btrfs('inspect-internal', 'dump-tree', *trees, which).decode(errors='replace')
        return all(re.search(pattern, text) for pattern in patterns)

    def half_dropped(self):
        text = self.btrfs('inspect-internal', 'dump-tree', '-t', 'root', self.image.path).decode(errors='replace')
        roots = re.split(r'\n\titem ', text)
        dropping = re.compile(r'drop(_progress)? key \((?!0 )\d+ ')
        return any(re.search(r'refs 0\b', root) and dropping.search(root) for root in roots)

    def wait_for_cleaner(self):
        image.wait_for_cleaner(self.mnt)

    def run(self):
        scenario = self.scenario
        mkfs = scenario.mkfs
        if '^block-group-tree' in ''.join(mkfs) and progs_version() < (6, 0):
            mkfs = ('-R', '^free-space-tree')
        self.image.mkfs(*mkfs)
        if scenario.tune:
            command(image.BTRFSTUNE, *scenario.tune, self.image.path)
        self.image.mount(scenario.mount)
        scenario.fill(self)
        self.image.umount()
        if scenario.wants and not self.matches(self.image.path, None, *scenario.wants):
            raise RuntimeError(f'the filesystem lacks what it is for: {scenario.wants}')
        counts = self.compare()
        for other in self.others:
            self.image = other
            counts.add(self.compare())
        return counts

    def compare(self):
        self.image.mount(self.scenario.readonly, readonly=True)
        listing = self.listing or self.oracle()
        samples = self.samples(listing)
        self.image.umount()
        counts = self.compare_listing(listing)
        counts.alone = self.compare_alone(listing)
        counts.audited = self.audit()
        if self.text:
            counts.filefrag = self.compare_samples(listing, samples)
        if self.dumps:
            counts.dumped = self.compare_dumps()
        return counts

    def audit(self):
        """Number of tree blocks and data extents that agree."""
        live = ['--live'] if self.live else []
        done = subprocess.run([AUDIT, *live, self.image.path], stdout=subprocess.PIPE, check=False)
        said = done.stdout.decode(errors='replace')
        if done.returncode:
            raise Difference(f'audit: {said}')
        return sum(int(n) for n in re.search(r' (\d+) tree blocks, (\d+) data extents', said).groups())

    def compare_listing(self, listing):
        ours = command(BTRKIT, 'fiemap', '-a', '--format', 'tsv', self.image.path)
        counts = compare(listing, ours)
        if not (counts.files and counts.extents and counts.flags):
            raise Difference('nothing was compared')
        self.plant(listing, ours)
        return counts

    def compare_alone(self, listing):
        """List the files with most rows in each subvolume separately, which uses another code path."""
        files = {}
        for line in listing.splitlines(True):
            root, *_, path = line[:-1].split(b'\t')
            if path and b'\\' not in path:
                files.setdefault(root, {}).setdefault(path, []).append(line)
        for root, rows_of in files.items():
            paths = sorted(rows_of, key=lambda path, rows=rows_of: -len(rows[path]))[:ALONE]
            ours = command(BTRKIT, 'fiemap', '--format', 'tsv', '--subvol', root, '--', self.image.path, *paths)
            compare(b''.join(line for path in paths for line in rows_of[path]), ours)
        return sum(min(ALONE, len(rows_of)) for rows_of in files.values())

    def plant(self, listing, ours):
        """The comparison must fail if one flag of one row differs."""
        lines = listing.split(b'\n')
        middle = lines[(len(lines) - 1) // 2].split(b'\t')
        middle[5] = b'0x%x' % (int(middle[5], 16) ^ 0x2000)
        lines[(len(lines) - 1) // 2] = b'\t'.join(middle)
        try:
            compare(b'\n'.join(lines), ours)
        except Difference:
            return
        raise AssertionError('a planted difference was not seen')

    def samples(self, listing):
        """For some subvolumes, some files with few rows, as filefrag shows them: root, paths, text."""
        rows_of = {}
        for line in listing.decode().splitlines():
            root, inode, _, _, _, _, path = line.split('\t')
            if path and '\\' not in path and len(path) < 200:
                rows_of.setdefault((int(root), path), []).append(line)
        found = []
        for folder, dirs, _ in os.walk(self.mnt):
            if os.lstat(folder).st_ino != 256:
                continue
            root = ops.root_id(folder)
            paths = [p for (r, p), lines in rows_of.items() if r == root and len(lines) < 250]
            paths = paths[:: max(1, len(paths) // 4)][:5]
            if paths:
                text = command('filefrag', '-v', *(os.path.join(folder, p) for p in paths))
                found.append((root, os.path.relpath(folder, self.mnt), paths, text))
            if len(found) >= 4:
                break
        return found

    def compare_samples(self, listing, samples):
        files = 0
        for root, folder, paths, theirs in samples:
            for subvolume in {str(root), str(root) if folder == '.' else folder}:
                ours = command(BTRKIT, 'fiemap', '--subvol', subvolume, '--', self.image.path, *paths)
                compare_text(b'\n' + without_paths(theirs), b'\n' + without_paths(ours),
                             f'fiemap --subvol {subvolume} as text')
            path = paths[0]
            ours = command(BTRKIT, 'fiemap', '--format', 'tsv', '--subvol', str(root), self.image.path, '/' + path)
            ending = b'\t' + path.encode()
            compare(b''.join(line + b'\n' for line in listing.splitlines()
                             if line.startswith(b'%d\t' % root) and line.endswith(ending)), ours)
            files += len(paths)
        return files

    def compare_dumps(self):
        lines = 0
        for theirs, ours in ((('dump-tree',), ['dump-tree', *image.compat()]), (('dump-super', '-f'), ['dump-super'])):
            text = command(image.BTRFS, 'inspect-internal', *theirs, self.image.path)
            lines += compare_text(text, command(BTRKIT, *ours, *theirs[1:], self.image.path),
                                  ours[0])
        return lines


def random_scenario(seed):
    mkfs, mount = plan.shape(seed)

    def fill(t):
        with open(t.path('plan.log'), 'w', encoding='utf-8') as log:
            count = plan.Plan(t.mnt, seed, log).run()
        done = sum(count.values()) - count['refused']
        t.notes = f'{done} operations, {count["refused"]} refused, mkfs {" ".join(mkfs)}, mount {mount or "-"}'
        if done < plan.OPERATIONS * 2 // 3:
            raise RuntimeError(f'too many operations were refused: {count}')
    return Scenario(f'random-{seed}', fill, mkfs, mount, size='1G')


chosen = []     # filled before the workers are forked, because scenarios cannot be pickled


def attempt(number, scratch, keep, text, dumps):
    """Run in a process of its own. Returns what was equal, or the error; notes; seconds."""
    scenario = chosen[number]
    folder = tempfile.mkdtemp(prefix=f'{scenario.name}-', dir=scratch)
    trial, start, error = Trial(scenario, folder, text, dumps), time.monotonic(), None
    try:
        counts = trial.run()
    except (Difference, RuntimeError, OSError, subprocess.SubprocessError) as e:
        counts, error = None, f'{type(e).__name__}: {e}'
    finally:
        image.cleanup()
    if not (error and keep):
        shutil.rmtree(folder)
    else:
        error += f'\n  kept: {folder}'
    return counts, error, trial.notes, time.monotonic() - start


def self_test():
    """The comparison must notice each kind of difference."""
    good = b'5\t257\t0\t13631488\t4096\t0x0\tfoo\n5\t257\t4096\t14000128\t8192\t0x2001\tfoo\n'
    compare(good, good)
    planted = [
        good.replace(b'0x2001', b'0x1'), good.replace(b'14000128', b'14004224'), good.replace(b'8192', b'4096'),
        good.replace(b'foo', b'fop'), good.replace(b'257', b'258'), good.splitlines(True)[0],
        good + good.splitlines(True)[1], b''.join(reversed(good.splitlines(True))),
        b'', good.rstrip(), good.replace(b'\t', b' '),
    ]
    for bad in planted:
        try:
            compare(good, bad)
        except Difference:
            continue
        raise AssertionError(f'a planted difference was not seen: {bad!r}')
    for bad in (b'', b'banner\n', b'banner\na\nb\nX\n'):
        try:
            compare_text(b'banner\na\nb\nc\n', bad, 'text')
        except Difference:
            continue
        raise AssertionError('a planted difference of texts was not seen')
    print(f'self-test: {len(planted) + 3} planted differences seen')


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN')
    parser.add_argument('--plans', type=int, default=24)
    parser.add_argument('--seed', type=int, default=image.seed(), help='of the first plan')
    parser.add_argument('--keep', action='store_true', help='the images of what failed')
    parser.add_argument('--listing-only', action='store_true', help='neither dumps nor text')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    return parser.parse_args()


def main():
    args = options()
    everything = SCENARIOS + [random_scenario(args.seed + i) for i in range(args.plans)]
    chosen.extend(s for s in everything if fnmatch.fnmatch(s.name, f'*{args.only}*'))
    if args.list:
        print(*(s.name for s in chosen), sep='\n')
        return 0
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    self_test()
    text = dumps = not args.listing_only
    if dumps and progs_version() < (6, 14):
        print(f'dumps are not compared: {image.BTRFS} is older than 6.14')
        dumps = False
    print(f'random plans: seed {args.seed}, {args.plans} of {plan.OPERATIONS} operations')
    total, failed = Counts(), []
    scratch = tempfile.mkdtemp(prefix='btrkit-kernel-')
    with concurrent.futures.ProcessPoolExecutor(args.jobs, multiprocessing.get_context('fork')) as pool:
        runs = [(s, pool.submit(attempt, i, scratch, args.keep, text, dumps)) for i, s in enumerate(chosen)]
        for scenario, run in runs:
            counts, error, notes, seconds = run.result()
            if error:
                failed.append(scenario.name)
                print(f'FAIL {scenario.name} ({seconds:.1f} s) {notes}\n  {error}', flush=True)
                continue
            total.add(counts)
            print(f'ok {scenario.name}: {counts.files} files, {counts.extents} extents, '
                  f'{counts.shared} shared, {counts.flags} flags, {counts.alone} alone, '
                  f'{counts.filefrag} by filefrag, '
                  f'{counts.dumped} lines dumped, {counts.audited} blocks and extents audited '
                  f'({seconds:.1f} s) {notes}', flush=True)
    if not (failed and args.keep):
        shutil.rmtree(scratch)
    print(f'compared {total.files} files, {total.extents} extents ({total.shared} shared) and {total.flags} flags '
          f'with FIEMAP, {total.alone} files alone, {total.filefrag} files with filefrag, '
          f'{total.dumped} lines of dumps, audited {total.audited} blocks and extents: '
          f'{len(chosen) - len(failed)} filesystems equal, {len(failed)} not')
    if failed:
        print('failed:', *failed)
    return 1 if failed or not (total.files and total.extents and total.flags and total.alone) else 0


if __name__ == '__main__':
    sys.exit(main())
