#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree from other starting points: other superblocks, backup roots, roots given by address."""
import importlib
import re
import sys
import tempfile

from compare import BTRKIT, must, run, without_banner
from tool import crc32c

SUPER = 65536
select = importlib.import_module('dump-select')


def dump(*args):
    return without_banner(must(BTRKIT, 'dump-tree', *args))


def slots(path):
    """Generation and address of the root tree and of the chunk tree in each backup slot."""
    text = must(BTRKIT, 'dump-tree', '-R', path).decode()
    return [tuple(map(int, found)) for found in re.findall(
        r'tree root gen (\d+) block (\d+)\n.*\n\t\tchunk root gen (\d+) block (\d+)\n', text)]


def overwrite(path, offset, data):
    with open(path, 'r+b') as f:
        f.seek(offset)
        f.write(data)


def copies(path, bytenr):
    return [int(n) for n in re.findall(r'physical (\d+)', must(BTRKIT, 'map-logical', path, str(bytenr)).decode())]


def half_done_is_shown(path, plain):
    """After an interrupted conversion, dump-tree shows the filesystem with a warning, and other commands refuse it."""
    with open(path, 'rb') as f:
        f.seek(SUPER)
        whole = f.read(4096)
    for bit, words in ((36, 'unfinished change of the metadata uuid'),
                       (38, 'unfinished conversion of the block group tree')):
        flags = int.from_bytes(whole[56:64], 'little') | 1 << bit
        body = whole[32:56] + flags.to_bytes(8, 'little') + whole[64:]
        overwrite(path, SUPER, crc32c(body).to_bytes(4, 'little') + whole[4:32] + body)
        done = run(BTRKIT, 'dump-tree', path)
        assert (done.returncode, without_banner(done.stdout)) == (0, plain)
        assert done.stderr.decode() == f'btrkit dump-tree: {path}: {words}: shown as it is\n', done.stderr
        done = run(BTRKIT, 'ls', path, '/')
        assert done.returncode == 1 and f'not supported: {words}\n' in done.stderr.decode(), done.stderr
    overwrite(path, SUPER, whole)
    return 4


def main():
    checks = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = select.unpack.unpack('good-generations', scratch, quick=True)
        plain = dump(path)
        generation = int(re.search(rb'\ngeneration\s+(\d+)', must(BTRKIT, 'dump-super', path))[1])
        roots = slots(path)
        assert len(roots) == 4 and len({root[0] for root in roots}) == 4, roots
        for i, (gen, tree, _, chunk) in enumerate(roots):
            text = dump('--backup', str(i), path)
            assert dump('--tree-root', str(tree), '--chunk-root', str(chunk), path) == text
            assert (text == plain) == (gen == generation), f'slot {i}'
            assert f'generation {gen} owner ROOT_TREE'.encode() in text
            checks += 3
        now = next(i for i, root in enumerate(roots) if root[0] == generation)
        assert dump('-s', '0', path) == dump('--super', '1', path) == plain
        with open(path, 'rb') as f:
            f.seek(64 << 20)
            mirror = f.read(4096)
        overwrite(path, 64 << 20, bytes(4096))
        assert run(BTRKIT, 'dump-tree', '--super', '1', path).returncode == 1 and dump('-s', '0', path) == plain
        overwrite(path, 64 << 20, mirror)
        checks += half_done_is_shown(path, plain)
        # Without the root tree, the trees in backup roots can be shown.
        for place in copies(path, roots[now][1]):
            overwrite(path, place + 200, b'damage')
        for options, word in ((['-t', 'fs'], b'fs tree key'), ([], b'csum tree key|checksum tree key'),
                              (['-e'], b'extent tree key')):
            without, having = (run(BTRKIT, 'dump-tree', *options, *more, path) for more in
                               ([], ['--backup', str(now)]))
            assert without.returncode == having.returncode == 1
            assert b'damaged block %d ' % roots[now][1] in without.stdout
            assert not re.search(word, without.stdout) and re.search(word, having.stdout), having.stdout[:500]
            checks += 1
        items = plain.split(b'fs tree key')[1].count(b'\titem ')
        assert run(BTRKIT, 'dump-tree', '-t', 'fs', '--backup', str(now), path).stdout.count(b'\titem ') <= items
        # The other root tree is still readable.
        other = next(i for i, root in enumerate(roots) if root[0] == generation - 1)
        assert dump('--backup', str(other), path)
        # Without the chunk tree, the system chunks from the superblock remain, which contain the backup's chunk tree.
        for place in copies(path, roots[now][3]):
            overwrite(path, place + 200, b'damage')
        done = run(BTRKIT, 'dump-tree', path)
        assert done.returncode == 1 and b'\ndamaged chunks' in done.stdout, done
        assert 1 <= done.stderr.count(b'\n') <= 1 + done.stdout.count(b'\ndamaged '), done
        for bad in (['--backup', '4'], ['-s', '3'], ['--tree-root', 'x'], ['--backup', '-1']):
            assert run(BTRKIT, 'dump-tree', *bad, path).returncode == 2, bad
        for bad in (['--tree-root', '5'], ['--chunk-root', '1'], ['--tree-root', '4096']):
            done = run(BTRKIT, 'dump-tree', *bad, path)
            assert done.returncode == 1 and done.stderr.count(b'\n') == 1 and not done.stdout, bad
            checks += 1
    print(f'{checks} ways to start')
    return 0


if __name__ == '__main__':
    sys.exit(main())
