# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the text of dump-tree and dump-super with that of btrfs-progs, option by option."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tool import thinned

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
BTRFS = os.environ.get('BTRFS', 'btrfs')
MKFS = os.environ.get('MKFS', 'mkfs.btrfs')
BTRFSTUNE = os.environ.get('BTRFSTUNE', 'btrfstune')
ENV = dict(os.environ, TZ='UTC', LC_ALL='C')
OLDEST = (6, 14)    # the first version whose wording equals 6.19
NEW_TEXT = (7, 1)   # the first version known to print the text of 7.3
SHOWN = 6

TREE_OPTIONS = [
    [], ['-e'], ['-d'], ['-r'], ['-R'], ['-u'], ['--extents'], ['--device'], ['--roots'], ['--backups'], ['--uuid'],
    ['-e', '-d'], ['-d', '-r'], ['-e', '-r'], ['-e', '-u'], ['--bfs'], ['--dfs'], ['--dfs', '--bfs'], ['--noscan'],
    ['--hide-names'], ['--csum-headers'], ['--csum-items'], ['--dfs', '--csum-headers', '--csum-items', '--hide-names'],
    ['-e', '--csum-headers'], ['-d', '--csum-headers'], ['-R', '-t', 'csum'], ['-r', '-t', '5'], ['-t', 'fs', '-e'],
    ['-t', 'extent', '-e'], ['-t', 'root', '-u'], ['-t', 'root'], ['-t', '1', '-r'], ['-t', 'chunk'], ['-t', 'device'],
    ['-t', 'fs'], ['-t', 'csum', '--csum-items'], ['--tree', 'BTRFS_EXTENT_TREE_OBJECTID'], ['-t', 'data-reloc'],
    ['-t', '18446744073709551607'], ['-t', 'fs_tree', '--dfs'], ['-t', 'EXTENT_TREE', '--bfs'],
]
SUPER_OPTIONS = [
    [], ['-f'], ['-a'], ['-fa'], ['--full', '--all'], ['-s', '0'], ['-s', '1', '-f'], ['--super', '1'], ['-i', '1'],
    ['--bytenr', '65536'], ['--bytenr', '67108864', '-f'], ['-s', '65536'], ['-F'], ['-F', '--bytenr', '0'],
    ['--force', '--all', '-f'], ['-a', '-s', '1'], ['-s', '1', '-a'],
]


class Difference(Exception):
    pass


def run(*args):
    # With two pipes Python would read a dump of many megabytes in small pieces, so errors go to a file.
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=errors, check=False, env=ENV,
                              stdin=subprocess.DEVNULL)
        errors.seek(0)
        done.stderr = errors.read()
    return done


def must(*args):
    done = run(*args)
    if done.returncode:
        raise RuntimeError(f'{" ".join(args)}: exit {done.returncode}: {done.stderr.decode(errors="replace")}')
    return done.stdout


def progs_version():
    found = re.search(rb'v(\d+)\.(\d+)', run(BTRFS, '--version').stdout)
    return tuple(map(int, found.groups())) if found else (0, 0)


def compat_options():
    """The options with which dump-tree prints the text of the peer."""
    return [] if progs_version() >= NEW_TEXT else ['--compat', '6.19']


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def need_peer():
    for program in (BTRFS, MKFS, BTRFSTUNE):
        if not shutil.which(program):
            skip(f'needs {program}')
    if progs_version() < OLDEST:
        skip(f'{BTRFS} is older than {OLDEST[0]}.{OLDEST[1]}, which words some things differently')


