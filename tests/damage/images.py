#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What commands report for damaged and unsupported images, and for things that are not btrfs: exit 1 and one line on
stderr, `btrkit COMMAND: DEVICE: what, where`. Usage: images.py IMAGES WHAT; WHAT is an image's name or `not-btrfs`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BTRKIT = os.environ['BTRKIT']

# Words that the line must contain, from the check that should detect the damage: for fiemap and dump-tree, which
# usually detect the same. None: the command does not read that part, or there is a good copy.
EXPECTED = {
    'bad-super-primary': None,
    'bad-super-all': 'superblock checksum mismatch',
    'bad-super-root-level': 'root level 9',
    'bad-super-nodesize': 'nodesize 12345',
    'bad-super-array-size': 'system chunk array of invalid size 2147483647',
    'bad-super-array-stripes': 'system chunk array ends inside an entry, device 1, physical 65536',
    'bad-truncated': 'past the end of the device',
    'bad-one-copy': None,
    'bad-node-zero': 'tree 5, block .* field csum',
    'bad-checksum': ('checksum mismatch; inodes from 256 on are missing, tree 5', 'checksum mismatch, tree 5'),
    'bad-fsid': ('another filesystem; inodes from 256 on are missing, tree 5', 'another filesystem, tree 5'),
    'bad-bytenr': 'its address is 19087360',
    'bad-generation': 'generation 3, its parent says',
    'bad-owner': 'belongs to tree 2',
    'bad-level': 'level 2, its parent says 1',
    'bad-item-count': '5000 items',
    'bad-no-items': 'block is empty',
    'bad-key-order': 'keys are out of order',
    'bad-item-past-leaf': 'item at 16776960 .* slot 1',
    'bad-item-size': '4294967280 bytes .* slot 2',
    'bad-pointer-cycle': 'level 1, its parent says 0',
    'bad-pointer-far': ('no chunk contains the address; inode 256 is missing, tree 256, block 1125899906842624',
                        'no chunk contains the address, tree 256, block 1125899906842624'),
    'bad-pointer-unaligned': 'field blockptr',
    'bad-pointer-key': 'its parent says .257',
    'bad-chunk-stripes': 'tree 3, .* field item_size',
    'bad-root-level': ('level 200 .*; whether 21 extents of 14 files are shared is not known', 'level 200'),
    'bad-extent-type': 'unknown type 9',
    'bad-dir-name': (None, 'field name_len'),
    'bad-compressed-nothing': None,
    'bad-empty-name': (None, 'exceeds its item, tree 5, .* field item_size'),
    'bad-inline-ref': (None, 'field'),
    'bad-last-tree': None,
    'unsupported-extent-tree-v2': 'not supported: extent-tree-v2',
}
# A dump continues after such an item, and shows as much of it as it can, or a note in its place.
DAMAGED_ITEM = {
    'bad-extent-type': b'type 9 (unknown)',
    'bad-dir-name': b'(item is damaged: name_len)',
    'bad-empty-name': b'index 2 namelen 0 name: \n\t\t(item is damaged: item_size)',
    'bad-inline-ref': b'(item is damaged: inline_refs)',
}
# Damage that shows only when the file, or all trees in turn, are read: further runs.
FILE, ITSELF = 'lzo-large', '.'
READING = {
    'bad-compressed-nothing': (
        ('cat', (), (FILE,), 'compressed extent of 0 bytes, .* field ram_bytes'),
        ('extract', ('--tar', os.devnull), (FILE,), 'bytes 0 to 131071 cannot be read: compressed extent of 0 bytes')),
    'bad-empty-name': (('cat', (), (FILE,), None),),
    'bad-last-tree': (('diff', (), (ITSELF,), None),),
}


def run(*args):
    done = subprocess.run([BTRKIT, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False,
                          env=dict(os.environ, TZ='UTC'))
    return done.returncode, done.stdout, done.stderr.decode(errors='replace')


def check(command, args, path, words, shown=b'', operands=()):
    """Return the problems of one run."""
    status, out, said = run(command, *args, path, *(path if each == ITSELF else each for each in operands))
    if words is None:
        return [] if status == 0 else [f'{command}: exit {status}, not 0: {said}']
    problems = []
    if command == 'dump-tree' and shown not in out:
        problems.append(f'{command}: {shown} is missing')
    if status != 1:
        problems.append(f'{command}: exit {status}, not 1')
    lines = said.splitlines()
    # Which trees are lost with chunks that are damaged.
    if command == 'dump-tree' and b'\ndamaged chunks' in out:
        lines = lines[:1] + [line for line in lines[1:] if ': no chunk contains the address, tree ' not in line]
    if len(lines) != 1 or not said.endswith('\n') or not said.startswith(f'btrkit {command}: {path}: '):
        problems.append(f'{command}: not one line of the form that errors have: {said!r}')
    elif not re.search(words, lines[0]):
        problems.append(f'{command}: not {words!r} but {lines[0]!r}')
    # An item that merely violates the format is shown.
    if command == 'dump-tree' and not shown and out.endswith(b'\n') and re.search(rb'(?m)^total bytes \d+\n', out):
        problems.append(f'{command}: the output looks complete')
    return problems


def not_btrfs(folder):
    """Return paths of things that are not btrfs."""
    empty, zeros, ext4 = (os.path.join(folder, name) for name in ('empty', 'zeros', 'ext4'))
    for path, size in ((empty, 0), (zeros, 1 << 20), (ext4, 16 << 20)):
        with open(path, 'wb') as f:
            f.truncate(size)
    if shutil.which('mkfs.ext4'):
        subprocess.run(['mkfs.ext4', '-q', '-F', ext4], check=True)
    return folder, empty, zeros, ext4


COMMANDS = (('fiemap', ('-a', '--format', 'tsv')), ('dump-tree', ()))


def main(images, what):
    sys.path.insert(0, images)
    import unpack
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        if what == 'not-btrfs':
            tries = [(command, args, path, 'not a btrfs filesystem') for path in not_btrfs(folder)
                     for command, args in (*COMMANDS, ('dump-super', ()))]
        else:
            path, words = unpack.unpack(what, folder), EXPECTED[what]
            words = words if isinstance(words, tuple) else (words, words)
            shown = DAMAGED_ITEM.get(what, b'')
            tries = [(command, args, path, each, shown) for (command, args), each in zip(COMMANDS, words)]
            tries += [(command, args, path, each, b'', operands)
                      for command, args, operands, each in READING.get(what, ())]
        for each in tries:
            problems += check(*each)
            count += 1
    print(f'{what}: {count} runs', *problems, sep='\n')
    return int(bool(problems) or not count)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
