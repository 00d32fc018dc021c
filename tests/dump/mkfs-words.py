#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the messages of `btrkit mkfs` with mkfs.btrfs 6.19 for the same command line: the same summary, a warning
wherever it prints one, and, under its name, the same exit status. Command lines that only one of them accepts are
listed here. Needs no root."""
import os
import re
import subprocess
import sys
import tempfile

import compare
from compare import BTRKIT, MKFS, Difference

UUID = 'abcdef01-2345-6789-abcd-ef0123456789'
M, G, T = 1 << 20, 1 << 30, 1 << 40
SIZE = 500 * M
PROFILES = {'single': 1, 'dup': 1, 'raid0': 1, 'raid1': 2, 'raid1c3': 3, 'raid1c4': 4, 'raid10': 2, 'raid5': 2,
            'raid6': 3}
FEATURES = ('mixed-bg', 'quota', 'squota', 'extref', 'raid56', 'skinny-metadata', 'no-holes', 'fst', 'free-space-tree',
            'raid1c34', 'bgt', 'block-group-tree')

# For one device.
ROWS = [
    *(f'-b {size}' for size in (
        '0', '1g', '300m', '300M', '300000000', '314572801', '400000k', '300mm', '300MB', '0x12000000', '300.5m', '-1',
        'x', '20e', '16e', '1p', '50m', '99999999999999999999')),
    *(f'-n {size}' for size in ('1k', '2k', '3k', '4k', '4096', '8k', '32k', '64k', '65536', '16K', '128k', '-4096',
                                '4096x')),
    *(f'-s {size}' for size in ('512', '2k', '4k', '8k', '16k', '32k', '64k', '128k', '4097', '16k -n 8k',
                                '64k -n 64k')),
    *(f'--csum {name}' for name in ('crc32c', 'CRC32C', 'xxhash', 'xxhash64', 'XXHASH64', 'sha256', 'SHA256', 'blake2',
                                    'blake2b', 'Blake2B', 'md5', 'crc32', '0')),
    *(f'-d {name}' for name in ('foo', 'SINGLE', 'Single', 'Raid0', 'raid', 'raid1c2', '0')),
    '-m foo', '-m DUP', '-m single', '-d dup', '-m single -d dup', '-m dup -d dup', '-d raid0 -m raid0',
    '-M', '-M -n 4k', '-M -n 16k', '-M -m dup', '-M -d dup', '-M -d single', '-M -m single -d dup', '-M -m dup -d dup',
    '-M -s 16k', '-M -s 8k -n 8k', '-M -O ^mixed-bg', '-M -O quota', '-M -O ^bgt',
    *(f'-O ^{name}' for name in FEATURES), *(f'-O {name}' for name in FEATURES if name != 'mixed-bg'),
    *(f'-O {names}' for names in (
        'quota,squota', 'squota,quota', 'block-group-tree,^free-space-tree', '^free-space-tree,free-space-tree',
        'bgt,^no-holes', 'zoned', 'raid-stripe-tree', 'extent-tree-v2', 'foo', 'Quota', ',', 'quota,,extref', 'quota,',
        '^^quota', '^', '^foo', 'big-metadata', 'mixed-backref', 'default', 'none', '^fst,^no-holes,^extref')),
    *(f'-R {name}' for name in ('quota', '^quota', 'free-space-tree', '^free-space-tree', 'fst', 'extref', 'foo',
                                'squota', 'bgt', '^block-group-tree')),
    f'-U {UUID.upper()}', '-U foo', f'-U {UUID[:-1]}', f'-U {UUID.replace("-", "")}', '-U clear', '-U random',
    f'--device-uuid {UUID}', '--device-uuid foo', f'-U {UUID} --device-uuid {UUID}',
    '-q', '-qv', '-vq', '--quiet --verbose', '-K', '--nodiscard', '-f', '--force', '-q -f -K',
    '--lab x', '--label=x', '-Lx', '-L x', '--byte-count=300m', '--node 4k', '--sector 4k', '--feat quota', '--mix',
    '--meta single', '--dat dup', '--no', '--qui', '--for', '--check sha256', '--ch sha256', '--uu ' + UUID,
    '--b 300m', '--ro none', '--u ' + UUID, '--de ' + UUID, '--forc', '--fe quota', '--compre no', '--compress no',
    '-l 4k', '-A 1m', '--leafsize 4k', '--alloc-start 1m', '-x', '-h', '--nonsense', '-n', '--label', '--csum',
    '--shrink', '--reflink', '-r none', '--rootdir none', '--subvol a', '-u a', '--inode-flags nodatacow:a',
    '--compress zstd', '--param a=b', '--num-global-roots 3',
]
EXACT = [['-L', ''], ['-L', 'x' * 255], ['-L', 'x' * 256], ['-L', 'ä' * 127], ['-L', 'a\tb'], ['-L', 'a\\b'],
         ['-L', ' a '], ['-O', ''], ['-R', ''], ['-d', ''], ['-m', ''], ['--csum', ''], ['-n', ''], ['-b', '']]
# Only ours refuses these: sizes truncated to 32 bits or rounded to zero, values cut off or skipped, a file as a
# subvolume, and paths with "..".
REFUSED = ['-b 100', '-n 0', '-n 4294967296', '-n 4294971392', '-s 0', '-s 4294971392', '-O ^list-all', '-L a\nb',
           '-U ', '--device-uuid ', f'-U {UUID}0',
           '-r ROOT --subvol f', '-r ROOT --subvol ./a/../b']
# ROOT is a directory that contains the directories a, b and a/c and a file f.
FILLED = [
    '', '--shrink', '-q', '-M', '-O quota', '-n 64k', '-b 300m', '-b 300m --shrink', '-d dup -m single',
    '--csum sha256', '-r ROOT', '-L label', f'-U {UUID} --device-uuid {UUID}', '-O ^no-holes', '--param a=b',
    *(f'--compress {kind}' for kind in (
        'no', 'zlib', 'lzo', 'zstd', 'no:1', 'gzip', 'zlib:0', 'zlib:1', 'zlib:9', 'zlib:10', 'lzo:0', 'lzo:1', 'lzo:2',
        'zstd:0', 'zstd:1', 'zstd:15', 'zstd:16', 'zstd:x', 'zstd:-1', 'ZSTD', 'zstd --compress no')),
    *(f'--subvol {name}' for name in (
        'a', 'rw:a', 'ro:a', 'default:a', 'default-ro:a', './a', '/a', 'a/', 'a/c', 'x:a', 'none', 'RO:a',
        'a --subvol b', 'a --subvol a', 'a --subvol a/', 'a --subvol a/c', 'default:a --subvol b',
        'default:a --subvol default:b', 'default:a --subvol default-ro:b', 'ro:a --subvol default:b --shrink')),
    *(f'--inode-flags {flags}' for flags in (
        'nodatacow:a', 'nodatacow:/a', 'nodatacow:f', 'nodatacow,nodatasum:a', 'nodatasum,nodatacow:a', 'compress:a',
        'a', 'nodatacow:none', 'nodatacow', 'nodatacow:a --inode-flags nodatacow:a',
        'nodatacow:a --inode-flags nodatasum:a', 'nodatacow:a --subvol a',
        'nodatacow:a --subvol b --inode-flags nodatacow:b')),
]
SOURCES = ['-r none', '-r ROOT --subvol ROOT/a', '--rootdir ROOT/a', '--rootdir=ROOT', '-rROOT']
# Only ours accepts these: mixed-bg has the same meaning as -M.
MADE = ['-O mixed-bg', '-O mixed-bg -s 8k']
NO_ZONED = '-O ^zoned'  # unknown to a mkfs.btrfs that was built without zoned support


def rows():
    for row in ROWS:
        yield row.split(), (SIZE,)
    for row in SOURCES + [f'-r ROOT {row}' for row in FILLED]:
        yield row.split(), (SIZE,)
    for words in EXACT:
        yield words, (SIZE,)
    for name, smallest in PROFILES.items():
        for options in (f'-d {name}', f'-m {name}', f'-d {name} -m {name}', f'-M -d {name} -m {name}'):
            for count in sorted({smallest - 1, smallest, smallest + 1, 6} - {0}):
                yield options.split(), (SIZE,) * count
    for size in (0, 1, M, 45 * M, 109 * M - 4096, 109 * M, 20 * G, 60 * G, 15 * T):
        yield [], (size,)
    for options, sizes in (('-M', (M,)), ('-M', (32 * M,)), ('-M', (60 * G,)), ('-b 400m', (SIZE, 300 * M)),
                           ('-b 400m', (300 * M, SIZE)), ('', (100 * M, SIZE)), ('', (SIZE, 100 * M)),
                           ('', (SIZE, 110 * M)), ('-d raid0', (SIZE, 120 * M)), ('-q', (SIZE,) * 3),
                           ('-M', (300 * M,) * 2), ('-M -m raid1', (300 * M,) * 2), (f'-U {UUID}', (300 * M,) * 2),
                           (f'--device-uuid {UUID}', (300 * M,) * 2), ('-n 64k', (15 * T,) * 2),
                           ('-d raid10 -m raid1c4', (15 * T,) * 8)):
        yield options.split(), sizes


def run(command, options, devices):
    for path, size in devices:
        with open(path, 'wb') as f:
            f.truncate(size)
    done = subprocess.run([*command, *options, *(path for path, _ in devices)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=600)
    return done.returncode, done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')


def filled(text):
    """Remove what differs if a filesystem is filled: numbers that only ours prints, and addresses."""
    text = re.sub(r'^  (Inodes|Files with data|Compressed|Image size): .*\n', '', text, flags=re.M)
    text = text.replace('Inode flags (NODATASUM)', 'Inode flags ()')
    text = re.sub(r'^(  (?:Data|Metadata|Data\+Metadata|System): .*?) +[0-9.]+[KMG]iB$', r'\1', text, flags=re.M)
    if '  Shrink:           yes' in text:
        text = re.sub(r'^(Filesystem size: +|    1 +)[0-9.]+MiB', r'\1...', text, flags=re.M)
        text = re.sub(r'^    1 +', '    1 ', text, flags=re.M)
    return text


def summary(text):
    """Remove the program's name, remarks about versions, and random UUIDs."""
    if 'Rootdir from:' in text:
        text = filled(text)
    text = re.sub(r'\A(btrfs-progs v\S+\nSee .*|btrkit \S+)\n\n', '', text)
    text = re.sub(r'^NOTE: .*\n( .*\n)*\n', '', text, flags=re.M)
    text = re.sub(r'^(UUID: +)\S+', r'\1...', text, flags=re.M)
    return re.sub(r' +$', '', text, flags=re.M)


