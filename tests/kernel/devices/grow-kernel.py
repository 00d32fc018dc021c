#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Linux adds, removes and resizes devices of a filesystem, and the library does the same on a copy: device items and
superblocks must be equal. Then Linux mounts our copy, fills the new device, and `btrfs check` must find nothing.

Usage: grow-kernel.py CRASH_DEVICES. Exits with 77 if it cannot run.
"""
import collections
import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile

import image
import volumes

TOOL = os.environ['CHUNK_TOOL']
BTRKIT_MKFS = [os.environ['BTRKIT'], 'mkfs'] if 'BTRKIT' in os.environ else None
MIB = 1 << 20
SUPER_MAGIC = b'_BHRfS_M'
count = collections.Counter()


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


class Devices(volumes.Volume):
    """The first @members of several devices are a filesystem; devices are mounted by their number."""

    def __init__(self, folder, sizes, members):
        os.makedirs(folder, exist_ok=True)
        super().__init__(folder, len(sizes))
        self.all = list(self.paths)
        for path, size in zip(self.all, sizes):
            os.truncate(path, 0)
            image.run('truncate', '-s', size, path)
        self.use(range(1, members + 1))

    def use(self, devids):
        """From now on these devices are the filesystem."""
        self.paths = [self.all[i - 1] for i in devids]
        self.path = self.paths[0]

    def copy(self, folder):
        other = Devices(folder, ['0'] * len(self.all), len(self.paths))
        for a, b in zip(self.all, other.all):
            image.run('cp', '--sparse=auto', a, b)
        return other

    def remove(self):
        self.umount()
        for path in self.all:
            os.unlink(path)
        os.rmdir(os.path.dirname(self.all[0]))


def supers(path):
    """The magic numbers of both copies."""
    with open(path, 'rb') as f:
        return [os.pread(f.fileno(), 8, at + 0x40) for at in image.SUPERS]


def state(dev):
    """Everything about devices, without generations."""
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'chunk', *dev.paths).decode()
    found = {}
    for key, body in re.findall(r'\titem \d+ key \((DEV_ITEMS DEV_ITEM \d+)\) .*\n((?:\t\t.*\n)*)', text):
        found[key] = re.sub(r'generation \d+ ', '', body)
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'dev', *dev.paths).decode()
    for key in re.findall(r'key \((DEV_STATS PERSISTENT_ITEM \d+)\)', text):
        found[key] = ''
    for path in dev.paths:
        text = image.run(image.BTRFS, 'inspect-internal', 'dump-super', path).decode()
        fields = dict(re.findall(r'^(\S+)\s+(\S.*)$', text, re.M))
        for name in ('total_bytes', 'num_devices', *(k for k in fields if k.startswith('dev_item.'))):
            found[os.path.basename(path), name] = fields[name]
    return found


def compare(linux, ours, what):
    a, b = state(linux), state(ours)
    for key in {*a, *b}:
        # Linux writes error counters when they change, and for a device that it has mounted.
        if 'DEV_STATS' in key and key in a and key not in b:
            continue
        expect(a.get(key) == b.get(key), what, key, '\nLinux:', a.get(key), '\nwe:', b.get(key))
    count['comparisons with Linux'] += 1


def uuid_of(dev, devid):
    body = state(dev)[f'DEV_ITEMS DEV_ITEM {devid}']
    return re.search(r'uuid (\S+)', body).group(1).replace('-', '')


def check(dev):
    with image.loops(dev.paths, '-r') as loops:
        done = subprocess.run([image.BTRFS, 'check', loops[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
    expect(done.returncode == 0, dev.paths, done.stdout.decode(errors='replace'))
    count['filesystems checked'] += 1


def sums(paths):
    found = []
    for path in paths:
        with open(path, 'rb') as f:
            found.append(hashlib.sha256(f.read()).hexdigest())
    return found


def digest(folder):
    names = sorted(os.listdir(folder))
    return dict(zip(names, sums(f'{folder}/{name}' for name in names)))


def write(mnt, name, size):
    """Each strip has other contents, so that no parity is zero."""
    with open(f'{mnt}/{name}', 'wb') as f:
        for k in range(size // volumes.STRIP):
            f.write(hashlib.sha256(f'{name}{k}'.encode()).digest() * (volumes.STRIP // 32))


def use(dev, fill):
    """Linux writes until each device is used, unmounts, and finds everything again."""
    check(dev)
    mnt = dev.mount()
    try:
        for k in range(fill):
            write(mnt, f'fill-{k}', 64 * MIB)
    except OSError:
        count['filesystems filled'] += 1
    with contextlib.suppress(OSError):
        image.sync(mnt)
    before = digest(mnt)
    usage = image.run(image.BTRFS, 'device', 'usage', '-b', mnt).decode()
    expect(not dev.log.complaints(*map(os.path.basename, dev.devices())), 'Linux complains')
    dev.umount()
    mnt = dev.mount()
    expect(digest(mnt) == before, 'contents have changed')
    for name in sorted(before)[::2]:
        os.unlink(f'{mnt}/{name}')
    dev.umount()
    check(dev)
    count['files read again'] += len(before)
    return usage


def start(folder, options, ours):
    """A filesystem on the first of three devices, with contents; @ours: made by us"""
    dev = Devices(os.path.join(folder, 'linux'), ('400M', '600M', '500M'), 1)
    if ours:
        image.run(*BTRKIT_MKFS, '-q', '-f', *options, dev.path)
    else:
        dev.mkfs(*options)
    mnt = dev.mount()
    write(mnt, 'old', 8 * MIB)
    dev.umount()
    return dev


def both(linux, folder, command, steps, what):
    """Linux does @command on a mounted filesystem; we repeat it on a copy by @steps(linux)."""
    ours = linux.copy(os.path.join(folder, 'ours'))
    ours.use([linux.all.index(p) + 1 for p in linux.paths])
    mnt = linux.mount()
    after = command(linux, mnt)
    linux.umount()
    linux.use(after)
    image.run(TOOL, ','.join(ours.paths), *steps(ours))
    ours.use(after)
    compare(linux, ours, what)
    return ours


def add(dev, mnt, devid):
    with image.loop(dev.all[devid - 1]) as loop:
        image.run(image.BTRFS, 'device', 'add', '-f', loop, mnt)
        # The device stays in use until the unmount, which umount() waits for.
        image.run('umount', mnt)
    return [*range(1, devid + 1)]


def run_devices(folder, options, ours_made):
    linux = start(folder, options, ours_made)
    ours = both(linux, folder, lambda dev, mnt: add(dev, mnt, 2),
                lambda copy: [f'add={copy.all[1]},{uuid_of(linux, 2)}'], 'a device is added')
    usage = use(ours, 12)
    expect(re.search(r'ID: 2\n.*?(Data|Metadata),\S+:\s+[1-9]', usage, re.S), 'the new device is not used', usage)
    ours.remove()

    # A third, and the second is removed again while it is empty.
    ours = both(linux, folder, lambda dev, mnt: add(dev, mnt, 3),
                lambda copy: [f'add={copy.all[2]},{uuid_of(linux, 3)}'], 'a third device is added')
    ours.remove()

    def leave(dev, mnt):
        image.run(image.BTRFS, 'device', 'remove', '2', mnt)
        return [1, 3]

    ours = both(linux, folder, leave, lambda copy: ['remove=2'], 'a device is removed')
    expect(supers(ours.all[1]) == supers(linux.all[1]) == [b'\0' * 8] * 2, 'superblocks', supers(ours.all[1]))
    use(ours, 12)
    ours.remove()

    def resize(dev, mnt):
        image.run(image.BTRFS, 'filesystem', 'resize', f'3:{300 * MIB}', mnt)
        return [1, 3]

    ours = both(linux, folder, resize, lambda copy: [f'resize=3:{300 * MIB}'], 'a device becomes smaller')
    use(ours, 8)
    ours.remove()

    def grow(dev, mnt):
        image.run(image.BTRFS, 'filesystem', 'resize', '3:max', mnt)
        return [1, 3]

    ours = both(linux, folder, grow, lambda copy: [f'resize=3:{500 * MIB}'], 'a device becomes larger')
    use(ours, 8)
    ours.remove()
    linux.remove()


def run_together(folder):
    """A device joins, gets chunks of other profiles, and another leaves, in a single transaction; and a group becomes
    read-only, so that what is written goes elsewhere."""
    linux = start(folder, (), False)
    mnt = linux.mount()
    linux.use(add(linux, mnt, 2))
    linux.umount()
    linux.use([1, 2])
    uuid = '0123456789abcdef' * 2
    image.run(TOOL, ','.join(linux.paths), 'remove=2', f'add={linux.all[2]},{uuid}', 'data:raid1', 'metadata:raid1',
              'system:raid1', 'commit')
    linux.use([1, 3])
    expect(supers(linux.all[1]) == [b'\0' * 8] * 2, 'superblocks of the device that has left')
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', 'chunk', *linux.paths).decode()
    expect(len(re.findall(r'type \S+RAID1\b', text)) == 3, 'chunks of RAID1')
    use(linux, 12)
    # The same device can come back.
    chunk = re.search(r'CHUNK_ITEM (\d+)\).*\n.*type METADATA\|RAID1', text).group(1)
    image.run(TOOL, ','.join(linux.paths), f'ro={chunk}', f'add={linux.all[1]},{uuid[::-1]}', 'commit')
    linux.use([1, 3, 2])
    use(linux, 4)
    linux.remove()


def places(chunk, full, strips):
    """Where the strips or mirrors of a full of a chunk are: [(devid, physical)]."""
    _, _, _, stripes = chunk
    turn = full if strips else 0
    return [(devid, physical + full * volumes.STRIP) for devid, physical in
            (stripes[(k + turn) % len(stripes)] for k in range(len(stripes)))]


def run_repair(folder, profile):
    """Each copy, or each strip of a full stripe, is damaged in turn and written again: every byte of the devices is as
    Linux wrote it, and its scrub finds nothing. The damaged filesystem is never mounted."""
    dev = Devices(os.path.join(folder, profile), ('200M', '250M', '300M'), 3)
    dev.mkfs('-d', profile, '-m', 'raid1')
    mnt = dev.mount()
    write(mnt, 'file', 32 * MIB)
    dev.umount()
    whole = sums(dev.paths)
    start, length = max(dev.extents(), key=lambda extent: extent[1])
    chunk = next(c for c in dev.chunks() if c[0] <= start < c[0] + c[1])
    parity = profile == 'raid5'
    size = volumes.STRIP * (len(chunk[3]) - 1 if parity else 1)
    first = -((chunk[0] - start) // size)
    expect(length > 8 * size, 'the largest extent is small')
    for full in range(first, first + 3):
        at = chunk[0] + full * size
        for k, (devid, physical) in enumerate(places(chunk, full, parity)):
            with open(dev.all[devid - 1], 'r+b') as f:
                old = os.pread(f.fileno(), volumes.STRIP, physical)
                expect(any(old), 'there is nothing to damage')
                os.pwrite(f.fileno(), bytes(255 - b for b in old), physical)
            image.run(TOOL, ','.join(dev.paths), f'strip={at}:{k}' if parity else
                      f'mirror={at}:{volumes.STRIP}:{1 - k}:{k}')
            count[f'copies repaired: {profile}'] += 1
        expect(sums(dev.paths) == whole, profile, full, 'the devices differ')
    mnt = dev.mount(readonly=True)
    scrub = image.run(image.BTRFS, 'scrub', 'start', '-B', '-r', mnt).decode()
    expect('no errors found' in scrub, scrub)
    dev.umount()
    check(dev)
    dev.remove()


def run_crashes(folder, program, number):
    """Linux mounts states of power failures, read-only, with all devices that have a superblock. `btrfs check` counts
    the size of one that has left, too, so it gets only those of the filesystem, and the one with the newest superblock
    first."""
    states = os.path.join(folder, 'states')
    os.mkdir(states)
    image.run(program, '--brief', '--export', states, str(number))
    with open(f'{states}/list', encoding='ascii') as f:
        rows = [line.rstrip('\n').split('\t') for line in f]
    for name, newest, mask, members, kind in rows:
        def paths(some):
            order = sorted(range(4), key=lambda i: i != int(newest))
            return [f'{states}/{name}-{i + 1}.img' for i in order if int(some) >> i & 1]

        dev = volumes.Volume(states, 1, None)
        dev.paths = paths(members)
        check(dev)
        dev.paths = paths(mask)
        dev.path = dev.paths[0]
        mnt = dev.mount(readonly=True)
        digest(mnt)
        expect(not [line for line in dev.log.complaints(*map(os.path.basename, dev.devices()))
                    if 'csum' in line or 'corrupt' in line], kind, name, 'Linux complains')
        dev.umount()
        count['states of power failures mounted'] += 1


def main(program):
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        for k, (options, ours) in enumerate((
                ((), False), (('-d', 'single', '-m', 'single'), True), (('-M', '-n', '4096'), False))):
            run_devices(os.path.join(folder, str(k)), options, ours)
            print(options, 'made by us' if ours else 'made by Linux', flush=True)
        run_together(os.path.join(folder, 'together'))
        for profile in ('raid1', 'raid5'):
            run_repair(folder, profile)
        run_crashes(folder, program, 4)
    for what, n in sorted(count.items()):
        print(f'{n} {what}')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
