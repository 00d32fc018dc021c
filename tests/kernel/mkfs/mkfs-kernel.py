#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let Linux, btrfs-progs and libblkid check filesystems of `btrkit mkfs`.

    mkfs-kernel.py [--only PATTERN] [--deep] [--list] [--jobs N]

Each filesystem is checked, mounted, filled with files and snapshots, balanced if at least 256 MiB, unmounted and
checked again; profiles and free space are compared with a filesystem of mkfs.btrfs with the same options. BTRKIT and
CRASH are the programs under test; BTRFS and MKFS are from btrfs-progs. Exits with 77 if it cannot run.
"""
import argparse
import concurrent.futures
import fnmatch
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass

import image
from image import BTRFS, MKFS, run

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
CRASH = os.environ.get('CRASH', 'crash-mkfs')
LABEL = 'a label, a long one'
M, G, T = 1 << 20, 1 << 30, 1 << 40
# Smaller filesystems of mkfs.btrfs cannot be balanced by Linux either.
BALANCED_FROM = 256 * M
# On the smallest filesystems Linux's reclaim and reservations race: on a busy machine up to one step in twenty fails
# for lack of space, on ours and those of mkfs.btrfs alike. A real lack of space occurs every time.
TRIES = 6


class Failure(Exception):
    pass


class NoRoom(Failure):
    """Linux itself had no space for what it does at mount."""


def need(condition, what):
    if not condition:
        raise Failure(what)


@dataclass
class Case:
    size: int
    options: tuple = ()
    where: str = 'here'     # or 'xfs', for files larger than other filesystems support

    @property
    def name(self):
        size = next(f'{self.size // unit}{letter}' for unit, letter in ((T, 'T'), (G, 'G'), (M, 'M'))
                    if not self.size % unit)
        return ' '.join([size, *self.options])


FEATURES = ['^free-space-tree', '^block-group-tree', '^no-holes', '^skinny-metadata', '^extref']
ALL_OFF = ','.join(FEATURES)
SINGLE, DATA_DUP, BOTH = ('-m', 'single'), ('-d', 'dup'), ('-m', 'single', '-d', 'dup')
MIXED_DUP = ('-M', '-m', 'dup', '-d', 'dup')


def cases(deep):
    """The smallest sizes that mkfs.btrfs accepts come first."""
    found = [Case(size * M) for size in (109, 110, 128, 200, 255, 256, 300, 512)]
    found += [Case(size) for size in (G, 10 * G, 60 * G, 15 * T)] + [Case(50 * T, where='xfs')]
    found += [Case(size * M, SINGLE) for size in (45, 46, 64, 100, 256, 1024)] + [Case(60 * G, SINGLE)]
    found += [Case(size * M, DATA_DUP) for size in (229, 256, 1024)]
    found += [Case(size * M, BOTH) for size in (165, 300)]
    found += [Case(300 * M, ('-n', nodes, *DATA_DUP)) for nodes in ('4k', '16k', '64k')]
    found += [Case(size * M, ('-M',)) for size in (64, 256, 1024)]
    found += [Case(size * M, MIXED_DUP) for size in (165, 300)]
    found += [Case(300 * M, ('-n', size)) for size in ('4k', '8k', '32k', '64k')]
    found += [Case(size * M, ('-n', nodes, *profiles, *features)) for nodes in ('4k', '16k', '64k')
              for size, profiles in ((109, ()), (53 if nodes == '64k' else 45, SINGLE))
              for features in ((), *(('-O', f) for f in FEATURES))]
    found += [Case(15 * T, ('-n', '4k')), Case(50 * T, ('-n', '64k', *SINGLE), 'xfs')]
    found += [Case(300 * M, ('-O', feature)) for feature in (*FEATURES, ALL_OFF)]
    found += [Case(10 * G, ('-O', '^free-space-tree')), Case(109 * M, ('-O', ALL_OFF)),
              Case(300 * M, ('-b', '200m'))]
    if deep:
        for size in (109 * M, 300 * M, G, 10 * G, 60 * G):
            for nodes in ('4k', '8k', '16k', '32k', '64k'):
                for profiles in ((), SINGLE, DATA_DUP, BOTH):
                    for features in ((), *(('-O', f) for f in (*FEATURES, ALL_OFF))):
                        if size >= 229 * M or profiles != DATA_DUP and (size >= 173 * M or profiles != BOTH):
                            found.append(Case(size, ('-n', nodes, *profiles, *features)))
        found += [Case(size * M) for size in range(109, 600, 13)]
    unique = {case.name: case for case in found}
    return list(unique.values())


class Fresh(image.Image):
    """An image made by btrkit or, for comparison, by mkfs.btrfs."""
    uuid = None

    def make(self, case, ours):
        if ours:
            self.uuid = str(uuid.uuid4())
            out = run(BTRKIT, 'mkfs', '-q', '-L', LABEL, '-U', self.uuid, *case.options, self.path)
            need(not out, f'mkfs -q prints {out!r}')
        else:
            run(MKFS, '-q', '-f', *image.peer_options(case.options), self.path)


def check_clean(path, *options):
    done = subprocess.run([BTRFS, 'check', '--check-data-csum', *options, path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors='replace')
    need('no error found' in text and not done.returncode, f'btrfs check: exit {done.returncode}:\n{text}')


def check_blkid(img):
    found = dict(line.split('=', 1) for line in run('blkid', '-p', '-o', 'export', img.path).decode().splitlines()
                 if '=' in line)
    need(found.get('TYPE') == 'btrfs', f'blkid: {found}')
    need(found.get('UUID') == img.uuid, f'blkid: UUID {found.get("UUID")}, not {img.uuid}')
    need(re.sub(r'\\(.)', r'\1', found.get('LABEL', '')) == LABEL, f'blkid: LABEL {found.get("LABEL")!r}')
    need(uuid.UUID(found['UUID_SUB']).int not in (0, uuid.UUID(img.uuid).int), f'blkid: UUID_SUB {found}')


def usage(img):
    """Profiles and free space: estimated, minimal, and as in df. On a read-only mount Linux adds no block groups."""
    with Mounted(img, readonly=True) as mnt:
        text = run(BTRFS, 'filesystem', 'usage', '-b', mnt).decode()
        df = os.statvfs(mnt)
    profiles = sorted(re.findall(r'^(\w+(?:\+\w+)?,\w+): Size:', text, re.M))
    free = re.search(r'Free \(estimated\):\s+(\d+)\s+\(min: (\d+)\)', text)
    need(profiles and free, f'filesystem usage: {text}')
    return profiles, (int(free.group(1)), int(free.group(2)), df.f_bavail * df.f_frsize)


class Mounted:
    def __init__(self, img, readonly=False):
        self.img, self.readonly = img, readonly

    def __enter__(self):
        self.img.mount(readonly=self.readonly)
        return self.img.mnt

    def __exit__(self, *error):
        # Read the log before another test uses the loop device.
        unmounted = image.unmount(self.img.mnt, self.img.devices())
        said = self.img.log.complaints(self.img.loop) if unmounted else []
        self.img.umount()
        if not error[0] and said:
            full = all(line.endswith('btrfs_uuid_scan_kthread failed -28') for line in said)
            raise (NoRoom if full else Failure)('Linux says: ' + '\n'.join(said))


def put(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def fill_little(mnt):
    """What must work on the smallest one."""
    put(f'{mnt}/a', os.urandom(M))
    run(BTRFS, 'subvolume', 'snapshot', mnt, f'{mnt}/snapshot')
    run('sync', '-f', mnt)


def fill(mnt, size, seed):
    """Small and large files, links, directories, snapshots, some of which are deleted."""
    rng = random.Random(seed)
    # Leave space for the balance.
    budget, count = min(size // 16, 48 * M), 200 if size >= 512 * M else 50
    run(BTRFS, 'subvolume', 'create', f'{mnt}/sub')
    for k in range(3):
        folder = f'{mnt}/sub/{k}'
        os.mkdir(folder)
        for i in range(count):
            put(f'{folder}/{i}', rng.randbytes(rng.choice((0, 50, 1500, 5000, 20000))))
        os.link(f'{folder}/1', f'{folder}/link')
        os.symlink('1', f'{folder}/symlink')
        put(f'{folder}/large', rng.randbytes(budget // 3))
        with open(f'{folder}/sparse', 'wb') as f:
            f.seek(3 * M)
            f.write(b'end')
        run(BTRFS, 'subvolume', 'snapshot', *(['-r'] if k else []), f'{mnt}/sub', f'{mnt}/snapshot-{k}')
        put(f'{folder}/large', rng.randbytes(budget // 6))
        for i in range(0, count, 3):
            os.unlink(f'{folder}/{i}')
    run(BTRFS, 'subvolume', 'delete', f'{mnt}/snapshot-1')
    run('sync', '-f', mnt)


def same_files(a, b):
    done = subprocess.run(['diff', '-r', '--no-dereference', a, b], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    need(not done.returncode, f'files are not what they were: {done.stdout[:300]}')


def balance(mnt):
    run(BTRFS, 'balance', 'start', '--full-balance', mnt)


def fits(work, *args):
    """Whether there is enough space for it."""
    try:
        work(*args)
    except (RuntimeError, OSError) as e:
        if 'No space left on device' in str(e):
            return False
        raise
    return True


def steps(case):
    size = int(case.options[1][:-1]) * M if '-b' in case.options else case.size
    return size, 3 if size >= BALANCED_FROM else 1


def use(img, case, folder, seed):
    """Profiles and free space of the empty filesystem, and the number of steps that there is space for."""
    copy = os.path.join(folder, f'files-{os.path.basename(img.path)}')
    size, wanted = steps(case)
    found = usage(img)
    try:
        with Mounted(img) as mnt:
            done = int(fits(fill_little, mnt))
            if 0 < done < wanted:
                done += fits(fill, mnt, size, seed)
                run('cp', '-a', f'{mnt}/sub', copy)
                done += fits(balance, mnt)
    except NoRoom:
        done = 0
    if os.path.exists(copy):
        with Mounted(img) as mnt:
            same_files(f'{mnt}/sub', copy)
        shutil.rmtree(copy)
    return found, done


def use_ours(case, folder, seed):
    img = Fresh(os.path.join(folder, 'ours.img'), str(case.size))
    img.make(case, True)
    used = os.stat(img.path).st_blocks * 512
    need(used < 8 * M, f'a new filesystem takes {used} bytes of its file')
    check_clean(img.path)
    check_blkid(img)
    found = use(img, case, folder, seed)
    check_clean(img.path)
    img.remove()
    return found


def use_peer(case, folder, seed, done):
    """The same for mkfs.btrfs; only profiles and free space if all steps worked on ours."""
    img = Fresh(os.path.join(folder, 'theirs.img'), str(case.size))
    img.make(case, False)
    found = (usage(img), done) if done == steps(case)[1] else use(img, case, folder, seed)
    img.remove()
    return found


def use_both(case, folder, seed):
    """Fails if ours never has space for as many steps as that of mkfs.btrfs."""
    ours, done = image.unless_wedged(use_ours, case, folder, seed)
    theirs, peer_done = image.unless_wedged(use_peer, case, folder, seed, done)
    tries = 1
    while done < peer_done and tries < TRIES:
        ours, done = image.unless_wedged(use_ours, case, folder, seed)
        tries += 1
    need(peer_done <= done, f'room for {done} of {steps(case)[1]} steps, {tries} times; on what mkfs.btrfs makes for '
                            f'{peer_done}')
    return ours, theirs, done


def compare_usage(ours, theirs):
    need(ours[0] == theirs[0], f'profiles {ours[0]}, mkfs.btrfs has {theirs[0]}')
    for a, b in zip(ours[1], theirs[1]):
        need(a >= b, f'free space {ours[1]}, mkfs.btrfs leaves {theirs[1]}')


def check(case, folder, seed):
    """Returns a description of the result."""
    ours, theirs, done = use_both(case, folder, seed)
    compare_usage(ours, theirs)
    return (f'{" ".join(ours[0])}, {ours[1][0] - theirs[1][0]} bytes more free than of mkfs.btrfs, '
            f'{("no room, nor on mkfs.btrfs", "snapshot", "filled, no room for balance", "balanced")[done]}')


def attempt(case, scratch, seed):
    """Run in a process of its own. Returns the description or the error, and seconds."""
    folder = tempfile.mkdtemp(dir=scratch)
    start, text, error = time.monotonic(), None, None
    try:
        text = check(case, folder, seed)
    except (Failure, RuntimeError, OSError, subprocess.SubprocessError) as e:
        error = f'{type(e).__name__}: {e}'
    finally:
        image.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
    return text, error, time.monotonic() - start


class Xfs:
    """A filesystem that supports files of any size and needs little space itself."""

    def __init__(self, scratch):
        self.mnt = os.path.join(scratch, 'xfs')
        self.path = self.mnt + '.img'

    def __enter__(self):
        run('truncate', '-s', '4G', self.path)
        run('mkfs.xfs', '-q', self.path)
        os.mkdir(self.mnt)
        run('mount', '-o', 'loop', self.path, self.mnt)
        return self.mnt

    def __exit__(self, *_):
        run('umount', self.mnt)
        os.unlink(self.path)


def filesystem_type(path):
    return run('stat', '-f', '-c', '%T', path).decode().strip()


def states(scratch):
    """Crash states from crash-mkfs: btrfs check and Linux must find in them what our own test found."""
    folder = os.path.join(scratch, 'states')
    os.mkdir(folder)
    run(CRASH, '--export', folder)
    seen = {'nothing': 0, 'old': 0, 'new': 0}
    for name in sorted(os.listdir(folder)):
        img = image.Image(os.path.join(folder, name), None)
        kind = name.split('-')[0]
        done = subprocess.run([BTRFS, 'check', img.path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        primary = b'No valid Btrfs' not in done.stdout
        need(not primary or kind != 'nothing', f'{name}: btrfs check finds a filesystem')
        if kind != 'nothing':
            check_clean(img.path, *([] if primary else ['-s', '1']))
        try:
            with Mounted(img):
                mounted = True
        except RuntimeError:
            mounted = False
            img.umount()
        need(mounted == primary, f'{name}: mounted: {mounted}, has a primary superblock: {primary}')
        seen[kind] += 1
    need(all(seen.values()), f'states that were checked: {seen}')
    shutil.rmtree(folder)
    return sum(seen.values())


def self_test(scratch):
    """The comparison must notice faults."""
    case = Case(109 * M)
    img = Fresh(os.path.join(scratch, 'self-test.img'), str(case.size))
    img.make(case, True)
    check_clean(img.path)
    check_blkid(img)
    with open(img.path, 'r+b') as f:
        f.seek(M)
        f.write(bytes(60 * M))
    good = ['Data,single'], (5, 5, 5)
    img.uuid = str(uuid.uuid4())
    for planted in (lambda: check_clean(img.path), lambda: check_blkid(img),
                    lambda: compare_usage(good, (['Data,DUP'], (5, 5, 5))),
                    lambda: compare_usage(good, (['Data,single'], (5, 6, 5)))):
        try:
            planted()
        except Failure:
            continue
        raise AssertionError('a planted fault was not seen')
    img.remove()


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN')
    parser.add_argument('--deep', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def run_cases(chosen, scratch, args):
    failed = []
    with concurrent.futures.ProcessPoolExecutor(args.jobs, multiprocessing.get_context('fork')) as pool:
        runs = [(case, pool.submit(attempt, case, scratch, args.seed)) for case in chosen]
        for case, job in runs:
            text, error, seconds = job.result()
            if error:
                failed.append(case.name)
            print(f'{"FAIL" if error else "ok"} {case.name} ({seconds:.1f} s): {error or text}', flush=True)
    return failed


def main():
    args = options()
    chosen = [case for case in cases(args.deep) if fnmatch.fnmatch(case.name, f'*{args.only}*')]
    if args.list:
        print(*(case.name for case in chosen), sep='\n')
        return 0
    reason = image.missing() or next((f'needs {p}' for p in ('blkid', BTRKIT) if not shutil.which(p)), None)
    if reason:
        print(f'skipped: {reason}')
        return 77
    if os.environ.get('CI') == 'true' and not shutil.which('mkfs.xfs'):
        print('mkfs.xfs is missing')
        return 1
    scratch = tempfile.mkdtemp(prefix='btrkit-kernel-')
    self_test(scratch)
    here, large = [c for c in chosen if c.where == 'here'], [c for c in chosen if c.where == 'xfs']
    if filesystem_type(scratch) == 'tmpfs':
        large += [c for c in here if c.size > 8 * T]
    here = [c for c in here if c not in large]
    failed = run_cases(here, scratch, args)
    if large and shutil.which('mkfs.xfs'):
        with Xfs(scratch) as folder:
            failed += run_cases(large, folder, args)
    elif large:
        print(f'not run, mkfs.xfs is missing: {", ".join(c.name for c in large)}')
    checked = states(scratch) if args.only == '*' else 0
    shutil.rmtree(scratch)
    print(f'compared {len(chosen)} filesystems with those of mkfs.btrfs, {len(failed)} failed; '
          f'{checked} states after a power failure')
    if failed:
        print('failed:', *failed, sep='\n  ')
    return 1 if failed or not chosen else 0


if __name__ == '__main__':
    sys.exit(main())
