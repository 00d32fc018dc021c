#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""mkfs --verify: reads everything back, reports how much, and fails with the name of what differs.

The preloaded MISREAD_LIBRARY alters bytes that are read.
"""
import json
import os
import subprocess
import tempfile

from tool import BTRKIT, check_failure, run

checks = 0


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def misread(mark, *args):
    """Run mkfs with the bytes of @mark, FROM/TO, altered when they are read."""
    preloaded = [os.environ['MISREAD_LIBRARY'], os.environ.get('LD_PRELOAD', '')]
    env = {**os.environ, 'LD_PRELOAD': ' '.join(preloaded), 'MISREAD': mark,
           'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'}
    done = subprocess.run([BTRKIT, 'mkfs', *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=600)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def make_tree(top):
    os.makedirs(f'{top}/sub/dir')
    for i in range(30):
        with open(f'{top}/sub/{i}', 'w', encoding='ascii') as f:
            f.write(str(i) * 5000)
    os.symlink('away', f'{top}/sub/dir/link')
    os.link(f'{top}/sub/1', f'{top}/sub/dir/again')
    os.mkfifo(f'{top}/fifo')


def makes(image, *args):
    if os.path.exists(image):
        os.unlink(image)
    status, out, err = run('mkfs', *args, image)
    check(not status and not err, (args, status, err))
    return out.decode()


def equal(folder, tree, image):
    size = sum(len(str(i)) * 5000 for i in range(30))
    line = f'Verified:         35 inodes, {size} bytes of files\n'
    subprocess.run(['tar', 'cf', f'{folder}/tar', '-C', tree, '.'], check=True)
    for options in ([], ['--compress', 'zlib'], ['--subvol', 'ro:sub', '--deterministic'], ['--threads', '1']):
        for source in (['--rootdir', tree], ['--tar', f'{folder}/tar']):
            # No subvolume boundary separates the hard link here.
            check(line in makes(image, *source, *options, '--verify'), (source, options))
            check('Verified' not in makes(image, *source, *options), 'not asked for')
    filled = json.loads(makes(image, '--rootdir', tree, '--verify', '--format', 'json').splitlines()[-1])['filled']
    check((filled['verified'], filled['verified_bytes']) == (35, size), filled)
    check('verified' not in makes(image, '--rootdir', tree, '--format', 'json'), 'not asked for')


def different(folder, tree, image):
    subprocess.run(['tar', 'cf', f'{folder}/tar', '-C', tree, '.'], check=True)
    for mark, where in (('77777777/77777778', 'sub/7: contents cannot be read: data checksum mismatch'),
                        ('away/aWay', 'cannot be read: tree block checksum mismatch')):
        if os.path.exists(image):
            os.unlink(image)
        # A pipe is not read by pread(2), so its data is not altered.
        status, out, err = misread(mark, '--tar', f'{folder}/tar', image)
        check(not status and not err, (status, err))
        status, out, err = misread(mark, '-f', '--tar', f'{folder}/tar', '--verify', image)
        check(status == 1 and not out and where in err, (status, out, err))
        lines = err.splitlines()
        check(lines[-1].startswith(f'btrkit mkfs: {image}: the new filesystem differs from the source in '), err)
        check(2 <= len(lines) <= 22 and all(line.startswith(f'btrkit mkfs: {image}: ') for line in lines), err)
        check(os.path.getsize(image) == 0, 'a filesystem is left behind')


def main():
    with tempfile.TemporaryDirectory(prefix='btrkit-cli-') as folder:
        tree, image = f'{folder}/tree', f'{folder}/image'
        make_tree(tree)
        equal(folder, tree, image)
        different(folder, tree, image)
        for args, says in ((['--verify', image], 'needs --rootdir'),
                           (['--rootdir', tree, '--size-only', '--verify', image], 'writes nothing')):
            said = check_failure('mkfs', None, run('mkfs', *args), status=2)
            check(says in said, said)
    print(f'{checks} checks')


if __name__ == '__main__':
    main()
