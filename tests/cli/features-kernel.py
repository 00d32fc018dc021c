#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare `btrkit features` with Linux: set each bit alone in a superblock and mount it read-only."""
import json
import os
import sys
import tempfile

import tool
from tool import Super, run

import image

# Supported by btrkit, and by Linux only if built with experimental features.
ON_TRIAL = {'raid-stripe-tree'}
# Linux requires the trees that these two announce, which do not exist in this image.
PROMISES = {'free-space-tree', 'block-group-tree'}


def mounts(path):
    img = image.Image(path, size=None)
    try:
        img.mount(readonly=True)
        return True
    except RuntimeError:
        return False
    finally:
        img.umount()


def compare(path, plain, offset, nr, known):
    """Return 1 if Linux mounts it, else 0."""
    changed = Super(path)
    changed.data = bytearray(plain.data)
    changed.put(offset, plain.get(offset) | 1 << nr)
    row = known.get((offset, nr), {'name': f'bit {nr} of the field at {offset}', 'support': None})
    if row['name'] == 'metadata-uuid':
        changed.put(Super.METADATA_UUID, plain.get(Super.FSID))
        changed.put(Super.METADATA_UUID + 8, plain.get(Super.FSID + 8))
    changed.write()
    linux = mounts(path)
    # Not dump-tree, which also shows filesystems with unsupported features.
    status, _, err = run('ls', path, '/')
    if row['name'] in ON_TRIAL:
        assert not status, f'{row["name"]}: exit {status}: {err}'
    elif row['name'] in PROMISES:
        assert not linux and not status, f'{row["name"]}: no exception is needed'
    else:
        assert linux == (not status), f'{row["name"]}: Linux mounts it: {linux}; btrkit: exit {status}: {err}'
    return int(linux)


def main():
    reason = image.missing()
    if reason:
        tool.skip(reason)
    sets = {'compat': Super.COMPAT, 'compat_ro': Super.COMPAT_RO, 'incompat': Super.INCOMPAT}
    rows = [json.loads(line) for line in run('features', '--format', 'json')[1].splitlines()[1:]]
    known = {(sets[row['set']], row['bit'].bit_length() - 1): row for row in rows}
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'fs.img')
        tool.make_filesystem(path, os.path.join(scratch, 'files'), '-n', '4096', '-s', '4096',
                             '-O', '^extref,^skinny-metadata,^no-holes', '-R', '^free-space-tree')
        plain = Super(path)
        if not mounts(path):
            raise RuntimeError('Linux does not mount the filesystem as it is')
        mounted = sum(compare(path, plain, offset, nr, known)
                      for offset in (*sets.values(), Super.FLAGS) for nr in range(64))
    print(f'256 bits compared with Linux, {mounted} mounted, {256 - mounted} refused')
    return 0 if 0 < mounted < 256 else 1


if __name__ == '__main__':
    sys.exit(main())
