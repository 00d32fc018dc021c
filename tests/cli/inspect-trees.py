#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""list-subvolumes, tree-stats and diff, compared with the same trees from dump-tree --format json, and the sizes of
trees compared with `btrfs inspect-internal tree-stats`. BTRKIT is the program under test."""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from tool import BTRKIT, check_failure, run, skip

import damages
import unpack

BTRFS = os.environ.get('BTRFS', 'btrfs')


def lines(command, *args):
    status, out, err = run(command, '--format=json', *args)
    assert (status, err) == (0, ''), (command, args, status, err)
    found = [json.loads(line) for line in out.decode().splitlines()]
    assert found[0]['__header']['command'] == command, found[0]
    return found[1:]


def text(command, *args):
    status, out, err = run(command, *args)
    assert (status, err) == (0, ''), (command, args, status, err)
    return out.decode('utf-8', 'surrogateescape')


def edit(image, *words):
    status, _, err = run('edit', image, *words)
    assert status == 0, err


def make(folder):
    """Make a filesystem with deep trees and subvolumes, and a changed copy of it."""
    rng, source = random.Random(9), f'{folder}/source'
    for d in range(4):
        os.makedirs(f'{source}/sub/d{d}')
        for i in range(150):
            with open(f'{source}/sub/d{d}/file-{i}', 'wb') as f:
                f.write(rng.randbytes(rng.choice((0, 10, 500, 5000))))
    a, b = f'{folder}/a.img', f'{folder}/b.img'
    status, _, err = run('mkfs', '-q', '-n', '4k', '--rootdir', source, '--subvol', 'rw:sub', '--free', '60m', a)
    assert status == 0, err
    edit(a, 'subvolume', 'create', 'empty')
    edit(a, 'subvolume', 'create', 'sub/nested')
    edit(a, 'subvolume', 'snapshot', '-r', 'sub', 'snap')
    shutil.copyfile(a, b)
    with open(f'{folder}/one', 'wb') as f:
        f.write(b'another text\n')
    for words in (['rm', 'sub/d1/file-7'], ['put', f'{folder}/one', 'sub/d2/new'], ['chmod', '600', 'sub/d3/file-9'],
                  ['setxattr', 'user.new', 'value', 'sub/d0/file-1'], ['subvolume', 'create', 'later'],
                  ['mv', 'sub/d0/file-2', 'sub/d0/other'], ['subvolume', 'snapshot', 'snap', 'again']):
        edit(b, *words)
    return a, b


def trees(image):
    """Return the items of each tree by its ID, and its blocks."""
    items, nodes = {}, {}
    for line in lines('dump-tree', '--csum-items', image):
        if line['kind'] == 'item':
            key = line['key']
            items.setdefault(line['tree'], {})[key['objectid'], key['type'], key['offset']] = line
        elif line['kind'] == 'node':
            nodes.setdefault(line['tree'], []).append(line)
            items.setdefault(line['tree'], {})
    return items, nodes


def tree_stats(image, items, nodes):
    found = {s['tree']: s for s in lines('tree-stats', image)}
    assert set(found) == set(nodes), (set(found), set(nodes))
    size = 4096
    for tree, s in found.items():
        blocks = nodes[tree]
        assert s['blocks'] == len(blocks) and s['levels'] == 1 + max(n['level'] for n in blocks), (s, blocks)
        assert s['bytes'] == size * s['blocks'] == s['used'] + s['free'], s
        for level in s['nodes']:
            here = [n for n in blocks if n['level'] == level['level']]
            free = sum(n['free_space'] if not level['level'] else n['free_space'] * 33 for n in here)
            # The rest after the last pointer slot is too small for another pointer.
            assert level['free'] - free in range(0, 33 * len(here) if level['level'] else 1), (level, free)
            assert (level['blocks'], level['items']) == (len(here), sum(n['nritems'] for n in here)), level
        kinds = {}
        for line in items[tree].values():
            count = kinds.setdefault(line['key']['type_name'], [0, 0])
            count[0] += 1
            count[1] += line['size']
        assert {k['type_name']: [k['count'], k['bytes']] for k in s['items']} == kinds, (s, kinds)
        inline = sum(line['item'].get('inline_size', 0) for line in items[tree].values())
        assert s['inline_bytes'] == inline, (s, inline)
        shown = text('tree-stats', '-t', str(tree), image)
        for value in [s['blocks'], s['used'], s['free']] + [n for v in kinds.values() for n in v]:
            assert re.search(rf'\b{value}\b', shown), (value, shown)
    return found


def unknown_type(folder, a):
    """An item of unknown type is counted under the name that the dump shows."""
    image = shutil.copyfile(a, f'{folder}/unknown.img')
    fs = damages.Filesystem(image)
    leaf = fs.leaf(damages.FS_TREE, -1)
    last = damages.u32(fs.block(leaf), 96) - 1
    damages.poke(fs, leaf, damages.HEADER + last * damages.ITEM + 8, b'\xdd')
    fs.save()
    stats = tree_stats(image, *trees(image))[damages.FS_TREE]
    assert [k['count'] for k in stats['items'] if k['type_name'] == 'UNKNOWN.221'] == [1], stats
    assert 'UNKNOWN.221: 1 items, ' in text('tree-stats', '-t', 'fs', image)


def beside_progs(image, found):
    """Compare with the numbers of btrfs-progs, for the trees that it reports."""
    if not shutil.which(BTRFS):
        return 0
    names = {'root': 1, 'extent': 2, 'checksum': 7, 'csum': 7, 'fs': 5}
    status, out, err = run('inspect-internal', 'tree-stats', '-b', image, binary=BTRFS)
    assert status == 0, err
    compared = 0
    for part in re.split(r'Calculating size of ', out.decode())[1:]:
        s = found[names[part.split()[0]]]
        assert int(re.search(r'Total size: (\d+)', part)[1]) == s['bytes'], (part, s)
        assert int(re.search(r'Inline data: (\d+)', part)[1]) == s['inline_bytes'], (part, s)
        assert int(re.search(r'Levels: (\d+)', part)[1]) == s['levels'], (part, s)
        compared += 3
    assert compared >= 9, out
    return compared


def expected(a, b):
    """Return the expected differences of two trees as {key: kind}."""
    kinds = {}
    for key in set(a) | set(b):
        if key not in b:
            kinds[key] = 'removed'
        elif key not in a:
            kinds[key] = 'added'
        elif (a[key]['size'], a[key]['item']) != (b[key]['size'], b[key]['item']):
            kinds[key] = 'changed'
    return kinds


def same_diff(found, a, b, what):
    """Compare the reported lines of one tree with two dumps."""
    kinds = {}
    for line in found:
        key = line['key']['objectid'], line['key']['type'], line['key']['offset']
        assert key not in kinds, (what, key)
        kinds[key] = line['kind']
        for side, items in (('old', a), ('new', b)):
            if side in line:
                assert (line[side]['size'], line[side]['item']) == (items[key]['size'], items[key]['item']), line
    assert list(kinds) == sorted(kinds), what
    assert kinds == expected(a, b), (what, set(kinds.items()) ^ set(expected(a, b).items()))
    return len(kinds)


def diffs(folder, a, b):
    """Compare two images tree by tree, and two subvolumes of one image."""
    items_a, nodes = trees(a)
    items_b, _ = trees(b)
    told = 0
    by_tree = {}
    for line in lines('diff', a, b):
        by_tree.setdefault(line['tree'], []).append(line)
    for tree in set(items_a) | set(items_b):
        told += same_diff(by_tree.pop(tree, []), items_a.get(tree, {}), items_b.get(tree, {}), tree)
    assert not by_tree and told > 50, (by_tree, told)
    assert lines('diff', a, a) == [] and text('diff', a, a) == ''
    shown = text('diff', '--brief', '-t', 'extent', a, b)
    want = expected(items_a[2], items_b[2])
    signs = [line[0] for line in shown.splitlines()[1:]]
    assert set(signs) <= {'-', '+'} and len(shown) < len(text('diff', '-t', 'extent', a, b)), shown
    assert (signs.count('-'), signs.count('+')) == (sum(k != 'added' for k in want.values()),
                                                    sum(k != 'removed' for k in want.values())), shown
    assert shown.startswith('tree EXTENT_TREE\n'), shown
    ids = {s['path']: s['id'] for s in lines('list-subvolumes', b)}
    for x, y in (('sub', 'snap'), ('snap', 'sub'), ('snap', 'again'), ('empty', 'sub'), ('sub', 'sub')):
        found = lines('diff', '--from', x, '--to', y, b)
        told += same_diff(found, items_b[ids[x]], items_b[ids[y]], (x, y))
    assert 'file-7' in text('diff', '--from', 'sub', '--to', 'snap', b)
    assert 'file-' not in text('diff', '--hide-names', '--from', 'sub', '--to', 'snap', b)
    unread(folder, b, ids)
    told += forked(folder, a)
    assert nodes
    return told


def exit_codes(a, b):
    """Select trees; failures take precedence in the exit status."""
    for args, status in (((a, b), 3), ((a, a), 0), (('-t', 'extent', a, b), 3), (('--brief', '--format=json', a, b), 3),
                         (('-t', 'data-reloc', a, b), 0), (('--from', 'sub', '--to', 'again', b), 3),
                         (('--from', 'snap', '--to', 'snap', b), 0), (('-t', '999', a, b), 1), ((a,), 2)):
        got, out, err = run('diff', '--exit-code', *args)
        assert (got, bool(err)) == (status, status in (1, 2)), (args, got, err)
        assert bool(out.count(b'\n') > ('--format=json' in args)) == (status == 3), (args, out)
    assert run('diff', '--exit-code', '--brief', a, b)[1] == run('diff', '--brief', a, b)[1]
    if os.path.exists('/dev/full'):
        with open('/dev/full', 'wb') as full:
            for more in ([], ['--brief', '-t', 'uuid']):
                done = subprocess.run([BTRKIT, 'diff', '--exit-code', *more, a, b], stdout=full,
                                      stderr=subprocess.PIPE, check=False)
                assert done.returncode == 1 and done.stderr.count(b'\n') == 1, done


def forked(folder, image):
    """Two copies changed in the same way except for a value: the blocks have equal addresses and generations."""
    paths = [f'{folder}/fork-{i}.img' for i in range(2)]
    for path, value in zip(paths, ('ABCD', 'EFGH')):
        shutil.copyfile(image, path)
        edit(path, 'setxattr', 'user.fork', value, 'sub/d0/file-1')
    (x, nodes), (y, others) = map(trees, paths)
    same = {(n['bytenr'], n['generation']) for t in nodes.values() for n in t if n['level']}
    assert same & {(n['bytenr'], n['generation']) for t in others.values() for n in t}, 'nothing is alike'
    found = lines('diff', *paths)
    assert any(line['key']['type_name'] == 'XATTR_ITEM' for line in found), found
    return sum(same_diff([line for line in found if line['tree'] == tree], x[tree], y[tree], tree) for tree in x)


def unread(folder, image, ids):
    """Blocks that two subvolumes share are not read: they can contain anything."""
    _, nodes = trees(image)
    leaves = [{n['bytenr'] for n in nodes[ids[name]] if not n['level']} for name in ('sub', 'snap')]
    shared = leaves[0] & leaves[1]
    assert len(shared) > 10, shared
    before = text('diff', '--from', 'sub', '--to', 'snap', image)
    broken = f'{folder}/broken.img'
    shutil.copyfile(image, broken)
    with open(broken, 'r+b') as f:
        for bytenr in shared:
            for copy in lines('map-logical', image, bytenr):
                f.seek(copy['physical'])
                f.write(b'\xff' * 4096)
    assert text('diff', '--from', 'sub', '--to', 'snap', broken) == before
    # Each of them is told otherwise.
    status, _, err = run('diff', '--from', 'sub', '--to', 'empty', '--verbose', broken)
    found = [int(number) for number in re.findall(r': tree block checksum mismatch, tree \d+, block (\d+), ', err)]
    assert status == 1 and sorted(found) == sorted(shared) and err.count('\n') == len(shared), (status, err, shared)


def subvolumes(image):
    items, _ = trees(image)
    roots = {key[0]: line['item'] for key, line in items[1].items() if key[1] == 132 and key[0] >= 256 and
             key[0] < 1 << 63}
    back = {key[0]: (key[2], line['item']) for key, line in items[1].items() if key[1] == 144}
    found = {s['id']: s for s in lines('list-subvolumes', image)}
    assert list(found) == sorted(roots), (found, roots)
    for number, s in found.items():
        root, (parent, ref) = roots[number], back[number]
        assert (s['parent'], s['top_level']) == (parent, parent), s
        assert s['path'].split('/')[-1] == ref['name'], (s, ref)
        for name in ('generation', 'uuid', 'parent_uuid', 'received_uuid', 'otransid', 'ctransid', 'stransid',
                     'rtransid', 'otime', 'ctime', 'stime', 'rtime', 'flags', 'flags_names', 'last_snapshot', 'bytenr',
                     'level', 'bytes_used'):
            assert s[name] == root[name], (name, s, root)
        assert s['snapshots'] == sorted(n for n, r in roots.items() if r['parent_uuid'] == s['uuid']), s
        assert not s['default'] and not s['deleted'], s
    rows = [line.split('\t') for line in text('list-subvolumes', '--format', 'tsv', image).splitlines()]
    assert [(int(r[0]), int(r[1]), int(r[3]), r[9]) for r in rows] == \
        [(s['id'], s['generation'], s['parent'], s['path']) for s in found.values()], rows
    edit(image, 'subvolume', 'set-default', 'empty')
    assert [s['path'] for s in lines('list-subvolumes', image) if s['default']] == ['empty']
    return len(found)


def selections(image):
    """Paths below a subvolume, items in other trees, members of JSON lines."""
    def below(subvol, path):
        return text('dump-tree', *subvol, '--path', path, image)

    assert 'INODE_ITEM' in below([], 'sub/d1/file-8') == below(['--subvol', 'sub'], 'd1/file-8')
    rows = [text('fiemap', '--format', 'tsv', *words).splitlines()[-1].split('\t')[-6:]
            for words in ((image, 'sub/d1/file-8'), ('--subvol', 'sub', image, 'd1/file-8'))]
    assert rows[0] == rows[1], rows
    files = [[text('dump-tree', '--path', f'sub/d2/file-{i}', *more, image).count('EXTENT_CSUM')
              for more in ([], ['--with-extents'])] for i in range(10)]
    assert not any(without for without, _ in files) and any(have for _, have in files), files
    members = [set(line) for line in lines('dump-tree', '--fields', 'kind,tree', image)]
    assert members and all(m <= {'kind', 'tree'} for m in members), members
    chosen = {words: {s['path'] for s in lines('list-subvolumes', *words, image)} for words in (
        (), ('--read-only',), ('--snapshots',), ('--below', 'sub'))}
    every = chosen.pop(())
    assert {'sub', 'sub/nested', 'snap', 'empty'} <= every, every
    assert chosen == {('--read-only',): {'snap'}, ('--snapshots',): {'snap', 'again'},
                      ('--below', 'sub'): {'sub/nested'}}, chosen
    newest = max(s['generation'] for s in lines('list-subvolumes', image))
    for option in '--generation', '--created':
        assert lines('list-subvolumes', option, f'+{newest + 1}', image) == [], option


def dying(folder):
    """A partly deleted subvolume is listed only on request, and its tree is not counted in statistics."""
    image = unpack.unpack('good-half-dropped', folder, quick=True)
    one, two = lines('list-subvolumes', image), lines('list-subvolumes', '--deleted', image)
    assert [s['id'] for s in one] == [257] and [s['id'] for s in two] == [256, 257], (one, two)
    assert two[0]['deleted'] and 'path' not in two[0] and not two[1]['deleted'], two
    assert text('list-subvolumes', '--deleted', image).splitlines()[0].endswith(' path DELETED')
    assert [s['id'] for s in lines('list-subvolumes', '-d', image)] == [256]
    assert [s['id'] for s in lines('list-subvolumes', '--deleted', '--sort=-path', image)] == [257, 256]
    assert 256 not in [s['tree'] for s in lines('tree-stats', image)]


def refusals(a):
    for bad in (('diff', a), ('diff', '--from', '5', a), ('diff', '--from', '5', '--to', '5', a, a), ('diff',),
                ('diff', '-t', 'none', a, a), ('tree-stats',), ('tree-stats', '-t', 'none', a),
                ('list-subvolumes', '--format', 'xml', a), ('tree-stats', '--format', 'tsv', a),
                ('list-subvolumes', a, a), ('list-subvolumes', '--sort', 'size', a),
                ('list-subvolumes', '--sort', 'gen,', a), ('list-subvolumes', '-G', '+', a),
                ('list-subvolumes', '-C', '3x', a)):
        status, out, err = run(*bad)
        assert status == 2 and not out and err.count('\n') == 1, (bad, status, out, err)
    for command, args in (('tree-stats', ('-t', '999')), ('diff', ('--from', '5', '--to', '999'))):
        assert '999' in check_failure(command, a, run(command, *args, a))
    assert 'no tree' in check_failure('diff', a, run('diff', '-t', '999', a, a))



def leaves(image, tree):
    """Return address and keys of each leaf of a tree, from the text of dump-tree."""
    for leaf in re.split(r'(?m)^leaf (?=\d+ items)', text('dump-tree', '-t', tree, image))[1:]:
        yield leaf.split()[0], re.findall(r'item \d+ key \((\S+) (\S+) \S+\)', leaf)


def lose(image, address):
    """Damage each copy of a block. Return what undoes it."""
    old = []
    with open(image, 'r+b') as f:
        for place in re.findall(r'physical (\d+)', text('map-logical', image, address)):
            f.seek(int(place) + 3000)
            old.append((int(place) + 3000, f.read(6)))
            f.seek(-6, 1)
            f.write(b'damage')
    return old


def lost_subvolumes(folder):
    """With each leaf of the root tree lost in turn, exactly the subvolumes in it are missing, and are said to be. The
    path of a subvolume is found by either of its references."""
    image = f'{folder}/many.img'
    os.mkdir(f'{folder}/none')
    assert run('mkfs', '-q', '-n', '4k', '-m', 'single', '--rootdir', f'{folder}/none', '--free', '60m', image)[0] == 0
    names = [f's{i}{"x" * (i * 67 % 200)}' for i in range(60)]
    words = ''.join(f'subvolume create {name}\n' for name in names + [f'{names[7]}/nested'])
    subprocess.run([BTRKIT, 'edit', image], input=words.encode(), check=True)
    whole, tried, parents = text('list-subvolumes', image).splitlines(), 0, 0
    assert len(whole) == 61
    for address, keys in leaves(image, '1'):
        lost = {int(objectid) for objectid, kind in keys if kind == 'ROOT_ITEM' and objectid.isdigit()} - {5}
        if ('EXTENT_TREE', 'ROOT_ITEM') in keys:
            continue
        tried += bool(lost)
        old = lose(image, address)
        want = [line for line in whole if int(line.split()[1]) not in lost]
        for options in (), ('--sort', 'path'), ('--sort=-rootid',), ('--format', 'json'):
            status, out, err = run('list-subvolumes', *options, image)
            found = out.decode().splitlines()
            if options[:1] == ('--format',):
                rows = [json.loads(line) for line in found[1:]]
                assert [str(row['id']) for row in rows] == [line.split()[1] for line in want], found
                continue
            rows = sorted(found, key=lambda line: int(line.split()[1]))
            assert rows == want and (rows == found or options), (keys, found)
            assert (status, err.count('\n')) == (int(bool(lost)), bool(lost)), (status, err)
            if lost:
                first, last = re.search(r'; subvolumes? (?:from )?(\d+)(?: to (\d+))?', err).groups()
                assert int(first) == min(lost) and (not last or int(last) == max(lost)), (err, lost)
                assert 'cannot be listed' in err, err
        # Of a name in the top directory, the reference or the back reference says that a subvolume lies there.
        for name in names if ('FS_TREE', 'ROOT_REF') in keys else ():
            assert text('ls', image, name) == ('nested\n' if name == names[7] else ''), name
            parents += 1
        with open(image, 'r+b') as f:
            for place, data in old:
                f.seek(place)
                f.write(data)
    assert tried > 3 and parents, (tried, parents)


def main():
    if not shutil.which('cp'):
        skip('needs cp')
    with tempfile.TemporaryDirectory(prefix='btrkit-inspect-') as folder:
        a, b = make(folder)
        unknown_type(folder, a)
        sizes = beside_progs(b, tree_stats(b, *trees(b)))
        told = diffs(folder, a, b)
        exit_codes(a, b)
        refusals(a)
        selections(b)
        count = subvolumes(b)
        dying(folder)
        lost_subvolumes(folder)
    print(f'{sizes} sizes as of btrfs-progs, {told} differences as of two dumps, {count} subvolumes')
    return 0


sys.exit(main())
