# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare dump-tree and dump-super with btrfs-progs on its test images, or on any other images.

Usage: peer-images.py [-v] FOLDER

All images below FOLDER are unpacked like in the tests of btrfs-progs: *.raw, *.raw.xz and archives contain images,
*.img and *.img.xz are restored by btrfs-image -r; those of ext2 (e2image) are skipped. The environment provides BTRKIT,
BTRFS and BTRFS_IMAGE. Each image falls into one of these classes; the last two are failures:

equal           identical except for the version line; ours may exit with 1 for a damaged item
missing device  identical except for the peer's line about a missing device
both refuse     neither shows a block
damaged         each difference is reported by ours: a block that is not shown, with everything below it, or an invalid
                item
no calendar     in addition, the peer prints a date for a time that has none
more            ours shows everything that the peer shows, and more
DIFFERENT       anything else
CRASH           ours was killed by a signal, or did not end

Regardless of the peer, in each dump of ours every block that a shown pointer or root item refers to must be shown or
reported as damaged."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from compare import BTRFS, BTRKIT, ENV, compat_options, first_difference, without_banner

BTRFS_IMAGE = os.environ.get('BTRFS_IMAGE', os.path.join(os.path.dirname(BTRFS), 'btrfs-image'))
SUFFIXES = ('.img', '.img.xz', '.raw', '.raw.xz', '.tar.xz')
SECONDS = 120
ERROR = 2    # usage error, in both programs
FAILURES = 'DIFFERENT', 'CRASH'

HEADER = re.compile(rb'(?:leaf|node) (\d+) (?:level \d+ )?items \d+ free space ')
TITLE = re.compile(rb'(?:[a-z0-9_ -]+ )?tree(?: key \(.*\) ?)?$|total bytes \d+$')
ITEM = re.compile(rb'\titem (\d+) key ')
POINTER = re.compile(rb'\tkey \(.*\) block (\d+) gen \d+$')
LOCAL_TIME = re.compile(rb'([acmors]time \d+\.\d+) \([^)]*\)$')


