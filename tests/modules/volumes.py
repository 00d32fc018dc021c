# SPDX-License-Identifier: LGPL-2.1-or-later
"""A filesystem on several devices in image files, mounted through loop devices; its chunks and extents."""
import os
import re
import tempfile

import image

STRIP = 64 << 10
COPIES = {'DUP': 2, 'RAID1': 2, 'RAID1C3': 3, 'RAID1C4': 4, 'RAID10': 2}
PARITY = {'RAID5': 1, 'RAID6': 2}


class Volume(image.Image):
    """Device number i + 1 is paths[i]. Without a size the files exist already."""

    def __init__(self, folder, devices, size='300M'):
        self.paths = [f'{folder}/dev{i + 1}.img' for i in range(devices)]
        super().__init__(self.paths[0], size)
        for path in self.paths[1:] if size else ():
            image.run('truncate', '-s', size, path)
        self.loops = []

    def mkfs(self, *args):
        image.run(image.MKFS, '-q', '-f', *args, *self.paths)

    def mount(self, options='', readonly=False):
        assert not self.mnt
        image._live.append(self)
        for path in self.paths:
            self.loops.append(image.attach(path, *(['-r'] if readonly else [])))
        self.log = image.KernelLog()
        self.mnt = tempfile.mkdtemp(prefix='btrkit-test-')
        parts = ['subvolid=5', *(['ro'] if readonly else []), *([options] if options else []),
                 *(f'device={loop}' for loop in self.loops)]
        image.run('mount', '-t', 'btrfs', '-o', ','.join(parts), self.loops[0], self.mnt)
        return self.mnt

    def devices(self):
        return self.loops

    def umount(self):
        super().umount()
        image.detach(*self.loops)
        self.loops = []

    def remove(self):
        self.umount()
        for path in self.paths:
            if os.path.exists(path):
                os.unlink(path)

    def dump(self, tree):
        return image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', str(tree), *self.paths).decode()

    def chunks(self):
        """(logical, length, type, [(devid, physical)]) of each chunk, as btrfs prints it."""
        found = []
        for line in self.dump('chunk').splitlines():
            if m := re.search(r'key \(FIRST_CHUNK_TREE CHUNK_ITEM (\d+)\)', line):
                found.append([int(m[1]), 0, '', []])
            elif (m := re.search(r'length (\d+) owner \d+ stripe_len \d+ type (\S+)', line)) and found:
                found[-1][1:3] = int(m[1]), m[2]
            elif m := re.search(r'stripe \d+ devid (\d+) offset (\d+)', line):
                found[-1][3].append((int(m[1]), int(m[2])))
        assert found
        return found

    def extents(self):
        """(logical, length) of allocated ranges."""
        nodesize = int(re.search(rb'nodesize\s+(\d+)', image.run(image.BTRFS, 'inspect-internal', 'dump-super',
                                                                self.path))[1])
        return [(int(a), int(n) if what == 'EXTENT' else nodesize)
                for a, what, n in re.findall(r'key \((\d+) (EXTENT|METADATA)_ITEM (\d+)\)', self.dump('extent'))]


def groups(kind, stripes):
    """The stripes of a row in groups, and how many of each group may be lost."""
    profile = kind.split('|')[-1]
    if profile in PARITY:
        return [stripes], PARITY[profile]
    if profile == 'RAID10':
        return [stripes[i:i + 2] for i in range(0, len(stripes), 2)], 1
    if profile == 'RAID0':
        return [[s] for s in stripes], 0
    return [stripes], COPIES.get(profile, 1) - 1


def rows(volume, extents=None):
    """Generate the rows in use: [strip positions], number of strips that each group may lose."""
    extents = extents or volume.extents()
    for logical, length, kind, stripes in volume.chunks():
        parts, spare = groups(kind, stripes)
        profile = kind.split('|')[-1]
        data = (len(stripes) - PARITY[profile] if profile in PARITY else
                len(parts) if profile in ('RAID0', 'RAID10') else 1)
        used = set()
        for at, n in extents:
            if logical <= at < logical + length:
                used.update(range((at - logical) // (data * STRIP), (at - logical + n - 1) // (data * STRIP) + 1))
        for row in sorted(used):
            yield [[(devid, physical + row * STRIP) for devid, physical in part] for part in parts], spare


class Damage:
    """Context manager: overwritten bytes, which are restored at the end."""

    def __init__(self, volume, rng):
        self.files, self.rng, self.old = [open(p, 'r+b', buffering=0) for p in volume.paths], rng, []

    def __enter__(self):
        return self

    def write(self, devid, at, length):
        f = self.files[devid - 1]
        self.old.append((f, at, os.pread(f.fileno(), length, at)))
        os.pwrite(f.fileno(), self.rng.randbytes(length), at)

    def places(self):
        """(devid, number of the 4 KiB sector) of everything overwritten."""
        numbers = {f: i + 1 for i, f in enumerate(self.files)}
        return {(numbers[f], sector) for f, at, data in self.old
                for sector in range(at >> 12, (at + len(data) - 1 >> 12) + 1)}

    def __exit__(self, *_):
        for f, at, data in self.old[::-1]:
            os.pwrite(f.fileno(), data, at)
        for f in self.files:
            f.close()
