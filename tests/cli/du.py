#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit du` on the committed images: output formats, and that its results are consistent with each other; damage is
reported and affects only what lies there. BTRKIT is the program under test."""
import itertools
import json
import os
import re
import subprocess
import tempfile

from tool import BTRKIT, check_failure, run, thinned

IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'images')
import unpack

# Runs of blanks are reduced to one here.
TEXT = '''\
 data on disk data uncompressed metadata
 id referenced exclusive shared referenced exclusive shared referenced exclusive shared path
 5 12.00KiB 0B 12.00KiB 12.00KiB 0B 12.00KiB 4.00KiB 4.00KiB 0B /
 257 240.00KiB 0B 240.00KiB 240.00KiB 0B 240.00KiB 1.29MiB 1.15MiB 144.00KiB /kept
 256 240.00KiB 0B 240.00KiB 240.00KiB 0B 240.00KiB 1020.00KiB 876.00KiB 144.00KiB (being deleted)
 - 0B 0B 0B 0B 0B 0B 4.00KiB 4.00KiB 0B (relocation of data)
 - 0B 0B 0B 0B 0B 0B 84.00KiB 84.00KiB 0B (the filesystem itself)
 total 240.00KiB 0B 240.00KiB 240.00KiB 0B 240.00KiB 2.24MiB 2.10MiB 144.00KiB
'''
# Blanks stand for tabs here, and a missing path is '-'.
TSV = '''\
subvolume 5 0 0 0 0 0 0 4096 4096 0 0 0 0 /
subvolume 256 999424 32768 966656 999424 32768 966656 40960 20480 20480 0 0 0 /s0
subvolume 257 1011712 24576 987136 1011712 24576 987136 40960 16384 24576 0 0 0 /s1
subvolume 258 983040 0 983040 983040 0 983040 40960 20480 20480 0 0 0 /s2
subvolume 259 999424 0 999424 999424 0 999424 40960 16384 24576 0 0 0 /s3
data-relocation 0 0 0 0 0 0 0 4096 4096 0 0 0 0 -
filesystem 0 0 0 0 0 0 0 81920 81920 0 0 0 0 -
total 0 1073152 57344 1015808 1073152 57344 1015808 192512 163840 28672 0 0 0 -
'''.replace('-\n', '\n').replace(' ', '\t')
FREED_TEXT = '''\
deleting 256,257 frees 92.00KiB: data 56.00KiB (uncompressed 56.00KiB) in 7 extents, metadata 36.00KiB in 9 blocks
deleting 5,259 frees 20.00KiB: data 0B (uncompressed 0B) in 0 extents, metadata 20.00KiB in 5 blocks
	Linux does not delete 5: it is the top level
'''
TYPES = '''\
type           ratio        disk  uncompressed  referenced     extents
zlib              3%    12.00KiB   376.00KiB   376.00KiB           3
lzo               4%    12.00KiB   300.00KiB   300.00KiB           3
zstd              3%    12.00KiB   376.00KiB   504.00KiB           3
inline-zlib       3%         33B     1.10KiB     1.10KiB           1
inline-lzo        5%         44B        900B        900B           1
inline-zstd       2%         22B     1.10KiB     1.10KiB           1
total             3%    36.10KiB     1.03MiB     1.16MiB          12
'''
# The files of below_directories(); blanks stand for tabs here.
PATHS = '''\
path 5 256 0 184320 184320 0 184320 /
path 5 257 1 12288 12288 0 12288 /a\\\\b
path 5 258 2 12288 12288 0 12288 /a\\\\b/c\\nd
path 256 256 0 65536 65536 0 65536 /s
path 256 257 1 45056 45056 0 45056 /s/d
path 257 256 0 36864 36864 0 36864 /s/d/t\\377
'''.replace(' ', '\t')
checks = 0


def check(condition, *what):
    global checks
    assert condition, what
    checks += 1


def du(path, *args):
    code, out, err = run('du', '--noscan', *args, path)
    check(code == 0 and not err, args, code, err)
    return out.decode()


def rows(path, *args):
    lines = du(path, '--format=json', *args).splitlines()
    check(json.loads(lines[0]) == {'__header': {'version': 1, 'command': 'du'}}, lines[0])
    return [json.loads(line) for line in lines[1:]]


def texts(images):
    for text, name, *args in (
            (TSV, 'good-generations', '--format=tsv'),
            (FREED_TEXT, 'good-generations', '--freed-by=/s0,s1', '--freed-by', '259,5,s3'),
            (TYPES, 'good-compressed', '--types')):
        check(du(images[name], *args) == text, du(images[name], *args))
    table = du(images['good-half-dropped'])
    check(re.sub(' +', ' ', table) == TEXT, table)
    ends = {line.index(' /') if ' /' in line else line.index(' (') for line in table.splitlines()[2:-1]}
    check(ends == {117} and len(table.splitlines()[-1]) == 116, table)
    raw = du(images['good-generations'], '--raw')
    check('     256      999424       32768      966656' in raw and 'KiB' not in raw, raw)
    for path in thinned(images.values(), 4):
        for args in ([], ['--types'], ['--matrix', '--extents'], ['--paths'], ['--freed-by=5']):
            check(du(path, '--threads=1', '--format=tsv', *args) == du(path, '--threads=7', '--format=tsv', *args))


def label(row):
    return row['id'] if row['owner'] in ('subvolume', 'dying') else row['owner']


def number(text):
    return int(text) if text.isdigit() else text


def same_in_tsv(path, found):
    """Each number of the JSON output occurs in the tab-separated output too."""
    lines = [line.split('\t') for line in du(path, '--format=tsv').splitlines()]
    check(len(lines) == len(found))
    for row, line in zip(found, lines):
        total = row.get('total') or row.get('unowned')
        row = total or row
        spaces = [row[of][what] for what in ('data', 'uncompressed', 'metadata')
                  for of in ('referenced', 'exclusive', 'shared')]
        check(list(map(int, line[2:11])) == spaces, line)
        if not total:
            check(line[:2] == [row['owner'], str(row.get('id', 0))] and line[14] == row.get('path', ''), line)
            check(list(map(int, line[11:14])) == [row['log']['data'], row['log']['metadata'], row['orphans']], line)


def sums(extents, condition):
    chosen = [x for x in extents if condition(set(x['owners']))]
    return {'data': sum(x['bytes'] for x in chosen), 'uncompressed': sum(x['uncompressed'] for x in chosen),
            'extents': len(chosen)}


def fits(space, wanted):
    check({key: space[key] for key in wanted} == wanted, space, wanted)


def together(path):
    """All results can be derived from the list of extents, and they agree about metadata."""
    found, extents = rows(path), rows(path, '--extents')
    owners = {label(row): row for row in found if 'owner' in row}
    total, = (row['total'] for row in found if 'total' in row)
    same_in_tsv(path, found)
    fits(total['referenced'], sums(extents, bool))
    fits(total['exclusive'], sums(extents, lambda of: len(of) == 1))
    for name, row in owners.items():
        fits(row['referenced'], sums(extents, lambda of, name=name: name in of))
        fits(row['exclusive'], sums(extents, lambda of, name=name: of == {name}))
        for key, value in row['shared'].items():
            check(value == row['referenced'][key] - row['exclusive'][key], row)
    check(sum(row['exclusive']['metadata'] for row in owners.values()) == total['exclusive']['metadata'])
    numbers = [name for name in owners if isinstance(name, int)]
    pairs = {tuple(row['pair']): row for row in rows(path, '--matrix')}
    for a, b in itertools.combinations(owners, 2):
        wanted = sums(extents, lambda of, a=a, b=b: {a, b} <= of)
        fits(pairs.get((a, b), {'data': 0, 'uncompressed': 0, 'extents': 0}), wanted)
    subsets = [list(s) for n in range(1, min(len(numbers), 5) + 1) for s in itertools.combinations(numbers[:5], n)]
    answers = rows(path, *(f'--freed-by={",".join(map(str, s[::-1]))}' for s in subsets))
    check(len(answers) == len(subsets))
    lines = du(path, '--format=tsv', *(f'--freed-by={",".join(map(str, s))}' for s in subsets)).splitlines()
    lines = [line.split('\t') for line in lines if line.startswith('freed\t')]
    for subset, answer, line in zip(subsets, answers, lines):
        check(set(answer['freed_by']) == set(subset), answer)
        wanted = sums(extents, lambda of, subset=subset: of and of <= set(subset))
        fits(answer, {f'freed_{key}': value for key, value in wanted.items()})
        if len(subset) == 1:
            check(answer['freed_metadata'] == owners[subset[0]]['exclusive']['metadata'], answer)
        check([number(one) for one in line[1].split(',')] == answer['freed_by'], line)
        check(list(map(int, line[2:])) == [answer[f'freed_{key}'] for key in (
            'data', 'uncompressed', 'metadata', 'extents', 'blocks')], line)
    types = {row['type']: row for row in rows(path, '--types')}
    sizes = {}
    for x in extents:
        if x['owners'] and x['owners'] != ['filesystem']:
            sizes[x['type']] = sizes.get(x['type'], 0) + x['bytes']
    check(sizes == {name: row['disk'] for name, row in types.items()
                    if row['extents'] and name != 'total' and not name.startswith('inline-')}, types)
    lines = [line.split('\t') for line in du(path, '--format=tsv', '--extents').splitlines()]
    check([[int(line[1]), int(line[2]), int(line[3]), line[4], line[5] == 'shared', [number(o) for o in
           line[6].split(',')]] for line in lines] == [list(x.values()) for x in extents])
    return len(extents)


def holds(images, folder):
    """The reasons why Linux would refuse to delete a subvolume; the kernel tests compare them with Linux."""
    path, root = os.path.join(folder, 'held.img'), os.path.join(folder, 'held')
    subvolumes = ['rw:a', 'rw:a/b', 'rw:a/b/c', 'ro:r', 'rw:r/in', 'default:d/e', 'rw:d']
    for name in subvolumes:
        os.makedirs(os.path.join(root, name.split(':')[1]), exist_ok=True)
    code, _, err = run('mkfs', '-q', '--rootdir', root, *(f'--subvol={name}' for name in subvolumes), path)
    check(code == 0, err)
    number = {row['path']: row['id'] for row in rows(path) if row.get('owner') == 'subvolume'}
    check(len(number) == 8, number)
    for given, wanted in (
            ('/a,/a/b,/a/b/c', []), ('/a/b/c', []), ('/a', [('/a', 'holds', '/a/b')]),
            ('/a,/a/b', [('/a', 'holds', '/a/b'), ('/a/b', 'holds', '/a/b/c')]),
            ('/r', [('/r', 'holds', '/r/in')]), ('/r/in', [('/r/in', 'in-read-only', '/r')]),
            ('/r,/r/in', [('/r', 'holds', '/r/in'), ('/r/in', 'in-read-only', '/r')]),
            ('/d,/d/e', [('/d', 'holds', '/d/e'), ('/d/e', 'default', None)])):
        answer, = rows(path, '--freed-by', given)
        wanted = sorted([{'id': number[a], 'hold': why, **({'other': number[b]} if b else {})} for a, why, b in wanted],
                        key=lambda held: held['id'])
        check(answer['held'] == wanted, given, answer['held'])
    check('\tLinux does not delete %d: it is in a read-only subvolume, %d\n' % (
        number['/r/in'], number['/r']) in du(path, '--freed-by=/r/in'))
    answer, = rows(images['good-default'], '--freed-by=/sub,5')
    check(answer['held'] == [{'id': 5, 'hold': 'top-level'}], answer)
    check(du(images['good-default'], '--freed-by=/sub,5', '--format=tsv').splitlines()[1] ==
          'held\t5,256\t5\ttop-level\t0')
    dying, = rows(images['good-half-dropped'], '--freed-by=256')
    check(dying['freed_by'] == [256] and not dying['held'] and dying['freed_blocks'] == 219, dying)
    orphan = {row.get('id'): row for row in rows(images['good-orphan'])}
    check(orphan[5]['orphans'] == 1 and not orphan[256]['orphans'])
    logged = {row.get('id'): row for row in rows(images['good-log-tree'])}
    check(logged[5]['log']['data'] == 12288 and logged[5]['log']['blocks'] == 1, logged[5]['log'])
    check(', in its log 12.00KiB of data and 16.00KiB of metadata besides\n' in du(images['good-log-tree']))
    check(', files without a name: 1\n' in du(images['good-orphan']))


def below_directories(images, folder):
    """Space below directories where nothing is shared; unusual names. The kernel tests compare with Linux."""
    path, root = os.path.join(folder, 'paths.img'), os.path.join(folder, 'paths')
    for name, size in ((b'a\\b/c\nd/f', 12000), (b's/x', 20000), (b's/d/y', 5000), (b's/d/t\xff/z', 36864),
                       (b'big', 104000), (b's/d/inline', 100)):
        name = os.path.join(root.encode(), name)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, 'wb') as f:
            f.write(os.urandom(size))
    code, _, err = run('mkfs', '-q', '--rootdir', root, '--subvol=s', '--subvol=s/d/t\udcff', path)
    check(code == 0, err)
    check(du(path, '--paths', '--format=tsv') == PATHS, du(path, '--paths', '--format=tsv'))
    for path in (path, *thinned(images.values(), 4)):
        found, lines = rows(path, '--paths'), du(path, '--paths', '--format=tsv').splitlines()
        check([[row[key] for key in ('root', 'inode', 'depth', 'total', 'unshared', 'set_shared', 'frees')]
               for row in found] == [list(map(int, line.split('\t')[1:8])) for line in lines], path)
        table = du(path, '--paths', '--raw').splitlines()
        check(table[0].split() == ['total', 'unshared', 'set', 'shared', 'frees', 'id', 'path'], table[0])
        check([[*line.split('\t')[4:8], line.split('\t')[1], line.split('\t')[8]] for line in lines] ==
              [line.split(None, 5) for line in table[1:]], table)
        for depth in range(3):
            check(rows(path, f'--paths={depth}') == [row for row in found if row['depth'] <= depth], path)
        # All extents that only subvolumes own, without those of unlinked files.
        freed = sum(row['frees'] for row in found if row['path'] == '/')
        extents = [x for x in rows(path, '--extents') if x['owners'] and all(isinstance(o, int) for o in x['owners'])]
        check(freed <= sum(x['bytes'] for x in extents), path)
        check(found[0]['path'] == '/' and found[0]['root'] == 5, found[0])
    check(any(row['set_shared'] for row in rows(images['good-clones'], '--paths')))
    # What a half-deleted subvolume still refers to is not freed.
    kept = {row['path']: row for row in rows(images['good-half-dropped'], '--paths')}
    check(kept['/kept']['total'] and not kept['/']['frees'], kept)


def shared_flag(images):
    """An extent that one file refers to twice counts as shared for Linux, but as exclusive here."""
    extents = rows(images['good-clones'], '--extents')
    check(any(x['linux_shared'] and x['owners'] == [5] for x in extents), extents)
    check(any(not x['linux_shared'] for x in extents), extents)
    found = rows(images['good-clones'])[0]
    check(found['id'] == 5 and found['shared']['data'] == 0 and found['exclusive']['data'] == 1572864, found)


def damaged(folder):
    """Contents of a bad block are missing, and nothing else."""
    whole = {row['id']: row for row in rows(unpack.unpack('good-default', folder, quick=True)) if 'id' in row}
    below = {row['root']: row for row in rows(unpack.unpack('good-default', folder, quick=True), '--paths=0')}
    for name in ('bad-checksum', 'bad-bytenr', 'bad-key-order'):
        path = unpack.unpack(name, folder, quick=True)
        code, out, err = run('du', '--noscan', '--format=json', path)
        lines = err.splitlines()
        check(code == 1 and len(lines) == 1 and lines[0].startswith(f'btrkit du: {path}: '), err)
        check('block 30932992' in lines[0], err)
        found = {row['id']: row for row in map(json.loads, out.splitlines()) if 'id' in row}
        check(found[256] == whole[256] and found[257] == whole[257] and found[5]['referenced']['data'] == 0, found)
        code, out, err = run('du', '--noscan', '--format=json', '--paths', path)
        lines = [line.removeprefix(f'btrkit du: {path}: ') for line in err.splitlines()]
        check(code == 1 and 'block 30932992' in lines.pop(0), err)
        check(lines == ['subvolume 5 has no root directory, tree 5',
                        *(f'subvolume {i} is not attached to a reachable directory, tree 1' for i in (256, 257))], err)
        found = [json.loads(line) for line in out.splitlines()[1:]]
        check([row['root'] for row in found if not row['depth']] == [256, 257], found)
        check(all('path' not in row if not row['depth'] else row['path'][0] != '/' for row in found), found)
        # An unreadable file of subvolume 5 might refer to it, too.
        check(found[0]['total'] == below[256]['total'] and found[0]['frees'] >= below[256]['frees'], found, below)
        code, out, err = run('du', '--noscan', '--types', '--freed-by=256', path)
        check(code == 1 and out.startswith(b'deleting 256 frees 20.00KiB') and err, out)
    read = set()
    for name in sorted(name[:-7] for name in os.listdir(IMAGES) if re.fullmatch(r'bad-.*\.tar\.xz', name)):
        path = unpack.unpack(name, folder, quick=True)
        code, out, err = run('du', '--noscan', '--extents', '--matrix', '--paths', '--types', '--format=tsv', path)
        check(code in (0, 1) and (code == 0 or err), name, code, err)
        check(all(line.startswith(f'btrkit du: {path}: ') for line in err.splitlines()), err)
        if not code:
            read.add(name)
    # In these images the damaged parts are not needed, or have another copy.
    check(read == {'bad-compressed-nothing', 'bad-dir-name', 'bad-last-tree', 'bad-one-copy', 'bad-super-primary'},
          read)


def little_memory(path):
    """A memory limit that is too small is reported in one line, with any option; one that suffices does not change the
    output."""
    whole = du(path)
    for size in ('64k', '1m', '3G'):
        check(du(path, f'--set-memory={size}') == whole)
    for args in ([], ['--types'], ['--freed-by=256'], ['--extents', '--format=json'], ['--threads=4', '--matrix']):
        said = check_failure('du', path, run('du', '--noscan', '--set-memory=300', *args, path))
        check('sets of owners exceed the limit of 300 bytes' in said, said)


def sets_are_forgotten(path):
    """Temporary sets must be freed on the way, or this would need 6,000 of them. With less memory the result is
    complete, or an error."""
    whole, enough = du(path, '--extents'), []
    for size in range(1000, 5001, 250):
        code, out, err = run('du', '--noscan', '--extents', '--threads=1', f'--set-memory={size}', path)
        check((code, out.decode(), err) == (0, whole, '') or (code == 1 and not out and 'sets of owners' in err), err)
        enough.append(not code)
    check(not enough[0] and enough[-1], enough)


def threads(path):
    """As many threads are started as are asked for. They exist only for some milliseconds, so try often."""
    many, of_sanitizer = os.cpu_count() + 6, int('TSAN_OPTIONS' in os.environ)
    for number, tries in (many, 1000), (1, 20):
        most = 0
        while tries and (number == 1 or most < many):
            with subprocess.Popen([BTRKIT, 'du', '--noscan', f'--threads={number}', path],
                                  stdout=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    most = max(most, len(os.listdir(f'/proc/{process.pid}/task')))
            tries -= 1
        wanted = (1,) if number == 1 else range(many, many + 2 + of_sanitizer)
        check(most in wanted, f'{most} threads, not {number}')


def misuse(path):
    for args, says in (
            ([], 'too few arguments'), ([path, path], 'too many arguments'),
            (['--freed-by=', path], 'has an empty element'),
            (['--freed-by=5,', path], 'has an empty element'), (['--freed-by=,5', path], 'has an empty element'),
            (['--freed-by=5,,6', path], 'has an empty element'), (['--threads=0', path], '--threads'),
            (['--set-memory=0', path], '--set-memory'), (['--set-memory=1x', path], '--set-memory'),
            (['--paths=x', path], "--paths: 'x' is not a number"), (['--paths=4294967296', path], 'too large'),
            (['--threads=x', path], '--threads'), (['--threads=1025', path], '--threads'),
            (['--format=xml', path], "'xml' is unknown")):
        said = check_failure('du', None, run('du', *args), status=2)
        check(says in said, args, said)
    for args, says in (
            (['--freed-by=300'], 'no subvolume 300'), (['--freed-by=/none'], 'no such file or directory: /none'),
            (['--freed-by=18446744073709551616'], 'no such file'), (['--freed-by=/sub/f'], ''),
            (['--device=/no/such/device'], 'No such file')):
        device = '/no/such/device' if 'device' in args[0] else path
        said = check_failure('du', device, run('du', '--noscan', *args, path))
        check(says in said, args, said)
    with open('/dev/full', 'wb') as full:
        done = subprocess.run([BTRKIT, 'du', '--noscan', path], stdout=full, stderr=subprocess.PIPE, check=False)
    check(done.returncode == 1 and b'standard output: No space left' in done.stderr, done)


def several(folder):
    """A filesystem on two devices, filled by mkfs."""
    first, second, root = (os.path.join(folder, name) for name in ('first.img', 'second.img', 'root'))
    os.mkdir(root)
    with open(f'{root}/file', 'wb') as f:
        f.write(bytes(range(1, 251)) * 1000)
    for path in (first, second):
        with open(path, 'wb') as f:
            f.truncate(300 << 20)
    code, _, err = run('mkfs', '-q', '-d', 'raid1', '-m', 'raid1', '--rootdir', root, first, second)
    check(code == 0, err)
    found = rows(first, '--device', second)
    check(found[0]['referenced']['data'] == 253952 and found[0]['exclusive'] == found[0]['referenced'], found[0])
    code, out, err = run('du', '--noscan', '--format=json', first)
    check(code == 0 and 'device 2 is missing' in err and json.loads(out.splitlines()[1]) == found[0], err)


def main():
    with tempfile.TemporaryDirectory(prefix='btrkit-du-') as folder:
        names = sorted(name[:-7] for name in os.listdir(IMAGES) if re.fullmatch(r'good-.*\.tar\.xz', name))
        images = {name: unpack.unpack(name, folder, quick=True) for name in names}
        texts(images)
        extents = sum(together(path) for path in thinned(images.values(), 2))
        holds(images, folder)
        below_directories(images, folder)
        shared_flag(images)
        damaged(folder)
        little_memory(images['good-generations'])
        sets_are_forgotten(images['good-keyed-references'])
        threads(images['good-generations'])
        misuse(images['good-default'])
        several(folder)
    check(extents > 200, extents)
    print(f'{len(images)} images, {extents} extents, {checks} checks')


main()
