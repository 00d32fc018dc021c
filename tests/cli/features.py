#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Set each bit alone in a superblock, and check that every command behaves as `btrkit features` says."""
import json
import os
import re
import sys
import tempfile

import tool
from tool import Super, check_failure, run

SETS = {'compat': Super.COMPAT, 'compat_ro': Super.COMPAT_RO, 'incompat': Super.INCOMPAT}

# The commands that read a filesystem, and their options here. dump-super shows any superblock.
READERS = {'du': [], 'dump-tree': [], 'fiemap': ['-a'], 'list-chunks': [], 'list-devices': [],
           'list-subvolumes': ['--format', 'json'], 'space-cache': ['status'], 'tree-stats': []}
# Bits that affect the output of a command: the trees that they announce do not exist.
SHOWN = {('space-cache', ('compat_ro', nr)) for nr in (0, 3)} | {('list-chunks', ('compat_ro', 3))}
SHOWERS = {'dump-super': []}
OTHERS = {'cat', 'check', 'diff', 'edit', 'extract', 'features', 'inode-resolve', 'logical-resolve', 'ls',
          'map-logical', 'mkfs', 'stat', 'undo'}

# Superblock flags with which Linux mounts: written, reloc, error, seeding, metadump, metadump v2. FLAG_NAMES are the
# names in refusals of other flags.
FLAGS_READ = {0, 1, 2, 32, 33, 34}
FLAG_NAMES = {35: 'fsid', 36: 'metadata uuid', 38: 'block group tree', 39: 'data checksums', 40: 'metadata checksums'}


def table():
    status, out, err = run('features', '--format', 'json')
    assert not status and not err
    header, *rows = map(json.loads, out.decode().splitlines())
    assert header['__header']['version'] == 1
    known = {(row['set'], row['bit'].bit_length() - 1): row for row in rows}
    assert len(known) == len(rows) > 15 and all(row['bit'] == 1 << nr for (_, nr), row in known.items())
    text = run('features')[1].decode()
    for row in rows:
        line = next(line for line in text.splitlines() if re.search(rf'\b{row["name"]}\s', line))
        assert row['support'] in line and ('yes' in line) == row['tried'], line
    return known


def commands():
    return set(re.findall(r'^  ([a-z][a-z-]*) ', run('--help')[1].decode(), re.M))


class Trial:
    def __init__(self, path, known):
        self.path, self.known, self.refused, self.read = path, known, 0, 0
        self.plain = Super(path)
        # mkfs.btrfs 7.3 sets big-metadata always.
        assert self.plain.get(Super.INCOMPAT) == 0x21, 'the base should have mixed-backref and big-metadata only'
        self.base = {name: self.output(name, args) for name, args in READERS.items()}

    def output(self, name, args):
        status, out, err = run(name, *args, self.path)
        assert not status and not err and out, (name, status, err)
        return out

    def set_bit(self, offset, nr):
        changed = Super(self.path)
        changed.data = bytearray(self.plain.data)
        changed.put(offset, self.plain.get(offset) | 1 << nr)
        if offset == Super.INCOMPAT and nr == 10:
            # This bit makes the metadata_uuid field valid.
            changed.put(Super.METADATA_UUID, self.plain.get(Super.FSID))
            changed.put(Super.METADATA_UUID + 8, self.plain.get(Super.FSID + 8))
        changed.write()

    def expect_read(self, what, bit=None):
        for name, args in READERS.items():
            if (name, bit) in SHOWN:
                continue
            status, out, err = run(name, *args, self.path)
            assert not status and not err, f'{what}: {name}: exit {status}: {err}'
            assert out == self.base[name], f'{what}: {name} prints something else'
            self.read += 1

    def expect_shown_half_done(self, what, word):
        """dump-tree shows a filesystem in an intermediate state, with a warning."""
        status, out, err = run('dump-tree', *READERS['dump-tree'], self.path)
        assert not status and out == self.base['dump-tree'], f'{what}: dump-tree: exit {status}: {err}'
        said = err.decode() if isinstance(err, bytes) else err
        assert said.count('\n') == 1 and said.endswith(f'{word}: shown as it is\n'), f'{what}: {said!r}'
        self.read += 1

    def expect_refused(self, what, word, readers=None):
        for name, args in (readers or READERS).items():
            said = check_failure(name, self.path, run(name, *args, self.path))
            assert said.startswith('not supported: ') and word in said, f'{what}: {said!r} lacks {word!r}'
            self.refused += 1

    def expect_shown(self, what, word):
        for name, args in SHOWERS.items():
            status, out, err = run(name, *args, self.path)
            assert not status and not err and word in out, f'{what}: {name}: {word!r} is not shown'

    def try_feature(self, which, nr):
        row = self.known.get((which, nr))
        what = f'{which} bit {nr}'
        self.set_bit(SETS[which], nr)
        self.expect_shown(what, b'%s_flags\t\t0x%x\n' % (which.encode(), self.plain.get(SETS[which]) | 1 << nr))
        if row and row['support'] == 'refused':
            self.expect_refused(what, row['name'])
        elif not row and which == 'incompat':
            self.expect_refused(what, f'unknown incompat bit {nr}')
        else:
            self.expect_read(what, (which, nr))

    def try_flag(self, nr):
        self.set_bit(Super.FLAGS, nr)
        self.expect_shown(f'flag {nr}', b'flags\t\t\t0x%x\n' % (self.plain.get(Super.FLAGS) | 1 << nr))
        if nr in FLAGS_READ:
            self.expect_read(f'flag {nr}')
        elif nr in FLAG_NAMES:
            self.expect_shown_half_done(f'flag {nr}', FLAG_NAMES[nr])
            self.expect_refused(f'flag {nr}', FLAG_NAMES[nr],
                                {name: args for name, args in READERS.items() if name != 'dump-tree'})
        else:
            self.expect_refused(f'flag {nr}', f'unknown superblock flag {nr}')


def chosen(known):
    """Known and unknown bits out of all 64; fewer under sanitizers."""
    return sorted([*tool.thinned(sorted(known), 3), *tool.thinned(sorted(set(range(64)) - known), 10)])


def main():
    missing = commands() ^ (set(READERS) | set(SHOWERS) | OTHERS)
    assert not missing, f'this test and `btrkit --help` differ about {missing}'
    known = table()
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'fs.img')
        tool.make_filesystem(path, os.path.join(scratch, 'files'), '-n', '4096', '-s', '4096',
                             '-O', '^extref,^skinny-metadata,^no-holes', '-R', '^free-space-tree')
        trial, tried = Trial(path, known), 0
        for which in SETS:
            for nr in chosen({nr for of, nr in known if of == which}):
                trial.try_feature(which, nr)
                tried += 1
        for nr in chosen({*FLAGS_READ, *FLAG_NAMES}):
            trial.try_flag(nr)
            tried += 1
    print(f'{tried} bits set alone: {trial.read} runs read as before, {trial.refused} refused by name')
    assert trial.read and trial.refused


if __name__ == '__main__':
    sys.exit(main())
