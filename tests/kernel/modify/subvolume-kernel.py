#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random plans that create, change and delete subvolumes and snapshots, by the library and by Linux on a copy: the
results have equal subvolumes and contents, btrfs check finds nothing, and Linux continues with ours.

SUBVOLUME_PLAN is the program that runs a plan by the library. Exits with 77 if it cannot run.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

import image

PLAN = os.environ.get('SUBVOLUME_PLAN', 'subvolume-plan')
FORMS = [(('-n', '4k'), False), ((), False), (('-n', '64k'), False), (('-n', '4k'), True), (('-M', '-n', '4k'), False)]
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1


class Plan:
    """Lines for the library, and the expected result."""

    def __init__(self, rng, steps):
        self.rng, self.lines, self.serial = rng, [], 0
        # path of a subvolume: whether it is read-only, and the files in it
        self.all = {'.': [False, set()]}
        self.default = '.'
        for k in range(120):
            self.put('.', f'file{k}')
        for _ in range(steps):
            self.step()

    def inside(self, path, name):
        return name if path == '.' else f'{path}/{name}'

    def put(self, path, name):
        size = self.rng.choice((1, 500, 1900, 3000, 5000, 20000))
        self.lines.append(('put', self.inside(path, name), str(size), str(self.rng.getrandbits(32))))
        self.all[path][1].add(name)

    def step(self):
        rng = self.rng
        kind = rng.randrange(40)
        path = rng.choice(sorted(self.all))
        read_only, files = self.all[path]
        self.serial += 1
        new = self.inside(path, f's{self.serial}')
        if kind == 0:
            self.lines.append(('commit',))
        elif kind < 3 and not read_only and len(self.all) < 14:
            self.lines.append(('subvol', new))
            self.all[new] = [False, set()]
        elif kind < 6 and not read_only and len(self.all) < 14:
            source = rng.choice(sorted(self.all))
            ro = not rng.randrange(4)
            self.lines.append(('snapro' if ro else 'snap', source, new))
            self.all[new] = [ro, set(self.all[source][1])]
        elif kind < 9 and path not in ('.', self.default) and not any(p.startswith(f'{path}/') for p in self.all):
            above = path.rpartition('/')[0] or '.'
            if not self.all[above][0]:
                self.lines.append(('del', path))
                del self.all[path]
        elif kind == 9 and not rng.randrange(3):
            self.lines.append(('rw' if read_only else 'ro', path))
            self.all[path][0] = not read_only
        elif kind == 10 and not rng.randrange(3):
            self.lines.append(('default', path))
            self.default = path
        elif kind < 12 and files and not read_only:
            name = rng.choice(sorted(files))
            files.discard(name)
            self.lines.append(('rm', self.inside(path, name)))
        elif kind >= 12 and not read_only:
            self.put(path, f'file{rng.randrange(150)}')


