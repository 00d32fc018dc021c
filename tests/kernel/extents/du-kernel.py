#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare `btrkit du` with Linux on filesystems made by random plans, and some others.

- The referenced and exclusive bytes of each subvolume equal those of its qgroup on a copy; what deleting a random
  subset frees equals the exclusive bytes of a level 1 qgroup that contains the subset.
- Linux deletes subsets on a copy: the data block groups shrink exactly as reported, the extent tree loses exactly the
  data extents and all tree blocks reported; any other tree blocks lost were rewritten in the trees of the filesystem
  and of the parent directories. It refuses to delete exactly those subvolumes that du names.
- The same holds for the rest of a half-deleted subvolume.
- The owners of each tree block and data extent are those whose trees contain it in a dump by btrfs-progs; also on
  copies taken during a balance, a deletion, with a log tree, and with open unlinked files. The result of replaying the
  log is as reported, and Linux removes the unlinked files.
- `--types` equals the output of compsize, and the sums over a dump of all trees by btrfs-progs.

    du-kernel.py [--plans N] [--seed N] [--only PATTERN]

BTRKIT is the program under test, USAGE_BLOCKS prints tree blocks with owners; IMAGES are the committed ones; BTRFS and
MKFS are from btrfs-progs. Exits with 77 if it cannot run.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import image
import ops
import plan
from dumped import Dumped
from image import BTRFS, Image, run
from scenarios import SCENARIOS, half_dropped, log_tree, orphan, relocating

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
USAGE_BLOCKS = os.environ.get('USAGE_BLOCKS', 'usage-blocks')
IMAGES = os.environ.get('IMAGES', 'images')
OPERATIONS = 800
SUBSETS, DELETIONS = 6, 2
SCENARIO_NAMES = ('generations-4096', 'generations-deleted', 'prealloc', 'reflinks', 'zstd', 'leaves-partly-shared',
                  'default-subvolume', 'mixed', 'extents-not-skinny', 'inline', 'inline-compressed')
KINDS = {0: 'none', 1: 'zlib', 2: 'lzo', 3: 'zstd'}
# A file extent: address and length of the data extent, referenced length; for regular ones also ram bytes and
# compression.
ITEM = re.compile(r'(?:extent|prealloc) data disk byte (\d+) nr (\d+)\n\s+(?:extent|prealloc) data offset \d+ nr (\d+)'
                  r'(?: ram (\d+)\n\s+extent compression (\d))?')
counts = dict.fromkeys(('subvolumes', 'subsets', 'deletions', 'refused', 'extents', 'blocks', 'types', 'compsize',
                        'prealloc apart', 'owned blocks', 'owned extents', 'dying', 'relocation blocks',
                        'relocated files', 'logged', 'orphans'), 0)


class Difference(Exception):
    pass


def need(condition, *what):
    if not condition:
        raise Difference(' '.join(map(str, what)))


def equal(ours, theirs, what):
    need(ours == theirs, f'{what}: {ours}, Linux says {theirs}')


# Output of btrkit

def du(path, *args):
    lines = [json.loads(line) for line in run(BTRKIT, 'du', '--noscan', '--format=json', *args, path).splitlines()]
    need(lines[0] == {'__header': {'version': 1, 'command': 'du'}}, lines[0])
    return lines[1:]


def subvolumes(path):
    return {row['id']: row for row in du(path) if row.get('owner') == 'subvolume'}


def freed(path, subsets):
    return du(path, *('--freed-by=' + ','.join(map(str, subset)) for subset in subsets))


def both(space):
    return space['data'] + space['metadata']


def owned_blocks(path):
    """Map addresses to owners."""
    rows = [line.split(' ') for line in run(USAGE_BLOCKS, path).decode().splitlines()]
    return {int(address): {int(name) if name.isdigit() else name for name in owners.split(',') if name}
            for address, _, owners in rows}


# Output of Linux and btrfs-progs