def run(*args):
    """Return status, output and errors; the status is None on timeout."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            status = subprocess.run(args, stdout=out, stderr=err, check=False, env=ENV, stdin=subprocess.DEVNULL,
                                    timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            status = None
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read().decode(errors='backslashreplace')


def unpack(path, to):
    """Unpack an image. Returns the reason if that is impossible. Images may be large and mostly holes."""
    plain = to + '.plain' if '.img' in os.path.basename(path) else to
    command = 'tar -xJOf' if path.endswith('.tar.xz') else 'xz -dc' if path.endswith('.xz') else 'cat'
    with subprocess.Popen([*command.split(), path], stdout=subprocess.PIPE) as source:
        subprocess.run(['cp', '--sparse=always', '/dev/stdin', plain], stdin=source.stdout, check=True)
    if plain == to:
        return None
    status, _, err = run(BTRFS_IMAGE, '-r', plain, to)
    return None if status == 0 else f'btrfs-image: {err.strip()}'


def images(folder):
    for top, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(top, name)
            if name.endswith(SUFFIXES) and 'e2image' not in name and not os.path.islink(path):
                yield os.path.relpath(path, folder), path


def refuse(text):
    """Whether no block is shown."""
    return not re.search(rb'(?m)^(?:leaf|node) \d+ ', text)


class Damage:
    """The damage that ours reports, and whether everything that it refers to is shown."""

    def __init__(self, text):
        self.blocks, self.items, self.dying, self.lost = set(), set(), set(), False
        shown, wanted = set(), set()
        for line in map(json.loads, text.decode().splitlines()[1:]):
            if line['kind'] == 'damage':
                self.take(line)
            elif line['kind'] == 'node':
                shown.add(line['bytenr'])
            elif line['kind'] == 'pointer':
                wanted.add((line['tree'], line['blockptr']))
            elif line['kind'] == 'item' and line['key']['type'] == 132:
                self.root(line['key']['objectid'], line['item'], wanted)
        self.left_out = {b for tree, b in wanted if tree not in self.dying} - shown - self.blocks
        if self.lost:
            self.left_out.clear()

    def root(self, tree, item, wanted):
        """Blocks of a half-deleted tree may be gone; an invalid address has been reported with its item."""
        if not item.get('refs', 1) and item['drop_progress']['objectid']:
            self.dying.add(tree)
        if 'bytenr' in item and not item['bytenr'] % 4096 and item['level'] < 8:
            wanted.add((tree, item['bytenr']))

    def take(self, line):
        if line['what'] == 'item':
            self.items.add((line['bytenr'], line['slot']))
        elif line['what'] == 'block':
            self.blocks.add(line['bytenr'])
        elif line['what'] == 'pointer':
            self.blocks.add(line['blockptr'])
        elif line['what'] == 'chunks':
            self.lost = True


def blocks_of(text):
    """Return the lines of each block, which may be shown several times, and the lines between blocks. Blocks before the
    first heading are ones that the peer refuses, not part of the dump."""
    blocks, between, now, begun = {}, [], None, False
    for line in text.splitlines():
        header = HEADER.match(line)
        if TITLE.match(line):
            begun, now = True, None
            between.append(line)
        elif header:
            now = [line]
            if begun:
                blocks.setdefault(int(header[1]), []).append(now)
        elif line.startswith(b'damaged '):
            now = None
        elif now is None:
            between.append(line)
        else:
            now.append(line)
    return blocks, between


def items_of(lines):
    """Return the lines of a block by slot, with the header as -1."""
    items, slot = {-1: []}, -1
    for line in lines:
        found = ITEM.match(line)
        slot = int(found[1]) if found else slot
        items.setdefault(slot, []).append(line)
    return items


def below(blocks, damaged):
    """Return the damaged blocks and everything that they point to, according to the peer."""
    found, to_do = set(), list(damaged)
    while to_do:
        bytenr = to_do.pop()
        if bytenr not in found:
            found.add(bytenr)
            to_do += [int(p[1]) for lines in blocks.get(bytenr, []) for p in map(POINTER.match, lines) if p]
    return found


class Difference:
    """What the peer shows and ours does not, unless ours reports the reason."""

    def __init__(self, theirs, ours, damage):
        self.unexplained, self.told, self.dates = [], False, False
        self.damage = damage
        theirs, between = blocks_of(theirs)
        ours, our_between = blocks_of(ours)
        gone = below(theirs, damage.blocks)
        for bytenr, shown in theirs.items():
            if bytenr not in ours:
                self.check(bytenr in gone or damage.lost, f'block {bytenr} is missing')
            for lines in shown if bytenr in ours else []:
                if lines not in ours[bytenr]:
                    self.block(bytenr, items_of(lines), items_of(ours[bytenr][0]))
        for line in set(between) - set(our_between):
            incomplete = damage.blocks or damage.lost
            self.check(incomplete and re.match(rb'total bytes|bytes used|uuid', line), f'{line} is missing')
        self.more = bool(set(ours) - set(theirs))

    def check(self, told, what):
        self.told |= bool(told)
        if not told:
            self.unexplained.append(what)

    def block(self, bytenr, theirs, ours):
        for slot in sorted(set(theirs) | set(ours)):
            a, b = theirs.get(slot, []), ours.get(slot, [])
            if a == b:
                continue
            if (bytenr, slot) in self.damage.items:
                self.told = True
            else:
                alike = same_but_dates(a, b)
                self.dates |= alike
                self.check(alike, f'block {bytenr} item {slot} differs')


def same_but_dates(a, b):
    """For times out of range the peer computes a year from an overflown number."""
    return len(a) == len(b) and all(x == y or (y.endswith(b' (out of range)') and
                                               LOCAL_TIME.sub(rb'\1', x) == LOCAL_TIME.sub(rb'\1', y))
                                    for x, y in zip(a, b))


def check_tree(image, verbose):
    """Return the class of an image and a remark."""
    their_status, theirs, _ = run(BTRFS, 'inspect-internal', 'dump-tree', image)
    status, ours, said = run(BTRKIT, 'dump-tree', *compat_options(), image)
    json_status, lines, _ = run(BTRKIT, 'dump-tree', '--format', 'json', image)
    theirs, ours = without_banner(theirs), without_banner(ours)
    if status not in (0, 1) or json_status != status:
        return 'CRASH', f'{status}, as JSON {json_status}: {said[-300:]}'
    if status and refuse(ours) and refuse(theirs):
        return 'both refuse', said
    damage = Damage(lines)
    if damage.left_out:
        return 'DIFFERENT', f'ours leaves out blocks {sorted(damage.left_out)[:5]}'
    if ours == theirs:
        return 'equal', said
    if ours == re.sub(rb'\A(warning, device \d+ is missing\n)+', b'', theirs):
        return 'missing device', said
    difference = Difference(theirs, ours, damage)
    if difference.unexplained:
        text = '; '.join(difference.unexplained[:5])
        return 'DIFFERENT', text + ('\n' + first_difference(theirs, ours, 'text') if verbose else '')
    if difference.dates:
        return 'no calendar', said
    if damage.blocks or damage.items or damage.lost:
        return 'damaged', said
    return 'more', f'exit {their_status} of the peer'


def check_super(image, options):
    """The same for superblocks."""
    their_status, theirs, _ = run(BTRFS, 'inspect-internal', 'dump-super', *options, image)
    status, ours, said = run(BTRKIT, 'dump-super', *options, image)
    if status not in (0, 1):
        return 'CRASH', f'{status}: {said[-300:]}'
    # Remove the heading of a superblock that is not shown, and add the separator that the peer omits between chunk
    # types.
    theirs = re.sub(rb'superblock: bytenr=\d+, device=[^\n]*\n-+\n\Z', b'', theirs) if their_status else theirs
    theirs = re.sub(rb'(DATA|SYSTEM)(SYSTEM|METADATA_REMAP)', rb'\1|\2', theirs)
    if ours != theirs:
        return 'DIFFERENT', first_difference(theirs, ours, 'dump-super ' + ' '.join(options))
    return ('equal', said) if ours else ('both refuse', said)


def self_test():
    """The comparison must notice each kind of difference, unless it is reported."""
    text = b'fs tree key (FS_TREE ROOT_ITEM 0) \nnode 8192 level 1 items 1 free space 9 generation 1 owner 5\n' \
           b'\tkey (256 INODE_ITEM 0) block 4096 gen 1\n' \
           b'leaf 4096 items 2 free space 9 generation 1 owner 5\n\titem 0 key (1 A 0) itemoff 1 itemsize 1\n' \
           b'\t\totime 9.5 (-7-01-01 00:00:00)\n\titem 1 key (2 A 0) itemoff 1 itemsize 1\n\t\tx\ntotal bytes 9\n'
    nothing, damage = b'{}\n', b'{}\n{"kind": "damage", %s}\n'
    block = damage % b'"what": "block", "bytenr": %d'
    seen = 0
    for ours, told, wanted in (
            (text, nothing, []), (text.replace(b'\t\tx', b'\t\ty'), nothing, ['block 4096 item 1 differs']),
            (text.replace(b'\t\tx', b'\t\ty'), damage % b'"what": "item", "bytenr": 4096, "slot": 1', []),
            (text.replace(b'\t\tx', b'\t\ty'), damage % b'"what": "item", "bytenr": 4096, "slot": 0',
             ['block 4096 item 1 differs']),
            (text.replace(b'-7-01-01 00:00:00', b'out of range'), nothing, []),
            (text.replace(b'-7-01-01', b'-8-01-01'), nothing, ['block 4096 item 0 differs']),
            (text.replace(b'9.5 (-7-01-01 00:00:00', b'8.5 (out of range'), nothing, ['block 4096 item 0 differs']),
            (text[:text.index(b'leaf')], nothing, ['block 4096 is missing', "b'total bytes 9' is missing"]),
            (text[:text.index(b'leaf')], block % 4096, []), (text[:text.index(b'node')], block % 8192, []),
            (text[:text.index(b'node')], block % 4096, ['block 8192 is missing']),
            (text.replace(b'fs tree', b'no tree'), block % 4096,
             ["b'fs tree key (FS_TREE ROOT_ITEM 0) ' is missing"])):
        found = Difference(text, ours, Damage(told)).unexplained
        assert found == wanted, (ours, told, found, wanted)
        seen += bool(wanted)
    lead = b'{}\n{"kind": "pointer", "tree": 5, "blockptr": 4096}\n'
    assert Damage(lead).left_out == {4096} and not Damage(lead + (block % 4096)[3:]).left_out
    return seen + 1


def main():
    verbose = '-v' in sys.argv
    folders = [a for a in sys.argv[1:] if a != '-v']
    if len(folders) != 1:
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return ERROR
    planted = self_test()
    trees, supers = collections.Counter(), collections.Counter()
    wrong = 0
    for name, path in images(folders[0]):
        with tempfile.TemporaryDirectory(prefix='btrkit-peer-') as scratch:
            image = os.path.join(scratch, 'image')
            reason = unpack(path, image)
            if reason:
                trees['not unpacked'] += 1
                print(f'not unpacked: {name}: {reason}')
                continue
            what, word = check_tree(image, verbose)
            trees[what] += 1
            wrong += what in FAILURES
            if verbose or what not in ('equal', 'missing device', 'both refuse', 'damaged'):
                print(f'{what}: {name}: {word.strip()}', flush=True)
            for options in (['-f'], ['-fa']):
                what, word = check_super(image, options)
                supers[what] += 1
                wrong += what in FAILURES
                if what in FAILURES:
                    print(f'{what}: {name}: {word}')
    for command, counts in (('dump-tree', trees), ('dump-super', supers)):
        print(f'{command}, {sum(counts.values())}: ' + ', '.join(f'{n} {what}' for what, n in counts.most_common()))
    print(f'{planted} planted differences are seen')
    return 1 if wrong or not trees else 0


if __name__ == '__main__':
    sys.exit(main())
