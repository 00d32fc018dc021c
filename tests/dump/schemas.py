#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Validate the JSON Lines of all commands except dump-tree, and dump-tree --raw, against the installed schemas: each
line matches exactly one kind, each member of a schema is printed by some command, and surplus, missing and mistyped
members are detected in each object, at any depth. BTRKIT is the program under test."""
import json
import os
import re
import sys
import tempfile

import schema

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGES = os.path.join(HERE, '..', '..', 'images')
import schema_images
import unpack
from verify import FOLDER, Check
from tool import run

# TREES: dump everything in their trees; the other list: everything about files and space.
TREES = ('good-default', 'good-half-dropped', 'good-levels', 'good-log-tree', 'good-mixed', 'bad-item-past-leaf',
         'bad-item-size', 'bad-dir-name', 'bad-super-array-stripes', 'bad-node-zero', 'good-metadata-uuid',
         'bad-item-count', 'bad-chunk-stripes', 'unsupported-extent-tree-v2')
FILES = ('good-default', 'good-clones', 'good-compressed', 'good-odd-names', 'good-half-dropped', 'bad-checksum',
         'bad-extent-type')
CHECKED = ('bad-one-copy', 'bad-node-zero', 'bad-dir-name', 'bad-compressed-nothing', 'bad-last-tree',
           'bad-super-primary')
# Validated by dump-json.
ELSEWHERE = {'dump-tree'}
# Members that nothing here prints, as 'command: kind.member', with the reason.
UNSEEN = {}
MANY = 6  # number of objects per image that are looked up one by one


def lines(check, *args, command=None):
    """Return the values that a command prints, successful or not, except for usage errors."""
    status, out, err = run(*(command or [check.command]), '--format', 'json', *args)
    assert status in (0, 1) or check.command == 'check' and status in (4, 8), (check.command, args, status, err)
    assert out or status, (check.command, args)
    assert not out or out.endswith(b'\n'), (check.command, args, out[-80:])
    text = out.decode('utf-8', 'surrogateescape')
    for line in text.splitlines():
        check.line(line)
    return [json.loads(line) for line in text.splitlines()[1:]]


def raw(check, image):
    """Some blocks of each tree: the fields cover each byte of the block exactly once, in any order."""
    _, text, _ = run('dump-tree', '--scan', '--format', 'json', image)
    blocks = [json.loads(line) for line in text.splitlines()[1:]]
    addresses = sorted({block['bytenr'] for block in blocks if 'bytenr' in block})
    for bytenr in addresses[::max(len(addresses) // MANY, 1)]:
        values = lines(check, '--raw', bytenr, image, command=['dump-tree'])
        parts = sorted((v['offset'], bytes.fromhex(v['bytes'])) for v in values if 'bytes' in v)
        assert all(v['size'] == len(v['bytes']) // 2 for v in values if 'bytes' in v), values
        if values and not any('damaged' in v or v['kind'] == 'damage' for v in values):
            whole = b''.join(data for _, data in parts)
            assert [at for at, _ in parts if at] == [len(b''.join(d for _, d in parts[:i]))
                                                     for i, (at, _) in enumerate(parts) if at], image
            assert len(whole) in (4096, 8192, 16384, 32768, 65536), (image, len(whole))


def trees(checks, name, image):
    lines(checks['dump-super'], '-fa', '-F', image)
    lines(checks['dump-super'], image)
    lines(checks['list-subvolumes'], '--deleted', image)
    lines(checks['tree-stats'], image)
    raw(checks['dump-raw'], image)
    if name == 'good-default':
        for options in ([], ['--brief'], ['--hide-names']):
            lines(checks['diff'], *options, '--from', 'sub', '--to', 'snap', image)
            lines(checks['diff'], *options, '--from', '5', '--to', 'sub', image)


def files(checks, image, subvolume='5'):
    """Each form of output about files and space."""
    lines(checks['ls'], image)
    found = lines(checks['ls'], '-lR', image)
    if found:
        # A leading slash keeps names from being taken for options.
        lines(checks['stat'], image, *('/' + name['path'] for name in found))
    rows = lines(checks['fiemap'], '-a', image)
    lines(checks['fiemap'], '-a', '--owners', image)
    for i, address in enumerate(sorted({row['physical'] for row in rows})[:MANY]):
        lines(checks['logical-resolve'], *([], ['-P'], ['-o'])[i % 3], image, address)
    for name in found[:MANY]:
        lines(checks['inode-resolve'], '--subvol', name['root'], image, name['inode'])
    lines(checks['du'], image)
    lines(checks['du'], '--matrix', '--paths', '--types', '--extents', f'--freed-by={subvolume}', image)
    places(checks, image)


def places(checks, image, *others):
    devices = [f'--device={path}' for path in others]
    lines(checks['list-devices'], '--noscan', *devices, image)
    for chunk in lines(checks['list-chunks'], '--noscan', *devices, image):
        lines(checks['map-logical'], '--noscan', *devices, image, chunk['logical'])
    lines(checks['space-cache'], '--noscan', *devices, image, command=['space-cache', 'status'])


def of_mkfs(checks, made):
    """Validate the output of mkfs."""
    paths, out = made
    for line in out.decode('utf-8', 'surrogateescape').splitlines():
        checks['mkfs'].line(line)
    return paths


def several(checks, folder):
    """Some readable profiles with all devices, and with one missing."""
    for data, metadata, count in (('raid0', 'raid1', 2), ('raid6', 'raid6', 4), ('raid5', 'raid1', 3)):
        first, *others = of_mkfs(checks, schema_images.make(folder, data, '-d', data, '-m', metadata, devices=count))
        places(checks, first, *others)
        places(checks, first, *others[1:])
    (first, other), _ = schema_images.make(folder, 'second', '-n', '4096', '-m', 'raid1', '--rootdir', HERE, devices=2)
    with open(other, 'r+b') as f:
        f.seek(1 << 20)
        f.write(bytes(os.path.getsize(other) - (1 << 20)))
    # All of one copy is bad, which is one line.
    folded = lines(checks['check'], '--noscan', f'--device={other}', first)
    assert any(line['kind'] == 'fold' for line in folded), folded


def made(checks, folder):
    image, = of_mkfs(checks, schema_images.manifest(folder))
    files(checks, image)
    lines(checks['mkfs'], '--size-only', '--manifest', os.path.join(folder, 'manifest'))
    image, = of_mkfs(checks, schema_images.tree(folder))
    files(checks, image, '/a,/r,/r/in,/d')
    source = os.path.join(folder, 'tree')
    of_mkfs(checks, schema_images.make(folder, 'changing', '--rootdir', source, '--accept-changes'))
    for csum in ('xxhash', 'sha256', 'blake2'):
        of_mkfs(checks, schema_images.make(folder, csum, '--csum', csum, '-b', '256m', devices=2))


def rare(checks, folder):
    for name, change in schema_images.SPACE:
        with schema_images.damaged(folder, name, change) as image:
            lines(checks['space-cache'], image, command=['space-cache', 'status'])
    for change, command, *args in ((schema_images.nobody_has, 'du'), (schema_images.no_extent_tree, 'stat', 'foo'),
                                   (schema_images.no_checksums, 'check', '--repeats=1')):
        with schema_images.damaged(folder, 'good-default', change) as image:
            lines(checks[command], image, *args)
    image = schema_images.lost_extents(folder)
    assert any('lost_from' in row for row in lines(checks['fiemap'], image, 'sparse')), 'no extents are lost'
    # The same damaged block in each image, which --scan does not find.
    for name in ('bad-item-count', 'bad-item-size'):
        image = unpack.unpack(name, folder, quick=True)
        lines(checks['dump-raw'], '--raw', '30932992', image, command=['dump-tree'])


def committed(checks, folder):
    for name in sorted({*TREES, *FILES, *CHECKED}):
        if not os.path.exists(f'{IMAGES}/{name}.tar.xz'):
            continue
        image = unpack.unpack(name, folder, quick=True)
        if name in TREES:
            trees(checks, name, image)
        if name in FILES:
            files(checks, image)
        if name in CHECKED:
            lines(checks['check'], '--data', image)
        os.unlink(image)


def with_json():
    """Names of the schemas that the commands' options announce."""
    _, text, _ = run('--help')
    for command in re.findall(r'^  ([a-z-]+)  ', text.decode(), re.M):
        _, said, _ = run(command, '--help')
        if re.search(r'^ .*--format \S*json', said.decode(), re.M):
            yield command


