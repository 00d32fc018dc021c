#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A simulated zoned device: a loop device over the committed zoned image, with its superblocks moved to the log zones,
and a library that answers the ioctls (SHIM). dump-super and dump-tree must agree with btrfs-progs under the same
library, if it supports zones. Nothing is mounted. Exits with 77 if it cannot run.
"""
import hashlib
import os
import struct
import subprocess
import sys
import tempfile

import image


import damages
import tool
import unpack

BTRKIT, SHIM, READ_FILES = os.environ['BTRKIT'], os.environ['SHIM'], os.environ['READ_FILES']
ZONE, SUPER = 256 << 20, 4096
PLACES = (65536, 64 << 20)
CONVENTIONAL, SEQUENTIAL = 1, 2
NO_POINTER, EMPTY, OPEN, FULL = 0, 1, 2, 14

# The two zones: (type, condition, bytes written), where the newest superblock is, and where older ones are.
LAST = ZONE - SUPER
STATES = {
    'begun': ((SEQUENTIAL, OPEN, SUPER), (SEQUENTIAL, EMPTY, 0), 0, ()),
    'going on': ((SEQUENTIAL, OPEN, 9 * SUPER), (SEQUENTIAL, EMPTY, 0), 8 * SUPER, (0, 7 * SUPER)),
    'first full': ((SEQUENTIAL, FULL, ZONE), (SEQUENTIAL, EMPTY, 0), LAST, (0, LAST - SUPER)),
    'second begun': ((SEQUENTIAL, FULL, ZONE), (SEQUENTIAL, OPEN, SUPER), ZONE, (0, LAST)),
    'second going on': ((SEQUENTIAL, FULL, ZONE), (SEQUENTIAL, OPEN, 2 * SUPER), ZONE + SUPER, (0, LAST, ZONE)),
    'second full': ((SEQUENTIAL, FULL, ZONE), (SEQUENTIAL, FULL, ZONE), ZONE + LAST, (0, LAST, ZONE)),
    'first full again': ((SEQUENTIAL, FULL, ZONE), (SEQUENTIAL, FULL, ZONE), LAST, (0, ZONE, ZONE + LAST)),
    'first reset': ((SEQUENTIAL, EMPTY, 0), (SEQUENTIAL, FULL, ZONE), ZONE + LAST, (ZONE,)),
    'first again': ((SEQUENTIAL, OPEN, 2 * SUPER), (SEQUENTIAL, FULL, ZONE), SUPER, (0, ZONE + LAST)),
    'conventional': ((CONVENTIONAL, NO_POINTER, 0), (CONVENTIONAL, NO_POINTER, 0), 0, ()),
}
IMPOSSIBLE = ((SEQUENTIAL, OPEN, SUPER), (SEQUENTIAL, OPEN, SUPER))
EMPTY_LOG = ((SEQUENTIAL, EMPTY, 0), (SEQUENTIAL, EMPTY, 0))


def older(block, generation):
    changed = bytearray(block)
    changed[0x48:0x50] = damages.u64_bytes(generation)
    changed[0:4] = struct.pack('<I', damages.crc32c(changed[32:]))
    return bytes(changed)


def lay(device, supers):
    """Place the superblocks, and remove those of another state. Write to the device, because the kernel caches what is
    read from it, so writes to the backing file might not be seen."""
    with open(device, 'r+b') as f:
        for _, _, newest, others in STATES.values():
            for at in (newest, *others):
                f.seek(at)
                f.write(supers.get(at, bytes(SUPER)))
        f.flush()
        os.fsync(f.fileno())


def run(zones, *args):
    told = ','.join('.'.join(map(str, zone)) for zone in zones)
    preloaded = f'{SHIM} {os.environ.get("LD_PRELOAD", "")}'
    env = dict(os.environ, LD_PRELOAD=preloaded, ZONE_SIZE=str(ZONE), ZONES=told, TZ='UTC',
               ASAN_OPTIONS='verify_asan_link_order=0')
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, env=env)
    return done.returncode, done.stdout, done.stderr.decode(errors='replace')


def output(zones, *args):
    status, out, err = run(zones, *args)
    assert not status and out, (args, status, err)
    return out


def without_banner(dump):
    lines = dump.splitlines(True)[1:]
    return b''.join(line for line in lines if not line.startswith((b'checksum stored ', b'checksum calced ')))


def compare(name, zones, device, generation, peer):
    """Return the number of compared texts."""
    found = output(zones, BTRKIT, 'dump-super', '-fa', device)
    assert found.count(b'\nbytenr\t\t\t65536\n') == 1 and b'\ngeneration\t\t%d\n' % generation in found, (name, found)
    dump = without_banner(output(zones, BTRKIT, 'dump-tree', device))
    assert hashlib.sha256(dump).hexdigest() == unpack.sums()['good-zoned.dump'], f'{name}: another tree'
    if not peer:
        return 0
    assert found == output(zones, image.BTRFS, 'inspect-internal', 'dump-super', '-fa', device), name
    if image.compat():
        dump = without_banner(output(zones, BTRKIT, 'dump-tree', *image.compat(), device))
    assert dump == without_banner(output(zones, image.BTRFS, 'inspect-internal', 'dump-tree', device)), name
    return 2


def refused(zones, device, says, *args):
    status, out, err = run(zones, BTRKIT, *args, device)
    assert status == 1 and not out and says in err, (args, status, out, err)


def try_all(device, path, block, generation, peer):
    compared = 0
    for name, (*zones, newest, others) in STATES.items():
        lay(device, {newest: block} | {at: older(block, n) for n, at in enumerate(others, 1)})
        compared += compare(name, zones, device, generation, peer)
    with tempfile.TemporaryDirectory() as out:
        status, said, err = run(zones, READ_FILES, out, device)
        assert not status and len(os.listdir(out)) == 25, (status, said, err)
    before = tool.digest(path)
    for args in (['space-cache', 'convert'], ['space-cache', 'clear', 'v2']):
        refused(zones, device, 'writing is not supported: zoned', *args)
    refused(zones, device, 'zoned devices are not supported', 'mkfs', '-f')
    assert tool.digest(path) == before, 'something was written'
    lay(device, {})
    for args in (['dump-super'], ['dump-tree'], ['fiemap', '-a'], ['list-chunks']):
        refused(EMPTY_LOG, device, 'not a btrfs filesystem', *args)
        refused(IMPOSSIBLE, device, 'both zones of the superblock log are partly written', *args)
    return compared


def main():
    reason = image.missing()
    if reason:
        tool.skip(reason)
    peer = b'ZONED' in image.run(image.BTRFS, '--version') and b'-ZONED' not in image.run(image.BTRFS, '--version')
    with tempfile.TemporaryDirectory(prefix='btrkit-zoned-') as scratch:
        path = unpack.unpack('good-zoned', scratch, quick=True)
        with open(path, 'r+b') as f:
            f.seek(PLACES[0])
            block = f.read(SUPER)
            for at in PLACES:
                f.seek(at)
                f.write(bytes(SUPER))
        generation = damages.u64(block, 0x48)
        with image.loops([path]) as (loop,):
            compared = try_all(loop, path, block, generation, peer)
    print(f'{len(STATES)} states of a superblock log read; {compared} texts compared with btrfs-progs'
          f'{"" if peer else ", which here knows no zones"}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
