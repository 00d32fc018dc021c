#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Read files on every profile, as Linux wrote them, by the library: intact, with devices missing, and with damaged
copies and strips. The contents must equal those that Linux read; whatever is unreadable must be reported, and nothing
else.

READ_FILES is the program that reads devices by the library. Exits with 77 if it cannot run.
"""
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import contents
import image
import ops
import several_devices
import volumes

READ_FILES = os.environ.get('READ_FILES', 'read-files')
BTRKIT = os.environ.get('BTRKIT', 'btrkit')
K, M = 1 << 10, 1 << 20

# data, metadata, devices, number of devices that may be lost, mkfs options, mount options
ROWS = [
    ('raid0', 'raid1', 3, 0, (), 'compress=zstd'),
    ('single', 'raid1', 2, 0, (), ''),
    ('raid1', 'raid1', 3, 1, ('--csum', 'xxhash'), 'compress=lzo'),
    ('raid1c3', 'raid1c3', 3, 2, (), ''),
    ('raid1c4', 'raid1c4', 4, 3, (), 'compress=zlib'),
    ('raid10', 'raid10', 4, 1, (), ''),
    ('raid5', 'raid5', 3, 1, (), 'compress=zstd'),
    ('raid6', 'raid6', 4, 2, (), ''),
]
DEEP = [
    ('raid0', 'raid0', 6, 0, ('-n', '64k'), ''),
    ('raid1', 'raid1', 2, 1, ('-M',), ''),
    ('raid1', 'raid1c3', 6, 1, ('--csum', 'sha256'), ''),
    ('raid1c3', 'raid1c4', 6, 2, ('-n', '4k'), ''),
    ('raid10', 'raid1', 6, 1, (), 'compress=zlib'),
    ('raid10', 'raid10', 7, 1, ('--csum', 'blake2b'), ''),
    ('raid5', 'raid5', 2, 1, (), ''),
    ('raid5', 'raid5', 4, 1, ('-n', '4k'), ''),
    ('raid5', 'raid1', 6, 1, ('-n', '64k'), ''),
    ('raid5', 'raid6', 5, 1, (), ''),
    ('raid6', 'raid6', 3, 2, (), 'compress=zstd'),
    ('raid6', 'raid1c3', 5, 2, ('-n', '4k'), 'compress=lzo'),
    ('raid6', 'raid6', 5, 2, (), ''),
    ('raid6', 'raid6', 6, 2, ('-n', '64k'), ''),
]


class Reading:
    """The result of read-files on some devices of a volume."""

    def __init__(self, scratch, volume, without=()):
        out = f'{scratch}/out'
        os.mkdir(out)
        paths = [p for i, p in enumerate(volume.paths) if i + 1 not in without]
        done = subprocess.run([READ_FILES, out, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.status, self.said = done.returncode, done.stderr.decode()
        self.notes, self.failed, self.counts, self.files, self.bad_reads = [], {}, {}, {}, []
        for line in done.stdout.decode().splitlines():
            word, rest = line.split(' ', 1)
            if word == 'note':
                self.notes.append(rest)
            elif word == 'failed':
                self.failed.update([rest.split(' ', 1)])
            elif word == 'bad-read':
                logical, length, served, *copies = rest.split()
                copies = [tuple(map(int, c.split(','))) for c in copies]
                self.bad_reads.append((int(logical), int(length), int(served), copies))
            elif word == 'device':
                devid, *counts = map(int, rest.split())
                self.counts[devid] = counts
        for name in os.listdir(out):
            with open(f'{out}/{name}', 'rb') as f:
                self.files[name] = hashlib.sha256(f.read()).digest()
        shutil.rmtree(out)

    def different(self, expected):
        """Readable files that differ; files of an unreadable directory are missing."""
        unread = any(name not in expected for name in self.failed)
        return [n for n in expected if n not in self.failed and self.files.get(n) != expected[n] and
                (n in self.files or not unread)]


def manifest(mnt):
    """Hash every file, by root and inode: all files, and those whose data has checksums."""
    found = several_devices.manifest(mnt)
    checked = several_devices.manifest(mnt, lambda path: os.path.islink(path) or not is_nocow(path))
    assert len(checked) < len(found)
    return found, checked


def is_nocow(path):
    with ops.Opened(path, os.O_RDONLY) as fd:
        return bool(int.from_bytes(ops.fcntl.ioctl(fd, ops.FS_IOC_GETFLAGS, bytes(8))[:4], 'little') &
                    ops.FS_NOCOW_FL)


def require(truth, what, reading):
    if not truth:
        raise AssertionError(f'{what}: exit {reading.status}, {reading.said!r}, notes {reading.notes}, counts '
                             f'{reading.counts}, failed {reading.failed}')


class Row:
    def __init__(self, row, seed, scratch):
        data, meta, devices, self.spare, mkfs, mount = row
        self.scratch, self.rng, self.readings = scratch, random.Random(seed), 0
        self.name = f'{data}/{meta} on {devices}'
        self.volume = volumes.Volume(scratch, devices)
        mixed = () if '-M' in mkfs else ('--nodiscard',)
        self.volume.mkfs('-d', data, '-m', meta, *mkfs, *mixed)
        mnt = self.volume.mount(mount)
        contents.fill(mnt, self.rng, files=30, steps=120, limit=600 * K)
        ops.write(f'{mnt}/big', 0, ops.incompressible(3 * M))
        ops.sync(mnt)
        self.big = os.stat(f'{mnt}/big').st_ino
        self.volume.umount()
        self.all, self.checked = manifest(self.volume.mount(readonly=True))
        self.volume.umount()
        self.rows = list(volumes.rows(self.volume))
        # Strips with tree blocks, which span several sectors.
        self.trees = {(d, at + row) for _, length, kind, stripes in self.volume.chunks() for d, at in stripes
                      if kind.split('|')[0] != 'DATA' or 'METADATA' in kind for row in range(0, length, volumes.STRIP)}

    def read(self, without=()):
        self.readings += 1
        return Reading(self.scratch, self.volume, without)

    def whole(self):
        r = self.read()
        require(r.status == 0 and not r.notes and not r.different(self.all), f'{self.name}: all devices present', r)
        require(set(map(sum, r.counts.values())) == {0} and len(r.counts) == len(self.volume.paths),
                f'{self.name}: counters with all devices present', r)

    def lose(self):
        """Remove any devices that may be lost together, and one more, which must be reported."""
        devices = range(1, len(self.volume.paths) + 1)
        for n in range(1, min(self.spare + 2, len(self.volume.paths))):
            for without in itertools.combinations(devices, n):
                r = self.read(without)
                what = f'{self.name} without {without}'
                require(not r.different(self.all) or r.status == 1, f'{what}: {r.different(self.all)}', r)
                require(r.status in ((0,) if n <= self.spare else (0, 1, 3)), what, r)
                if r.status == 1:
                    require('missing' in r.said or 'device' in r.said, f'{what}: the message does not say why', r)
                    continue
                devids = ', '.join(map(str, sorted(without)))
                named = f'devices {devids} are' if n > 1 else f'device {devids} is'
                said = [note for note in r.notes if f'{named} missing, {n} of {len(self.volume.paths)}: ' in note]
                require(len(said) == 1, f'{what}: missing devices are not reported in one note', r)
                require(not r.bad_reads, f'{what}: a missing device is reported as a bad read', r)
                lost = re.search(r': (\d+) of \d+ chunks cannot be read completely, ', said[0])
                require(lost or not r.failed, f'{what}: unreadable chunks are not reported', r)
                require((int(lost[1]) if lost else 0) == self.unreachable(without),
                        f'{what}: reported {said}, expected {self.unreachable(without)} chunks', r)
                require(n > self.spare or not lost, f'{what}: chunks are reported as unreadable', r)
                require(all('missing' in e for e in r.failed.values()), f'{what}: a file failed for another reason', r)

    def unreachable(self, without):
        """The number of chunks that lack more devices than they can do without."""
        found = set()
        for logical, _, kind, stripes in self.volume.chunks():
            parts, spare = volumes.groups(kind, stripes)
            if any(len([s for s in part if s[0] in without]) > spare for part in parts):
                found.add(logical)
        return len(found)

    def told(self, what, r, places):
        """Every skipped copy was damaged, and every read succeeded."""
        require(bool(r.bad_reads) == bool(sum(c[1] for c in r.counts.values())),
                f'{what}: reported bad reads do not match the counters', r)
        blamed = dict.fromkeys(r.counts, 0)
        for logical, length, served, copies in r.bad_reads:
            require(served and length and not copies[-1][3], f'{what}: {logical} was not read from another copy', r)
            for mirror, devid, physical, err in copies[:-1]:
                require(err and (devid or not mirror), f'{what}: {logical}: {copies}', r)
                if not devid:
                    continue
                blamed[devid] += 1
                require((devid, physical // (4 * K)) in places,
                        f'{what}: device {devid}, {physical}: reported, but not damaged', r)
        require(blamed == {d: c[1] for d, c in r.counts.items()},
                f'{what}: failures reported by device {blamed} differ from the counters', r)

    def overwrite(self, damage, strips):
        for devid, at in strips:
            damage.write(devid, at, volumes.STRIP)

    def damage_device(self, devid):
        """Damage everything in use on one device."""
        with volumes.Damage(self.volume, self.rng) as damage:
            for parts, spare in self.rows:
                for part in parts:
                    self.overwrite(damage, [s for s in part if spare and s[0] == devid])
            damage.write(devid, 64 * K, 4 * K)
            places = damage.places()
            r = self.read()
        what = f'{self.name}: device {devid} damaged'
        require(r.status == 0 and not r.different(self.checked), f'{what}: {r.different(self.checked)}', r)
        require(not any(sum(c) for d, c in r.counts.items() if d != devid),
                f'{what}: failures counted on undamaged devices', r)
        require(any('superblock' in n for n in r.notes), f'{what}: the damaged superblock is not reported', r)
        self.told(what, r, places)
        return r.counts[devid][1]

    def damage_devices(self):
        """Damage every combination of as many devices as a row can do without, which covers every combination of its
        strips."""
        for chosen in itertools.combinations(range(1, len(self.volume.paths) + 1), self.spare):
            with volumes.Damage(self.volume, self.rng) as damage:
                for parts, spare in self.rows:
                    for part in parts:
                        self.overwrite(damage, [s for s in part if s[0] in chosen][:spare])
                places = damage.places()
                r = self.read()
            what = f'{self.name}: devices {chosen} damaged'
            require(r.status == 0 and not r.different(self.checked), f'{what}: {r.different(self.checked)}', r)
            require({d for d, c in r.counts.items() if c[1]} <= set(chosen),
                    f'{what}: failures counted on undamaged devices', r)
            self.told(what, r, places)

    def left_behind(self):
        """A device that missed the latest writes, given first: its data is stale."""
        old = f'{self.scratch}/old.img'
        image.run('cp', '--sparse=always', self.volume.path, old)
        mnt = self.volume.mount()
        for name in os.listdir(mnt):
            path = f'{mnt}/{name}'
            if os.path.isfile(path) and not os.path.islink(path) and is_nocow(path):
                ops.write(path, 0, self.rng.randbytes(400 * K))
        ops.write(f'{mnt}/new', 0, self.rng.randbytes(M))
        os.unlink(f'{mnt}/file3')
        ops.sync(mnt)
        self.volume.umount()
        found, _ = manifest(self.volume.mount(readonly=True))
        self.volume.umount()
        os.replace(old, self.volume.path)
        r = self.read()
        what = f'{self.name}: a device of an older generation'
        require(r.status == 0 and not r.different(found), f'{what}: {r.different(found)}', r)
        require(any(n.startswith('device 1 is stale: it has generation ') for n in r.notes), what, r)
        require(not any(sum(c) for d, c in r.counts.items() if d != 1),
                f'{what}: failures counted on undamaged devices', r)

    def damage_some(self):
        """Damage in each row as many strips as may be lost, in varying combinations; in some rows sector by sector."""
        turn = 0
        with volumes.Damage(self.volume, self.rng) as damage:
            for parts, spare in self.rows:
                for part in parts:
                    if not spare:
                        continue
                    choices = list(itertools.combinations(part, spare))
                    turn += 1
                    if turn % 3 or part[0] in self.trees:
                        self.overwrite(damage, choices[turn % len(choices)])
                        continue
                    for sector in range(0, volumes.STRIP, 4 * K):
                        for devid, at in self.rng.choice(choices):
                            damage.write(devid, at + sector, 4 * K)
            for i in range(len(self.volume.paths)):
                damage.write(i + 1, self.rng.choice((64 * K, 64 * M)), 4 * K)
            places = damage.places()
            r = self.read()
        what = f'{self.name}: strips damaged'
        require(r.status == 0 and not r.different(self.checked), f'{what}: {r.different(self.checked)}', r)
        require(sum(c[1] for c in r.counts.values()) > 0, f'{what}: no failure is counted', r)
        self.told(what, r, places)

    def damage_all_copies(self):
        """Damage all copies of one sector of a file, at the addresses that the library gives, and the rest of the
        row."""
        dump = self.volume.dump(5)
        found = re.findall(rf'key \({self.big} EXTENT_DATA \d+\)[^\n]*\n[^\n]*\n\s*extent data disk byte (\d+) nr '
                           r'(\d+)', dump)
        start, length = max(map(lambda e: tuple(map(int, e)), found), key=lambda e: e[1])
        if length < M:
            raise RuntimeError(f'{self.name}: no large extent')
        rows = list(volumes.rows(self.volume, [(start + length // 2, 1)]))
        assert len(rows) == 1
        with volumes.Damage(self.volume, self.rng) as damage:
            for part in rows[0][0]:
                for devid, at in part:
                    damage.write(devid, at + 8 * K, 4 * K)
            r = self.read()
        what = f'{self.name}: all copies damaged'
        key = f'5-{self.big}'
        require(r.status == 3 and list(r.failed) == [key], what, r)
        place = re.search(r'data checksum mismatch.* block (\d+), device \d+, physical \d+', r.failed[key])
        require(place and start <= int(place[1]) < start + length, f'{what}: wrong address in the message', r)
        # For raid0 and raid10 only one part contains the sector.
        places = [[f'device {devid}(, physical| at) {at + 8 * K}\\b' for devid, at in part] for part in rows[0][0]]
        require(any(all(re.search(p, r.failed[key]) for p in part) for part in places),
                f'{what}: addresses missing in the message', r)
        require(not r.different(self.checked), what, r)

    def map(self):
        """Each copy that map-logical reports contains the bytes that Linux read."""
        dump = self.volume.dump(5)
        want, seen = ops.incompressible(3 * M), 0
        for offset, disk, _, skip, n in re.findall(
                rf'key \({self.big} EXTENT_DATA (\d+)\)[^\n]*\n[^\n]*\n\s*extent data disk byte (\d+) nr (\d+)\s*'
                r'extent data offset (\d+) nr (\d+)', dump):
            offset, logical, n = int(offset), int(disk) + int(skip), int(n)
            for at in range(0, n, 124 * K):
                done = subprocess.run([BTRKIT, 'map-logical', '--format=json',
                                       *(f'--device={p}' for p in self.volume.paths[1:]), self.volume.path,
                                       str(logical + at)], stdout=subprocess.PIPE, check=True)
                copies = [json.loads(line) for line in done.stdout.decode().splitlines()][1:]
                data = [c for c in copies if c['role'] == 'data']
                assert [c['mirror'] for c in data] == list(range(1, len(data) + 1)), copies
                assert len({c['devid'] for c in copies}) == len(copies), copies
                for c in data:
                    length = min(c['length'], n - at)
                    with open(self.volume.paths[c['devid'] - 1], 'rb') as f:
                        got = os.pread(f.fileno(), length, c['physical'])
                    assert got == want[offset + at:offset + at + length], (self.name, offset + at, c)
                    seen += length
        assert seen, self.name

    def lists(self):
        """Compare list-chunks and list-devices with the output of btrfs."""
        def run(command):
            done = subprocess.run([BTRKIT, command, '--format=json', *(f'--device={p}' for p in self.volume.paths[1:]),
                                   self.volume.path], stdout=subprocess.PIPE, check=True)
            return [json.loads(line) for line in done.stdout.decode().splitlines()][1:]
        ours = [[c['logical'], c['length'], [(s['devid'], s['physical']) for s in c['stripes']]]
                for c in run('list-chunks')]
        assert ours == [[logical, length, stripes] for logical, length, _, stripes in self.volume.chunks()], ours
        extents = {(int(d), int(p)): (int(c), int(n)) for d, p, c, n in re.findall(
            r'key \((\d+) DEV_EXTENT (\d+)\)[^\n]*\n[^\n]*\n\s*chunk_objectid \d+ chunk_offset (\d+) length (\d+)',
            self.volume.dump('dev'))}
        assert extents == {(s['devid'], s['physical']): (c['logical'], c['stripe_length'])
                           for c in run('list-chunks') for s in c['stripes']}, extents
        theirs = re.findall(r'devid (\d+) total_bytes (\d+) bytes_used (\d+)', self.volume.dump('chunk'))
        devices = run('list-devices')
        assert [(d['devid'], d['total_bytes'], d['bytes_used']) for d in devices] == \
            [tuple(map(int, t)) for t in theirs], devices
        assert [d['path'] for d in devices] == self.volume.paths, devices

    def run(self):
        self.whole()
        self.lists()
        self.map()
        self.lose()
        if self.spare:
            counts = [self.damage_device(i + 1) for i in range(len(self.volume.paths))]
            assert any(counts), f'{self.name}: no device has a failure counted'
            if self.spare > 1:
                self.damage_devices()
            self.damage_some()
        self.damage_all_copies()
        if self.spare:
            self.left_behind()
        self.volume.remove()


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    chosen = DEEP if '--deep' in sys.argv else ROWS
    if '--only' in sys.argv:
        chosen = [r for r in ROWS + DEEP if r[0] == sys.argv[sys.argv.index('--only') + 1]]
    readings = 0
    with tempfile.TemporaryDirectory(prefix='btrkit-raid-') as scratch:
        for seed, plan in enumerate(chosen):
            row = Row(plan, seed, scratch)
            row.run()
            readings += row.readings
            image.cleanup()
    print(f'{len(chosen)} filesystems, read {readings} times')
    return 0


sys.exit(main())