def complete(checks):
    """Each command that prints JSON has a schema, and every member of each schema has been printed."""
    installed = {name.removesuffix('.schema.json') for name in os.listdir(FOLDER) if name.endswith('.json')}
    assert {*with_json(), 'dump-raw'} == installed, {*with_json()} ^ installed
    unseen = {f'{check.command}: {path}' for check in checks.values() for path in check.unseen()}
    assert unseen == set(UNSEEN), (
        f'no line has {sorted(unseen - set(UNSEEN))}; some has {sorted(set(UNSEEN) - unseen)}')


def main():
    items = schema.Validator()
    names = {name.removesuffix('.schema.json') for name in os.listdir(FOLDER) if name.endswith('.json')}
    checks = {command: Check(command, items) for command in sorted(names - ELSEWHERE)}
    with tempfile.TemporaryDirectory(prefix='btrkit-schemas-') as folder:
        lines(checks['features'])
        lines(checks['check'], '--list-codes')
        made(checks, folder)
        several(checks, folder)
        rare(checks, folder)
        committed(checks, folder)
        planted = sum(check.planted() for check in checks.values())
    complete(checks)
    print(', '.join(f'{check.lines} lines of {check.command}' for check in checks.values()) +
          f' are valid; {planted} wrong ones are none')
    return 0


if __name__ == '__main__':
    sys.exit(main())
