#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare list-subvolumes with `btrfs subvolume list` and `btrfs subvolume show` on the same mounted filesystem: nested
subvolumes, snapshots of snapshots, read-only, received and deleted ones.

BTRKIT is the program under test. Exits with 77 if it cannot run.
"""
import datetime
import json
import os
import random
import re
import sys
import tempfile

import image

BTRKIT = os.environ.get('BTRKIT', 'btrkit')
NONE = '00000000-0000-0000-0000-000000000000'


def btrfs(*args):
    return image.run(image.BTRFS, *args).decode('utf-8', 'surrogateescape')


def fill(mnt, rng):
    """Subvolumes in directories and in each other, some of which are deleted again. Returns the paths of the rest."""
    paths = []
    for i in range(30):
        above = rng.choice([mnt, *paths])
        if rng.random() < 0.3:
            above = f'{above}/dir{i}'
            os.makedirs(above)
        path = f'{above}/sub {i}\u20ac'
        if paths and rng.random() < 0.4:
            btrfs('subvolume', 'snapshot', rng.choice(paths), path)
        else:
            btrfs('subvolume', 'create', path)
        paths.append(path)
        with open(f'{path}/file', 'wb') as f:
            f.write(rng.randbytes(100))
        if not rng.randrange(4):
            image.sync(mnt)
    for path in [p for p in paths if not any(q.startswith(f'{p}/') for q in paths)][:6]:
        btrfs('subvolume', 'delete', path)
        paths.remove(path)
    return paths


def receive(mnt, paths, folder):
    """A received subvolume has a received UUID, and times of sending and receiving; its snapshot is sent
    incrementally."""
    first, second, stream = f'{mnt}/sent-1', f'{mnt}/sent-2', f'{folder}/stream'
    source = paths[0]
    btrfs('subvolume', 'snapshot', '-r', source, first)
    with open(f'{source}/more', 'wb') as f:
        f.write(b'more')
    btrfs('subvolume', 'snapshot', '-r', source, second)
    os.mkdir(f'{mnt}/received')
    for args in (('-f', stream, first), ('-f', stream, '-p', first, second)):
        btrfs('send', '-q', *args)
        btrfs('receive', '-f', stream, f'{mnt}/received')


def listed(mnt):
    """The rows of the list sorted by ID, and the output of show for each."""
    rows = btrfs('subvolume', 'list', '-pcguqR', mnt).splitlines()
    rows.sort(key=lambda row: int(row.split()[1]))
    shown = {}
    for row in rows:
        number, path = int(row.split()[1]), row.partition(' path ')[2]
        text = btrfs('subvolume', 'show', f'{mnt}/{path}')
        fields = dict(re.findall(r'^\t([A-Z][\w ]+):[ \t]*(.*)$', text, re.M))
        fields['snapshots'] = re.findall(r'^\t\t\t\t(.*)$', text.partition('Snapshot(s):\n')[2], re.M)
        shown[number] = fields
    return rows, shown


def numbers(text):
    return [int(row.split()[1]) for row in text.splitlines()]


def choices(mnt, rows):
    """Filters and sort orders: options for both programs, and the resulting IDs in order."""
    generations = sorted(int(row.split()[3]) for row in rows)
    created = sorted(int(row.split()[5]) for row in rows)
    found = [[[option], [option]] for option in ('-r', '-s', '-d')]
    for option, values in (('-G', generations), ('-C', created)):
        for sign in ('', '+', '-'):
            found += [[[option, f'{sign}{v}']] * 2 for v in {values[0], values[len(values) // 2], values[-1]}]
    found += [[[f'--sort={keys}']] * 2 for keys in (
        'rootid', '-rootid', 'gen,rootid', '-gen,rootid', 'ogen,-rootid', '-ogen,gen,rootid', 'path', '-path')]
    found += [[['-r', '-s']] * 2, [['-s', '-C', f'+{created[len(created) // 2]}', '--sort=-path']] * 2]
    result = [(ours, numbers(btrfs('subvolume', 'list', *theirs, mnt))) for theirs, ours in found]
    result.append((['--below', '5'], numbers(btrfs('subvolume', 'list', '-o', mnt))))
    for row in rows:
        path = row.partition(' path ')[2]
        result.append((['--below', row.split()[1]], numbers(btrfs('subvolume', 'list', '-o', f'{mnt}/{path}'))))
    return result


def chosen(path, wanted):
    """Compare ours. Returns how often some but not all were selected."""
    some = 0
    for options, theirs in wanted:
        ours = numbers(image.run(BTRKIT, 'list-subvolumes', *options, path).decode())
        sort = any(option.startswith('--sort') for option in options)
        assert ours == (theirs if sort else sorted(theirs)), (options, ours, theirs)
        some += bool(theirs)
    return some


def time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S +0000')


def same(s, shown, paths):
    """Compare a JSON object with the output of show. Returns the number of compared fields."""
    def uuid(name):
        return '-' if s[name] == NONE else s[name]
    ours = {
        'Name': s['path'].split('/')[-1], 'UUID': s['uuid'], 'Parent UUID': uuid('parent_uuid'),
        'Received UUID': uuid('received_uuid'), 'Creation time': time(s['otime']['sec']),
        'Subvolume ID': str(s['id']), 'Generation': str(s['generation']), 'Gen at creation': str(s['otransid']),
        'Parent ID': str(s['parent']), 'Top level ID': str(s['top_level']),
        'Flags': 'readonly' if 'RDONLY' in s['flags_names'] else '-',
        'Send transid': str(s['stransid']), 'Receive transid': str(s['rtransid']),
        'snapshots': sorted(paths[n] for n in s['snapshots']),
    }
    if s['rtime']['sec']:
        ours['Receive time'] = time(s['rtime']['sec'])
    theirs = {**shown, 'snapshots': sorted(shown['snapshots'])}
    for name, value in ours.items():
        assert theirs[name] == value, (name, theirs[name], value, s)
    return len(ours)


def main():
    why = image.missing()
    if why:
        print(f'skipped: {why}')
        return 77
    rng = random.Random(9)
    with tempfile.TemporaryDirectory(prefix='btrkit-subvolumes-') as folder:
        path = f'{folder}/fs.img'
        fs = image.Image(path, '400M')
        fs.mkfs()
        fs.mount()
        paths = fill(fs.mnt, rng)
        receive(fs.mnt, paths, folder)
        image.wait_for_cleaner(fs.mnt)
        fs.umount()
        # Everything has been written; a read-only mount does not change it.
        fs.mount(readonly=True)
        rows, shown = listed(fs.mnt)
        wanted = choices(fs.mnt, rows)
        fs.umount()
        ours = image.run(BTRKIT, 'list-subvolumes', path).decode('utf-8')
        text = re.sub(r'\\342\\202\\254', '\u20ac', ours).splitlines()
        assert text == rows, [pair for pair in zip(text, rows) if pair[0] != pair[1]][:2]
        found = [json.loads(line) for line in
                 image.run(BTRKIT, 'list-subvolumes', '--format', 'json', path).splitlines()][1:]
        some = chosen(path, wanted)
        names = {s['id']: s['path'] for s in found}
        fields = sum(same(s, shown[s['id']], names) for s in found)
    received = sum(s['received_uuid'] != NONE for s in found)
    print(f'{len(rows)} subvolumes are listed alike, {fields} fields shown; {received} were received; '
          f'{len(wanted)} choices are alike, {some} of something')
    return 0 if len(rows) > 20 and some > 25 and received == 2 else 1


if __name__ == '__main__':
    sys.exit(main())
