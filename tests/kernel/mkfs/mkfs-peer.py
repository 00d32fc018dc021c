#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the mkfs tests of btrfs-progs with its own mkfs.btrfs and with ours in its place.

What passes with its own must pass with ours, unless it needs an option that ours refuses by name.

    mkfs-peer.py [--only PATTERN]

PROGS is a built source tree of btrfs-progs, which is copied; BTRKIT is our program. Tests on zoned devices are skipped:
a kernel without zoned support treats them as ordinary devices. Exits with 77 if it cannot run.
"""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

import image

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
PROGS = os.environ.get('PROGS')
PROGRAMS = ('btrfs', 'mkfs.btrfs', 'btrfstune')
NEEDED = (*PROGRAMS, 'configure.ac', 'Documentation', 'tests')
SECONDS = 300
PASS, FAIL, NOT_RUN = 'passed', 'failed', 'not run'
REFUSED = re.compile(r"btrkit mkfs: (option '--\S+' of mkfs\.btrfs|\S+: '\S+') is not supported")


def copy(to):
    os.mkdir(to)
    for name in NEEDED:
        there = f'{PROGS}/{name}'
        if os.path.isdir(there):
            shutil.copytree(there, f'{to}/{name}', symlinks=True, ignore=shutil.ignore_patterns(
                'fsck-tests', 'misc-tests', 'convert-tests', 'fuzz-tests', 'cli-tests', '*.o'))
        else:
            shutil.copy(there, f'{to}/{name}')
    return to


def names(tree):
    for name in sorted(os.listdir(f'{tree}/tests/mkfs-tests')):
        script = f'{tree}/tests/mkfs-tests/{name}/test.sh'
        if os.path.exists(script):
            with open(script, encoding='utf-8') as f:
                if 'nullb' not in f.read():
                    yield name


def clean(tree):
    """Clean up what a failed test leaves behind."""
    with open('/proc/self/mounts', encoding='utf-8') as f:
        mounts = [line.split()[1] for line in f]
    for mount in [m for m in mounts if m.startswith(tree + '/') or '/btrfs-progs-' in m][::-1]:
        subprocess.run(['umount', mount], check=False)
    for line in image.run('losetup', '-nO', 'NAME,BACK-FILE').decode().splitlines():
        loop, _, path = line.partition(' ')
        if path.strip().startswith(tree + '/'):
            subprocess.run(['losetup', '-d', loop], check=False)


def attempt(tree, name):
    """@return the verdict, and the log"""
    log = f'{tree}/tests/mkfs-tests-results.txt'
    with tempfile.TemporaryDirectory(prefix='btrfs-progs-', dir=tree) as scratch:
        try:
            done = subprocess.run(['bash', f'{tree}/tests/mkfs-tests.sh'], cwd=f'{tree}/tests', check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                  timeout=SECONDS, env={**os.environ, 'TEST': name, 'TMPDIR': scratch})
            failed, said = done.returncode, done.stdout.decode(errors='replace')
        except subprocess.TimeoutExpired:
            failed, said = 1, f'more than {SECONDS} s'
        finally:
            clean(tree)
    try:
        with open(log, encoding='utf-8', errors='replace') as f:
            said += f.read()
    except OSError:
        pass
    return (FAIL if failed else NOT_RUN if '[NOTRUN]' in said else PASS), said


def twice(tree, name):
    """Partitions of loop devices appear late on a busy machine."""
    verdict, said = attempt(tree, name)
    return attempt(tree, name) if verdict == FAIL and not REFUSED.search(said) else (verdict, said)


def last_lines(said):
    return '\n'.join('    ' + line for line in said.splitlines()[-12:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default='*', metavar='PATTERN')
    args = parser.parse_args()
    reason = image.missing()
    if not reason and not (PROGS and all(os.path.exists(f'{PROGS}/{name}') for name in NEEDED)):
        reason = 'PROGS is no built source tree of btrfs-progs'
    if reason:
        print(f'skipped: {reason}')
        return 77
    counts = {'theirs': {PASS: 0, FAIL: 0, NOT_RUN: 0}, 'ours': {PASS: 0, FAIL: 0, NOT_RUN: 0}}
    refused, worse = 0, 0
    with tempfile.TemporaryDirectory(prefix='btrkit-mkfs-peer-') as scratch:
        theirs, ours = copy(f'{scratch}/theirs'), copy(f'{scratch}/ours')
        os.unlink(f'{ours}/mkfs.btrfs')
        os.symlink(os.path.realpath(shutil.which(BTRKIT)), f'{ours}/mkfs.btrfs')
        for name in fnmatch.filter(names(ours), args.only):
            wanted, _ = twice(theirs, name)
            found, said = twice(ours, name)
            counts['theirs'][wanted] += 1
            counts['ours'][found] += 1
            missing = REFUSED.search(said) if found == FAIL else None
            print(f'{name}: {wanted}, ours {found}' + (f': {missing.group()}' if missing else ''), flush=True)
            refused += missing is not None
            if wanted == PASS and found != PASS and not missing:
                worse += 1
                print(last_lines(said))
    for whose, count in counts.items():
        print(f'{whose}: ' + ', '.join(f'{number} {verdict}' for verdict, number in count.items()))
    print(f'{refused} need an option that is refused by name; {worse} others pass with theirs only')
    return 1 if worse or not counts['ours'][PASS] else 0


if __name__ == '__main__':
    sys.exit(main())
