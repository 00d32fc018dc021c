#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit space-cache convert` and `clear` on images, without root: output, the effect of each option, and refusals,
which write nothing."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import tool
from tool import Super, check_failure, digest, run, watched

CACHE_GENERATION, LOG_ROOT = 555, 96
# Bits of incompat, and their names in refusals.
REFUSED = {12: 'zoned', 13: 'extent-tree-v2', 14: 'raid-stripe-tree', 17: 'remap-tree', 63: 'unknown incompat bit 63'}
IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'images')
checks = 0


def check(condition, *what):
    global checks
    assert condition, what
    checks += 1


def works(*args, **how):
    code, out, err = run('space-cache', *args, **how)
    check(code == 0 and not err and out, args, code, err)
    return out.decode()


def unchanged(path, *args, **how):
    before = digest(path)
    said = works(*args, path, **how)
    check(digest(path) == before, args, 'has written')
    return said


def refused(path, *args, says, device=None, **how):
    before = digest(path)
    said = check_failure('space-cache', device or path, run('space-cache', *args, path, **how))
    check(says in said, args, said)
    check(digest(path) == before, args, 'has written')


def summary(path, *args):
    return json.loads(works('status', '--format', 'json', *args, path).splitlines()[-1])['summary']


def number(pattern, text):
    found = re.search(pattern, text)
    check(found, pattern, text)
    return int(found.group(1))


def copy(source, path):
    subprocess.run(['cp', '--sparse=always', source, path], check=True)
    return path


def there_and_back(path):
    """v1 to v2, to none, to v2, to v1, to v2."""
    said = unchanged(path, 'convert', '--dry-run')
    check('files of 65536 bytes to be removed' in said and 'in use before:\t\tv1\n' in said, said)
    check(number(r'up to (\d+) bytes for tree blocks needed', said) <= number(r'needed, (\d+) free', said), said)
    check(re.search(r'time:\t+about \d+\.\d seconds\n', said), said)
    blocks = number(r'(\d+) blocks of 16384 bytes to be made', said)
    said = works('convert', path)
    check(number(r'(\d+) blocks of 16384 bytes made', said) == blocks and 'files of 65536 bytes removed' in said, said)
    check(number(r'in (\d+) commits', said) == 2 and 'to be' not in said and 'time' not in said, said)
    now = summary(path)
    check(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)
    check('v2 is in use and valid: nothing to do' in unchanged(path, 'convert'))
    check('there is no v1 cache to clear' in unchanged(path, 'clear', 'v1'))
    works('convert', '--to', 'none', path)
    check(summary(path)['in_use'] == 'none' and Super(path).get(CACHE_GENERATION) == 0)
    check('there is no cache: nothing to do' in unchanged(path, 'convert', '--to=none'))
    check('there is no v2 cache to clear' in unchanged(path, 'clear', 'v2'))
    works('convert', '--to', 'v2', path)
    check('Linux builds v1 at the next mount' in works('convert', '--to', 'v1', path))
    now = summary(path)
    check(now['in_use'] == 'v1' and not now['valid'] and Super(path).get(CACHE_GENERATION) == 2**64 - 1, now)
    check('v1 is in use, and Linux rebuilds it' in unchanged(path, 'convert', '--to', 'v1'))
    works('convert', path)
    check('1 blocks of 16384 bytes to be removed' in unchanged(path, 'clear', '--dry-run', 'v2'))
    check('1 blocks of 16384 bytes removed' in works('clear', 'v2', path))
    now = summary(path)
    check(now['in_use'] == 'none' and now['v2']['absent'] == now['groups'], now)
    check(not Super(path).get(Super.COMPAT_RO) & 3)


def clear_v1(path):
    check('1 headers, 1 files of 65536 bytes to be removed' in unchanged(path, 'clear', 'v1', '--dry-run'))
    check('1 headers, 1 files of 65536 bytes removed' in works('clear', 'v1', path))
    now = summary(path)
    check(now['in_use'] == 'v1' and not now['valid'] and now['v1']['absent'] == now['groups'], now)
    check(Super(path).get(CACHE_GENERATION) == 2**64 - 1)


def undo(path, scratch):
    before, file = digest(path), os.path.join(scratch, 'undo')
    works('convert', '--undo', file, path)
    check(digest(path) != before)
    refused(path, 'convert', '--to=none', '--undo', file, says='File exists')
    code, _, err = run('undo', file, path)
    check(code == 0 and not err and digest(path) == before, err)
    os.unlink(file)
    check('to be' in unchanged(path, 'clear', 'v1', '--dry-run'))
    works('clear', 'v1', '--undo', file, path)
    check(run('undo', file, path)[0] == 0 and digest(path) == before)
    os.unlink(file)
    # Nothing is written, so no undo file remains.
    works('convert', path)
    unchanged(path, 'convert', '--undo', file)
    check(not os.path.exists(file))