def check(ours, theirs):
    """Return the difference, or None."""
    if theirs[0] != ours[0]:
        return f'exit {ours[0]}, mkfs.btrfs {theirs[0]}'
    if ours[0]:
        return None if not ours[1] and ours[2].count('\n') == 1 else f'refused with {ours[1]!r}, {ours[2]!r}'
    if summary(theirs[1]) != summary(ours[1]):
        return compare.first_difference(summary(theirs[1]).encode(), summary(ours[1]).encode(), 'summary')
    if theirs[2].count('WARNING: ') != ours[2].count('\n'):
        return f'it warns of {theirs[2]!r}, ours of {ours[2]!r}'
    return None


def self_test(ours, theirs):
    """The comparison must notice each kind of difference."""
    status, out, err = ours
    planted = [(1, '', 'a line\n'), (status, out, err + 'a line\n'), *((status, out.replace(a, b, 1), err) for a, b in (
        ('DUP ', 'DUP'), ('500.00MiB', '501.00MiB'), ('extref, ', ''), ('single', 'RAID0'), ('Label', 'label'),
        ('devices:  1', 'devices:  2'), ('crc32c', 'sha256'), ('4096\t', '4096 '), ('    1 ', '    2 ')))]
    for other in planted:
        if other == ours or not check(other, theirs):
            raise AssertionError(f'a planted difference was not seen: {other}')
    return len(planted)