def qgroups(path, subsets):
    """Map qgroups to referenced and exclusive bytes, on a copy."""
    copy = Image(path, None).copy(path + '.copy')
    mnt = copy.mount('noatime')
    try:
        run(BTRFS, 'quota', 'enable', mnt)
        run(BTRFS, 'quota', 'rescan', '-w', mnt)
        for i, subset in enumerate(subsets):
            run(BTRFS, 'qgroup', 'create', f'1/{i + 1}', mnt)
            for number in subset:
                run(BTRFS, 'qgroup', 'assign', '--no-rescan', f'0/{number}', f'1/{i + 1}', mnt)
        run(BTRFS, 'quota', 'rescan', '-w', mnt)
        text = run(BTRFS, 'qgroup', 'show', '--raw', mnt).decode()
    finally:
        copy.remove()
    return {name: (int(rfer), int(excl)) for name, rfer, excl in re.findall(r'^(\d/\d+) +(\d+) +(\d+)', text, re.M)}


def extents(path):
    """Data extents and tree blocks in the extent tree, each as address and generation."""
    text = run(BTRFS, 'inspect-internal', 'dump-tree', '-t', 'extent', path).decode()
    found = {'DATA': set(), 'TREE_BLOCK': set()}
    for address, generation, kind in re.findall(r' key \((\d+) (?:EXTENT|METADATA)_ITEM \d+\).*\n\s+refs \d+ gen (\d+) '
                                                r'flags (DATA|TREE_BLOCK)', text):
        found[kind].add((int(address), int(generation)))
    need(found['DATA'] or found['TREE_BLOCK'], 'the dump of the extent tree has no extents')
    return found['DATA'], found['TREE_BLOCK']


def used_data(mnt):
    """Bytes used in data block groups; None if they contain metadata too."""
    text = run(BTRFS, 'filesystem', 'df', '--raw', mnt).decode()
    found = re.findall(r'^Data(\+Metadata)?,.* used=(\d+)', text, re.M)
    need(found, f'block groups: {text}')
    return None if found[0][0] else sum(int(used) for _, used in found)


