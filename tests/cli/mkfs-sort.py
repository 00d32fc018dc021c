#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""mkfs --sort: file data is laid out in order of the priorities, and bad lines are reported with their numbers."""
import os
import re
import tempfile

from tool import check_failure, run

checks = 0
FILES = [f'{folder}{name}' for folder in ('', 'a/', 'a/deep/', 'b/') for name in ('1', '2', 'with blank')]


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def made(image, *args):
    if os.path.exists(image):
        os.unlink(image)
    status, out, err = run('mkfs', '-q', '--verify', *args, image)
    check(not status and not out and not err, (args, status, err))
    places = {}
    for name in FILES:
        status, out, err = run('fiemap', '--format', 'tsv', '--noscan', image, name)
        assert not status, err
        # Columns: subvolume, inode, offset in the file, offset on disk.
        places[name] = int(out.split(b'\t')[3])
    return sorted(FILES, key=lambda name: places[name])


def main():
    with tempfile.TemporaryDirectory(prefix='btrkit-cli-') as folder:
        tree, image, lines = f'{folder}/tree', f'{folder}/image', f'{folder}/lines'
        for name in FILES:
            os.makedirs(os.path.dirname(f'{tree}/{name}'), exist_ok=True)
            with open(f'{tree}/{name}', 'w', encoding='ascii') as f:
                f.write(name * 10000)
        os.link(f'{tree}/b/2', f'{tree}/a/link')
        plain = made(image, '--rootdir', tree)

        def ordered(text, priorities, *options):
            """@priorities: of the files that have one"""
            with open(lines, 'w', encoding='ascii') as f:
                f.write(text)
            got = made(image, '--rootdir', tree, '--sort', lines, *options)
            wanted = sorted(plain, key=lambda name: -priorities.get(name, 0))
            check(got == wanted, f'{text!r}: {got} instead of {wanted}')
            return got

        check(ordered('', {}) == plain, 'nothing asked for')
        check(ordered('b/2 1', {'b/2': 1}) != plain, 'one file in front')
        ordered('# a comment\n\n  /b/2\t32767 \n./a/1 -1\n', {'b/2': 9, 'a/1': -1})
        # The first name of b/2 is in a.
        ordered('a -5\na/deep 5\na/deep/1 -7\n', {'a/1': -5, 'a/2': -5, 'a/with blank': -5, 'b/2': -5, 'a/deep/1': -7,
                                                  'a/deep/2': 5, 'a/deep/with blank': 5})
        ordered('with\\ blank 3\nb/with\\ blank 4\n', {'with blank': 3, 'b/with blank': 4})
        ordered('a/link 8\n', {'b/2': 8}, '--compress', 'zlib')
        ordered('b/1 7\nb/1 -7\n', {'b/1': -7}, '--threads', '1')
        ordered('. 7\nb/1 9\n', {**dict.fromkeys(FILES, 7), 'b/1': 9})
        for text, says in (('b/1 1\nb/3 2\n', 'line 2: no b/3 in the source'),
                           ('1/x 1\n', 'line 1: no 1/x in the source'),
                           ('b/1\n', 'line 1: expected a path and a number'),
                           ('\nb/1 x\n', 'line 2: expected a path and a number'),
                           ('b/1 32768\n', 'line 1: expected a path'), ('b/1 1 1\n', 'line 1: expected a path')):
            with open(lines, 'w', encoding='ascii') as f:
                f.write(text)
            said = check_failure('mkfs', image, run('mkfs', '-f', '--rootdir', tree, '--sort', lines, image))
            check(f'{lines}: {says}' in said, said)
            check(run('check', image)[0] == 0, 'what was there is gone')
        said = check_failure('mkfs', image, run('mkfs', '-f', '--rootdir', tree, '--sort', f'{folder}/x', image))
        check(re.search('No such file', said), said)
        for args, says in ((['--sort', lines, image], '--sort needs --rootdir'),
                           (['--tar', 'x', '--sort', lines, image], 'cannot be sorted')):
            said = check_failure('mkfs', None, run('mkfs', *args), status=2)
            check(says in said, said)
    print(f'{checks} checks')


if __name__ == '__main__':
    main()
