#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What repeats is one finding, with its number and where it is: blocks of a missing and of a stale device, many bad
blocks of one copy, and everything below the root of a lost tree. JSON and --verbose have the single ones.
Usage: folds.py"""
import json
import os
import re
import shutil
import sys
import tempfile

from tool import run

M = 1 << 20
NODE = 4096
checks = 0


def check(right, *what):
    global checks
    assert right, what
    checks += 1


def make(paths, source, *options):
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(400 * M)
    filled = ['--rootdir', source] if source else []
    status, _, err = run('mkfs', '-q', '-f', '-n', NODE, *filled, *options, *paths)
    assert not status, err


def fill(source, files):
    for i in range(files):
        os.makedirs(f'{source}/d{i % 20}', exist_ok=True)
        with open(f'{source}/d{i % 20}/file-{i}', 'wb') as f:
            f.write(os.urandom(10000 if not i % 100 else 3000 if i % 2 else 200))


def physical(path, logical):
    _, out, _ = run('map-logical', path, logical)
    return [int(number) for number in re.findall(rb'physical (\d+)', out)]


def checked(*args):
    """Run check as JSON and as text. Returns its folds, its lines, its last line, and its findings one by one."""
    status, out, _ = run('check', '--repeats', '65536', '--json', *args)
    rows = [json.loads(line) for line in out.splitlines()][1:]
    singles = [row for row in rows if row['kind'] == 'finding']
    folds = [row for row in rows if row['kind'] == 'fold']
    text_status, text, _ = run('check', *args)
    lines = text.decode().splitlines()
    check(status == text_status == 4, status, text_status)
    check(rows[-1]['refused'] + rows[-1]['misbehaves'] == len(singles), rows[-1], len(singles))
    # The same number of errors, folded or not.
    check(re.search(rf": {len(singles)} errors? \({rows[-1]['refused']} refused\)$", lines[-1]), lines[-1])
    check(not any(row['kind'] == 'more' for row in rows), rows)
    for fold in folds:
        its = [row for row in singles if (row['code'], row.get('cause'), row.get('devid')) ==
               (fold['code'], fold['cause'], fold.get('devid'))]
        places = sorted({row['logical'] for row in its})
        check(len(its) == fold['times'], len(its), fold)
        check(fold['first'] == places[:4] and fold['last'] == places[-1], fold, places[:5])
        check(fold['trees'] == sorted({row['tree'] for row in its if 'tree' in row})[:4], fold)
        check(fold['bytes'] == fold['times'] * NODE, fold)
        check(sum(f" {fold['times']} findings, {fold['bytes']} bytes, " in line for line in lines) == 1, fold, lines)
        single = [line for line in lines if line.startswith(fold['code']) and ' findings, ' not in line]
        check(not single, single)
    return folds, lines, rows[-1], singles


def told(count, *args):
    """A command prints at most @count lines about places on its standard error, and all of them with --verbose."""
    status, _, err = run(*args)
    lines = [line for line in err.splitlines() if re.search(r'block|places', line) and ' chunks' not in line]
    check(status == 1, args, status, err)
    check(len(lines) <= count, args, lines[:10])
    folded = re.findall(r': (\d+)(?: more)? places that cannot be read, blocks (\d+) to (\d+) ', err)
    check(len(folded) == 1, args, lines)
    verbose_status, _, err = run(*args, '--verbose')
    every = [line for line in err.splitlines() if re.search(r', block \d', line)]
    check(verbose_status == 1 and len(every) == len(lines) - 1 + int(folded[0][0]), args, len(every), lines)
    places = [int(number) for line in every for number in re.findall(r', block (\d+)', line)]
    low, high = int(folded[0][1]), int(folded[0][2])
    check(min(places) <= low <= high <= max(places) and low in places and high in places, folded)
    return lines


def counted(blocks, *args):
    """tree-stats counts what is around lost blocks, and these, each once."""
    told(9, 'tree-stats', *args)
    status, out, _ = run('tree-stats', '--format=json', *args)
    trees = [json.loads(line) for line in out.splitlines()][1:]
    check(status == 1 and sum(tree.get('lost_blocks', 0) for tree in trees) == blocks, blocks, trees)
    check(all(tree['cause'] in ('device-missing', 'csum') for tree in trees if 'damaged' in tree), trees)
    for tree in trees:
        above = sum(level['items'] for level in tree['nodes'][1:])
        check(above + 1 >= tree['blocks'] + tree.get('lost_blocks', 0), tree)
        check('lost_blocks' in tree or above + 1 == tree['blocks'], tree)


def dumped(blocks, *args):
    """dump-tree prints each lost block in its place, and one line for their cause."""
    lines = told(9, 'dump-tree', *args)
    check('; give all devices' in lines[-1] or 'device-missing' not in lines[-1], lines)
    status, out, err = run('dump-tree', '--format=json', '--verbose', *args)
    lost = [row for row in map(json.loads, out.splitlines()) if row.get('kind') == 'damage']
    check(status == 1 and len(lost) == blocks, blocks, lost[:3])
    check({row['cause'] for row in lost} <= {'device-missing', 'csum'}, lost[:3])
    check(all(copy['cause'] in ('device-missing', 'csum') for row in lost for copy in row['copies']), lost[:3])
    # In the order of the output, whatever the order of threads.
    check([int(number) for number in re.findall(r', block (\d+)', err)] == [row['bytenr'] for row in lost], err[:500])


def missing(scratch, source):
    paths = [f'{scratch}/missing-{i}.img' for i in range(2)]
    source = f'{scratch}/small'
    for i in range(2000):
        os.makedirs(f'{source}/d{i // 100}', exist_ok=True)
        with open(f'{source}/d{i // 100}/f{i % 100}', 'wb') as f:
            f.write(os.urandom(3000 if i % 2 else 200))
    # With some sizes, the roots of all trees, and the directories, are on the device that is left.
    for less in range(60):
        make(paths, source, '-d', 'raid0', '-m', 'raid0', *[f'--exclude=f{i}' for i in range(less)])
        folds, lines, _, _ = checked('--noscan', paths[0])
        if folds and folds[0]['times'] > 100 and run('ls', '-R', '--noscan', paths[0])[1].count(b'\n') > 300:
            break
    check([(fold['cause'], fold['devid']) for fold in folds] == [('device-missing', 2)], folds)
    check(folds[0]['times'] > 100, folds)
    check(len(lines) == 3 and lines[1].endswith('; give it with --device'), lines)
    check(len(told(1, 'du', '--noscan', paths[0])) == 1)
    told(4, 'fiemap', '-a', '--noscan', paths[0])
    counted(folds[0]['times'], '--noscan', paths[0])
    dumped(folds[0]['times'], '--noscan', paths[0])
    told(4, 'ls', '-R', '--noscan', paths[0])
    told(4, 'extract', '--noscan', '-C', f'{scratch}/target', paths[0])
    # Each path that was given is answered.
    status, _, err = run('stat', '--noscan', paths[0], *[f'd{i}/f{k}' for i in range(5) for k in range(20)])
    check(status == 1 and 'places' not in err and err.count('device is missing') > 3, err)


def stale(scratch, _):
    paths = [f'{scratch}/stale-{i}.img' for i in range(2)]
    make(paths, None, '-d', 'raid1', '-m', 'raid1')
    with open(paths[1], 'rb') as f:
        before = f.read()
    status, _, err = run('edit', f'--device={paths[1]}', paths[0], 'put', '-r', f'{scratch}/small', 'again')
    assert not status, err
    with open(paths[1], 'wb') as f:
        f.write(before)
    folds, lines, _, _ = checked(f'--device={paths[1]}', paths[0])
    check([(fold['code'], fold['cause'], fold['devid']) for fold in folds] == [('BTR-BLOCK-COPY', 'device-stale', 2)],
          folds)
    check(len(lines) == 3 and lines[0].startswith('BTR-SUPER-STALE ') and folds[0]['times'] > 100, lines)
    check(lines[1].endswith('; mount it with all devices and run btrfs scrub'), lines)
    folds, lines, _, _ = checked('--data', f'--device={paths[1]}', paths[0])
    check([fold['code'] for fold in folds] == ['BTR-BLOCK-COPY', 'BTR-DATA-COPY'] and len(lines) == 4, lines)


def stale_parity(scratch, _):
    """Parity on a stale device is folded, too."""
    paths = [f'{scratch}/parity-{i}.img' for i in range(3)]
    os.mkdir(f'{scratch}/large')
    with open(f'{scratch}/large/file', 'wb') as f:
        f.write(os.urandom(4 * M))
    make(paths, None, '-d', 'raid5', '-m', 'raid1')
    with open(paths[2], 'rb') as f:
        before = f.read()
    others = [f'--device={path}' for path in paths[1:]]
    status, _, err = run('edit', *others, paths[0], 'put', f'{scratch}/large/file', 'file')
    assert not status, err
    with open(paths[2], 'wb') as f:
        f.write(before)
    folds, lines, _, _ = checked('--data', *others, paths[0])
    by_code = {fold['code']: fold for fold in folds}
    check({(fold['cause'], fold['devid']) for fold in folds} == {('device-stale', 3)}, folds)
    # Each device has a third of the parity.
    parity = by_code['BTR-DATA-PARITY']
    check(4 * M // 2 // 3 - 65536 <= parity['bytes'] <= 4 * M // 2 // 3 + 65536 and not parity['trees'], parity)
    check(by_code['BTR-DATA-COPY']['bytes'] > M and len(lines) == len(folds) + 2, folds, lines)


def many_bad(scratch, source):
    path = f'{scratch}/bad.img'
    make([path], source, '-m', 'dup')
    _, out, _ = run('list-chunks', path)
    start, second = re.search(rb'chunk (\d+) length \d+ type METADATA.*\n.*\n.*physical (\d+)', out).groups()
    with open(path, 'r+b') as f:
        f.seek(int(second))
        f.write(b'\xee' * (1000 * NODE))
    folds, lines, _, _ = checked(path)
    check([(fold['code'], fold['cause'], fold['devid'], fold['times']) for fold in folds] ==
          [('BTR-BLOCK-COPY', 'csum', 1, 1000)], folds)
    check(folds[0]['first'][0] == int(start) and folds[0]['bytes'] == 1000 * NODE and len(lines) == 2, folds, lines)
    # With a number of repeats, text lists them.
    status, text, _ = run('check', '--repeats', '5', path)
    lines = text.decode().splitlines()
    check(status == 4 and len(lines) == 7 and lines[-2].endswith(': 995 more'), lines)
    # A few are listed as they are.
    make([path], source, '-m', 'dup')
    with open(path, 'r+b') as f:
        f.seek(int(second))
        f.write(b'\xee' * (8 * NODE))
    folds, lines, _, _ = checked(path)
    check(not folds and len(lines) == 9, lines)


def destroy(path, blocks):
    with open(path, 'r+b') as f:
        for place in [place for block in blocks for place in physical(path, block)]:
            f.seek(place)
            f.write(b'\xee' * NODE)


def differences(*args):
    status, out, err = run('diff', '--format=json', '--brief', *args)
    rows = [json.loads(line) for line in out.splitlines()][1:]
    return status, {(row['kind'], row['tree'], *(row['key'][part] for part in ('objectid', 'type', 'offset')))
                    for row in rows}, err


def keys_of(path, tree, leaf):
    """The first and the last key of a leaf."""
    _, out, _ = run('dump-tree', '--format=json', '-t', tree, f'--bytenr={leaf}..{leaf}', path)
    keys = [row['key'] for row in map(json.loads, out.splitlines()) if row.get('kind') == 'item']
    return [tuple(key[part] for part in ('objectid', 'type', 'offset')) for key in (keys[0], keys[-1])]


def compared(scratch, source):
    """diff goes on behind lost leaves, and says nothing of what the other side has there."""
    plain, changed, hurt = (f'{scratch}/{name}.img' for name in ('plain', 'changed', 'hurt'))
    subvolumes = [f'--subvol=s{i}' for i in range(60)]
    for i in range(60):
        os.makedirs(f'{scratch}/volumes/s{i}', exist_ok=True)
        for k in range(60):
            with open(f'{scratch}/volumes/s{i}/f{k}', 'w', encoding='ascii') as f:
                f.write('x' * 500)
    make([plain], f'{scratch}/volumes', '-m', 'dup', '-U', '0a000000-0000-4000-8000-00000000000a', *subvolumes)
    shutil.copyfile(plain, changed)
    for i in range(0, 60, 3):
        status, _, err = run('edit', changed, 'chmod', '600', *[f's{i}/f{k}' for k in range(0, 60, 7)])
        assert not status, err
    status, want, _ = differences(plain, changed)
    check(not status and len(want) > 100, status, len(want))
    for tree in ('root', 's9'):
        _, out, _ = run('dump-tree', '-t', tree, plain)
        leaves = [int(number) for number in re.findall(rb'^leaf (\d+) items ', out, re.M)][1:-1:2]
        tree_id = int(re.search(rb'^leaf .* owner (?:ROOT_TREE|(\d+))$', out, re.M)[1] or 1)
        ranges = [keys_of(plain, tree, leaf) for leaf in leaves]
        shutil.copyfile(plain, hurt)
        destroy(hurt, leaves)
        for args in ([hurt, changed], [changed, hurt]):
            status, found, err = differences(*args, '--verbose')
            swap = {'added': 'removed', 'removed': 'added', 'changed': 'changed'}
            known = want if args[0] == hurt else {(swap[row[0]], *row[1:]) for row in want}
            check(status == 1 and found <= known, status, err[:300], sorted(found - known)[:5])
            # All others are there, but for items of the trees whose root items are lost.
            gone = {row for row in known - found if row[1] == tree_id}
            check(all(any(low <= row[2:] <= high for low, high in ranges) for row in gone), sorted(gone)[:5], ranges)
            lost_trees = [row[1] for row in known - found if row[1] != tree_id]
            check(all(any(low[0] <= number <= high[0] for low, high in ranges) for number in lost_trees), lost_trees)
            check(tree == 'root' or not lost_trees, lost_trees)
            check(known - found and found, tree, len(found))
            check(sorted(int(number) for number in re.findall(r', block (\d+)', err)) == sorted(leaves), err, leaves)
    # One line, with the device of its side.
    lines = told(9, 'diff', changed, hurt) if len(leaves) > 9 else []
    check(all(f'{hurt}: ' in line for line in lines), lines)
    destroy(hurt, [int(re.search(rb'^fs tree key .* (\d+) level', run('dump-tree', '-r', plain)[1], re.M)[1])])
    status, found, err = differences(changed, hurt)
    check(status == 1 and found and not any(row[1] == 5 for row in found), sorted(found)[:5])


def lost_tree(scratch, source):
    path = f'{scratch}/lost.img'
    make([path], source, '-m', 'dup')
    _, out, _ = run('dump-tree', '-r', path)
    root = int(re.search(rb'fs tree key \(FS_TREE ROOT_ITEM 0\) (\d+) level [12]', out).group(1))
    _, out, _ = run('dump-tree', '-t', '5', path)
    blocks = len(re.findall(rb'^(?:node|leaf) \d+ (?:level|items) ', out, re.M))
    with open(path, 'r+b') as f:
        for place in physical(path, root):
            f.seek(place)
            f.write(b'\xee' * NODE)
    _, lines, summary, singles = checked(path)
    data = summary['unreached_data']
    check(len(singles) == 1 and singles[0]['logical'] == root and singles[0]['tree'] == 5, singles)
    # All but the root, which is reached, but cannot be read.
    check(summary['unreached_blocks'] == blocks - 1, summary, blocks)
    check(summary['unreached_extents'] == 60 and data == 60 * 12288, summary)
    check(f"not reached because of lost blocks: {blocks - 1} tree blocks, {summary['unreached_extents']} data extents "
          f'of {data} bytes' in lines[-1], lines)
    for args in (['du'], ['fiemap', '-a'], ['ls', '-R'], ['extract', '-C', f'{scratch}/none']):
        status, _, err = run(*args, path)
        check(status == 1 and err.count('\n') == 1 and f'block {root}' in err, args, err)


def lost_leaves(scratch, source):
    path = f'{scratch}/leaves.img'
    make([path], source, '-m', 'dup')
    whole = json.loads(run('tree-stats', '--format=json', '-t', 'fs', path)[1].splitlines()[1])
    _, out, _ = run('dump-tree', '-t', 'fs', path)
    leaves = [int(number) for number in re.findall(rb'^leaf (\d+) items ', out, re.M)][20:520:5]
    items = sum(int(number) for leaf in leaves for number in re.findall(rb'^leaf %d items (\d+) ' % leaf, out, re.M))
    with open(path, 'r+b') as f:
        for place in [place for leaf in leaves for place in physical(path, leaf)]:
            f.seek(place)
            f.write(b'\xee' * NODE)
    counted(len(leaves), path)
    dumped(len(leaves), path)
    tree = json.loads(run('tree-stats', '--format=json', '-t', 'fs', path)[1].splitlines()[1])
    # All leaves but those, with all their items.
    check(tree['blocks'] == whole['blocks'] - len(leaves) and tree['lost_blocks'] == len(leaves), tree)
    check(tree['nodes'][0]['items'] == whole['nodes'][0]['items'] - items, tree, items)
    check(tree['nodes'][1:] == whole['nodes'][1:], tree)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        source = f'{scratch}/source'
        fill(source, 6000)
        for name in ('target', 'none'):
            os.mkdir(f'{scratch}/{name}')
        for test in (missing, stale, stale_parity, many_bad, lost_leaves, compared, lost_tree):
            test(scratch, source)
    print(f'{checks} checks')
    return 0


if __name__ == '__main__':
    sys.exit(main())
