# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare listings of extents and dumps of trees line by line."""
import re
from dataclasses import dataclass

ROW = re.compile(rb'\d+\t\d+\t\d+\t\d+\t\d+\t0x[0-9a-f]+\t[\x20-\x7e]*')
SHOWN = 6


@dataclass
class Counts:
    files: int = 0
    extents: int = 0
    flags: int = 0
    shared: int = 0
    dumped: int = 0
    filefrag: int = 0
    alone: int = 0
    audited: int = 0

    def add(self, other):
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Difference(Exception):
    pass


def rows(listing, whose):
    lines = listing.split(b'\n')
    if lines.pop():
        raise Difference(f'{whose}: the last line has no end')
    for line in lines:
        if not ROW.fullmatch(line):
            raise Difference(f'{whose}: not a row: {line!r}')
    return lines


def compare(theirs, ours):
    """Compare every extent and every flag; raises Difference, or returns how much was equal."""
    theirs, ours = rows(theirs, 'Linux'), rows(ours, 'btrkit')
    if theirs != ours:
        text = [f'{len(theirs)} rows of Linux, {len(ours)} of btrkit']
        only = {b'-': set(theirs) - set(ours), b'+': set(ours) - set(theirs)}
        number = {line: i for i, line in enumerate(ours)} | {line: i for i, line in enumerate(theirs)}
        marked = sorted((number[line], sign, line) for sign, lines in only.items() for line in lines)
        each = f'{len(only[b"-"])} only of Linux (-), {len(only[b"+"])} only of btrkit (+)'
        text.append(each if marked else 'another order')
        text += [f'  {(sign + line).decode()}' for _, sign, line in marked[:4 * SHOWN]]
        raise Difference('\n'.join(text))
    counts = Counts(extents=len(theirs))
    fields = [line.split(b'\t') for line in theirs]
    counts.files = len({(f[0], f[1]) for f in fields})
    counts.flags = sum(bin(int(f[5], 16)).count('1') for f in fields)
    counts.shared = sum(int(f[5], 16) >> 13 & 1 for f in fields)
    return counts


def compare_text(theirs, ours, what):
    """Compare lines after the banner; returns how many were equal."""
    theirs, ours = theirs.split(b'\n')[1:], ours.split(b'\n')[1:]
    if len(theirs) < 3:
        raise Difference(f'{what}: the peer printed nothing')
    if theirs != ours:
        equal = next((i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
        text = [f'{what}: line {equal + 2} differs ({len(theirs)} lines of the peer, {len(ours)} of btrkit)']
        for sign, lines in (('-', theirs), ('+', ours)):
            text += [f'  {sign}{line.decode(errors="backslashreplace")}' for line in lines[equal:equal + SHOWN]]
        raise Difference('\n'.join(text))
    return len(theirs)


def without_paths(text):
    """Remove the file name from filefrag's output, which shows it as given on the command line."""
    text = re.sub(rb'(?m)^File size of .* is (\d+ \()', rb'File size of PATH is \1', text)
    return re.sub(rb'(?m)^.*: (\d+ extents? found)', rb'PATH: \1', text)
