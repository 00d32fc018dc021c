# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every mkfs option about filling: each has a visible effect on the filesystem."""
import io
import json
import os
import re
import subprocess
import tarfile
import time

import filling
from tool import BTRKIT, run

M = 1 << 20
EPOCH = 1500000000      # before all times of the tree


class Filled:
    """A filled filesystem, and the output of the mkfs that made it."""

    def __init__(self, scratch, *options, image='filled.img', env=None):
        self.path = f'{scratch}/{image}'
        if not os.path.exists(f'{scratch}/part.img'):
            with open(f'{scratch}/part.img', 'wb') as f:
                f.truncate(400 * M)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.status, out, self.err = run('mkfs', '-f', *options, self.path, cwd=scratch,
                                         env=dict(os.environ, **(env or {})))
        self.out = out.decode()

    def trees(self):
        return ['5', *sorted(re.findall(r'key \((\d+) ROOT_ITEM', filling.tree(self.path, 'root')))]

    def text(self):
        return ''.join(filling.tree(self.path, name) for name in self.trees())

    def inodes(self):
        """Return the items of each inode, as dumped, by one of its names."""
        found = {}
        for name in self.trees():
            items = {}
            for number, item in re.findall(r'\n\titem \d+ key \((\d+) (.*?)(?=\n\titem |\nleaf |\nnode |\Z)',
                                           filling.tree(self.path, name), re.S):
                items.setdefault(number, []).append(item)
            for number, its in items.items():
                names = re.findall(r'^INODE_REF.*\n.* name: (.*)', '\n'.join(its), re.M)
                found[f'{name} top' if number == '256' else names[0] if names else number] = '\n'.join(its)
        return found

    def names(self):
        return sorted(name for name in self.inodes() if not name.endswith(' top'))

    def flagged(self, flag):
        return sorted(name for name, items in self.inodes().items()
                      if re.search(rf'INODE_ITEM.*?sequence \d+ flags 0x\w+\([^)]*\b{flag}\b', items, re.S))

    def kinds(self):
        return set(re.findall(r'extent compression \d \((\w+)\)', self.text())) - {'none'}

    def data_bytes(self):
        return sum(map(int, set(re.findall(r'extent data disk byte [1-9]\d* nr (\d+)', self.text()))))

    def json(self):
        lines = self.out.split('\n')
        if lines[0] != '{"__header":{"version":1,"command":"mkfs"}}' or len(lines) != 3 or lines[2]:
            return {}
        told = json.loads(lines[1])
        assert told['total_bytes'] == self.total() and told['fsid'] == filling.superblock(self.path, 'fsid'), told
        assert told['devices'][0]['path'] == self.path, told
        return told['filled']

    def xattrs(self):
        return set(re.findall(r'type XATTR\n.*\n\t\tname: (\S+)', self.text()))

    def total(self):
        return int(filling.superblock(self.path, 'total_bytes'))

    def times(self):
        return {int(second) for second in re.findall(r'\t[acmo]time (\d+)\.', self.text())}

    def digest(self):
        with open(self.path, 'rb') as f:
            return f.read()


