#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coverage of lib/ by the tests, from the data collected by lcov: lines and branches of each directory, and the
branches that were never taken, for examination. Usage: coverage.py INFO [PREFIX]; PREFIX: list branches of files that
begin with it."""
import collections
import re
import sys


def read(path):
    """Return for each file its lines and branches, with execution counts."""
    files, name = {}, None
    with open(path, encoding='utf-8') as f:
        for line in f:
            kind, _, rest = line.rstrip('\n').partition(':')
            if kind == 'SF':
                name = re.sub(r'^.*/(?=lib/)', '', rest)
                lines, branches = files.setdefault(name, (collections.Counter(), collections.Counter()))
            elif kind == 'DA':
                number, count = rest.split(',')[:2]
                lines[int(number)] += int(count)
            elif kind == 'BRDA':
                number, block, branch, count = rest.split(',')
                # A branch in a line that was never reached has no count.
                branches[int(number), block, branch] += 0 if count == '-' else int(count)
    return {name: found for name, found in files.items() if name.startswith('lib/')}


def share(counts):
    return sum(1 for count in counts if count), len(counts)


def row(name, files):
    lines = share([c for found, _ in files for c in found.values()])
    branches = share([c for _, found in files for c in found.values()])
    text = f'{name:24} {len(files):4} files'
    for what, (taken, n) in (('lines', lines), ('branches', branches)):
        text += f' {taken:6} of {n:6} {what} {100 * taken / max(n, 1):5.1f} %'
    print(text)


def main():
    files = read(sys.argv[1])
    if not files:
        sys.exit('no file of lib/ in it')
    if len(sys.argv) > 2:
        for name in sorted(name for name in files if name.startswith(sys.argv[2])):
            row(name, [files[name]])
            missed = collections.Counter(n for (n, _, _), count in files[name][1].items() if not count)
            print('    branches not taken, by line: ' + ' '.join(f'{n}×{c}' if c > 1 else str(n)
                                                                 for n, c in sorted(missed.items())))
        return
    for directory in sorted({name.split('/')[1] for name in files}):
        row(f'lib/{directory}', [found for name, found in files.items() if name.startswith(f'lib/{directory}/')])
    row('lib', list(files.values()))


if __name__ == '__main__':
    main()
