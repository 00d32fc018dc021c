#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Filesystems that can be read, but not written: a zoned one, and one with a raid-stripe-tree, whose trees are printed
as by btrfs-progs 7.1, and whose file data is refused. Commands that write refuse both by name, and write nothing.
Usage: read-only.py IMAGES; BTRKIT and READ_FILES in the environment are the programs under test."""
import hashlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tool
import unpack

BTRKIT, READ_FILES = os.environ['BTRKIT'], os.environ['READ_FILES']
WRITERS = (['convert'], ['convert', '--dry-run'], ['convert', '--to=none'], ['clear', 'v1'], ['clear', 'v2'])
READERS = (['du'], ['dump-super', '-fa'], ['dump-tree'], ['fiemap', '-a'], ['list-chunks'], ['list-devices'],
           ['space-cache', 'status'])


def run(*args):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, TZ='UTC'))
    return done.returncode, done.stdout, done.stderr.decode()


def output(*args):
    status, out, err = run(*args)
    assert not status and out and not err, (args, status, err)
    return out


def refused(path, says, command, *args):
    assert run(BTRKIT, command, *args) == (1, b'', f'btrkit {command}: {path}: {says}\n'), run(BTRKIT, command, *args)


def is_refused(name, folder, feature):
    """Check that all commands that write refuse the image, and that all others read it."""
    path = unpack.unpack(name, folder, quick=True)
    before = tool.digest(path)
    for args in READERS:
        output(BTRKIT, *args, path)
    for args in WRITERS:
        refused(path, f'writing is not supported: {feature}', 'space-cache', *args, path)
    assert tool.digest(path) == before, f'{name}: something was written'
    return path


def stripes(path, folder):
    """Check that the trees are printed, and that data located by the stripe tree is refused."""
    dump = output(BTRKIT, 'dump-tree', path).partition(b'\n')[2]
    assert hashlib.sha256(dump).hexdigest() == unpack.sums()['unsupported-raid-stripe-tree.dump'], 'another text'
    alone = output(BTRKIT, 'dump-tree', '-t', 'raid_stripe', path)
    items, strides = (len(re.findall(what, alone)) for what in (rb' RAID_STRIPE \d+\) itemoff', rb'\tstripe \d devid '))
    assert items == 3 and strides == 2 + 7 + 2, (items, strides)

    out = os.path.join(folder, 'files')
    os.mkdir(out)
    status, said, err = run(READ_FILES, out, path)
    why = re.findall(r'reading file data is not supported: raid-stripe-tree', said.decode() + err)
    # The fourth file is small enough to be inline.
    assert status == 3 and len(why) == 3, (status, said, err)
    contents = set()
    for file in os.listdir(out):
        with open(os.path.join(out, file), 'rb') as f:
            contents.add(f.read().strip(b'\0'))
    assert contents == {b'', b'data' * 20}, f'{len(contents)} different contents'

    places = re.findall(r'chunk (\d+) length \d+ type (\w+)', output(BTRKIT, 'list-chunks', path).decode())
    assert {kind for _, kind in places} == {'DATA', 'METADATA', 'SYSTEM'}
    for address, kind in places:
        if kind == 'DATA':
            refused(path, 'locating file data is not supported: raid-stripe-tree', 'map-logical', path,
                    address)
        else:
            output(BTRKIT, 'map-logical', path, address)


def main():
    with tempfile.TemporaryDirectory() as folder:
        is_refused('good-zoned', folder, 'zoned')
        stripes(is_refused('unsupported-raid-stripe-tree', folder, 'raid-stripe-tree'), folder)
    print(f'2 filesystems: {len(READERS)} commands read them, {len(WRITERS)} refuse by name')
    return 0


if __name__ == '__main__':
    sys.exit(main())
