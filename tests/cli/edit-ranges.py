#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit edit` on ranges of files: holes, preallocation and shared extents, checked by `btrkit cat` and `btrkit
fiemap` without root. tests/kernel/modify/file-data-kernel.py compares the results with Linux."""
import os
import random
import sys
import tempfile

import editing
from editing import check, refused, usage, works
from tool import run

UNWRITTEN, SHARED = 0x800, 0x2000


def data(path, name):
    code, out, err = run('cat', path, name)
    check(code == 0, name, err)
    return out


def extents(path, name):
    """Return [(offset, length, preallocated, shared)]."""
    code, out, err = run('fiemap', '--format', 'tsv', path, name)
    check(code == 0, name, err)
    rows = [row.split('\t') for row in out.decode().splitlines()]
    return [(int(r[2]), int(r[4]), bool(int(r[5], 16) & UNWRITTEN), bool(int(r[5], 16) & SHARED)) for r in rows]


def holes(path, local, content):
    works(path, f'put {local} f\npunch f 4k 8k\npunch f 0x5001 1\n'.encode())
    want = bytearray(content)
    want[4096:12288], want[0x5001] = bytes(8192), 0
    check(data(path, 'f') == want)
    check(all(end <= 4096 or begin >= 12288 for begin, end in ((r[0], r[0] + r[1]) for r in extents(path, 'f'))))
    works(path, ['punch', 'f', '0', '1e'])
    check(data(path, 'f') == bytes(len(content)) and not extents(path, 'f'))
    works(path, b'rm f\n')


def kept(path):
    works(path, b'put /dev/null f\nprealloc f 8k 64k\nput /dev/null g\nprealloc -k g 0 1m\n')
    check(data(path, 'f') == bytes(72 << 10) and extents(path, 'f') == [(8192, 65536, True, False)])
    check(data(path, 'g') == b'' and extents(path, 'g') == [(0, 1 << 20, True, False)])
    works(path, b'rm f g\n')


def shared(path, local, content):
    works(path, f'put {local} f\nchown 7:8 f\nchmod 4640 f\nclone f new\n'
                f'mkdir d\nput {local} d/old\ntruncate d/old 300k\nchmod 600 d/old\nclone f d/old\n'
                'put /dev/null range\nclone f 4k 8k range 16k\nclone f 96k 0 range 64k\nclone range 16k 4k range 0\n'
                .encode())
    for name in ('new', 'd/old'):
        check(data(path, name) == content)
        check(extents(path, name) == extents(path, 'f') and all(row[3] for row in extents(path, 'f')))
    stat = {name: run('stat', path, name)[1].decode() for name in ('f', 'new', 'd/old')}
    for what in ('(4640/', 'Uid: 7 ', 'Gid: 8\n'):
        check(what in stat['f'] and what in stat['new'] and what not in stat['d/old'], stat)
    tail = content[96 << 10:]
    check(data(path, 'range') == content[4096:8192] + bytes(12288) + content[4096:12288] + bytes(40 << 10) + tail)
    # Inline files, and clones of empty files.
    works(path, f'put /dev/null none\nclone none none2\nclone none new\nwrite none 0 {local}\ntruncate none 100\n'
                'clone none small\n'.encode())
    check(data(path, 'none2') == data(path, 'new') == b'' and data(path, 'small') == content[:100])
    works(path, b'rm -r f new d range none none2 small\n')


def what_fails(path, local):
    works(path, f'put {local} f\nmkdir d\nln -s f l\nput /dev/null nocow\nchattr +C nocow\nput {local} fixed\n'
                f'mknod p p\nchattr +i fixed\n'.encode())
    for script, says in (
            ('punch f 0 0', 'Invalid'), ('punch f 0 x', 'Invalid'), ('punch absent 0 1', 'No such'),
            ('punch d 0 1', 'Is a directory'), ('punch p 0 1', 'Invalid'), ('punch fixed 0 1', 'not permitted'),
            ('punch f 8e 1', 'too large'), ('prealloc f 0 0', 'Invalid'), ('prealloc -q f 0 1', 'unknown option'),
            ('prealloc d 0 1', 'Is a directory'), ('prealloc absent 0 1', 'No such'),
            ('prealloc f 8e 1', 'too large'), ('prealloc -k fixed 0 1', 'not permitted'),
            ('prealloc -k f 0 1t', 'No space left'),
            ('clone f', 'clone takes'), ('clone f 0 1 d', 'clone takes'), ('clone absent new', 'absent'),
            ('clone absent f', 'absent'), ('clone d new', 'd: Is a directory'), ('clone l d', 'Is a directory'),
            ('clone f d', 'Is a directory'), ('clone f l', 'itself'), ('clone f f', 'itself'),
            ('clone f fixed', 'not permitted'), ('clone f nocow', 'checksums'), ('clone f absent/new', 'No such'),
            ('clone f 0 4k absent 0', 'absent'), ('clone f 1 4k nocow 0', 'Invalid'), ('clone f 0 1 f 4k', 'sector'),
            ('clone f 0 8k f 4k', 'overlap'), ('clone f 0 1g nocow 0', 'Invalid'), ('clone f 0 4k d 0', 'directory')):
        refused(path, f'mkdir new-{len(script)}\n{script}\n'.encode(), says=says, line=2)
    usage(path, 'punch', 'f', '0', says='punch takes PATH OFFSET LENGTH')
    works(path, b'chattr -i fixed\nrm -r f d l nocow fixed p\n')


def main():
    content = random.Random(1).randbytes(100001)
    with tempfile.TemporaryDirectory() as scratch:
        path, local = editing.make_image(scratch), os.path.join(scratch, 'local')
        with open(local, 'wb') as f:
            f.write(content)
        holes(path, local, content)
        kept(path)
        shared(path, local, content)
        what_fails(path, local)
    print(f'{editing.checks} checks')


if __name__ == '__main__':
    sys.exit(main())
