#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every mkfs option, long and short, has a visible effect. With a given time and fsid, every run makes identical bytes.
Needs no root."""
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import uuid

import filling_rows
from tool import BTRKIT, check_failure, digest, run, thinned

M = 1 << 20
FSID, OTHER, DEVICE = ('abcdef01-2345-6789-abcd-ef0123456789', 'abcdef01-2345-6789-abcd-ef012345678a',
                       '11111111-2222-3333-4444-555555555555')
MARK = b'\xff' * 4096
checks = 0


def check(condition, what):
    global checks
    checks += 1
    assert condition, what


def output(*args, **kwargs):
    status, out, err = run(*args, **kwargs)
    assert not status, f'{args}: exit {status}: {err}'
    return out.decode()


class Made:
    """A filesystem, and the output of the mkfs that made it."""

    def __init__(self, path, *options, env=None, count=1):
        self.path, self.paths = path, [path, *(f'{path}.{number}' for number in range(2, count + 1))]
        for each in self.paths:
            with open(each, 'wb') as f:
                f.truncate(300 * M)
                f.seek(250 * M)
                f.write(MARK)
        self.status, out, self.err = run('mkfs', *options, *self.paths, env=dict(os.environ, **(env or {})))
        self.out = out.decode()

    def super(self, field, device=0):
        return re.search(rf'^{re.escape(field)}[\t ]*(.*)$', output('dump-super', self.paths[device]), re.M).group(1)

    def tree(self, name):
        return output('dump-tree', '-t', name, *self.paths)

    def chunks(self):
        return sorted(re.findall(r'stripe_len \d+ type (\S+)\n', self.tree('chunk')))

    def has(self, feature):
        return feature in re.split(r'[|()\s]+', output('dump-super', self.path))

    def marked(self):
        """Whether bytes that no tree covers are unchanged."""
        with open(self.path, 'rb') as f:
            f.seek(250 * M)
            return f.read(4096) == MARK

    def again(self, *options):
        """Make another filesystem over this one, and return the label."""
        run('mkfs', '-q', '-L', 'again', *options, self.path)
        return self.super('label')

    def undone(self):
        """Whether there is an undo file, and using it removes the filesystem."""
        file = os.path.join(os.path.dirname(self.path), 'undo')
        return not run('undo', file, self.path)[0] and run('dump-super', self.path)[0] == 1 and self.marked()


def times(made):
    return set(re.findall(r'\t[acmo]time ([1-9]\d*)\.', output('dump-tree', '-t', 'fs', made.path)))


# Options; a function that examines the filesystem; its result with the options, which must differ without them.
CHANGES = [
    ('-n 32k', lambda m: m.super('nodesize'), '32768'),
    ('--nodesize 4096', lambda m: m.super('nodesize'), '4096'),
    ('-s 8k', lambda m: m.super('sectorsize'), '8192'),
    ('--sectorsize 16384', lambda m: m.super('sectorsize'), '16384'),
    ('-b 200m', lambda m: m.super('total_bytes'), str(200 * M)),
    ('--byte-count 200m', lambda m: m.super('dev_item.total_bytes'), str(200 * M)),
    ('-L label', lambda m: m.super('label'), 'label'),
    ('--label label', lambda m: m.super('label'), 'label'),
    (f'-U {FSID}', lambda m: m.super('fsid'), FSID),
    (f'--uuid {FSID}', lambda m: m.super('dev_item.fsid'), f'{FSID} [match]'),
    (f'--device-uuid {DEVICE}', lambda m: m.super('dev_item.uuid'), DEVICE),
    ('-d dup', Made.chunks, ['DATA|DUP', 'METADATA|DUP', 'SYSTEM|DUP']),
    ('--data DUP', Made.chunks, ['DATA|DUP', 'METADATA|DUP', 'SYSTEM|DUP']),
    ('-m single', Made.chunks, ['DATA|single', 'METADATA|single', 'SYSTEM|single']),
    ('--metadata single -d dup', Made.chunks, ['DATA|DUP', 'METADATA|single', 'SYSTEM|single']),
    ('-M', Made.chunks, ['DATA|METADATA|single', 'SYSTEM|single']),
    ('--mixed -m dup -d dup', Made.chunks, ['DATA|METADATA|DUP', 'SYSTEM|DUP']),
    ('-O mixed-bg', lambda m: m.has('MIXED_GROUPS'), True),
    ('--features ^extref', lambda m: m.has('EXTENDED_IREF'), False),
    ('-O ^skinny-metadata', lambda m: m.has('SKINNY_METADATA'), False),
    ('-O ^no-holes', lambda m: m.has('NO_HOLES'), False),
    ('-O ^no-holes', lambda m: m.has('BLOCK_GROUP_TREE'), False),
    ('-O ^block-group-tree', lambda m: m.has('BLOCK_GROUP_TREE'), False),
    ('-O ^bgt', lambda m: 'BLOCK_GROUP_ITEM' in output('dump-tree', '-t', 'extent', m.path), True),
    ('-O ^free-space-tree', lambda m: m.has('FREE_SPACE_TREE_VALID'), False),
    ('-O ^fst', lambda m: m.has('BLOCK_GROUP_TREE'), False),
    ('-O ^fst', lambda m: m.super('cache_generation'), '18446744073709551615'),
    ('-O ^extref,^no-holes', lambda m: m.has('EXTENDED_IREF') or m.has('NO_HOLES'), False),
    ('-q', lambda m: m.out, ''),
    ('--quiet', lambda m: m.out, ''),
    ('-v', lambda m: 'Device UUID' in m.out, True),
    ('--verbose', lambda m: 'Device UUID' in m.out, True),
    ('-K', Made.marked, True),
    ('--nodiscard', Made.marked, True),
    ('--undo SCRATCH/undo', Made.undone, True),
    ('--undo SCRATCH/nodiscard', Made.marked, True),
    ('-f', lambda m: m.again('-f'), 'again'),
    ('--force', lambda m: m.again('--force'), 'again'),
    ('--csum xxhash', lambda m: m.super('csum_type'), '1 (xxhash64)'),
    ('--csum XXHASH64', lambda m: m.super('csum_type'), '1 (xxhash64)'),
    ('--csum sha256', lambda m: m.super('csum_type'), '2 (sha256)'),
    ('--csum sha256', lambda m: 'Checksum:           sha256\n' in m.out, True),
    ('--checksum blake2', lambda m: m.super('csum_type'), '3 (blake2b)'),
    ('--checksum blake2b', lambda m: m.super('csum_type'), '3 (blake2b)'),
    ('-d raid0', Made.chunks, ['DATA|RAID0', 'METADATA|DUP', 'SYSTEM|DUP']),
    ('-m RAID0', Made.chunks, ['DATA|single', 'METADATA|RAID0', 'SYSTEM|RAID0']),
    ('-O raid56', lambda m: m.has('RAID56'), True),
    ('-O raid1c34', lambda m: m.has('RAID1C34'), True),
    ('-O quota', lambda m: re.findall('QGROUP_STATUS|QGROUP_INFO 0/5|flags ON ', output('dump-tree', m.path)),
     ['QGROUP_STATUS', 'flags ON ', 'QGROUP_INFO 0/5']),
    ('-O squota', lambda m: m.has('SIMPLE_QUOTA'), True),
    ('-O squota', lambda m: 'flags ON|SIMPLE_MODE ' in output('dump-tree', m.path), True),
    ('-O quota,^quota,^bgt', lambda m: m.has('BLOCK_GROUP_TREE') or 'QGROUP' in output('dump-tree', m.path), False),
    ('-R quota', lambda m: 'QGROUP_STATUS' in output('dump-tree', m.path), True),
    ('--runtime-features ^free-space-tree', lambda m: m.has('FREE_SPACE_TREE_VALID'), False),
    ('-V', lambda m: m.out.startswith('btrkit mkfs, part of btrkit '), True),
    ('--version', lambda m: m.out.startswith('btrkit mkfs, part of btrkit '), True),
    ('--help', lambda m: m.out.startswith('Usage: btrkit mkfs '), True),
]
PROFILES = {'single': 1, 'dup': 1, 'raid0': 1, 'raid1': 2, 'raid1c3': 3, 'raid1c4': 4, 'raid10': 2, 'raid5': 2,
            'raid6': 3}


def kept(made):
    """How many devices have kept their contents."""
    count = 0
    for path in made.paths:
        with open(path, 'rb') as f:
            f.seek(250 * M)
            count += f.read(4096) == MARK
    return count


def words(made):
    """Lines on standard error, without the prefix of program and device."""
    return re.sub(r'^btrkit mkfs: \S+: ', '', made.err, flags=re.M).splitlines()


UNSAFE = 'RAID5 and RAID6 have known problems in Linux, and are for tests only'
# The same for several devices: number of devices, options, function, result.
SEVERAL = [
    (2, '', Made.chunks, ['DATA|single', 'METADATA|RAID1', 'SYSTEM|RAID1']),
    (3, '-M', Made.chunks, ['DATA|METADATA|single', 'SYSTEM|single']),
    (2, '-M -d raid1 -m raid1', Made.chunks, ['DATA|METADATA|RAID1', 'SYSTEM|RAID1']),
    (3, '', lambda m: [m.super('dev_item.devid', i) for i in range(3)], ['1', '2', '3']),
    (3, '', lambda m: len({m.super('dev_item.uuid', i) for i in range(3)}), 3),
    (3, '', lambda m: {m.super('fsid', i) for i in range(3)} == {re.search('UUID: +(.*)', m.out).group(1)}, True),
    (3, '', lambda m: m.super('num_devices', 2), '3'),
    (3, '', lambda m: m.super('total_bytes', 1), str(900 * M)),
    (2, '-b 200m', lambda m: [m.super('dev_item.total_bytes', i) for i in range(2)], [str(200 * M)] * 2),
    (2, f'-U {FSID}', lambda m: m.super('fsid', 1), FSID),
    (2, f'--device-uuid {DEVICE}', lambda m: [m.super('dev_item.uuid', i) == DEVICE for i in range(2)], [True, False]),
    (3, '-q', kept, 0),
    (3, '-K', kept, 3),
    (3, '-q', lambda m: m.out, ''),
    (3, '', lambda m: re.findall(r'^ +(\d)   300.00MiB  (\S+)$', m.out, re.M) == [
        (str(i + 1), path) for i, path in enumerate(m.paths)], True),
    (3, '-v', lambda m: re.findall(r'^ +\d   300.00MiB  \S+  (\S+)$', m.out, re.M) == [
        m.super('dev_item.uuid', i) for i in range(3)], True),
    (3, '', lambda m: 'Filesystem size:    900.00MiB\n' in m.out and 'Number of devices:  3\n' in m.out, True),
    (4, '-d raid1c4 -m raid1c3', lambda m: 'raid1c34, block-group-tree\n' in m.out, True),
    (4, '-d raid1c4 -m raid1c3', lambda m: m.has('RAID1C34') and not m.has('RAID56'), True),
    (3, '-d raid5', lambda m: m.has('RAID56') and not m.has('RAID1C34'), True),
    # The last one counts.
    (1, '-O ^fst,free-space-tree', lambda m: m.has('FREE_SPACE_TREE_VALID') and m.has('BLOCK_GROUP_TREE'), True),
    (1, '-O ^bgt -O block-group-tree', lambda m: m.has('BLOCK_GROUP_TREE'), True),
    (1, '-O raid56,^raid56', lambda m: m.has('RAID56'), False),
    (1, '-d dup -d single -m single -n 4k -n 8k', lambda m: (Made.chunks(m)[0], m.super('nodesize')),
     ('DATA|single', '8192')),
    (2, '', words, []),
    (2, '-d raid0', words, []),
    (3, '-d raid5', words, [UNSAFE]),
    (2, '-d raid5', words, [UNSAFE, 'RAID5 is not recommended on only 2 devices']),
    (3, '-d raid6 -m raid1c3', words, [UNSAFE, 'RAID6 is not recommended on only 3 devices']),
    (4, '-d raid6 -m raid5', words, [UNSAFE, 'metadata survives the loss of fewer devices than data does']),
    (2, '-m dup', words, ['DUP has both copies on one device: with several it is not recommended']),
    (2, '-m raid0 -d raid1', words, ['metadata survives the loss of fewer devices than data does']),
    (1, '-R quota', words, ['--runtime-features is deprecated: use --features']),
]

# The options of mkfs.btrfs 6.19.
PEERS = ('-b', '--byte-count', '--csum', '--checksum', '-d', '--data', '-m', '--metadata', '-M', '--mixed', '-n',
         '--nodesize', '-s', '--sectorsize', '-L', '--label', '-K', '--nodiscard', '-r', '--rootdir', '--compress',
         '-u', '--subvol', '--inode-flags', '--reflink', '--shrink', '-O', '--features', '-f', '--force', '-q',
         '--quiet', '-U', '--uuid', '--device-uuid', '-v', '--verbose', '-V', '--version', '-R', '--runtime-features',
         '--help')
# -f has an effect only on a second attempt, which fails without it.
WITHOUT = {'-f': lambda m: m.again(), '--force': lambda m: m.again()}


def option_words(row):
    """Return each option with its argument."""
    return re.findall(r'(--?[a-zA-Z][a-z-]*(?: [^-]\S*)?)', row)


def every_option(scratch):
    """@return the names of the tested options"""
    plain = Made(f'{scratch}/plain.img')
    assert not plain.status, plain.err
    tested = set()
    for row, look, wanted in CHANGES:
        words = option_words(row)
        assert ' '.join(words) == row, row
        tested.update(word.split()[0] for word in words)
        check(WITHOUT.get(row, look)(plain) != wanted, f'{row}: {wanted!r} even without it')
        # Each of several options must have an effect.
        for ignored in thinned(words, 9) if len(words) > 1 else ():
            less = Made(f'{scratch}/made.img', *' '.join(word for word in words if word != ignored).split())
            check(less.status or look(less) != wanted, f'{row}: {wanted!r} even without {ignored}')
        made = Made(f'{scratch}/made.img', *row.replace('SCRATCH', scratch).split())
        check(not made.status, f'{row}: exit {made.status}: {made.err}')
        found = look(made)
        check(found == wanted, f'{row}: {found!r}, not {wanted!r}')
    return tested


def none_is_forgotten(tested):
    """All options in --help and list-all are in the table above, and so are all options of mkfs.btrfs."""
    text, known = output('mkfs', '--help'), set()
    for line in text.splitlines():
        known.update(re.findall(r'(?:^|[ ,])(--?[a-zA-Z][a-z-]*)', re.split(r'(?<=\S)  ', line[:28])[0])
                     if re.match(r' {2}-| {6}--', line) else [])
    check(len(known) > 25 and not known - tested, f'options without a test: {known - tested}')
    rows = ' '.join(row for row, *_ in CHANGES)
    features = set(re.findall(r'-O (\S+)|--features (\S+)', rows))
    features = {name for pair in features for name in ''.join(pair).split(',')}
    for name, what in re.findall(r'^(\S+) +- (.*)$', output('mkfs', '-O', 'list-all'), re.M):
        is_default, alias = 'default=' in what, what.endswith(' alias')
        check(('^' if is_default or alias else '') + name in features, f'feature {name} is without a test')
    sums = re.search(r'--csum TYPE +checksum algorithm: (.*?) --checksum', text, re.S).group(1)
    for name in re.findall(r'\w+', sums.replace('crc32c (the default)', '').replace(' or', '')):
        check(f'sum {name}' in rows, f'checksum {name} is without a test')
    profiles = re.search(r'--data PROFILE +profile for data: (.*?) -m,', text, re.S).group(1)
    profiles = set(re.findall(r'\w+', profiles.replace('(the default)', '').replace(' or', '')))
    check(profiles == set(PROFILES), f'profiles without a test: {profiles}')
    check(set(PEERS) - known == set(), f'options of mkfs.btrfs: {set(PEERS) - known}')


def on_several(scratch):
    for count, given, look, wanted in SEVERAL:
        made = Made(f'{scratch}/made.img', *given.split(), count=count)
        check(not made.status, f'{given} on {count}: exit {made.status}: {made.err}')
        found = look(made)
        check(found == wanted, f'{given} on {count}: {found!r}, not {wanted!r}')


def every_profile(scratch):
    """Each profile works with its minimal number of devices, and is refused by name with one fewer, with nothing
    written."""
    for name, count in PROFILES.items():
        kind = name if name == 'single' else name.upper()
        for options, wanted in ((('-d', name, '-m', 'single'), [f'DATA|{kind}', 'METADATA|single', 'SYSTEM|single']),
                                (('-m', name), ['DATA|single', f'METADATA|{kind}', f'SYSTEM|{kind}'])):
            made = Made(f'{scratch}/made.img', *options, count=count)
            check(not made.status and made.chunks() == wanted, f'{options}: {made.err} {made.chunks()}')
            check(re.search(rf'^  {"Data" if "-d" in options else "Metadata"}: +{kind} ', made.out, re.M), made.out)
            if count == 1:
                continue
            less = Made(f'{scratch}/made.img', *options, count=count - 1)
            said = check_failure('mkfs', None, (less.status, less.out.encode(), less.err), status=2)
            check(f'data profile {kind} needs {count} devices, {count - 1} given' in said, said)
            check(kept(less) == count - 1, f'{options}: refused, and yet written to')


def blkid_sees(scratch):
    if not shutil.which('blkid'):
        return
    made = Made(f'{scratch}/made.img', '-q', '-L', 'label', '-U', FSID, '--device-uuid', DEVICE)
    found = subprocess.run(['blkid', '-p', '-o', 'export', made.path], stdout=subprocess.PIPE, check=True)
    found = found.stdout.decode()
    for line in ('TYPE=btrfs', 'LABEL=label', f'UUID={FSID}', f'UUID_SUB={DEVICE}'):
        check(line in found.splitlines(), f'blkid: no {line}: {found}')


def behind(scratch):
    """With -b, bytes past the size are kept, even at superblock offsets; but a superblock there is erased."""
    path = f'{scratch}/behind.img'
    with open(path, 'wb') as f:
        f.truncate(80 * M)
        f.seek(45 * M)
        f.write(b'\xff' * (35 * M))
    for _ in range(2):
        check(run('mkfs', '-q', '-f', '-m', 'single', '-b', '45m', path)[0] == 0, '-b')
        with open(path, 'rb') as f:
            f.seek(45 * M)
            check(f.read() == b'\xff' * (35 * M), 'bytes behind those of -b are changed')
        check(run('dump-super', '-s', '1', path)[0] != 0, 'a superblock that is not there')
    for options in (('-m', 'single'), ('-m', 'single', '-b', '45m')):
        check(run('mkfs', '-q', '-f', *options, path)[0] == 0, options)
        check((run('dump-super', '-s', '1', path)[0] == 0) == ('-b' not in options), f'{options}: second superblock')


def derive(kind, number, fsid=FSID):
    """The UUID that mkfs.btrfs 7.3 derives for the chunk tree (0), a subvolume (1) or a device (2)."""
    digested = hashlib.sha1(uuid.UUID(fsid).bytes + struct.pack('<IQ', kind, number)).digest()
    return uuid.UUID(bytes=digested[:16], version=5)


def reproducible(scratch):
    def image(name, *options, epoch='1700000000'):
        env = {'SOURCE_DATE_EPOCH': epoch} if epoch else {}
        made = Made(f'{scratch}/{name}.img', '-q', '-f', *options, env=env)
        check(not made.status, f'{options}: {made.err}')
        return made
    shapes = [(), ('-m', 'single', '-n', '4k'), ('-M',), ('-O', '^free-space-tree'), ('-L', 'label', '-d', 'dup')]
    for shape in shapes:
        for options in (('-U', FSID), ('-U', FSID, '--device-uuid', DEVICE)):
            first = digest(image('one', *shape, *options).path)
            check(first == digest(image('another', *shape, *options).path), f'{shape} {options}: other bytes')
            check(first != digest(image('another', *shape, '-U', OTHER, *options[2:]).path), f'{shape}: fsid')
            check(first != digest(image('another', *shape, *options, epoch='1700000001').path), f'{shape}: time')
    # The bytes do not depend on previous contents, and derived UUIDs are all different.
    filled = image('one', '-U', FSID)
    wanted = digest(filled.path)
    with open(filled.path, 'r+b') as f:
        f.write(os.urandom(40 * M))
    check(run('mkfs', '-q', '-f', '-U', FSID, filled.path, env=dict(os.environ, SOURCE_DATE_EPOCH='1700000000'))[0] == 0
          and digest(filled.path) == wanted, 'bytes of before are left')
    check(times(filled) == {'1700000000'}, f'times {times(filled)}')
    tree = output('dump-tree', filled.path)
    uuids = {name: set(re.findall(rf'{name} (\S{{36}})', tree)) - {'0' * 8 + '-0000-0000-0000-' + '0' * 12}
             for name in ('fs uuid', 'chunk uuid', 'dev_uuid', '\tuuid')}
    check(all(uuids.values()) and len(set.union(*uuids.values())) == 4, f'UUIDs: {uuids}')
    # Without a fsid, or without a time, UUIDs are random.
    check(image('one').super('fsid') != image('another').super('fsid'), 'the fsid is not random')
    check(image('one', '-U', FSID, epoch=None).super('dev_item.uuid') !=
          image('another', '-U', FSID, epoch=None).super('dev_item.uuid'), 'the UUID of the device is not random')
    # The same UUIDs as mkfs.btrfs 7.3 derives: of devices, the chunk tree and the top level.
    for name, value in (('one', '1'), ('another', '1'), ('random', '0')):
        made = Made(f'{scratch}/{name}.img', '-q', '-f', '-U', FSID, env={'DETERMINISTIC_SEED': value})
        check((made.super('dev_item.uuid') == str(derive(2, 1))) == (value == '1'),
              f'DETERMINISTIC_SEED={value}: device')
        tree = output('dump-tree', made.path)
        for kind, number, words in ((0, 0, 'chunk uuid'), (1, 5, '\tuuid')):
            check((f'{words} {derive(kind, number)}' in tree) == (value == '1'), f'DETERMINISTIC_SEED={value}: {words}')
    path = f'{scratch}/one.img'
    before = digest(path)
    said = check_failure('mkfs', None, run('mkfs', '-f', path, env=dict(os.environ, DETERMINISTIC_SEED='1')), status=2)
    check('requires --uuid' in said and digest(path) == before, said)
    for epoch in ('x', '-1', '1.5', '1 ', '99999999999999999999', ''):
        path = f'{scratch}/one.img'
        before = digest(path)
        result = run('mkfs', '-f', path, env=dict(os.environ, SOURCE_DATE_EPOCH=epoch))
        said = check_failure('mkfs', None, result, status=2)
        check('SOURCE_DATE_EPOCH' in said and digest(path) == before, f'SOURCE_DATE_EPOCH={epoch!r}: {said}')


def main():
    os.environ.pop('SOURCE_DATE_EPOCH', None)
    print(f'options of {BTRKIT}')
    with tempfile.TemporaryDirectory() as scratch:
        none_is_forgotten(every_option(scratch) | filling_rows.test(scratch, check))
        on_several(scratch)
        every_profile(scratch)
        blkid_sees(scratch)
        behind(scratch)
        reproducible(scratch)
    print(f'{len(CHANGES) + len(SEVERAL) + len(filling_rows.ROWS)} options, {checks} checks')


if __name__ == '__main__':
    sys.exit(main())