def sources(scratch):
    """Make the same tree as a directory, an archive and a manifest; the archive has some extra members."""
    top = f'{scratch}/root'
    os.mkdir(top)
    filling.make_tree(top)
    os.mkdir(f'{top}/ro:var')
    for path in (f'{top}/ro:var', top):
        os.utime(path, ns=(filling.TIME, filling.TIME))
    with tarfile.open(f'{scratch}/root.tar', 'w', format=tarfile.PAX_FORMAT) as tar:
        tar.add(top, '.')
    with tarfile.open(f'{scratch}/attributes.tar', 'w', format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo('file')
        member.size = 5
        member.pax_headers = {f'SCHILY.xattr.{name}': 'value' for name in ('security.selinux', 'user.one', 'user.two')}
        tar.addfile(member, io.BytesIO(b'bytes'))
    with tarfile.open(f'{scratch}/whiteout.tar', 'w') as tar:
        member = tarfile.TarInfo('gone')
        member.type = tarfile.CHRTYPE
        tar.addfile(member)
    with open(f'{scratch}/manifest', 'w', encoding='ascii') as f:
        f.write(f'/ 0 40755 3 0 0 0 {EPOCH}.0 - - -\n/dir 0 40755 2 0 0 0 {EPOCH}.0 - - -\n'
                f'/dir/text 288894 100644 1 7 8 0 {EPOCH}.5 text - -\n')
    with open(f'{top}/usr/lib/text', 'rb') as f:
        assert len(f.read()) > 288894
    with open(f'{scratch}/text', 'wb') as f:
        f.write(b'line of text\n' * 22222 + b'the end.')


NAMES = ['empty', 'etc', 'hole', 'home', 'lib', 'log', 'long', 'noise', 'page', 'ro:var', 'sector', 'short', 'symlink',
         'text', 'user', 'usr', 'var']
D = '-r root '
# Options, of which the last one is tested; a function that examines the filesystem; its result with the option, which
# must differ without it.
ROWS = [
    ('-r root', Filled.names, NAMES),
    ('--rootdir root', Filled.names, NAMES),
    ('--tar root.tar', Filled.names, NAMES),
    ('--manifest manifest', Filled.names, ['dir', 'text']),
    ('--manifest manifest --basedir root/usr/lib', lambda m: m.status, 1),
    (D + '-u usr', lambda m: filling.subvolumes(m.path), {'usr': (False, False)}),
    (D + '--subvol rw:usr', lambda m: filling.subvolumes(m.path), {'usr': (False, False)}),
    (D + '--subvol ro:usr/lib', lambda m: filling.subvolumes(m.path), {'lib': (True, False)}),
    (D + '--subvol default:/usr/', lambda m: filling.subvolumes(m.path), {'usr': (False, True)}),
    (D + '--subvol default-ro:./usr', lambda m: filling.subvolumes(m.path), {'usr': (True, True)}),
    # A colon ends the type only after a valid type, and never after "./".
    (D + '--subvol ./ro:var', lambda m: filling.subvolumes(m.path), {'ro:var': (False, False)}),
    (D + '--subvol rw:ro:var', lambda m: filling.subvolumes(m.path), {'ro:var': (False, False)}),
    (D + '--subvol ro:var', lambda m: filling.subvolumes(m.path), {'var': (True, False)}),
    (D + '-u usr -u var -u usr/lib', lambda m: filling.subvolumes(m.path),
     {'usr': (False, False), 'var': (False, False), 'lib': (False, False)}),
    (D + '--inode-flags nodatacow:usr', lambda m: m.flagged('NODATACOW'), ['lib', 'noise', 'symlink', 'text', 'usr']),
    (D + '--inode-flags nodatacow:usr', lambda m: m.flagged('NODATASUM'), ['noise', 'text']),
    (D + '--inode-flags nodatasum:usr/lib/text', lambda m: m.flagged('NODATASUM'), ['text']),
    (D + '--inode-flags nodatacow,nodatasum:etc', lambda m: 'etc' in m.flagged('NODATACOW'), True),
    # Flags are not inherited across a subvolume boundary; the subvolume can have its own.
    (D + '--subvol usr/lib --inode-flags nodatacow:usr', lambda m: m.flagged('NODATACOW'), ['symlink', 'usr']),
    (D + '--subvol usr/lib --inode-flags nodatacow:usr/lib', lambda m: m.flagged('NODATACOW'),
     ['256 top', 'noise', 'text']),
    (D + '--compress zlib', Filled.kinds, {'zlib'}),
    (D + '--compress lzo', Filled.kinds, {'lzo'}),
    (D + '--compress zstd', Filled.kinds, {'zstd'}),
    (D + '--compress zstd --compress no', Filled.kinds, set()),
    (D + '--compress zstd', lambda m: m.flagged('NOCOMPRESS'), ['noise', 'page']),
    (D + '--compress zstd', lambda m: 'library version' in m.out, True),
    (D + '--format json --accept-changes', lambda m: '"changed"' in m.out, True),
    (D + '--verify', lambda m: '  Verified:         18 inodes, ' in m.out, True),
    (D + '--exclude noise', lambda m: 'noise' in m.names(), False),
    (D + '--exclude usr/l*', lambda m: sorted(set(NAMES) - set(m.names())), ['lib', 'noise', 'text']),
    (D + '--exclude lib/text', lambda m: 'text' in m.names(), True),
    ('--tar attributes.tar --without-xattr user.*', Filled.xattrs, {'security.selinux'}),
    ('--tar attributes.tar --deterministic', Filled.xattrs, {'user.one', 'user.two'}),
    ('--tar attributes.tar --deterministic --with-xattr security.*', Filled.xattrs,
     {'user.one', 'user.two', 'security.selinux'}),
    (D + '--root-owner 12:34', lambda m: ' uid 12 gid 34 ' in m.inodes()['5 top'], True),
    ('--tar whiteout.tar --whiteouts', lambda m: not m.status and m.names(), ['gone']),
    (D + '--free 100m', lambda m: m.total() > 100 * M, True),
    (D + '--free 300%', lambda m: m.total() > 60 * M, True),
    (D + '-b 100m', lambda m: (m.total(), os.path.getsize(m.path)), (100 * M, 100 * M)),
    (D + '--format json', lambda m: m.json().get('inodes'), 18),
    (D + '--format text', lambda m: 'Inodes:           18\n' in m.out, True),
]
# The options that are tested below, and by mkfs-sort.py and reflink-kernel.py.
BELOW = {'--threads', '--size-only', '--shrink', '--deterministic', '--free', '--sort', '--reflink'}


def every_row(scratch, check):
    """@return the names of the tested options"""
    tested = set(BELOW)
    for row, look, wanted in ROWS:
        words = re.findall(r'--?[a-z][a-z-]*(?: [^-]\S*)?', row)
        assert ' '.join(words) == row, row
        tested.update(word.split()[0] for word in words)
        made = Filled(scratch, *row.split())
        found = look(made)
        check(found == wanted, f'{row}: {found!r}, not {wanted!r}: {made.err}')
        if len(words) == 1 or words[-1] in ('--format text',) or 'exclude lib/' in row:
            continue
        made = Filled(scratch, *' '.join(words[:-1]).split())
        check(made.status or look(made) != wanted, f'{row}: {wanted!r} even without the last option')
    return tested


def levels(scratch, check):
    """Each level gives a different size, and the default is level 3."""
    for kind, top in (('zlib', 9), ('zstd', 15)):
        size = {level: Filled(scratch, '-r', 'root', '--compress', f'{kind}{level}').data_bytes()
                for level in ('', ':0', ':1', ':3', f':{top}')}
        check(size[''] == size[':0'] == size[':3'], f'{kind}: the default level: {size}')
        check(len({size[':1'], size[':3'], size[f':{top}']}) == 3, f'{kind}: levels: {size}')


def without_device(scratch, check, plain):
    """--size-only needs no device; for several it reports the sum."""
    status, out, err = run('mkfs', '--size-only', '-r', f'{scratch}/root')
    check((status, out, err) == (0, b'%d\n' % plain, ''), f'--size-only: {out!r}, not {plain}: {err}')
    with subprocess.Popen(['cat', f'{scratch}/root.tar'], stdout=subprocess.PIPE) as cat:
        piped = subprocess.run([BTRKIT, 'mkfs', '--size-only', '--tar', '-'], stdin=cat.stdout, check=True,
                               stdout=subprocess.PIPE, timeout=60).stdout
    wanted = Filled(scratch, '--tar', 'root.tar').total()
    check(piped == b'%d\n' % wanted, f'an archive through a pipe: {piped!r}, not {wanted}')
    two = [f'{scratch}/one.img', f'{scratch}/other.img']
    row = ('-f', '-d', 'raid1', '-m', 'raid1', '-r', f'{scratch}/root')
    told = run('mkfs', '--size-only', *row, *two)
    check(not any(map(os.path.exists, two)), '--size-only made a file')
    made = run('mkfs', '-q', *row, *two)
    check(told == (0, b'%d\n' % sum(map(os.path.getsize, two)), '') and not made[0], f'on two: {told} {made}')
    status, out, err = run('mkfs', '-r', f'{scratch}/root')
    check((status, out) == (2, b'') and 'too few arguments' in err, err)


def sizes(scratch, check):
    """The size that --size-only reports is the actual one, and --free adds as much as requested."""
    plain = Filled(scratch, '-r', 'root').total()
    check(Filled(scratch, '-r', 'root', '--free', '100m').total() == plain + 100 * M, '--free 100m')
    for row in ('-r root', '-r root --compress zstd:9', '--tar root.tar -n 4k', '-r root -M',
                '-r root -d dup -m single',
                '-r root --free 50%', '-r root --subvol usr -O ^no-holes,^fst', '--manifest manifest --csum sha256',
                '-r root --exclude * -s 8k', '-r root --free 1g'):
        told = Filled(scratch, '--size-only', *row.split(), image='none.img')
        made = Filled(scratch, *row.split())
        check(not told.status and told.out == f'{os.path.getsize(made.path)}\n' == f'{made.total()}\n',
              f'{row}: {told.out!r} {told.err!r}, {os.path.getsize(made.path)}, {made.total()}')
        check(not os.path.exists(told.path), '--size-only made a file')
    without_device(scratch, check, plain)
    # A file may have any initial size, unless a size is requested.
    path = f'{scratch}/had.img'
    for size in (0, 1, 5 * M, 500 * M):
        with open(path, 'wb') as f:
            f.truncate(size)
        status, _, err = run('mkfs', '-r', f'{scratch}/root', path)
        check(not status and os.path.getsize(path) == plain, f'a file of {size} bytes: {os.path.getsize(path)} {err}')
    status, _, err = run('mkfs', '-f', '-b', '10m', '-r', f'{scratch}/root', path)
    check(status == 1 and 'too small' in err and not filling.holds_filesystem(path), f'-b 10m: {err}')


def parts(scratch, check):
    """A part of a file behaves like a device: it keeps its size, and what is around it does not change."""
    path = f'{scratch}/disk.img'
    for words, small in ((), False), (('--shrink',), True):
        with open(path, 'wb') as f:
            f.write(b'\xff' * M)
            f.truncate(300 * M)
            f.seek(201 * M)
            f.write(b'\xff' * 99 * M)
        part = f'{path}?offset=1m&size=200m'
        status, out, err = run('mkfs', '-f', *words, '-r', f'{scratch}/root', part)
        check(not status and os.path.getsize(path) == 300 * M, f'{part}: {err}')
        total = int(filling.superblock(part, 'total_bytes'))
        check(total < 40 * M if small else total == 200 * M, f'{part} {words}: {total}')
        with open(path, 'rb') as f:
            check(f.read(M) == b'\xff' * M, 'bytes before the part')
            f.seek(201 * M)
            check(f.read() == b'\xff' * 99 * M, 'bytes behind the part')
        check(f'  Shrink:           {"yes" if small else "no"}\n' in out.decode(), 'Shrink: in the summary')
    status, _, err = run('mkfs', '-f', '-r', f'{scratch}/root', f'{path}?offset=1m&size=10m')
    check(status == 1 and 'too small' in err, f'a part that is too small: {err}')


def several(scratch, check):
    """With several images, each gets the size that it needs."""
    with open(f'{scratch}/root/noise2', 'wb') as f:
        f.write(os.urandom(30 * M))
    for options in ('-d raid0 -m raid1', '-d raid1 -m raid1', '-d single -m raid1', '-d raid10 -m raid1c3'):
        images = [f'{scratch}/several{i}.img' for i in range(4 if '10' in options else 2)]
        status, out, err = run('mkfs', '-f', '-r', f'{scratch}/root', *options.split(), *images)
        check(not status, f'{options}: {err}')
        check(f'Number of devices:  {len(images)}\n' in out.decode(), 'Number of devices')
        for image in images:
            size = int(filling.superblock(image, 'dev_item.total_bytes'))
            check(os.path.getsize(image) == size < 80 * M, f'{options}: {image}: {os.path.getsize(image)}, {size}')
            check(size > 30 * M or 'raid1 ' not in f'{options} '.split(' -m')[0], f'{options}: {image}: {size}')
        check(run('dump-tree', *images)[0] == 0, f'{options}: it does not read')
        for image in images:
            os.unlink(image)
    os.unlink(f'{scratch}/root/noise2')
    os.utime(f'{scratch}/root', ns=(filling.TIME, filling.TIME))


def equal_bytes(scratch, check):
    """With --deterministic, or SOURCE_DATE_EPOCH and -U, the bytes are identical and no time is later than given."""
    fixed = ('-U', 'abcdef01-2345-6789-abcd-ef0123456789')
    for options, env in ((('--deterministic',), {}), (fixed, {'SOURCE_DATE_EPOCH': str(EPOCH)}),
                         (('--deterministic',), {'SOURCE_DATE_EPOCH': str(EPOCH)})):
        digests = set()
        for words in ((), ('--threads', '1'), ('--threads', '5')):
            os.utime(f'{scratch}/root/etc/empty', ns=(time.time_ns(), filling.TIME))
            made = Filled(scratch, '-r', 'root', *options, *words, env=env)
            check(not made.status, made.err)
            digests.add(made.digest())
        check(len(digests) == 1, f'{options}: the bytes are not equal')
        latest = EPOCH if env else filling.TIME // 10 ** 9 + 1
        check(max(made.times()) <= latest, f'{options}: a time later than {latest}: {made.times()}')
    check(Filled(scratch, '-r', 'root').digest() != Filled(scratch, '-r', 'root').digest(), 'equal without that')
    check(max(Filled(scratch, '-r', 'root').times()) > filling.TIME // 10 ** 9 + 1, 'times are clamped without that')


def threads(scratch, check):
    """Uses as many threads as requested; an archive that never ends holds them."""
    counts = []
    with open(f'{scratch}/root.tar', 'rb') as f:
        begin = f.read(20000)
    for number in (1, 3, 7):
        with subprocess.Popen([BTRKIT, 'mkfs', '-f', '--tar', '-', '--threads', str(number), f'{scratch}/held.img'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdin.write(begin)
            process.stdin.flush()
            count = 0
            for _ in range(3000):
                count = len(os.listdir(f'/proc/{process.pid}/task'))
                if count > number:
                    break
                time.sleep(0.01)
            counts.append(count)
            process.communicate(timeout=600)
        check(process.returncode == 1 and not os.path.exists(f'{scratch}/held.img'), 'half an archive')
    check([count - counts[0] for count in counts] == [0, 2, 6], f'--threads: {counts}')


def test(scratch, check):
    """@return the names of the tested options"""
    sources(scratch)
    tested = every_row(scratch, check)
    for part in (levels, sizes, parts, several, equal_bytes, threads):
        part(scratch, check)
    return tested