def attempt(scratch, options, sizes, twice=False):
    """@twice: run ours under its own name too, which gives another status for usage errors"""
    devices = [(f'{scratch}/dev{i}', size) for i, size in enumerate(sizes)]
    # Under its own name it makes images of minimal size.
    twice &= not any('ROOT' in word for word in options)
    options = [word.replace('ROOT', f'{scratch}/root') for word in options]
    ours, theirs = run([f'{scratch}/mkfs.btrfs'], options, devices), run([MKFS], options, devices)
    again = run([BTRKIT, 'mkfs'], options, devices) if twice else ours
    if (bool(again[0]), summary(again[1]), again[2]) != (bool(ours[0]), summary(ours[1]), ours[2]):
        raise Difference(f'{options}: not the same as btrkit mkfs: {ours} {again}')
    return ours, theirs


def main():
    compare.need_peer()
    if compare.progs_version() < (6, 19):
        print('skipped: needs mkfs.btrfs 6.19')
        return 77
    os.environ.pop('SOURCE_DATE_EPOCH', None)
    failed, counted = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        os.symlink(os.path.realpath(BTRKIT), f'{scratch}/mkfs.btrfs')
        os.makedirs(f'{scratch}/root/a/c')
        os.mkdir(f'{scratch}/root/b')
        with open(f'{scratch}/root/f', 'wb') as f:
            f.write(b'file of text\n' * 10000)
        planted = self_test(*attempt(scratch, [], (SIZE,)))
        for options, sizes in rows():
            wrong = check(*attempt(scratch, options, sizes, counted % 8 == 0))
            counted += 1
            if wrong:
                failed.append(f'{options} {sizes}: {wrong}')
        # mkfs.btrfs aborts here.
        if any(not result[0] for result in attempt(scratch, ['-r', 'ROOT/f'], (SIZE,))):
            failed.append('a file as a directory')
        known = b'zoned' in subprocess.run([MKFS, '-O', 'list-all'], capture_output=True, check=True).stderr
        for row, statuses in [(row, (1, 0)) for row in REFUSED] + [(row, (0, 1)) for row in MADE] + \
                [(NO_ZONED, (0, 0 if known else 1))]:
            found = tuple(result[0] for result in attempt(scratch, row.split(' '), (SIZE,)))
            counted += 1
            if found != statuses:
                failed.append(f'{row!r}: exits {found}, not {statuses}')
    print(*failed, sep='\n')
    print(f'compared {counted} command lines; {planted} planted differences; {len(failed)} failed')
    return 1 if failed or counted < 200 else 0


if __name__ == '__main__':
    sys.exit(main())
