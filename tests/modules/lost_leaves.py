# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaves of the top level's tree in an image without further copies, which tests lose."""
import re
import subprocess

from tool import BTRKIT, run


def edit(path, script):
    done = subprocess.run([BTRKIT, 'edit', path], input='\n'.join(script).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def leaves(path):
    """Their dumps, which begin with the address."""
    return re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]


def lose(path, leaf):
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')


def copy(path, to):
    subprocess.run(['cp', '--sparse=always', path, to], check=True)
    return to


def number(path, name):
    """The inode number of a file."""
    return re.match(r'\s*(\d+)', run('ls', '-di', path, name)[1].decode())[1]
