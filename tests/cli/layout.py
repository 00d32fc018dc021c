#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""list-chunks, list-devices and map-logical: output as text and as JSON Lines, and refusals.

The numbers are compared with `btrfs inspect-internal dump-tree` if it is available. BTRKIT is the program under test.
Exits with 77 if it cannot run.
"""
import json
import os
import re
import shutil
import sys
import tempfile

from tool import MKFS, check_failure, run, skip, thinned

BTRFS = os.environ.get('BTRFS', 'btrfs')
STRIP = 64 << 10
FLAGS = {'single': 0, 'DATA': 1, 'SYSTEM': 2, 'METADATA': 4, 'RAID0': 8, 'RAID1': 16, 'DUP': 32, 'RAID10': 64,
         'RAID5': 128, 'RAID6': 256, 'RAID1C3': 512, 'RAID1C4': 1024}


def make(folder, data, meta, devices):
    paths = [f'{folder}/{data}-{i + 1}.img' for i in range(devices)]
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(300 << 20)
    status, _, err = run('-q', '-f', '-K', '-d', data, '-m', meta, *paths, binary=MKFS)
    if status:
        skip(f'{MKFS} fails: {err}')
    return paths


def on(paths, command, *args, options=()):
    """Run a command on all devices and return its output."""
    status, out, err = run(command, *options, *(f'--device={p}' for p in paths[1:]), paths[0], *args)
    assert (status, err) == (0, ''), (status, err)
    return out.decode()


def as_json(paths, command, *args):
    lines = [json.loads(line) for line in on(paths, command, *args, options=('--format=json',)).splitlines()]
    assert lines[0] == {'__header': {'version': 1, 'command': command}}, lines[0]
    return lines[1:]


def dump(paths, tree):
    status, out, err = run('inspect-internal', 'dump-tree', '-t', tree, *paths, binary=BTRFS)
    # Not every filesystem has this tree.
    assert not status or tree == 'block-group', err
    return out.decode()


def chunks(paths):
    printed = dump(paths, 'chunk')
    theirs = []
    for line in printed.splitlines():
        if m := re.search(r'CHUNK_ITEM (\d+)\)', line):
            theirs.append({'logical': int(m[1]), 'stripes': []})
        elif m := re.search(r'length (\d+) owner \d+ stripe_len \d+ type (\S+)', line):
            theirs[-1].update(length=int(m[1]), type=m[2])
        elif m := re.search(r'stripe \d+ devid (\d+) offset (\d+)', line):
            theirs[-1]['stripes'].append({'devid': int(m[1]), 'physical': int(m[2])})
    extents = {(int(d), int(p)): (int(c), int(n)) for d, p, c, n in re.findall(
        r'key \((\d+) DEV_EXTENT (\d+)\)[^\n]*\n[^\n]*\n\s*chunk_objectid \d+ chunk_offset (\d+) length (\d+)',
        dump(paths, 'dev'))}
    ours, text = as_json(paths, 'list-chunks'), ''
    assert [(c['logical'], c['length'], c['stripes']) for c in ours] == \
        [(c['logical'], c['length'], c['stripes']) for c in theirs], ours
    assert {(s['devid'], s['physical']): (c['logical'], c['stripe_length']) for c in ours for s in c['stripes']} == \
        extents
    groups = re.findall(r'key \((\d+) BLOCK_GROUP_ITEM \d+\)[^\n]*\n\s*block group used (\d+)',
                        dump(paths, 'extent') + dump(paths, 'block-group'))
    used = {int(a): int(n) for a, n in groups}
    assert {c['logical']: c['used'] for c in ours} == used, (ours, used)
    for c, t in zip(ours, theirs):
        kind = t['type']
        assert c['type'] == sum(FLAGS[name] for name in kind.split('|')), (c, t)
        c['kind'] = kind
        text += (f'chunk {c["logical"]} length {c["length"]} type {kind} used {c["used"]} '
                 f'stripe_length {c["stripe_length"]}\n')
        for i, s in enumerate(c['stripes']):
            text += f'\tstripe {i} devid {s["devid"]} physical {s["physical"]}\n'
    assert on(paths, 'list-chunks') == text, on(paths, 'list-chunks')
    return ours


def devices(paths):
    theirs = re.findall(r'devid (\d+) total_bytes (\d+) bytes_used (\d+)(?s:.*?)uuid (\S+)', dump(paths, 'chunk'))
    ours, text = as_json(paths, 'list-devices'), ''
    assert [(str(d['devid']), str(d['total_bytes']), str(d['bytes_used']), d['uuid']) for d in ours] == theirs, ours
    assert [(d['path'], d['missing']) for d in ours] == [(p, False) for p in paths], ours
    for d in ours:
        text += (f'devid {d["devid"]} size {d["total_bytes"]} used {d["bytes_used"]} uuid {d["uuid"]} '
                 f'path {d["path"]}\n'
                 '\terrors: write 0 read 0 flush 0 corruption 0 generation 0\n')
    assert on(paths, 'list-devices') == text, on(paths, 'list-devices')
    if len(paths) > 2:
        status, out, err = run('list-devices', '--format=json', f'--device={paths[2]}', paths[0])
        found = [json.loads(line) for line in out.decode().splitlines()][1:]
        assert status == 0 and [d['missing'] for d in found] == [p not in (paths[0], paths[2]) for p in paths], found
        assert 'path' not in found[1] and re.search(r'devices? 2(, \d)* (is|are) missing, ', err), (found, err)
        status, out, err = run('list-devices', f'--device={paths[2]}', paths[0])
        assert status == 0 and re.search(r'devid 2 .* missing\n', out.decode()), out


def expected_places(chunk, at):
    """Where byte @at of a chunk is stored: (mirror, stripe, offset on it, role)."""
    kind, n = chunk['kind'], len(chunk['stripes'])
    strip, within = divmod(at, STRIP)
    if 'RAID5' in kind or 'RAID6' in kind:
        parity = 2 if 'RAID6' in kind else 1
        row, column = divmod(strip, n - parity)
        return [(1, (row + column) % n, row * STRIP + within, 'data')] + \
            [(0, (row + n - parity + i) % n, row * STRIP + within, 'PQ'[i]) for i in range(parity)]
    if 'RAID10' in kind:
        row, column = divmod(strip, n // 2)
        return [(i + 1, 2 * column + i, row * STRIP + within, 'data') for i in range(2)]
    if 'RAID0' in kind:
        row, column = divmod(strip, n)
        return [(1, column, row * STRIP + within, 'data')]
    return [(i + 1, i, at, 'data') for i in range(n)]


def map_logical(paths, listed):
    for chunk in listed:
        striped = re.search(r'RAID(0|10|5|6)\b', chunk['kind'])
        for at in thinned((0, 1, STRIP - 1, STRIP, 7 * STRIP + 4096, chunk['length'] - 1), 5):
            logical, text = chunk['logical'] + at, ''
            ours = as_json(paths, 'map-logical', logical)
            want = []
            for mirror, stripe, offset, role in expected_places(chunk, at):
                s = chunk['stripes'][stripe]
                length = STRIP - at % STRIP if striped else chunk['length'] - at
                want.append({'mirror': mirror, 'logical': logical, 'physical': s['physical'] + offset,
                             'devid': s['devid'], 'device': paths[s['devid'] - 1], 'length': length, 'role': role})
                text += (f'mirror {mirror} logical {logical} physical {s["physical"] + offset} devid {s["devid"]} '
                         f'device {paths[s["devid"] - 1]} length {length}' +
                         ('' if role == 'data' else f' parity {role}') + '\n')
            assert ours == want, (chunk, at, ours, want)
            assert on(paths, 'map-logical', logical) == text, (on(paths, 'map-logical', logical), text)
    # Nothing is printed past the end of all chunks.
    end = max(c['logical'] + c['length'] for c in listed)
    for form in ('text', 'json'):
        result = run('map-logical', f'--format={form}', *(f'--device={p}' for p in paths[1:]), paths[0], end)
        assert 'no chunk contains the address' in check_failure('map-logical', paths[0], result)


def unreachable(paths, listed):
    """Without the last device, the lost chunks are listed and marked."""
    lost = [c for c in listed if len(paths) in [s['devid'] for s in c['stripes']] and
            not re.search(r'RAID[156]', c['kind'])]
    args = ('list-chunks', *(f'--device={p}' for p in paths[1:-1]), paths[0])
    status, out, err = run(*args)
    assert status == 0 and f'device {len(paths)} is missing' in err, (status, err)
    found = [int(a) for a in re.findall(r'^chunk (\d+) .* unreachable$', out.decode(), re.M)]
    assert found == [c['logical'] for c in lost], (found, lost)
    # One line says how much that is, and what can be done.
    said = re.findall(r'is missing, 1 of \d+: (\d+) of (\d+) chunks cannot be read completely, (\d+) bytes of data; '
                      r'give each device with --device\n', err)
    assert err.count('\n') == 1 and bool(said) == bool(found), err
    assert said or ': all chunks can be read; give each device with --device\n' in err, err
    assert not said or said == [(str(len(found)), str(len(listed)), str(sum(c['length'] for c in lost)))], (said, lost)
    status, out, _ = run(*args[:1], '--format=json', *args[1:])
    told = [json.loads(line) for line in out.decode().splitlines()][1:]
    assert [c['logical'] for c in told if not c['reachable']] == found and len(told) == len(listed), told
    return len(found)


def refusals(paths, others):
    for command, args in (('list-chunks', ()), ('list-devices', ()), ('map-logical', ('22020096',))):
        result = run(command, f'--device={others[0]}', paths[0], *args)
        assert 'different filesystems' in check_failure(command, None, result), result
        result = run(command, f'--device={paths[0]}', paths[0], *args)
        assert result[0] == 1 and not result[1] and result[2].count('\n') == 1, result
        for bad in ((command, '--format=xml', paths[0], *args), (command,), (command, '--nothing', paths[0], *args),
                    (command, paths[0], *args, 'more')):
            status, out, err = run(*bad)
            assert status == 2 and not out and err, (bad, status, out, err)
    status, out, err = run('map-logical', paths[0], 'x1')
    assert status == 2 and not out and 'x1' in err, err


def main():
    if not shutil.which(MKFS) or not shutil.which(BTRFS):
        skip('needs mkfs.btrfs and btrfs')
    with tempfile.TemporaryDirectory(prefix='btrkit-layout-') as scratch:
        made, lost = [], 0
        for data, meta, n in (('single', 'dup', 1), ('raid0', 'raid1', 3), ('raid10', 'raid1c3', 4),
                              ('raid5', 'raid1', 3), ('raid6', 'raid6', 4)):
            paths = make(scratch, data, meta, n)
            devices(paths)
            listed = chunks(paths)
            map_logical(paths, listed)
            if n > 1:
                lost += unreachable(paths, listed)
            made.append(paths)
        assert lost
        refusals(made[1], made[2])
    return 0


sys.exit(main())