def first_difference(theirs, ours, what):
    theirs, ours = theirs.split(b'\n'), ours.split(b'\n')
    at = next((i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
    text = [f'{what}: line {at + 1} differs ({len(theirs)} lines of the peer, {len(ours)} of btrkit)']
    for sign, lines in (('-', theirs), ('+', ours)):
        text += [f'  {sign}{line.decode(errors="backslashreplace")}' for line in lines[at:at + SHOWN]]
    return '\n'.join(text)


def without_banner(text):
    return text.partition(b'\n')[2]


def block_options(text):
    """Arguments for -b: roots of trees, alone and with the blocks below. @text is the output of -r."""
    places = re.findall(rb' (\d+) level (\d)\n', text)
    roots = [place.decode() for place, _ in places]
    deep = [place.decode() for place, level in places if level != b'0'] or roots
    return [['-b', roots[0]], ['--block', deep[0]], ['-b', roots[-1], '-b', roots[1], '-b', roots[1]],
            ['-b', deep[0], '--follow'], ['-b', deep[-1], '--follow', '--dfs', '--csum-headers'],
            ['-b', deep[0], '-b', roots[2], '--follow', '--bfs', '--hide-names']]


def peer_text(options, text):
    """Remove the banner, and hide the names of subvolumes that the peer's --hide-names leaves."""
    text = without_banner(text)
    if '--hide-names' in options:
        text = re.sub(rb'(\t\troot (?:back)?ref key dirid \d+ sequence \d+ name )[^\n]*', rb'\1HIDDEN', text)
    return text


class Comparison:
    def __init__(self):
        self.filesystems = self.texts = self.lines = 0
        self.compat = compat_options()

    def same(self, theirs, ours, what):
        if theirs != ours:
            raise Difference(first_difference(theirs, ours, what))
        self.texts += 1
        self.lines += theirs.count(b'\n')

    def tree(self, options, *devices):
        what = ' '.join(['dump-tree', *options])
        theirs, ours = run(BTRFS, 'inspect-internal', 'dump-tree', *options, *devices), run(
            BTRKIT, 'dump-tree', *self.compat, *options, *devices)
        if theirs.returncode or not theirs.stdout:
            raise RuntimeError(f'{what}: the peer: exit {theirs.returncode}: {theirs.stderr.decode()}')
        if ours.returncode or not ours.stdout.startswith(b'btrkit '):
            raise Difference(f'{what}: exit {ours.returncode}: {ours.stderr.decode()}')
        self.same(peer_text(options, theirs.stdout), without_banner(ours.stdout), what)
        return ours.stdout

    def blocks(self, *devices):
        for options in block_options(self.tree(['-r'], *devices)):
            self.tree(options, *devices)

    def trees(self, *devices, more=()):
        for options in (thinned(TREE_OPTIONS, 5) if self.filesystems else TREE_OPTIONS) + list(more):
            self.tree(options, *devices)
        self.blocks(*devices)
        self.filesystems += 1

    def super(self, options, *devices):
        """With missing or damaged copies the peer stops, or continues without a message; then only the text is
        compared."""
        what = ' '.join(['dump-super', *options])
        theirs, ours = run(BTRFS, 'inspect-internal', 'dump-super', *options, *devices), run(
            BTRKIT, 'dump-super', *options, *devices)
        if theirs.returncode or not theirs.stdout:
            raise RuntimeError(f'{what}: the peer: exit {theirs.returncode}: {theirs.stderr.decode()}')
        # The peer omits a separator where a damaged chunk has several types.
        text = re.sub(rb'(DATA|SYSTEM)(SYSTEM|METADATA_REMAP)', rb'\1|\2', theirs.stdout)
        self.same(text, ours.stdout, what)
        return ours.returncode

    def supers(self, *devices):
        for options in thinned(SUPER_OPTIONS, 3) if self.filesystems > 1 else SUPER_OPTIONS:
            if self.super(options, *devices):
                raise Difference(f'dump-super {options} fails')

    def finish(self):
        print(f'{self.filesystems} filesystems, {self.texts} texts, {self.lines} lines equal')
        return 0 if self.filesystems and self.texts and self.lines else 1


def self_test():
    """The comparison must notice each kind of difference."""
    good, seen = b'a\nb\nc\n', 0
    for bad in (b'a\nb\n', b'a\nb\nd\n', b'', b'a\nb\nc', b'a\nb\nc\n\n', b'a\nc\nb\n'):
        try:
            Comparison().same(good, bad, 'text')
        except Difference:
            seen += 1
    assert seen == 6, f'{6 - seen} planted differences were not seen'
