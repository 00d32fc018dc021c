#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every option of mkfs does what it says: each changes something that can be seen, long and short. And with a time and
a fsid that are given the bytes are the same on every run. Needs no root."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tool import BTRKIT, check_failure, run

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
    """What can be seen of a filesystem and of how it was made."""

    def __init__(self, path, *options, env=None):
        with open(path, 'wb') as f:
            f.truncate(300 * M)
            f.seek(250 * M)
            f.write(MARK)
        self.path = path
        self.status, out, self.err = run('mkfs', *options, path, env=dict(os.environ, **(env or {})))
        self.out = out.decode()

    def super(self, field):
        return re.search(rf'^{re.escape(field)}[\t ]*(.*)$', output('dump-super', self.path), re.M).group(1)

    def chunks(self):
        return sorted(re.findall(r'stripe_len \d+ type (\S+)\n', output('dump-tree', '-t', 'chunk', self.path)))

    def has(self, feature):
        return feature in re.split(r'[|()\s]+', output('dump-super', self.path))

    def marked(self):
        """Whether bytes that no tree covers are as they were."""
        with open(self.path, 'rb') as f:
            f.seek(250 * M)
            return f.read(4096) == MARK

    def again(self, *options):
        """Over the filesystem that is there."""
        return run('mkfs', '-q', *options, self.path)[0]

    def undone(self):
        """Whether there is an undo file, and the filesystem is gone after it was used."""
        file = os.path.join(os.path.dirname(self.path), 'undo')
        return not run('undo', file, self.path)[0] and run('dump-super', self.path)[0] == 1 and self.marked()


def times(made):
    return set(re.findall(r'\t[acmo]time ([1-9]\d*)\.', output('dump-tree', '-t', 'fs', made.path)))


# Options; what is looked at; what it has to be, which it is not without the option.
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
    ('-f', lambda m: m.again('-f'), 0),
    ('--force', lambda m: m.again('--force'), 0),
    ('--csum sha256', lambda m: m.status, 2),
    ('--checksum xxhash', lambda m: m.status, 2),
    ('-V', lambda m: m.out.startswith('btrkit mkfs, part of btrkit '), True),
    ('--version', lambda m: m.out.startswith('btrkit mkfs, part of btrkit '), True),
    ('--help', lambda m: m.out.startswith('Usage: btrkit mkfs '), True),
]
# What -f is for: without it the second attempt fails.
WITHOUT = {'-f': lambda m: m.again(), '--force': lambda m: m.again()}


def every_option(scratch):
    plain = Made(f'{scratch}/plain.img')
    assert not plain.status, plain.err
    tested = set()
    for options, look, wanted in CHANGES:
        names = [word for word in options.split() if re.match(r'--?[a-zA-Z]', word)]
        tested.update(names[:1] + ([names[0]] if len(names) == 1 else []))
        before = WITHOUT.get(options, look)(plain)
        check(before != wanted, f'{options}: {wanted!r} even without it')
        made = Made(f'{scratch}/made.img', *options.replace('SCRATCH', scratch).split())
        if options not in ('--csum sha256', '--checksum xxhash'):
            check(not made.status, f'{options}: exit {made.status}: {made.err}')
        found = look(made)
        check(found == wanted, f'{options}: {found!r}, not {wanted!r}')
    known = set()
    for line in output('mkfs', '--help').splitlines():
        known.update(re.findall(r'(?:^|[ ,])(--?[a-zA-Z][a-z-]*)', re.split(r'(?<=\S)  ', line[:28])[0])
                     if re.match(r' {2}-| {6}--', line) else [])
    check(len(known) > 25 and not known - tested, f'options without a test: {known - tested}')


def blkid_sees(scratch):
    if not shutil.which('blkid'):
        return
    made = Made(f'{scratch}/made.img', '-q', '-L', 'label', '-U', FSID, '--device-uuid', DEVICE)
    found = subprocess.run(['blkid', '-p', '-o', 'export', made.path], stdout=subprocess.PIPE, check=True)
    found = found.stdout.decode()
    for line in ('TYPE=btrfs', 'LABEL=label', f'UUID={FSID}', f'UUID_SUB={DEVICE}'):
        check(line in found.splitlines(), f'blkid: no {line}: {found}')


def digest(path):
    """Of all bytes that are not zero, and where they are; of holes nothing is read."""
    whole, at, used = hashlib.sha256(), 0, 0
    with open(path, 'rb') as f:
        end = f.seek(0, os.SEEK_END)
        whole.update(b'%d' % end)
        while at < end:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at -= at % 4096
            f.seek(at)
            piece = f.read(4096)
            if any(piece):
                whole.update(b'%d:' % at + piece)
                used += 1
            at += 4096
    assert used > 10, 'nothing in the image'
    return whole.hexdigest()


def behind(scratch):
    """With -b the bytes behind stay, those in the places of superblocks too; a superblock there goes."""
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
    # The same bytes whatever was there before, and of what is derived nothing is the same as anything else.
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
    # Without a fsid, or without a time, they are random.
    check(image('one').super('fsid') != image('another').super('fsid'), 'the fsid is not random')
    check(image('one', '-U', FSID, epoch=None).super('dev_item.uuid') !=
          image('another', '-U', FSID, epoch=None).super('dev_item.uuid'), 'the UUID of the device is not random')
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
        every_option(scratch)
        blkid_sees(scratch)
        behind(scratch)
        reproducible(scratch)
    print(f'{len(CHANGES)} options, {checks} checks')


if __name__ == '__main__':
    sys.exit(main())
