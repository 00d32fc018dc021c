#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Convert filesystems that Linux made and fragmented by `btrkit space-cache convert`, and clear them by `clear`: all
files are unchanged, `btrfs check` reports nothing new, and Linux mounts without rebuilding a cache, writes, deletes and
unmounts, after which the caches agree with the extent tree.

Arguments are names of scenarios; without any, all are run. Exits with 77 if it cannot run.
"""
import collections
import errno
import hashlib
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import image

from tool import Super, check_failure, digest

spec = importlib.util.spec_from_file_location(
    'space', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'space-kernel.py'))
space = importlib.util.module_from_spec(spec)
spec.loader.exec_module(space)

BTRKIT = os.environ['BTRKIT']
CACHE_GENERATION = 555
NOT_MADE, FREE_SPACE_TREE, VALID, GROUP_TREE = 2**64 - 1, 1, 2, 8
KILLS = 8
count = collections.Counter()


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


def btrkit(*args):
    done = subprocess.run([BTRKIT, 'space-cache', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def done_well(*args):
    code, out, err = btrkit(*args)
    expect(code == 0 and not err and out, args, code, out, err)
    return out


def refused(path, *args, says):
    before = digest(path)
    said = check_failure('space-cache', path, btrkit(*args, path))
    expect(says in said, args, said)
    expect(digest(path) == before, args, 'has written')


def status(path):
    code, out, err = btrkit('status', '--format', 'json', path)
    expect(code == 0, path, err)
    return json.loads(out.splitlines()[-1])['summary']


def findings(path):
    """Complaints of btrfs check: lines of its standard error, without numbers that vary."""
    done = subprocess.run([image.BTRFS, 'check', path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    said = (done.stderr + done.stdout).decode(errors='replace').splitlines()
    expect(any('found' in line and 'bytes used' in line for line in said), 'btrfs check says', said)
    known = re.compile(r'\[\d/\d\]|Opening filesystem|Checking filesystem|UUID:|found \d+ bytes used|total |'
                       r'btree space|file data blocks|referenced|fs tree|cache and super generation|^\s*$')
    count['filesystems checked by btrfs check'] += 1
    return {line for line in said if not known.search(line)}, done.returncode


def files(mnt):
    """Every path with its stat data and contents."""
    found = {}
    for folder, names, leaves in os.walk(mnt):
        for name in names + leaves:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            data = b''
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, 'rb') as f:
                    data = hashlib.file_digest(f, 'sha1').digest()
            found[os.path.relpath(path, mnt)] = (st.st_mode, st.st_size, st.st_nlink, st.st_blocks, data)
    return found


def use(mnt):
    """Write, and delete again."""
    rng = random.Random(1)
    n = 0
    try:
        while n < 200:
            with open(f'{mnt}/after{n}', 'wb') as f:
                n += 1
                f.write(rng.randbytes(rng.choice((100, 4096, 20000, 70000))))
        image.sync(mnt)
    except OSError as e:
        if e.errno != errno.ENOSPC:
            raise
    for k in (*range(0, n, 2), *range(1, n, 2)):
        os.unlink(f'{mnt}/after{k}')
        if k + 2 >= n:
            image.sync(mnt)


def mount_and_use(fs, expected, never=('free space tree', 'rebuilding', 'error', 'corrupt')):
    """Linux mounts, compares the files, writes and deletes. Returns the options in /proc/mounts."""
    mnt = fs.mount()
    try:
        with open('/proc/mounts', encoding='utf-8') as f:
            mounted = next(line.split()[3].split(',') for line in f if line.split()[1] == mnt)
        said = fs.log.lines(fs.loop)
        for word in never:
            bad = [line for line in said if word in line and not re.search('(enabling|using) free space tree', line)]
            expect(not bad, 'Linux says', bad)
        if expected is not None:
            expect(files(mnt) == expected, 'other files than before')
            count['files compared'] += len(expected)
        use(mnt)
    finally:
        fs.umount()
    count['mounts'] += 1
    return mounted


def fragment(mnt, rng, files_=2500):
    for turn in range(2):
        for k in range(files_):
            with open(f'{mnt}/f{turn}-{k}', 'wb') as f:
                f.write(rng.randbytes(rng.choice((4096, 4096, 8192, 20000, 3))))
        image.sync(mnt)
        for k in range(0, files_, 2):
            os.unlink(f'{mnt}/f{turn}-{k}')
        image.sync(mnt)


def snapshots(mnt, rng):
    image.run(image.BTRFS, 'subvolume', 'create', f'{mnt}/sub')
    fragment(f'{mnt}/sub', rng, 400)
    for k in range(4):
        image.run(image.BTRFS, 'subvolume', 'snapshot', f'{mnt}/sub', f'{mnt}/snap{k}')
        for i in range(1, 60, 2):
            with open(f'{mnt}/sub/f0-{i}', 'ab') as f:
                f.write(rng.randbytes(5000))
        image.sync(mnt)
    image.run(image.BTRFS, 'subvolume', 'delete', '-c', f'{mnt}/snap1')


def fill(mnt, rng):
    """Fill until there is no space."""
    fragment(mnt, rng, 400)
    for size in (1 << 26, 1 << 20, 4096):
        try:
            for k in range(2000):
                with open(f'{mnt}/big{size}-{k}', 'wb') as f:
                    os.posix_fallocate(f.fileno(), 0, size)
        except OSError:
            pass
    try:
        for k in range(20000):
            with open(f'{mnt}/tiny{k}', 'wb') as f:
                f.write(rng.randbytes(1500))
    except OSError:
        count['filesystems filled'] += 1
    image.sync(mnt)


def few(mnt, rng):
    fragment(mnt, rng, 30)
    with open(f'{mnt}/big', 'wb') as f:
        os.posix_fallocate(f.fileno(), 0, 300 << 20)


OLD = ('-O', '^free-space-tree,^block-group-tree')
NEW = ('-O', 'free-space-tree,^block-group-tree')
# name: cache, mkfs options, size, what is done in it
SCENARIOS = {
    'v1-16k': ('v1', (*OLD, '-n', '16384'), '3G', fragment),
    'v1-4k': ('v1', (*OLD, '-n', '4096'), '3G', fragment),
    'v1-64k': ('v1', (*OLD, '-n', '65536', '-m', 'single'), '3G', fragment),
    'v1-snapshots': ('v1', OLD, '3G', snapshots),
    'v1-mixed': ('v1', (*OLD, '-M', '-n', '4096'), '4G', fragment),
    'v1-full': ('v1', OLD, '2G', fill),
    'v1-few': ('v1', (*OLD, '-m', 'single', '-d', 'dup'), '3G', few),
    'none-16k': ('none', OLD, '1G', fragment),
    'none-mixed-full': ('none', (*OLD, '-M'), '300M', fill),
    'none-full': ('none', OLD, '300M', fill),
    'none-new': ('none', OLD, '1G', None),
    'v2-16k': ('v2', NEW, '1G', fragment),
    'v2-4k': ('v2', (*NEW, '-n', '4096'), '1G', fragment),
    'v2-snapshots': ('v2', NEW, '1G', snapshots),
    'v2-full': ('v2', NEW, '300M', fill),
}


class Case:
    """A filesystem that Linux made, and copies of it."""

    def __init__(self, folder, name, seed):
        self.cache, options, size, work = SCENARIOS[name]
        self.folder, self.name = folder, name
        self.rng = random.Random(f'{seed} {name}')
        self.fs = image.Image(os.path.join(folder, 'fs.img'), size)
        self.fs.mkfs(*options)
        how = {'v1': 'space_cache=v1', 'v2': 'space_cache=v2', 'none': 'nospace_cache'}[self.cache]
        if work:
            work(self.fs.mount(how), self.rng)
            self.fs.umount()
        self.files = files(self.fs.mount(how, readonly=True))
        self.fs.umount()
        self.before, self.code = findings(self.fs.path)
        now = status(self.fs.path)
        if self.cache == 'none' and now['in_use'] != 'none':
            # mkfs.btrfs announces a v1 cache that does not exist.
            changed = Super(self.fs.path)
            changed.put(CACHE_GENERATION, 0)
            changed.write()
            now = status(self.fs.path)
        expect(now['in_use'] == self.cache, now)
        count['filesystems'] += 1

    def copy(self, name='copy.img'):
        return self.fs.copy(os.path.join(self.folder, name))

    def check(self, fs):
        found, code = findings(fs.path)
        expect(not found - self.before and (code == 0 or code == self.code), self.name, found - self.before)


def check_v2(case, fs):
    now = status(fs.path)
    expect(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)
    expect(not now['v1']['leftovers'] and now['v1']['absent'] == now['groups'] and not now['v2']['leftovers'], now)
    changed = Super(fs.path)
    expect(changed.get(CACHE_GENERATION) == 0 and changed.get(Super.COMPAT_RO) & 3 == 3, 'superblock')
    case.check(fs)
    mounted = mount_and_use(fs, case.files)
    expect('space_cache=v2' in mounted, mounted)
    case.check(fs)
    now = status(fs.path)
    expect(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)


def to_v2(case):
    fs = case.copy()
    before = digest(fs.path)
    said = done_well('convert', '--dry-run', fs.path)
    expect('to be made' in said and 'about' in said and digest(fs.path) == before, said)
    planned = re.search(r'(\d+) blocks of \d+ bytes to be made: (block groups .*)', said).groups()
    said = done_well('convert', fs.path)
    made = re.search(r'(\d+) blocks of \d+ bytes made: (block groups .*)', said).groups()
    expect(made == planned, made, planned)
    count['blocks made'] += int(made[0])
    count['commits'] += int(re.search(r'in (\d+) commits', said).group(1))
    # A second conversion changes nothing.
    before = digest(fs.path)
    said = done_well('convert', '--to', 'v2', fs.path)
    expect('v2 is in use and valid: nothing to do' in said and digest(fs.path) == before, said)
    check_v2(case, fs)
    fs.remove()


def to_v1(case):
    fs = case.copy()
    done_well('convert', '--to', 'v1', fs.path)
    now = status(fs.path)
    changed = Super(fs.path)
    expect(changed.get(CACHE_GENERATION) == NOT_MADE and not changed.get(Super.COMPAT_RO) & 3, 'superblock')
    expect(now['in_use'] == 'v1' and not now['valid'] and now['v2']['absent'] == now['groups'], now)
    case.check(fs)
    mounted = mount_and_use(fs, case.files, never=('error', 'corrupt'))
    expect('space_cache' in mounted and 'space_cache=v2' not in mounted, mounted)
    now = status(fs.path)
    expect(now['in_use'] == 'v1' and now['valid'] and not now['contradictions'], now)
    case.check(fs)
    count['caches v1 that Linux made'] += now['v1']['equal']
    fs.remove()


def to_none(case):
    fs = case.copy()
    done_well('convert', '--to', 'none', fs.path)
    now = status(fs.path)
    changed = Super(fs.path)
    expect(changed.get(CACHE_GENERATION) == 0 and not changed.get(Super.COMPAT_RO) & 3, 'superblock')
    expect(now['in_use'] == 'none' and now['v2']['absent'] == now['v1']['absent'] == now['groups'], now)
    expect(not now['v1']['leftovers'], now)
    case.check(fs)
    mounted = mount_and_use(fs, case.files)
    expect('nospace_cache' in mounted, mounted)
    expect(status(fs.path)['in_use'] == 'none', 'a cache')
    case.check(fs)
    fs.remove()


def clear(case):
    """Compare with the conversion by btrfs-progs, if it can do it."""
    fs, other = case.copy(), case.copy('other.img')
    before = digest(fs.path)
    absent = 'v2' if case.cache == 'v1' else 'v1'
    said = done_well('clear', absent, fs.path)
    expect(f'no {absent} cache to clear' in said and digest(fs.path) == before, said)
    said = done_well('clear', case.cache, '--dry-run', fs.path)
    expect('to be removed' in said and digest(fs.path) == before, said)
    done_well('clear', case.cache, fs.path)
    now = status(fs.path)
    expect(now[case.cache]['absent'] == now['groups'], now)
    peer = subprocess.run([image.BTRFS, 'rescue', 'clear-space-cache', case.cache, other.path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if peer.returncode == 0:
        ours, theirs = Super(fs.path), Super(other.path)
        for field in (CACHE_GENERATION, Super.COMPAT_RO):
            expect(ours.get(field) == theirs.get(field), field, ours.get(field), theirs.get(field))
        count['cleared as btrfs rescue does'] += 1
    case.check(fs)
    mount_and_use(fs, case.files, never=('error', 'corrupt'))
    case.check(fs)
    fs.remove()
    other.remove()


def not_vouched_for(changed):
    changed.put(Super.COMPAT_RO, changed.get(Super.COMPAT_RO) & ~VALID)


def not_known(changed):
    changed.put(Super.COMPAT_RO, changed.get(Super.COMPAT_RO) & ~(VALID | FREE_SPACE_TREE))


# Free space below this address belongs to no block group: a leftover of temporary groups of mkfs.btrfs.
FIRST_GROUP = 21 << 20


def sector_less(path):
    """Shorten a free range by a sector, in a leaf that stays valid by itself."""
    dump = space.Dump(path)
    with open(path, 'rb') as f:
        f.seek(0x10000 + 148)
        nodesize = int.from_bytes(f.read(4), 'little')
    leaf, slot = next(where for where, _, key, _ in dump.items('free-space') if key[1] == 'FREE_SPACE_EXTENT'
                      and int(key[0]) >= FIRST_GROUP and int(key[2]) > 4096)
    block = bytearray(dump.read(leaf, nodesize))
    at = space.HEADER + 25 * slot + 9
    block[at:at + 8] = (int.from_bytes(block[at:at + 8], 'little') - 4096).to_bytes(8, 'little')
    block[:4] = space.crc32c(bytes(block[32:])).to_bytes(4, 'little')
    dump.write(leaf, block)


def wrong_tree(case):
    """A tree that is invalid, incomplete or wrong is rebuilt."""
    for change in (not_vouched_for, not_known, None):
        fs = case.copy()
        if change:
            changed = Super(fs.path)
            change(changed)
            changed.write()
        else:
            sector_less(fs.path)
            code, _, err = btrkit('status', fs.path)
            expect(code == 1 and 'contradicts the extent tree' in err, code, err)
            refused(fs.path, 'clear', 'v1', says='contradicts the extent tree')
        done_well('convert', fs.path)
        check_v2(case, fs)
        fs.remove()
        count['wrong trees replaced'] += 1


def killed(case):
    """SIGKILL at any moment, and a new run; SIGINT ends it cleanly."""
    fs = case.copy()
    start = time.perf_counter()
    done_well('convert', fs.path)
    whole = time.perf_counter() - start
    fs.remove()
    for turn in range(KILLS):
        fs = case.copy()
        with subprocess.Popen([BTRKIT, 'space-cache', 'convert', fs.path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            time.sleep(case.rng.random() * whole)
            number = signal.SIGKILL if turn % 4 else signal.SIGINT
            child.send_signal(number)
            out, err = child.communicate()
        if child.returncode == 1:
            expect(err.decode() == f'btrkit space-cache: {fs.path}: interrupted; the filesystem is whole\n' and not out,
                   err, out)
            count['runs interrupted'] += 1
        else:
            expect(child.returncode in (0, -number), child.returncode, err)
            count['runs killed'] += child.returncode < 0
        case.check(fs)
        if turn % 4 == 0:
            mounted = fs.copy(os.path.join(case.folder, 'mounted.img'))
            mount_and_use(mounted, case.files, never=('error', 'corrupt'))
        done_well('convert', fs.path)
        now = status(fs.path)
        expect(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)
        fs.remove()


def full(case):
    """It is converted, or refused with nothing written."""
    fs = case.copy()
    before = digest(fs.path)
    code, _, err = btrkit('convert', fs.path)
    if code:
        expect('bytes are needed for tree blocks, available are' in err and digest(fs.path) == before, code, err)
        count['full filesystems refused'] += 1
    else:
        check_v2(case, fs)
        count['full filesystems converted'] += 1
    fs.remove()


def group_tree(folder):
    """Features that require the free space tree keep it."""
    fs = image.Image(os.path.join(folder, 'bgt.img'), '1G')
    fs.mkfs('-O', 'block-group-tree,free-space-tree,no-holes')
    for args in (('convert', '--to', 'v1'), ('convert', '--to', 'none'), ('clear', 'v2')):
        refused(fs.path, *args, says='block-group-tree')
        refused(fs.path, *args, '--dry-run', says='block-group-tree')
    expect('nothing to do' in done_well('convert', fs.path), 'valid')
    expect('nothing' in done_well('convert', fs.path), 'valid')
    changed = Super(fs.path)
    changed.put(Super.COMPAT_RO, changed.get(Super.COMPAT_RO) & ~VALID)
    changed.write()
    done_well('convert', fs.path)
    now = status(fs.path)
    expect(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)
    mount_and_use(fs, {})
    expect(status(fs.path)['valid'], 'after Linux')
    fs.remove()


def in_use(folder):
    fs = image.Image(os.path.join(folder, 'used.img'), '300M')
    fs.mkfs(*OLD)
    fs.mount()
    for device in (fs.loop, fs.path):
        said = check_failure('space-cache', device, btrkit('convert', device))
        expect(said, device)
    fs.umount()
    done_well('convert', fs.path)
    fs.remove()
    count['devices in use'] += 2


STEPS = {
    'v1-16k': (to_v2, to_none, clear, killed), 'v1-4k': (to_v2,), 'v1-64k': (to_v2, to_none), 'v1-snapshots': (to_v2,),
    'v1-mixed': (to_v2, clear), 'v1-full': (full,), 'v1-few': (to_v2, to_none),
    'none-16k': (to_v2, killed), 'none-mixed-full': (full,), 'none-full': (full,), 'none-new': (to_v2, to_v1),
    'v2-16k': (to_v1, to_none, clear, wrong_tree), 'v2-4k': (to_v1, wrong_tree), 'v2-snapshots': (to_none,),
    'v2-full': (to_none, wrong_tree),
}


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    seed = image.seed()
    print(f'seed {seed}')
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for name in sys.argv[1:] or SCENARIOS:
            case = Case(folder, name, seed)
            for step in STEPS[name]:
                print(name, step.__name__, flush=True)
                step(case)
            case.fs.remove()
        if not sys.argv[1:]:
            group_tree(folder)
            in_use(folder)
    for what, n in sorted(count.items()):
        print(f'{n} {what}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
