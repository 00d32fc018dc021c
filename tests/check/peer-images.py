# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare check with btrfs check on the test images of btrfs-progs, or on any other images.

Usage: peer-images.py [-v] FOLDER

Images are found and unpacked as by ../dump/peer-images.py. The environment provides BTRKIT, BTRFS and BTRFS_IMAGE.
Images restored by btrfs-image lack file data, so neither program checks data checksums. Each image falls into one of
these classes; the last three are failures:

both clean      neither objects
both object     both object
ours objects    the peer accepts it: to be examined individually
in part         one device of several; the peer may open it or not
not opened      by either of them
MISSED          the peer objects, ours finds nothing
NOT OPENED      the peer opens it, ours does not
CRASH           ours was killed by a signal, or did not end"""
import collections
import importlib.util
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../dump'))   # what the other program imports from its own directory
SPEC = importlib.util.spec_from_file_location('dump_images', os.path.join(HERE, '../dump/peer-images.py'))
dump_images = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(dump_images)

FAILURES = 'MISSED', 'NOT OPENED', 'CRASH'


def check(path):
    """Return the class, and lines with details."""
    status, out, err = dump_images.run(dump_images.BTRKIT, 'check', '--noscan', path)
    peer, peer_out, peer_err = dump_images.run(dump_images.BTRFS, 'check', '--readonly', path)
    lines = out.decode(errors='backslashreplace').splitlines()[:6] + err.splitlines()[:2]
    objects = [line for line in (peer_out.decode(errors='backslashreplace') + peer_err).splitlines()
               if not line.startswith(('Opening', 'Checking', 'UUID', '['))][:4]
    if status is None or status < 0 or status > 8:
        return 'CRASH', lines
    opened = 'cannot open file system' not in peer_err
    if 'is missing' in err or 'BTR-DEV-MISSING' in '\n'.join(lines):
        return 'in part', lines
    if status == 8:
        return ('NOT OPENED' if opened else 'not opened'), lines + objects
    if status == 0 and 'leftover' not in out.decode(errors='backslashreplace'):
        return ('both clean' if peer == 0 else 'MISSED'), objects
    if status == 0:
        return ('both clean' if peer == 0 else 'both object'), lines
    return ('ours objects' if peer == 0 else 'both object'), lines


def main():
    verbose, folder = '-v' in sys.argv[1:], sys.argv[-1]
    classes = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(dir=os.environ.get('TMPDIR', '/var/tmp')) as scratch:
        for name, path in dump_images.images(folder):
            image = os.path.join(scratch, 'image')
            why = dump_images.unpack(path, image)
            if why:
                found, lines = 'not unpacked', [why]
            else:
                found, lines = check(image)
            classes[found].append(name)
            if verbose or found in FAILURES or found == 'ours objects':
                print(f'{found}: {name}', *lines, sep='\n    ')
            for left in os.listdir(scratch):
                os.unlink(os.path.join(scratch, left))
    for found, names in sorted(classes.items()):
        print(f'{len(names):4} {found}')
    return any(classes[found] for found in FAILURES)


sys.exit(main())
