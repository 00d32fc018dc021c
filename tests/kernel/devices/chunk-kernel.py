#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Linux creates and removes chunks on a filesystem, and the library does the same on a copy: chunk items, device
extents, device items, block groups and the array in the superblock must be equal. Then Linux mounts our copy and uses
the new chunks, and `btrfs check` must find nothing.

Arguments are names of scenarios; without any, all are run. Exits with 77 if it cannot run.
"""
import collections
import contextlib
import os
import re
import subprocess
import sys
import tempfile

import image
import volumes

TOOL = os.environ['CHUNK_TOOL']
MIB = 1 << 20
count = collections.Counter()


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)))
    count['checks'] += 1


class Several(volumes.Volume):
    """A filesystem on devices of several sizes."""

    def __init__(self, folder, sizes):
        os.makedirs(folder)
        super().__init__(folder, len(sizes))
        for path, size in zip(self.paths, sizes):
            os.truncate(path, 0)
            image.run('truncate', '-s', size, path)

    def copy(self, folder):
        other = Several(folder, ['0'] * len(self.paths))
        for a, b in zip(self.paths, other.paths):
            image.run('cp', '--sparse=auto', a, b)
        return other

    def remove(self):
        super().remove()
        os.rmdir(os.path.dirname(self.path))


def paths(img):
    return getattr(img, 'paths', [img.path])


def items(img, tree, *kinds):
    """Items of a tree: (key, what dump-tree shows of it)."""
    text = image.run(image.BTRFS, 'inspect-internal', 'dump-tree', '-t', tree, *paths(img)).decode()
    for part in re.split(r'^(?=leaf \d+ |node \d+ level|\titem \d+ key)', text, flags=re.M):
        found = re.match(r'\titem \d+ key \((\S+) (\S+) (\S+?)\) itemoff \d+ itemsize (\d+)\n((?:\t.*\n)*)', part)
        if found and found.group(2) in kinds:
            yield found.group(1, 2, 3, 4), found.group(5)


def state(img):
    """Everything about chunks."""
    result = dict(items(img, 'chunk', 'CHUNK_ITEM', 'DEV_ITEM'))
    # Linux leaves the last field of a device extent uninitialized.
    for key, body in items(img, 'dev', 'DEV_EXTENT'):
        result[key] = re.sub(r'\tchunk_tree_uuid .*\n', '', body)
    for tree in ('extent', 'block-group'):
        for key, body in items(img, tree, 'BLOCK_GROUP_ITEM'):
            result[key] = re.sub(r'used \d+ ', '', body)
            result['used', key[0]] = int(re.search(r'used (\d+)', body).group(1))
    for device, path in enumerate(paths(img)):
        text = image.run(image.BTRFS, 'inspect-internal', 'dump-super', '-f', path).decode()
        array = text.partition('sys_chunk_array[2048]:\n')[2].partition('backup_roots')[0]
        for part in re.split(r'^(?=\titem)', array, flags=re.M)[1:]:
            head, _, body = part.partition('\n')
            result['array', head.split('key ')[1], device] = body
        result['super', device] = re.search(r'dev_item.bytes_used\s+(\d+)', text).group(1)
        result['features', device] = re.search(r'incompat_flags\s+(0x[0-9a-f]+)', text).group(1)
    return result


def chunks(found):
    """logical -> type, from the result of state()."""
    return {int(key[2]): re.search(r'type (\S+)', body).group(1)
            for key, body in found.items() if key[1] == 'CHUNK_ITEM'}


def length(found, logical):
    return next(int(re.search(r'length (\d+)', body).group(1)) for key, body in found.items()
                if key[1:3] == ('CHUNK_ITEM', str(logical)))


def kind(name):
    return 'data' if 'DATA|METADATA' in name else name.split('|')[0].lower()


class Space:
    """The chunks of a type on a mounted filesystem."""

    def __init__(self, mnt, what):
        uuid = image.run('findmnt', '-n', '-o', 'UUID', mnt).decode().strip()
        folder = f'/sys/fs/btrfs/{uuid}/allocation'
        self.mnt = mnt
        self.path = f'{folder}/{"mixed" if os.path.exists(f"{folder}/mixed") else what}/total_bytes'
        self.before = self.total()

    def total(self):
        with open(self.path, encoding='ascii') as f:
            return int(f.read())

    def grown(self):
        return self.total() != self.before


def data(mnt):
    """Preallocate files until there is another chunk, because the last one had too little room, and one more file if it
    fits."""
    space = Space(mnt, 'data')
    size = max(MIB, space.before // 8)
    for k in range(10000):
        name = f'{mnt}/d{space.before:020}-{k}'
        try:
            with open(name, 'wb') as f:
                os.posix_fallocate(f.fileno(), 0, size)
        except OSError:
            size //= 2
        if space.grown():
            os.rename(name, f'{mnt}/c{space.before:020}')
            with open(f'{mnt}/k{space.before:020}', 'wb') as f, contextlib.suppress(OSError):
                os.posix_fallocate(f.fileno(), 0, size)
            return
        if size < 4096:
            return


def fill(number):
    """Preallocate files until there are that many more chunks, or the filesystem is full."""
    def work(mnt):
        for n in range(number):
            space = Space(mnt, 'data')
            for k in range(1000):
                if space.grown():
                    break
                try:
                    with open(f'{mnt}/f{n}-{k}', 'wb') as f:
                        os.posix_fallocate(f.fileno(), 0, 256 * MIB)
                except OSError:
                    return
    return work


def metadata(mnt):
    """Write small files, which are stored inline, until there is another chunk."""
    space = Space(mnt, 'metadata')
    for k in range(100000):
        with open(f'{mnt}/m{space.before}-{k}', 'wb') as f:
            f.write(b'x' * 2000)
        if k % 100 == 99 and space.grown():
            return


def balance(what):
    """Balance the first chunk of a type: a new one is created, and the old one removed."""
    def work(mnt):
        force = ['-f'] if what != 'd' else []
        image.run(image.BTRFS, 'balance', 'start', *force, f'-{what}limit=1', mnt)
    return work


def alone(what):
    """The same without a system chunk, which balance otherwise moves together with metadata."""
    filters = {'m': ('-mlimit=1', '-susage=0'), 's': ('-slimit=1',)}[what]
    return lambda mnt: image.run(image.BTRFS, 'balance', 'start', '-f', *filters, mnt)


def free(mnt):
    """Remove the contents of the last but one data chunk: the file it was created for, the fill, and what did not
    fit."""
    *_, turn, last = sorted(n[1:] for n in os.listdir(mnt) if n[0] == 'c')
    for name in os.listdir(mnt):
        if name in (f'c{turn}', f'k{turn}', f'c{last}') or name.startswith(f'd{last}'):
            os.unlink(f'{mnt}/{name}')
    image.sync(mnt)
    image.run(image.BTRFS, 'balance', 'start', '-dusage=0', mnt)


SCENARIOS = {
    # mkfs.btrfs options, size, what Linux does.
    'small': ((), '600M', (data, balance('m'), data, balance('s'), free, data, balance('m'))),
    'single': (('-m', 'single'), '300M', (data, metadata, data, free, balance('m'), data, balance('s'), data)),
    'dup': (('-d', 'dup'), '9G', (data, data, data, balance('m'), free, data, balance('s'))),
    'full': ((), '333M', (data,) * 9),
    'mixed': (('-M', '-n', '4096'), '400M', (data, data, balance('s'))),
    'no-group-tree': (('-O', '^block-group-tree'), '3G', (data, data, free, data, balance('m'), balance('s'))),
    'no-space-tree': (('-O', '^free-space-tree,^block-group-tree'), '3G', (data, data, balance('m'), balance('s'))),
    'just-49g': ((), '49G', (data, balance('m'), data, balance('s'), data, free, data)),
    'above-50g': ((), '51G', (data, balance('m'), data, balance('s'), balance('d'))),
    'odd-size': (('-n', '4096'), '12345678k', (data, data, data, free, balance('m'), data, balance('m'))),
    'large': ((), '3T', (data, data, balance('m'), balance('s'), free, data)),
}


# mkfs.btrfs options, sizes of the devices, number of data chunks that Linux creates.
SEVERAL = {
    'several-raid5': (('-d', 'raid5', '-m', 'raid1'), ('40G', '60G', '50G', '40G'), 28),
    'several-raid10': (('-d', 'raid10', '-m', 'raid6'), ('40G', '70G', '40G', '40G', '60G'), 28),
}
DEEP = {
    'several-single': (('-d', 'single', '-m', 'raid1'), ('30G', '21G', '12G'), 30),
    'several-raid0': (('-d', 'raid0', '-m', 'raid0'), ('40G', '60G', '50G', '20G'), 28),
    'several-raid1': (('-d', 'raid1', '-m', 'raid10'), ('40G', '60G', '50G', '20G'), 28),
    'several-raid1c3': (('-d', 'raid1c3', '-m', 'raid1c4'), ('60G', '30G', '50G', '20G', '70G'), 28),
    'several-raid1c4': (('-d', 'raid1c4', '-m', 'raid1c3'), ('60G', '30G', '50G', '60G', '60G', '40G'), 28),
    'several-raid6': (('-d', 'raid6', '-m', 'raid5'), ('40G', '60G', '50G', '40G', '40G'), 28),
    'several-equal': (('-d', 'raid1', '-m', 'raid1c3'), ('40G',) * 6, 28),
    'several-equal-raid6': (('-d', 'raid6', '-m', 'raid1c4'), ('40G',) * 8, 28),
    'several-small': (('-d', 'raid5', '-m', 'raid6'), ('1900M', '2G', '1700M', '2500M'), 4),
}


def about(found, logical):
    """The part of the result of state() that belongs to some chunks."""
    def of(key, body):
        where = re.search(r'chunk_offset (\d+)', body) if key[1] == 'DEV_EXTENT' else None
        at = where.group(1) if where else key[2] if key[1] == 'CHUNK_ITEM' else key[0]
        return key[0] == 'array' and any(f' {n})' in key[1] for n in logical) or at in map(str, logical)

    return {key: body for key, body in found.items() if key[0] not in ('used', 'super') and of(key, body)}


def profile(name):
    return name.split('|')[-1].lower()


def compare(linux, before, ours, convert=False):
    """Repeat on the copy @ours what Linux did since @before, and compare. With @convert, name the profiles of new
    chunks, which are not those of existing ones. Returns the steps; None: they cannot be determined."""
    theirs, old = state(linux), state(ours)
    new, was = chunks(theirs), chunks(before)
    expect(old == before, 'the copy is another filesystem')
    made = [logical for logical in sorted(new) if logical not in was]
    gone = [logical for logical in sorted(was) if logical not in new]
    # Chunks that came and went in between have used up space and addresses.
    end = max(logical + length(before, logical) for logical in was)
    if any(theirs[key] != body for key, body in before.items() if key[1] == 'CHUNK_ITEM' and key in theirs) or \
            (made and made[0] != end):
        count['steps that cannot be checked'] += 1
        return None
    # Linux moved the contents of some of these chunks, which we do not.
    moved = [logical for logical in gone if before['used', str(logical)]]
    steps = [kind(new[logical]) + (f':{profile(new[logical])}' if convert else '') for logical in made] + \
        [str(logical) for logical in gone if logical not in moved]
    # Alternate between one transaction and many.
    if steps and count['steps'] % 2:
        steps.append('commit')
    count['steps'] += 1
    if steps:
        image.run(TOOL, ','.join(paths(ours)), *steps)
    got = state(ours)
    if moved:
        theirs, got = about(theirs, made), about(got, made)
    differing = {key for key in set(theirs) | set(got) if key[0] != 'used' and theirs.get(key) != got.get(key)}
    expect(not differing, steps, 'made', made, 'gone', gone, *[
        f'\n{key}\nLinux:\n{theirs.get(key)}\nwe:\n{got.get(key)}' for key in sorted(differing, key=str)])
    for logical in made:
        count[f'chunks made: {new[logical]}'] += 1
    count['chunks removed'] += len(gone) - len(moved)
    count['items compared'] += len(got)
    return steps


def check(img):
    """btrfs check looks for the other devices among the block devices of the machine."""
    with image.loops(paths(img), '-r') as loops:
        done = subprocess.run([image.BTRFS, 'check', loops[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
    expect(done.returncode == 0, img.path, done.stdout.decode(errors='replace'))
    count['filesystems checked'] += 1


def use(ours):
    """Linux fills the chunks, removes half of the contents, and finds them intact."""
    empty = [key for key, used in state(ours).items() if key[0] == 'used' and not used]
    check(ours)
    mnt = ours.mount()
    size = Space(mnt, 'data').before // 2
    try:
        with open(f'{mnt}/used', 'wb') as f:
            os.posix_fallocate(f.fileno(), 0, size)
        for k in range(1000):
            with open(f'{mnt}/after-{k}', 'wb') as f:
                f.write(b'y' * (1500 if k % 10 else 70000))
        image.sync(mnt)
    except OSError:
        count['filesystems filled'] += 1
    for name in os.listdir(mnt)[::2]:
        os.unlink(f'{mnt}/{name}')
    ours.umount()
    check(ours)
    found = state(ours)
    count['chunks of ours that Linux used'] += sum(1 for key in empty if found.get(key))


def remove(ours, folder):
    """Linux removes our empty chunks on request, and we remove the same ones."""
    linux = ours.copy(os.path.join(folder, 'less.img'))
    mnt = linux.mount()
    image.run(image.BTRFS, 'balance', 'start', '-f', '-dusage=0', '-musage=0', '-susage=0', mnt)
    linux.umount()
    did = compare(linux, state(ours), ours)
    check(ours)
    linux.remove()
    return did


def run_scenario(folder, name):
    options, size, works = SCENARIOS[name]
    linux = image.Image(os.path.join(folder, 'linux.img'), size)
    linux.mkfs(*image.peer_options(list(options)))
    did = []
    for k, work in enumerate(works):
        before = state(linux)
        ours = linux.copy(os.path.join(folder, 'ours.img'))
        work(linux.mount())
        linux.umount()
        if work == free:
            holes = len(chunks(before)) - len(chunks(state(linux)))
            expect(holes > 0, 'Linux has freed nothing')
            count['holes'] += holes
            continue
        did.append(compare(linux, before, ours))
        if k == len(works) - 1 or name == 'small' and k == 1:
            did.append(remove(ours.copy(os.path.join(folder, 'more.img')), folder))
            use(ours)
        ours.remove()
    print(name, did, flush=True)
    expect(any(did), 'Linux did nothing')
    linux.remove()


def run_several(folder, name):
    """Linux creates data chunks, and some others, on devices in order of free space."""
    options, sizes, number = {**SEVERAL, **DEEP}[name]
    linux = Several(os.path.join(folder, 'linux'), sizes)
    linux.mkfs(*options)
    works, did = [fill(number), alone('m'), alone('s')], []
    for work in works:
        before = state(linux)
        ours = linux.copy(os.path.join(folder, 'ours'))
        work(linux.mount())
        linux.umount()
        did.append(compare(linux, before, ours))
        if work == works[-1]:
            use(ours)
        ours.remove()
    made = [step for steps in did if steps for step in steps if step != 'commit']
    print(name, len(made), 'chunks', collections.Counter(made), flush=True)
    expect(len(made) >= number, f'Linux has made {len(made)} chunks')
    linux.remove()


# mkfs options, sizes of the devices, what Linux converts to which profile, one after the other.
CONVERT = {
    'convert-up': (('-d', 'single', '-m', 'raid1'), ('3G', '5G', '4G', '3500M'),
                   (('d', 'raid0'), ('m', 'raid1c3'), ('d', 'raid10'), ('s', 'raid1c4'), ('d', 'raid6'))),
    'convert-down': (('-d', 'raid5', '-m', 'raid1c4'), ('3G', '5G', '4G', '3500M'),
                     (('m', 'dup'), ('d', 'raid1'), ('m', 'single'), ('d', 'single'))),
    'convert-one-device': (('-d', 'single', '-m', 'dup'), ('3G',), (('d', 'dup'), ('m', 'single'))),
}
CONVERT_DEEP = {
    'convert-all': (('-d', 'single', '-m', 'single'), ('40G', '60G', '50G', '30G', '35G', '45G'),
                    (('d', 'raid1c3'), ('m', 'raid5'), ('d', 'raid1c4'), ('m', 'raid6'), ('d', 'raid5'),
                     ('m', 'raid10'), ('d', 'dup'), ('m', 'raid1'), ('d', 'raid0'))),
}


def convert(what, to):
    """Convert a chunk of a type, but no system chunk together with metadata."""
    options = [f'-{what}convert={to},limit=1', *(['-susage=0'] if what == 'm' else [])]
    return lambda mnt: image.run(image.BTRFS, 'balance', 'start', '-f', *options, mnt)


def run_convert(folder, name):
    """Linux creates chunks of another profile and moves everything there."""
    options, sizes, works = {**CONVERT, **CONVERT_DEEP}[name]
    linux = Several(os.path.join(folder, 'linux'), sizes)
    linux.mkfs(*options)
    # Its cleaner removes empty chunks at any time.
    with open(f'{linux.mount()}/some', 'wb') as f:
        f.write(bytes(range(256)) * 4096 * 8)
    linux.umount()
    did = []
    for what, to in works:
        before = state(linux)
        ours = linux.copy(os.path.join(folder, 'ours'))
        convert(what, to)(linux.mount())
        linux.umount()
        did.append(compare(linux, before, ours, True))
        count[f'conversions to {to}'] += bool(did[-1])
        if did[-1]:
            use(ours)
        ours.remove()
    print(name, did, flush=True)
    expect(all(did), 'a conversion of Linux cannot be repeated')
    linux.remove()


WANTED = ('chunks made: DATA|single', 'chunks made: DATA|DUP', 'chunks made: METADATA|single',
          'chunks made: METADATA|DUP', 'chunks made: SYSTEM|single', 'chunks made: SYSTEM|DUP',
          'chunks made: DATA|METADATA|single', 'chunks made: DATA|RAID5', 'chunks made: METADATA|RAID1',
          'chunks made: DATA|RAID10', 'chunks made: METADATA|RAID6', 'chunks made: SYSTEM|RAID6',
          'conversions to raid1', 'conversions to raid1c3', 'conversions to raid10', 'conversions to raid6',
          'conversions to dup', 'conversions to raid0', 'conversions to single',
          'chunks of ours that Linux used', 'chunks removed', 'holes', 'items compared', 'filesystems checked')


def main():
    reason = image.missing()
    if reason:
        print(f'skipped: {reason}')
        return 77
    with tempfile.TemporaryDirectory(prefix='btrkit-test-') as folder:
        named = [*SEVERAL, *DEEP, *CONVERT, *CONVERT_DEEP] if sys.argv[1:] == ['--deep'] else sys.argv[1:]
        for name in named or [*SCENARIOS, *SEVERAL, *CONVERT]:
            if name in CONVERT or name in CONVERT_DEEP:
                run_convert(folder, name)
            elif name in SEVERAL or name in DEEP:
                run_several(folder, name)
            else:
                run_scenario(folder, name)
    for what, n in sorted(count.items()):
        print(f'{n} {what}')
    made = sum(n for what, n in count.items() if what.startswith('chunks made'))
    print(f'compared {made} chunks that Linux made and {count["chunks removed"]} that it removed')
    lacking = [what for what in WANTED if not count[what]]
    if lacking and not sys.argv[1:]:
        print('nothing was tried of:', *lacking, sep=' ')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