def other_devices(source, scratch):
    """On a filesystem with two devices, both are written."""
    for args in (['convert'], ['convert', '--dry-run'], ['clear', 'v1']):
        refused(source, *args, '--device', '/no/such/device', says='No such file', device='/no/such/device')
        refused(source, *args, '--device', source, says='')
    first, second = (os.path.join(scratch, name) for name in ('first.img', 'second.img'))
    for path in (first, second):
        with open(path, 'wb') as f:
            f.truncate(300 << 20)
    profiles = ('-q', '-f', '-m', 'dup', '-d', 'single')
    code, _, err = run(*profiles, '-O', '^free-space-tree,^block-group-tree', first, second, binary=tool.MKFS)
    if code:
        code, _, err = run(*profiles, '-R', '^free-space-tree', first, second, binary=tool.MKFS)
    if code:
        print(f'no filesystem of two devices: {err}')
        return
    refused(first, 'convert', says='filesystem has 2 devices, 1 given')
    before, file = [digest(first), digest(second)], os.path.join(scratch, 'undo')
    works('convert', '--device', second, '--undo', file, first)
    check(digest(first) != before[0] and digest(second) != before[1])
    code, _, err = run('undo', file, second)
    check(code == 1 and 'was made for 2 devices, but 1 were given' in err, err)
    check(run('undo', file, second, first)[0] == 0 and [digest(first), digest(second)] == before)
    os.unlink(file)
    check('to be made' in unchanged(first, 'convert', '--dry-run', '--device', second))
    works('convert', '--device', second, first)
    now = summary(first, '--device', second)
    check(now['in_use'] == 'v2' and now['valid'] and now['v2']['equal'] == now['groups'], now)
    check(Super(first).get(72) == Super(second).get(72) and Super(second).get(Super.COMPAT_RO) & 3 == 3)
    for path in (first, second):
        os.unlink(path)


def what_is_refused(source, scratch):
    path = os.path.join(scratch, 'refused.img')
    for change, says in ((lambda s: s.put(Super.COMPAT_RO, 1 << 40), 'unknown compat_ro bit 40'),
                         *((lambda s, nr=nr: s.put(Super.INCOMPAT, s.get(Super.INCOMPAT) | 1 << nr), name)
                           for nr, name in REFUSED.items()),
                         (lambda s: s.put(LOG_ROOT, s.get(80)), 'log tree'),
                         (lambda s: s.put(Super.FLAGS, s.get(Super.FLAGS) | 1 << 32), 'seed'),
                         (lambda s: s.put(200, 12345), 'the primary superblock is')):
        copy(source, path)
        changed = Super(path)
        change(changed)
        changed.write()
        for args in (['convert'], ['convert', '--dry-run'], ['convert', '--to=none'], ['clear', 'v1']):
            refused(path, *args, says=says)
    os.unlink(path)
    for bad in (os.path.join(scratch, 'absent'), '/dev/null', scratch):
        for args in (['convert'], ['convert', '--dry-run'], ['clear', 'v2']):
            check_failure('space-cache', bad, run('space-cache', *args, bad))


def read_only(path):
    """Without write permission the dry run works, and everything else is refused."""
    os.chmod(path, 0o444)
    unchanged(path, 'convert', '--dry-run', **tool.forbidden())
    refused(path, 'convert', says='Permission denied', **tool.forbidden())
    os.chmod(path, 0o644)


def terminal(path):
    """Progress is shown only on a terminal, and ends with an empty line; otherwise stderr is silent."""
    code, out, said = watched('space-cache', 'convert', path)
    check(code == 0 and b'made' in out, out)
    check(re.match(r'(\rconverting: \d+ %)+\r\x1b\[K$', said), said)
    percents = [int(n) for n in re.findall(r'(\d+) %', said)]
    check(percents == sorted(set(percents)) and percents[-1] <= 100, percents)


def interrupted(path):
    """A signal at the first progress output, or just before it, ends it with one line."""
    before = digest(path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        code, out, said = watched('space-cache', 'convert', path, number=number)
        check(code == 1 and not out, code, out)
        line = f'btrkit space-cache: {path}: interrupted; the filesystem is whole\r\n'
        check(re.fullmatch(r'((\rconverting: \d+ %)*\r\x1b\[K)?' + re.escape(line), said), said)
        check(digest(path) == before, 'nothing was written so far')
    works('convert', path)
    check(summary(path)['v2']['equal'] == summary(path)['groups'])


def main():
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, os.path.join(IMAGES, 'unpack.py'), 'good-cache-v1', scratch], check=True,
                       stdout=subprocess.DEVNULL)
        source, path = os.path.join(scratch, 'good-cache-v1.img'), os.path.join(scratch, 'fs.img')
        there_and_back(copy(source, path))
        clear_v1(copy(source, path))
        undo(copy(source, path), scratch)
        other_devices(copy(source, path), scratch)
        what_is_refused(source, scratch)
        read_only(path)
        terminal(copy(source, path))
        interrupted(copy(source, path))
    print(f'{checks} checks')


if __name__ == '__main__':
    sys.exit(main())
