#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run writers on filesystems with one falsified field and valid checksums. Each writer must either refuse, with one
line on standard error, after which everything can be read as before; or succeed. Then all other files must be read as
before, the written data must be read back, and `check` must report no code that it did not report before the writer.

    writers.py [OPTION]... FALSIFY

FALSIFY is damage-falsify, and BTRKIT in the environment is the program under test. Any field of any structure is
falsified, in each filesystem of writers_made.py; the writers are in writers_ops.py.

--every N, --from I   only every Nth falsified field of each filesystem, from the Ith on
--writers K           run K of the writers on each of them, in turn (default: 3)
--only FS[:WHAT[:WRITER]]   only what matches these regular expressions
--linux N             in every Nth run, Linux reads the filesystem before and after, mounted read-only; needs root
--jobs J              number of processes (default: one per processor)
--keep FOLDER         with --only and a single run: keep the devices as they were before and after the writer
--verbose             print the outcome of each run

The same options give the same runs."""
import argparse
import collections
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import writers_made
from tool import digest, skip
from writers_ops import DEVICES, UNDO, Writers
from writers_read import command, has_default, inodes, linux_reads, read

# In memory, so that flushes do not wait for a disk.
MEMORY = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None

Damage = collections.namedtuple('Damage', 'filesystem number name changes')
Run = collections.namedtuple('Run', 'damage writer came problems linux')

# Accepted problems, as pairs of regular expressions: for FILESYSTEM:WHAT:WRITER, and for the problem reported.
EXEMPT = (
    # The pointer leads to a block of another tree, which may be written or freed: the same damage gets another code.
    (r'POINTER\.\d blockptr|ROOT_ITEM\.\d bytenr', r'check: BTR-(BLOCK|EXTENT)-'),
    # The file refers to free space. That is then allocated to another file, which makes the contradiction visible.
    (r'EXTENT_DATA\.\d disk_bytenr [+-]4096', r'check: BTR-(EXTENT-REF-MISSING|DATA-COMPRESSED)$'),
    # While a piece of a compressed extent is referenced, all its checksums stay, because all of it is read.
    (r'EXTENT_DATA\.\d compression \+1:truncate', r'check: BTR-FILE-CSUM-KEPT$'),
    # The superblock contains the sum over the block groups.
    (r'BLOCK_GROUP_ITEM\.\d \S*used ', r'check: BTR-BYTES-USED$'),
    # Without a free space tree, only the extent tree says that there is a tree block, so it is overwritten. Linux does
    # the same.
    (r'(uncached|linux-v1):extent METADATA_ITEM\.\d item\.key\.objectid ', r''),
)


class Image:
    """A filesystem in memory, which is written to files together with the changes."""

    def __init__(self, paths):
        self.pieces, self.sizes = [], []
        for path in paths:
            pieces = []
            with open(path, 'rb') as f:
                size, at = f.seek(0, os.SEEK_END), 0
                while at < size:
                    try:
                        at = os.lseek(f.fileno(), at, os.SEEK_DATA)
                    except OSError:
                        break
                    end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
                    pieces.append((at, os.pread(f.fileno(), end - at, at)))
                    at = end
            self.pieces.append(pieces)
            self.sizes.append(size)

    def put(self, paths, changes):
        for number, path in enumerate(paths):
            with open(path, 'wb') as f:
                f.truncate(self.sizes[number])
                for at, data in self.pieces[number]:
                    os.pwrite(f.fileno(), data, at)
                for change in changes.split():
                    device, rest = change.split('@')
                    offset, text = rest.split(':')
                    if int(device) == number:
                        os.pwrite(f.fileno(), bytes.fromhex(text), int(offset))


class Filesystem:
    def __init__(self, name, folder, local, falsify):
        self.name, self.local = name, local
        paths, roles = writers_made.make(name, f'{folder}/{name}', local)
        self.image, self.number = Image(paths), len(paths)
        good = read(paths)
        assert good.codes == set() and not good.lost, (name, good.codes, good.lost)
        assert all(path in good.entries for path in roles.values()), (name, roles)
        self.writers = Writers(roles, local, writers_made.contents(local)).all
        lines = subprocess.run([falsify, *paths], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
        self.damages = [Damage(name, i, *line.split('\t')) for i, line in enumerate(lines)]


def below(path, tops):
    return any(not top or path == top or path.startswith(top + '/') for top in tops)


def parents(tops):
    return {'/'.join(top.split('/')[:i]) or '.' for top in tops for i in range(top.count('/') + 1)} | {'', '.'}


def compare_others(before, after, touched):
    """Compare all files except those that the writer may touch."""
    problems = []
    for path, entry in before.entries.items():
        if below(path, touched) or below(path, before.lost - {''}):
            continue
        new = after.entries.get(path)
        if new is None:
            problems.append(f'{path} is gone')
        elif new.content != entry.content:
            problems.append(f'{path} has other contents')
        elif new.what != entry.what:
            problems.append(f'{path} is another: {entry.what} {new.what}')
        elif new.time != entry.time and not entry.is_dir:
            problems.append(f'{path} has another time')
    problems += [f'{path} is new' for path in after.entries
                 if path not in before.entries and not below(path, touched) and not before.lost]
    problems += [f'{path} is damaged now' for path in after.lost
                 if not below(path, before.lost | set(touched)) and path not in before.lost]
    return problems


def compare_copy(before, after, path, source):
    """@path must have the previous contents of @source."""
    problems = []
    for old, entry in before.entries.items():
        if not below(old, (source,)):
            continue
        new = after.entries.get(path + old[len(source):])
        if new is None or new.content != entry.content or new.what[0] != entry.what[0]:
            problems.append(f'{path}{old[len(source):]} is not what {old} was')
    return problems


def compare_written(writer, before, after):
    known = {path: entry.content for path, entry in before.entries.items() if not below(path, before.lost)}
    try:
        expected = writer.after(known)
    except KeyError:
        return []  # depends on something unreadable
    problems = []
    for path, content in expected.items():
        if below(path, before.lost):
            continue  # cannot be checked
        if content is None:
            problems += [f'{path} is still there'] if path in after.entries else []
        elif isinstance(content, str):
            problems += compare_copy(before, after, path, content) if content in known else []
        elif path not in after.entries:
            problems.append(f'{path} is not there')
        elif after.entries[path].content != content:
            problems.append(f'{path} is not what was written')
    return problems


def compare_codes(before, after):
    if before.codes is None:
        return []
    new = {'cannot be opened'} if after.codes is None else after.codes - before.codes
    return [f'check: {code}' for code in sorted(new)]


def compare_linux(before, after, touched):
    """Compare what Linux reads; files that it could not read before do not count."""
    if before is None:
        return []
    if after is None:
        return ['Linux does not mount it now']
    problems, times = [], parents(touched)
    for path, entry in before.items():
        if below(path, touched) or isinstance(entry, int):
            continue
        new = after.get(path)
        if new is None or isinstance(new, int):
            problems.append(f'Linux: {path}: {new}')
        elif (new.content, new.what[:4]) != (entry.content, entry.what[:4]) or (
                path not in times and new != entry):
            problems.append(f'Linux: {path} is another')
    return problems


class Worker:
    """Worker in a process of its own, with its own files."""

    def __init__(self, filesystems, folder, keep):
        self.filesystems, self.keep = filesystems, keep
        self.folder = f'{folder}/worker-{os.getpid()}'
        os.makedirs(self.folder)

    def words(self, writer, paths):
        undo = f'{self.folder}/undo'
        if isinstance(writer.words, str):
            return ['edit', *writers_made.devices(paths)], writer.words.encode()
        words = []
        for word in writer.words:
            words += (writers_made.devices(paths) if word == DEVICES else [undo] if word == UNDO else [word])
        return words, None

    def put_back(self, paths, sums):
        """Undo the writer: the devices must be byte for byte as before."""
        status, _, said = command('undo', '-q', f'{self.folder}/undo', *paths)
        if status:
            return [f'undo: exit {status}: {said}']
        return [] if [digest(path) for path in paths] == sums else ['undo: is not as before']

    def store(self, paths, when):
        for number, path in enumerate(paths if self.keep else ()):
            shutil.copyfile(path, f'{self.keep}/{when}-{number}.img')

    def check(self, fs, damage, writer, before, sums, checked):
        paths = [f'{self.folder}/{i}' for i in range(fs.number)]
        if os.path.exists(f'{self.folder}/undo'):
            os.unlink(f'{self.folder}/undo')
        fs.image.put(paths, damage.changes)
        linux = None
        # Linux can only check the filesystem if it finds the default subvolume.
        if checked and before.codes is not None and has_default(paths):
            linux = [linux_reads(paths, f'{self.folder}/mnt')]
        words, script = self.words(writer, paths)
        self.store(paths, 'before')
        status, out, said = command(*words, script=script)
        self.store(paths, 'after')
        problems, succeeded = [], status == 0
        if status not in (0, 1) or (status == 1 and (len(said) != 1 or out)):
            problems.append(f'exit {status}: {said}')
        if not succeeded and [digest(path) for path in paths] == sums:
            return Run(damage, writer.name, 'refused', problems, 0)
        after = read(paths)
        touched = writer.touched if succeeded else ()
        problems += compare_others(before, after, touched) + compare_codes(before, after)
        if succeeded:
            problems += compare_written(writer, before, after)
        if linux and succeeded:  # not if the writer changed nothing
            problems += compare_linux(linux[0], linux_reads(paths, f'{self.folder}/mnt'), touched)
        if problems and succeeded:
            problems = self.same_inode(fs, damage, (*writer.touched, *before.lost), problems)
        if succeeded and UNDO in writer.words:
            problems += self.put_back(paths, sums)
        return Run(damage, writer.name, 'succeeded' if succeeded else 'refused', problems,
                   int(bool(linux and linux[0] is not None)))

    def same_inode(self, fs, damage, known, problems):
        """With a falsified name, two paths may lead to the same inode: a change of one is then visible through the
        other."""
        paths = [f'{self.folder}/inode-{i}' for i in range(fs.number)]
        fs.image.put(paths, damage.changes)
        numbers = inodes(paths)
        own = {numbers[path] for path in known if path in numbers}
        return [p for p in problems if numbers.get(p.removeprefix('Linux: ').split(' ')[0].rstrip(':')) not in own]

    def damage(self, task):
        damage, chosen = task
        fs = self.filesystems[damage.filesystem]
        paths = [f'{self.folder}/{i}' for i in range(fs.number)]
        fs.image.put(paths, damage.changes)
        before, sums = read(paths), [digest(path) for path in paths]
        return [self.check(fs, damage, fs.writers[i], before, sums, checked) for i, checked in chosen]


worker = None


def begin(filesystems, folder, keep):
    global worker
    worker = Worker(filesystems, folder, keep)


def do(task):
    return worker.damage(task)


def tasks(filesystems, args, only):
    """Return [(damage, [(number of a writer, whether Linux is asked)])]. Each filesystem starts with different
    writers."""
    runs, turn = 0, 0
    for at, fs in enumerate(filesystems.values()):
        lot = random.Random(at)
        order = list(range(len(fs.writers)))
        lot.shuffle(order)
        for damage in fs.damages:
            if damage.number % args.every != args.start % args.every or not only.damage(damage):
                continue
            chosen = [order[(turn + i) % len(order)] for i in range(min(args.writers, len(order)))]
            turn += args.writers
            if only.writer:
                chosen = [i for i in order if only.names(fs.writers[i].name)]
            numbered = []
            for i in chosen:
                runs += 1
                numbered.append((i, bool(args.linux) and runs % args.linux == 0))
            yield damage, numbered


class Only:
    def __init__(self, text):
        self.filesystem, self.what, self.writer = (text.split(':') + ['', ''])[:3]

    def damage(self, damage):
        return re.search(self.what, damage.name)

    def names(self, writer):
        return re.fullmatch(self.writer, writer)


def told(run):
    return f'{run.damage.filesystem}:{run.damage.name}:{run.writer}'


def wrong_of(run):
    """Return the problems of a run that are not exempt."""
    patterns = [pattern for what, pattern in EXEMPT if re.search(what, told(run))]
    return [problem for problem in run.problems if not any(re.match(p, problem) for p in patterns)]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--from', type=int, default=0, dest='start')
    parser.add_argument('--writers', type=int, default=3)
    parser.add_argument('--only', default='')
    parser.add_argument('--linux', type=int, default=0)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('--keep')
    parser.add_argument('falsify')
    return parser.parse_args()


def main():
    args = parse()
    only = Only(args.only)
    if args.linux and os.geteuid():
        skip('needs root')
    with tempfile.TemporaryDirectory(prefix='btrkit-writers-', dir=MEMORY) as folder:
        local = f'{folder}/local'
        writers_made.make_local(local)
        filesystems = {name: Filesystem(name, folder, local, args.falsify) for name in writers_made.FILESYSTEMS
                       if re.search(only.filesystem, name)}
        todo = list(tasks(filesystems, args, only))
        counts, wrong, runs = collections.Counter(), 0, 0
        with multiprocessing.get_context('fork').Pool(args.jobs, begin, (filesystems, folder, args.keep)) as pool:
            for one in pool.imap(do, todo):
                for run in one:
                    runs += 1
                    counts[run.came] += 1
                    counts['linux'] += run.linux
                    if problems := wrong_of(run):
                        wrong += 1
                        print(told(run), run.came, *problems[:5], sep='\n    ', flush=True)
                    elif args.verbose:
                        print(told(run), run.came)
    print(f'{len(todo)} damages, {runs} runs: {counts["succeeded"]} succeeded, {counts["refused"]} refused, '
          f'{counts["linux"]} checked by Linux, {wrong} wrong')
    return int(bool(wrong) or not counts['succeeded'] or not counts['refused'])


if __name__ == '__main__':
    sys.exit(main())
