#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A dry run of space-cache has the figures of the run that follows, with every image, and writes nothing.
Usage: dry-run.py IMAGES"""
import glob
import os
import re
import sys
import tempfile

import unpack
from tool import digest, run, thinned

ACTIONS = (['convert', '--to=v1'], ['convert', '--to=v2'], ['convert', '--to=none'], ['convert', '--to=v2'],
           ['clear', 'v2'], ['clear', 'v1'], ['convert', '--to=v2'])


def figures(said):
    """Everything that both say; only a dry run tells the space and the time, and what it would write."""
    said = re.sub(rb'\bto be (removed|made|written:)', rb'\1', said).replace(b' then stop ', b' now stop ')
    said = said.replace(b' then makes ', b' now makes ')
    return [line for line in said.splitlines() if not line.startswith((b'space:', b'time:'))]


def both(path, args):
    """@return whether something was to be done"""
    before = digest(path)
    dry = run('space-cache', *args, '--dry-run', path)
    assert digest(path) == before, (path, args, 'a dry run writes')
    wet = run('space-cache', *args, path)
    assert dry[0] == wet[0], (path, args, dry, wet)
    assert figures(dry[1]) == figures(wet[1]), (path, args, dry[1].decode(), wet[1].decode())
    assert dry[2] == wet[2], (path, args, dry[2], wet[2])
    return not wet[0] and b'written:' in wet[1]


# Most images have the block group tree, which cannot be without the free space tree.
PLAIN = '^block-group-tree'
MADE = (('-n4k', '-O', PLAIN), ('-n16k', '-O', PLAIN), ('-n64k', '-O', PLAIN + ',^free-space-tree'),
        ('-M', '-n4k', '-O', PLAIN), ('-msingle', '-n4k', '-O', PLAIN), ('-n4k', '-O', PLAIN + ',^skinny-metadata'),
        ('-n16k', '--csum=sha256', '-O', PLAIN + ',^no-holes'), ('-n4k', ))


def make(path, options):
    """A filesystem with many free ranges."""
    with open(path, 'wb') as f:
        f.truncate(256 << 20)
    status, _, err = run('mkfs', '-q', '-f', *options, path)
    assert not status, err
    with tempfile.TemporaryDirectory() as source:
        for i in range(600):
            with open(f'{source}/f{i}', 'wb') as f:
                f.write(os.urandom(4096 * (1 + i % 3)))
        status, _, err = run('edit', path, 'put', '-r', source, 'd')
        assert not status, err
    status, _, err = run('edit', path, 'rm', *[f'd/f{i}' for i in range(0, 600, 2)])
    assert not status, err


def each_action(path):
    """@return the numbers of conversions, and of those with nothing to do or refused"""
    done = [both(path, args) for args in ACTIONS]
    assert not run('check', path)[0], path
    return sum(done), len(done) - sum(done)


def main(images):
    done = refused = 0
    names = sorted(os.path.basename(name)[:-len('.tar.xz')] for name in glob.glob(f'{images}/good-*.tar.xz'))
    with tempfile.TemporaryDirectory() as scratch:
        for name in thinned(names, 4):
            path = unpack.unpack(name, scratch)
            found = each_action(path)
            done, refused = done + found[0], refused + found[1]
            os.unlink(path)
        assert done, 'no image was converted'
        for options in thinned(MADE, 3):
            path = f'{scratch}/made.img'
            make(path, options)
            found = each_action(path)
            assert found[0] >= (5 if any(PLAIN in word for word in options) else 0), (options, found)
            done, refused = done + found[0], refused + found[1]
    print(f'{done} conversions and their dry runs agree; {refused} times there was nothing to do, or both refused')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
