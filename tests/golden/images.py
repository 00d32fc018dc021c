#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""List the extents of a committed image and dump it, and compare the output with that of Linux and btrfs-progs 7.3
and 6.19. Its free space cache, which Linux wrote, must agree with its extent tree, both in a report and when it is
loaded for writing, and the audit must find nothing. Files are compared where the hash of what Linux read is known.
Usage: images.py IMAGES NAME
The environment has the programs: BTRKIT, AUDIT, READ_FILES, and SPACE_LOAD of this directory."""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import unpack

BTRKIT, AUDIT = os.environ['BTRKIT'], os.environ['AUDIT']
SPACE_LOAD, READ_FILES = os.environ['SPACE_LOAD'], os.environ['READ_FILES']


def command(*args):
    return subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, check=True, env=dict(os.environ, TZ='UTC')).stdout


def files_of(path, folder):
    """The hash of the contents of all files, as the library reads them."""
    out = os.path.join(folder, 'files')
    os.mkdir(out)
    subprocess.run([READ_FILES, out, path], check=True, stdout=subprocess.DEVNULL)
    lines = sorted(f'{name} {unpack.file_sum(os.path.join(out, name))}' for name in os.listdir(out))
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()


def main(name):
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(sys.argv[1], f'{name}.tsv'), 'rb') as f:
        path, theirs = unpack.unpack(name, folder, quick=True), f.read()
        ours = command('fiemap', '-a', '--format', 'tsv', path)
        dump = command('dump-tree', path).partition(b'\n')[2]
        before = command('dump-tree', '--compat', '6.19', path).partition(b'\n')[2]
        audit = subprocess.run([AUDIT, path], stdout=subprocess.PIPE, check=False)
        free = command('space-cache', 'status', '--format', 'json', path)
        files = files_of(path, folder) if f'{name}.files' in unpack.sums() else None
        loaded = subprocess.run([SPACE_LOAD, path], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    rows = theirs.splitlines()
    if ours != theirs:
        print(f'{name}: fiemap differs from Linux')
        for sign, lines, others in (('-', rows, set(ours.splitlines())), ('+', ours.splitlines(), set(rows))):
            for line in [line for line in lines if line not in others][:10]:
                print(sign, line.decode())
    for text, which, version in (dump, 'dump', '7.3'), (before, 'dump-6.19', '6.19'):
        if hashlib.sha256(text).hexdigest() != unpack.sums()[f'{name}.{which}']:
            print(f'{name}: dump-tree differs from btrfs-progs {version}')
            return 1
    if files and files != unpack.sums()[f'{name}.files']:
        print(f'{name}: other contents of files than Linux read')
        return 1
    summary = json.loads(free.splitlines()[-1])['summary']
    if not summary['valid'] or summary['contradictions'] or not summary[summary['in_use']]['equal']:
        print(f'{name}: space-cache status: {summary}')
        return 1
    if not int(loaded[{'v2': 0, 'v1': 1}[summary['in_use']]]):
        print(f'{name}: no free space was loaded from the cache')
        return 1
    if audit.returncode or b' data extents' not in audit.stdout:
        print(f'{name}: audit: {audit.stdout.decode(errors="replace")}')
        return 1
    lines = dump.count(b'\n')
    print(f'compared {len(rows)} extents and {lines} lines of a dump of {name}; loaded free space of {loaded[0]} '
          f'groups from the free space tree, {loaded[1]} from the v1 cache')
    return int(ours != theirs or not rows or not lines)


if __name__ == '__main__':
    sys.exit(main(sys.argv[2]))