def by_linux(mnt, lines):
    btrfs = lambda *args: image.run(image.BTRFS, *args)
    for op, *words in lines:
        paths = [os.path.join(mnt, w) for w in words]
        if op == 'commit':
            btrfs('filesystem', 'sync', mnt)
        elif op == 'subvol':
            btrfs('subvolume', 'create', paths[0])
        elif op == 'snap':
            btrfs('subvolume', 'snapshot', *paths)
        elif op == 'snapro':
            btrfs('subvolume', 'snapshot', '-r', *paths)
        elif op == 'del':
            btrfs('subvolume', 'delete', paths[0])
        elif op in ('ro', 'rw'):
            btrfs('property', 'set', '-ts', paths[0], 'ro', 'true' if op == 'ro' else 'false')
        elif op == 'default':
            btrfs('subvolume', 'set-default', paths[0])
        elif op == 'rm':
            os.unlink(paths[0])
        else:
            size = int(words[1])
            with open(paths[0], 'wb') as f:
                f.write((int(words[2]).to_bytes(4, 'little') * (size // 4 + 1))[:size])
    image.wait_for_cleaner(mnt)


def account(mnt):
    """Subvolumes as Linux lists them, with UUIDs replaced by the IDs of their owners, and all contents."""
    text = image.run(image.BTRFS, 'subvolume', 'list', '-pcuqR', mnt).decode()
    form = (r'ID (\d+) gen \d+ cgen \d+ parent (\d+) top level \d+ parent_uuid (\S+) +received_uuid (\S+) +'
            r'uuid (\S+) path (.*)')
    rows = [re.fullmatch(form, line) for line in text.splitlines()]
    assert all(rows), text
    owner = {row[5]: int(row[1]) for row in rows}
    assert len(owner) == len(rows)
    top = re.search(r'UUID:\s+(\S+)', image.run(image.BTRFS, 'subvolume', 'show', mnt).decode())[1]
    owner[top] = 5
    listed = {(int(r[1]), int(r[2]), '-' if r[3] == '-' else owner.get(r[3], 'gone'), r[4], r[6]) for r in rows}
    flags = {r[6]: image.run(image.BTRFS, 'property', 'get', '-ts', f'{mnt}/{r[6]}', 'ro') for r in rows}
    files = {}
    # Inode numbers differ: Linux does not reuse them while mounted.
    for folder, names, inside in os.walk(mnt):
        st = os.stat(folder)
        files[os.path.relpath(folder, mnt)] = (st.st_ino, st.st_size, st.st_nlink, sorted(names), sorted(inside))
        for name in inside:
            path = os.path.join(folder, name)
            with open(path, 'rb') as f:
                files[os.path.relpath(path, mnt)] = f.read()
    # Linux finds a subvolume by its UUID through the UUID tree.
    for row in rows:
        shown = image.run(image.BTRFS, 'subvolume', 'show', '-u', row[5], mnt).decode()
        assert re.search(r'Subvolume ID:\s+' + row[1], shown), shown
    default = image.run(image.BTRFS, 'subvolume', 'get-default', mnt).split(b' gen ')[0]
    return listed, flags, files, default


def check(path):
    done = subprocess.run([image.BTRFS, 'check', '--check-data-csum', path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    said = done.stdout.decode(errors='replace')
    assert not done.returncode and 'no error found' in said and 'ERROR' not in said, said


def go_on(mnt, rng):
    """Linux takes snapshots of all, changes them, deletes half of the files, and moves all blocks."""
    btrfs = lambda *args: image.run(image.BTRFS, *args)
    btrfs('property', 'set', '-ts', mnt, 'ro', 'false')
    btrfs('subvolume', 'set-default', mnt)
    listed = sorted(line.partition(' path ')[2]
                    for line in btrfs('subvolume', 'list', mnt).decode().splitlines())
    for k, path in enumerate(listed):
        btrfs('subvolume', 'snapshot', f'{mnt}/{path}', f'{mnt}/again{k}')
        for name in os.listdir(f'{mnt}/again{k}')[:40]:
            if os.path.isfile(f'{mnt}/again{k}/{name}'):
                with open(f'{mnt}/again{k}/{name}', 'ab') as f:
                    f.write(b'more' * rng.randrange(2000))
    btrfs('filesystem', 'sync', mnt)
    for path in sorted(listed, reverse=True):
        if rng.randrange(3) and not any(p.startswith(f'{path}/') for p in listed):
            above = os.path.dirname(path)
            if above and b'true' in btrfs('property', 'get', '-ts', f'{mnt}/{above}', 'ro'):
                continue
            btrfs('subvolume', 'delete', f'{mnt}/{path}')
            listed.remove(path)
    image.wait_for_cleaner(mnt)
    btrfs('balance', 'start', '--full-balance', mnt)


def one(work, form, quotas, seed):
    rng = random.Random(seed)
    plan = Plan(rng, 500)
    made = image.Image(f'{work}/made', '700M')
    made.mkfs(*form)
    if quotas:
        mnt = made.mount('commit=1')
        image.run(image.BTRFS, 'quota', 'enable', mnt)
        image.run(image.BTRFS, 'quota', 'rescan', '-w', mnt)
        made.umount()
    linux = made.copy(f'{work}/linux')
    image.run(PLAN, made.path, input='\n'.join(' '.join(line) for line in plan.lines).encode())
    if not quotas:
        check(made.path)
    # Deleted subvolumes are cleaned with a commit, which otherwise happens only every 30 seconds.
    by_linux(linux.mount('commit=1'), plan.lines)
    wanted = account(linux.mnt)
    linux.umount()
    mnt = made.mount('commit=1')
    found = account(mnt)
    for ours, theirs, what in zip(found[:3], wanted, ('subvolumes', 'flags', 'files')):
        if ours != theirs:
            differ = [k for k in set(ours) ^ set(theirs)] or [k for k in ours if ours[k] != theirs[k]]
            raise AssertionError(f'{what} differ: {sorted(map(str, differ))[:6]}')
    assert found[3] == wanted[3], (found[3], wanted[3])
    if quotas:
        image.run(image.BTRFS, 'quota', 'rescan', '-w', mnt)
    go_on(mnt, rng)
    complaints = made.log.complaints(made.loop)
    assert not [c for c in complaints if 'qgroup' not in c], complaints
    made.umount()
    check(made.path)
    linux.remove()
    made.remove()
    return len(plan.lines), len(found[0])


def main():
    why = image.missing()
    if why:
        print(why)
        return 77
    seed = image.seed()
    with tempfile.TemporaryDirectory(prefix='btrkit-subvolume-') as work:
        for round_ in range(ROUNDS):
            for form, quotas in FORMS:
                lines, subvolumes = one(work, form, quotas, seed + round_)
                print(f'{" ".join(form) or "default"}{", quotas" if quotas else ""}, seed {seed + round_}: {lines} '
                      f'lines, {subvolumes} subvolumes equal', flush=True)
    return 0


sys.exit(main())