def compsize(path):
    """Map rows of compsize to disk and uncompressed bytes; empty without data."""
    mounted = Image(path, None)
    mnt = mounted.mount(readonly=True)
    try:
        done = subprocess.run(['compsize', '-b', mnt], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    finally:
        mounted.umount()
    text = done.stdout.decode()
    need(not done.returncode or b'No files' in done.stderr or b'empty' in done.stderr, f'compsize: {done.stderr}')
    return {name: (int(disk), int(whole))
            for name, disk, whole in re.findall(r'^(\w+) +\d+% +(\d+) +(\d+) +\d+', text, re.M)}


def dumped_types(path):
    """The table of types from a dump of all trees, and the number of extents that are prealloc in some items and
    regular in others."""
    text = run(BTRFS, 'inspect-internal', 'dump-tree', path).decode(errors='replace')
    table, whole, hows, seen = {}, {}, {}, set()
    for tree in re.split(r'^(?=(?:fs|file) tree key )', text, flags=re.M)[1:]:
        tree = re.split(r'^\S.* tree key |^total bytes', tree[10:], flags=re.M)[0]
        for leaf in re.split(r'^leaf (?=\d+ items )', tree, flags=re.M)[1:]:
            address = int(leaf.split(' ', 1)[0])
            for size, ram, kind in re.findall(r'inline extent data size (\d+) ram_bytes (\d+) compression (\d)', leaf):
                once = (0, 0, 0) if address in seen else (1, int(size), int(ram))
                add(table, 'inline-' + KINDS[int(kind)], (*once, int(ram)))
            for start, length, referenced, ram, kind in ITEM.findall(leaf):
                if not int(start):
                    continue
                name = KINDS[int(kind)] if kind else 'prealloc'
                add(table, name, (0, 0, 0, int(referenced)))
                hows.setdefault(int(start), set()).add(bool(kind))
                if kind or int(start) not in whole:
                    whole[int(start)] = name, (1, int(length), int(ram or length), 0)
            seen.add(address)
    for name, row in whole.values():
        add(table, name, row)
    return table, sum(len(how) > 1 for how in hows.values())


def add(table, name, row):
    table[name] = tuple(a + b for a, b in zip(table.get(name, (0,) * len(row)), row))


# Comparisons

def verify_qgroups(path, rng):
    found = subvolumes(path)
    subsets = [sorted(rng.sample(sorted(found), rng.randint(1, len(found)))) for _ in range(SUBSETS)]
    theirs = qgroups(path, subsets)
    for number, row in found.items():
        equal((both(row['referenced']), both(row['exclusive'])), theirs[f'0/{number}'], f'subvolume {number}')
        equal(both(row['shared']), both(row['referenced']) - both(row['exclusive']), 'what is shared')
        counts['subvolumes'] += 1
    equal(len(found), sum(name.startswith('0/') for name in theirs), 'how many subvolumes')
    for i, (subset, row) in enumerate(zip(subsets, freed(path, subsets))):
        equal(row['freed_by'], subset, 'subset')
        equal(row['freed_data'] + row['freed_metadata'], theirs[f'1/{i + 1}'][1], f'freed by {subset}')
        counts['subsets'] += 1


def delete_all(mnt, wanted, found):
    """Delete subvolumes, nested ones first, unless Linux refuses; returns those that remain."""
    left = sorted(wanted, key=lambda number: -found[number]['path'].count('/'))
    while True:
        stay = []
        for number in left:
            try:
                need(number != 5)
                ops.delete_subvolume(mnt + found[number]['path'])
            except (OSError, Difference):
                stay.append(number)
        if len(stay) == len(left):
            return set(stay)
        left = stay


def check_deletion(path, rng, found):
    wanted = sorted(rng.sample(sorted(found), rng.randint(1, len(found))))
    held = {row['id'] for row in freed(path, [wanted])[0]['held']}
    gone = sorted(set(wanted) - held)
    copy = Image(path, None).copy(path + '.copy')
    mnt = copy.mount('noatime')
    try:
        parents = {ops.root_id(os.path.dirname(mnt + found[number]['path'])) for number in gone} - set(gone)
        for number in wanted:
            equal(ops.root_id(mnt + found[number]['path']), number, f'path {found[number]["path"]}')
        before = used_data(mnt)
        equal(delete_all(mnt, wanted, found), held, f'of {wanted} stay')
        image.wait_for_cleaner(mnt)
        fell = None if before is None else before - used_data(mnt)
        copy.umount()
        counts['refused'] += len(held)
        if gone:
            counts['deletions'] += 1
            check_deleted(path, copy.path, gone, parents, fell)
    finally:
        copy.remove()


def check_deleted(path, after, gone, parents, fell):
    said, = freed(path, [gone])
    need(not said['held'], f'{gone}: {said}')
    if fell is not None:
        equal(said['freed_data'], fell, f'{gone}: freed data')
    data, blocks = extents(path)
    data_after, blocks_after = extents(after)
    predicted = {row['bytenr'] for row in du(path, '--extents')
                 if row['owners'] and set(row['owners']) <= set(gone)}
    equal(predicted, {address for address, _ in data - data_after}, f'{gone}: data extents')
    equal(len(predicted), said['freed_extents'], f'{gone}: number of extents')
    need(not data_after - data, f'{gone}: new data')
    owners = owned_blocks(path)
    equal(set(owners), {address for address, _ in blocks}, 'tree blocks')
    predicted = {address for address, of in owners.items() if of and of <= set(gone)}
    equal(len(predicted), said['freed_blocks'], f'{gone}: number of tree blocks')
    lost = {address for address, _ in blocks - blocks_after}
    need(predicted <= lost, f'{gone}: these blocks stay: {sorted(predicted - lost)[:9]}')
    for address in lost - predicted:
        of = owners[address]
        need(of == {'filesystem'} or of == {'data-relocation'} or of <= parents | set(gone),
             f'{gone}: {address}, owned by {of}, is gone')
    counts['extents'] += said['freed_extents']
    counts['blocks'] += said['freed_blocks']


def check_types(path):
    ours = {row['type']: (row['extents'], row['disk'], row['uncompressed'], row['referenced'])
            for row in du(path, '--types')}
    total = ours.pop('total')
    equal(total, tuple(map(sum, zip(*ours.values()))) or (0,) * 4, 'the total')
    theirs, mixed = dumped_types(path)
    equal(ours, theirs, 'types in a dump')
    counts['types'] += len(ours)
    if not any(name.startswith('inline') for name in ours) and ours:
        check_compsize({name: row[1:3] for name, row in ours.items()}, compsize(path), mixed)


def check_compsize(ours, theirs, mixed):
    """If an extent is prealloc in some items and regular in others, compsize counts it by the item that it meets
    first."""
    theirs.pop('TOTAL', None)
    counts['compsize'] += len(ours)
    counts['prealloc apart'] += 'prealloc' in ours and not mixed
    if mixed:
        for table in ours, theirs:
            table['none'] = tuple(map(sum, zip(table.pop('none', (0, 0)), table.pop('prealloc', (0, 0)))))
    equal(ours, theirs, 'compsize')


def check_owners(path):
    """Every block and extent has exactly the owners that the dump shows."""
    theirs, rows = Dumped(path), du(path)
    equal_maps(owned_blocks(path), theirs.blocks, 'tree block')
    equal_maps({row['bytenr']: set(row['owners']) for row in du(path, '--extents')}, theirs.extents, 'data extent')
    need(not any('unowned' in row for row in rows), 'something is of nobody')
    counts['owned blocks'] += len(theirs.blocks)
    counts['owned extents'] += len(theirs.extents)
    known = {address for address, _ in extents(path)[0]}
    for row in rows:
        if 'owner' not in row:
            continue
        name = owner_name(row)
        equal(row['orphans'], 0 if name == 'filesystem' else theirs.orphans[name], f'nameless files of {name}')
        blocks, data = theirs.logs.get('' if name == 'filesystem' else str(name), (set(), set()))
        equal((row['log']['blocks'], row['log']['data']),
              (len(blocks), sum(length for start, length in data if start not in known)), f'log of {name}')
        if row['owner'] == 'relocation':
            counts['relocation blocks'] += row['referenced']['blocks']
        if row['owner'] == 'data-relocation':
            counts['relocated files'] += row['orphans']
        counts['orphans'] += row['orphans']
        counts['dying'] += row['owner'] == 'dying' and name in theirs.dropping
    return theirs


def owner_name(row):
    if row['owner'] == 'relocation':
        return f'relocation:{row["id"]}'
    return row['id'] if row['owner'] in ('subvolume', 'dying') else row['owner']


def equal_maps(ours, theirs, what):
    for one in sorted(ours.keys() | theirs.keys()):
        equal(ours.get(one), theirs.get(one), f'who has {what} {one}')


def check_mounted(path):
    """Compare with a mount after a crash: a log becomes part of its subvolume, and unlinked files are removed."""
    theirs = Dumped(path)
    logged = {start for _, data in theirs.logs.values() for start, _ in data} - {at for at, _ in extents(path)[0]}
    copy = Image(path, None).copy(path + '.copy')
    try:
        mnt = copy.mount('noatime,skip_balance')
        for name in os.listdir(mnt):
            os.stat(f'{mnt}/{name}')
        image.wait_for_cleaner(mnt)
        copy.umount()
        after = Dumped(copy.path)
        if logged:
            equal(set(after.extents) - set(theirs.extents), logged, 'data of the log')
            counts['logged'] += len(logged)
        need(not after.logs and not after.dropping, 'something is left of what the crash left')
        for row in du(copy.path):
            need('owner' not in row or not row['orphans'], f'files without a name: {row}')
            need(row.get('owner') not in ('dying', 'relocation'), row)
        check_owners(copy.path)
    finally:
        copy.remove()


def check(path, rng, deletions):
    check_owners(path)
    verify_qgroups(path, rng)
    found = subvolumes(path)
    for _ in range(deletions):
        check_deletion(path, rng, found)
    check_types(path)


def check_dropped(path):
    """Linux deletes the rest of a half-deleted subvolume when it mounts."""
    gone = [row['id'] for row in du(path) if row.get('owner') == 'dying']
    need(gone, 'nothing is half deleted')
    copy = Image(path, None).copy(path + '.copy')
    image.wait_for_cleaner(copy.mount('noatime'))
    copy.umount()
    check_deleted(path, copy.path, gone, set(), None)
    counts['deletions'] += 1
    copy.remove()


def check_crashed(paths, fill):
    for path in paths:
        check_owners(path)
        if fill is half_dropped:
            check_dropped(path)
        else:
            check_mounted(path)


def unpacked(folder):
    name = 'good-half-dropped'
    run(sys.executable, os.path.join(IMAGES, 'unpack.py'), name, folder)
    return os.path.join(folder, f'{name}.img')


# The filesystems

def apart(t):
    """No extent is prealloc in one item and regular in another; every compression type."""
    sub = f'{t.mnt}/sub'
    ops.subvolume(sub)
    for kind in ('zlib', 'lzo', 'zstd'):
        with ops.Opened(f'{sub}/{kind}'):
            pass
        ops.compression(f'{sub}/{kind}', kind)
        ops.write(f'{sub}/{kind}', 0, b'btrfs ' * 100000)
    ops.write(f'{sub}/plain', 0, ops.incompressible(1 << 20))
    ops.fallocate(f'{sub}/prealloc', 4096, 1 << 20)
    ops.fallocate(f'{sub}/beyond', 0, 1 << 19, ops.KEEP_SIZE)
    ops.sync(t.mnt)
    for name in ('zlib', 'plain', 'prealloc'):
        ops.clone(f'{sub}/{name}', 131072, 65536, f'{t.mnt}/{name}', 0)
    ops.punch(f'{sub}/prealloc', 8192, 65536)
    os.truncate(f'{sub}/plain', 300000)
    ops.snapshot(sub, f'{t.mnt}/snap', readonly=True)
    ops.punch(f'{sub}/zstd', 0, 200000)
    ops.subvolume(f'{sub}/inner')
    ops.write(f'{sub}/inner/file', 0, ops.incompressible(70000))


class Made:
    """The interface that scenarios expect; see class Trial of fiemap-kernel.py."""

    def __init__(self, folder, options=()):
        self.folder, self.image = folder, None
        self.options = dict(options)
        self.listing, self.others, self.live = None, [], False

    @property
    def mnt(self):
        return self.image.mnt

    def btrfs(self, *args):
        return run(BTRFS, *args)

    def wait_for_cleaner(self):
        image.wait_for_cleaner(self.mnt)

    def path(self, name):
        return os.path.join(self.folder, name)

    def oracle(self, *_):
        """Contents of files are tested elsewhere."""

    def use_copy(self, copy):
        """Continue with a copy of the mounted image."""
        self.image.umount()
        self.image, self.live = copy, True

    def matches(self, which, tree, pattern):
        return re.search(pattern, self.btrfs('inspect-internal', 'dump-tree', '-t', tree, which).decode())

    def half_dropped(self):
        return bool(Dumped(self.image.path).dropping)

    def make(self, size, mkfs, mount, fill):
        path = os.path.join(self.folder, 'fs.img')
        self.image = Image(path, size)
        self.image.mkfs(*mkfs)
        self.image.mount(','.join(part for part in (mount, 'noatime') if part))
        fill(self)
        if self.mnt:
            self.wait_for_cleaner()
            self.image.umount()
        return [self.image.path] + [other.path for other in self.others]


def held(t):
    """Subvolumes that Linux refuses to delete, each for another reason, below others that it would delete; odd
    names."""
    for name in ('a', 'a/b', 'a/b/c', 'default', 'default/below', 'ro', 'ro/in\nner', 'ro/inner', 'free', 'free/lower'):
        ops.subvolume(f'{t.mnt}/{name}')
        ops.write(f'{t.mnt}/{name}/file', 0, ops.incompressible(20000 + len(name)))
    os.mkdir(f'{t.mnt}/free/dir')
    ops.subvolume(f'{t.mnt}/free/dir/s\u00e4ge')
    ops.subvolume(f'{t.mnt}/a/default')
    ops.snapshot(f'{t.mnt}/ro', f'{t.mnt}/free/dir/ro', readonly=True)
    t.btrfs('property', 'set', '-ts', f'{t.mnt}/ro', 'ro', 'true')
    t.btrfs('subvolume', 'set-default', f'{t.mnt}/a/default')


def small(t):
    """Inline data in leaves that subvolumes share, and in private leaves."""
    ops.subvolume(f'{t.mnt}/sub')
    for i in range(300):
        ops.write(f'{t.mnt}/sub/f{i}', 0, b's' * (100 + i))
    ops.sync(t.mnt)
    for name in ('one', 'two'):
        ops.snapshot(f'{t.mnt}/sub', f'{t.mnt}/{name}')
    for i in range(20):
        ops.write(f'{t.mnt}/one/f{i}', 0, b't' * (90 + i))


def large_log(t):
    """Log trees of several leaves, for a file with older extents and a new one, as after a crash."""
    ops.subvolume(f'{t.mnt}/sub')
    for folder in (t.mnt, f'{t.mnt}/sub'):
        ops.write(f'{folder}/old', 0, ops.incompressible(4 << 20))
    ops.sync(t.mnt)

    def work():
        for folder in (t.mnt, f'{t.mnt}/sub'):
            for name in ('old', 'new'):
                with ops.Opened(f'{folder}/{name}') as fd:
                    for i in range(300):
                        os.pwrite(fd, b'logged' * 700, i * 12288)
                    os.fsync(fd)
    t.use_copy(t.image.copy_with_log(t.path('copy.img'), work))


# Scenarios that leave copies as after a crash.
CRASHED = (half_dropped, log_tree, large_log, orphan, relocating, None)


def outlined(mount):
    return ','.join(part for part in (mount, 'max_inline=0') if part)


def random_plan(seed):
    """Every other plan has no inline data, which compsize counts in another way."""
    mkfs, mount = plan.shape(seed)
    if seed % 2:
        mount = outlined(mount)

    def fill(t):
        doing = plan.Plan(t.mnt, seed)
        doing.weights.update(snapshot=4, subvolume=1.2, punch=10, truncate=8, dedupe=6)
        done = doing.run(OPERATIONS)
        need(sum(done.values()) - done['refused'] > OPERATIONS * 2 // 3, f'too many operations were refused: {done}')
    return f'random-{seed}', '1G', mkfs, mount, fill


def filesystems(args):
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    made = [random_plan(args.seed + i) for i in range(args.plans)]
    made += [('apart', '300M', (), 'max_inline=0', apart), ('held', '300M', ('-n', '4096'), '', held)]
    made.append(('small', '300M', ('-n', '4096'), '', small))
    for name in SCENARIO_NAMES:
        s = by_name[name]
        made.append((name, s.size, s.mkfs, s.mount if name.startswith('inline') else outlined(s.mount), s.fill))
    made += [(name, s.size, s.mkfs, s.mount, s.fill) for name, s in by_name.items() if s.fill in CRASHED]
    made += [('large-log', '2G', (), 'commit=600', large_log), ('half-dropped', None, (), '', None)]
    return [one for one in made if fnmatch.fnmatch(one[0], f'*{args.only}*')
            and not (args.thin and one[0] in ('half-dropped-0', 'half-dropped-2'))]


def check_filesystem(folder, rng, name, size, mkfs, mount, fill):
    options = next((scenario.options for scenario in SCENARIOS if scenario.name == name), {})
    paths = Made(folder, options).make(size, mkfs, mount, fill) if fill else [unpacked(folder)]
    if fill in CRASHED:
        check_crashed(paths, fill or half_dropped)
    else:
        check(paths[0], rng, 8 if fill is held else DELETIONS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN')
    parser.add_argument('--plans', type=int, default=5)
    parser.add_argument('--seed', type=int, default=int(time.time()) % 1000000 * 100, help='of the first plan')
    parser.add_argument('--thin', action='store_true', help='one half dropped subvolume that Linux has just made')
    parser.add_argument('--keep', action='store_true', help='the images of what failed')
    args = parser.parse_args()
    reason = image.missing() or (None if shutil.which('compsize') else 'needs compsize')
    if reason:
        print(f'skipped: {reason}')
        return 77
    failed = []
    for name, size, mkfs, mount, fill in filesystems(args):
        folder, start, error = tempfile.mkdtemp(prefix='btrkit-du-'), time.monotonic(), None
        try:
            with contextlib.nullcontext() if fill else image.committed():
                check_filesystem(folder, random.Random(f'{args.seed} {name}'), name, size, mkfs, mount, fill)
        except (Difference, RuntimeError, OSError, subprocess.SubprocessError) as e:
            error = f'{type(e).__name__}: {e}'
            failed.append(name)
        finally:
            image.cleanup()
        if not (error and args.keep):
            shutil.rmtree(folder)
        print(f'{"FAIL" if error else "ok"} {name} ({time.monotonic() - start:.1f} s), mkfs {" ".join(mkfs) or "-"}, '
              f'mount {mount or "-"}{": " + error[:2000] if error else ""}', flush=True)
    print(f'random plans from seed {args.seed}: compared', ', '.join(f'{n} {what}' for what, n in counts.items()))
    if args.only == '*' and not failed:
        need(all(counts.values()), f'nothing was compared of something: {counts}')
        need(counts['subsets'] >= 20, 'few subsets')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
