#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`btrkit edit` on subvolumes, checked by `btrkit dump-tree` and `btrkit ls` without root.
tests/kernel/modify/subvolume-kernel.py compares the results with Linux."""
import os
import re
import sys
import tempfile

import editing
from editing import check, refused, usage, works
from tool import run


def roots(path):
    """Return {id: (parent, name, read-only)} and the default subvolume."""
    code, out, err = run('dump-tree', '-t', 'root', path)
    check(code == 0, err)
    found, read_only, default = {}, {}, None
    for item in out.decode().split('\titem ')[1:]:
        key = re.search(r'key \((\w+) (\w+) (\w+)\)', item).groups()
        if key[1] == 'ROOT_ITEM':
            read_only[key[0]] = 'RDONLY' in item
        elif key[1] == 'ROOT_REF':
            parent = 5 if key[0] == 'FS_TREE' else int(key[0])
            found[int(key[2])] = (parent, re.search(r' name (\S+)', item)[1], key[2])
        elif key[:2] == ('ROOT_TREE_DIR', 'DIR_ITEM'):
            default = re.search(r'location key \((\w+)', item)[1]
    return {k: (parent, name, read_only[k2]) for k, (parent, name, k2) in found.items()}, default


def made_and_changed(path, local):
    works(path, f'subvolume create a\nput {local} a/f\nmkdir a/d\nsubvolume create a/in\n'
                f'subvolume snapshot a w\nsubvolume snapshot -r 256 r\nsubvolume create -p x/y/z 300\n'
                'subvolume set-default a\n'.encode())
    check(roots(path) == ({256: (5, 'a', False), 257: (256, 'in', False), 258: (5, 'w', False),
                           259: (5, 'r', True), 260: (5, 'z', False), 261: (5, '300', False)}, '256'), roots(path))
    for name in ('a/f', 'w/f', 'r/f'):
        check(run('cat', path, name)[1] == b'local\n')
    works(path, b'put %s w/g\nproperty set 258 ro true\nproperty set r ro false\nmkdir r/new\n'
                b'subvolume set-default 5\nproperty set a/f compression zstd\n' % local.encode())
    check(roots(path)[0][258][2] and not roots(path)[0][259][2] and roots(path)[1] == 'FS_TREE', roots(path))
    check('btrfs.compression' in run('dump-tree', '-t', '256', path)[1].decode())
    refused(path, b'mkdir w/new\n', says='Read-only file system', line=1)


def forced(path):
    """With --force-readonly, subvolumes can be changed and stay read-only."""
    works(path, b'mkdir -p w/one/two\nchmod 700 w/g\nrm w/f\n', '--force-readonly')
    check(roots(path)[0][258][2] and b'two' in run('ls', path, 'w/one')[1] and run('cat', path, 'w/f')[0] == 1)
    works(path, b'subvolume create w/three\nsubvolume delete w/three\nproperty set w ro false\n', '--force-readonly')
    check(not roots(path)[0][258][2])
    # Reading from a read-only subvolume does not change it.
    works(path, b'property set w ro true\n')
    works(path, b'clone w/g copy\nsubvolume snapshot w snapshot\n', '--force-readonly')
    check(roots(path)[0][258][2])
    # Several transactions, at the end of which a subvolume has been deleted.
    works(path, b'mkdir w/x\nmkdir w/y\nmkdir w/z\nsubvolume delete w\n', '--force-readonly', '--commit-every', '2')
    check(258 not in roots(path)[0])


def numbers_and_paths(path):
    """A number means a subvolume if there is one with that ID; a path can then be written with a prefix."""
    works(path, b'subvolume create 256\n')
    number = max(roots(path)[0])
    works(path, b'property set 256 ro true\nproperty set ./256 ro true\nproperty set 256 ro false\n')
    check(roots(path)[0][number][2] and not roots(path)[0][256][2])
    works(path, b'subvolume delete ./256 300\n')
    check(261 not in roots(path)[0] and number not in roots(path)[0])
    # With paths relative to another subvolume.
    works(path, b'subvolume create b\nsubvolume delete b\nsubvolume snapshot / c\nsubvolume delete /c\n',
          '--subvol', 'a')


def deleted(path):
    refused(path, b'subvolume delete a\n', says='Directory not empty', line=1)
    works(path, b'subvolume create a/in/deep a/in/deep/er a/in/two\nproperty set a/in/deep ro true\n')
    refused(path, b'subvolume delete -R a\n', says='Read-only file system', line=1)
    works(path, b'subvolume delete -R a\nsubvolume sync\n', '--force-readonly')
    code, out, err = run('dump-tree', '-t', 'root', path)
    check(code == 0 and b'ORPHAN_ITEM' not in out, err)
    check(not {256, 257} & set(roots(path)[0]), roots(path))


def removed(path):
    """rm -r removes subvolumes at any depth, but not from inside read-only ones."""
    before = roots(path)
    works(path, b'mkdir g\nsubvolume create -p g/a/b h\nmv h g/a/b/h\nmkdir -p g/a/b/h/d/e\n'
                b'subvolume snapshot g/a/b g/copy\nproperty set g/a/b/h ro true\n')
    refused(path, b'rm -r g\n', says='Read-only file system', line=1)
    works(path, b'property set g/a/b/h ro false\nrm -r g\n')
    check(roots(path) == before and b'g' not in run('ls', path)[1].split(), roots(path))


def what_fails(path):
    works(path, b'subvolume create s t\nmkdir s/dir\nproperty set t ro true\nsubvolume create def\n'
                b'subvolume set-default def\n')
    for script, says in (
            ('subvolume', "unknown operation 'subvolume'"), ('subvolume frob x', "unknown operation 'subvolume frob'"),
            ('subvolume create', 'subvolume create takes [-p] PATH...'), ('subvolume sync s', 'takes nothing else'),
            ('subvolume create s', 'File exists'), ('subvolume create /', 'File exists'),
            ('subvolume create no/x', 'No such file'), ('subvolume create t/x', 'Read-only'),
            ('subvolume create ' + 'n' * 256, 'File name too long'), ('subvolume create ..', 'File exists'),
            ('subvolume delete s/dir', 'is not a subvolume'), ('subvolume delete absent', 'No such file'),
            ('subvolume delete 999', 'No such file'), ('subvolume delete /', 'top-level'),
            ('subvolume delete 0', 'No such file'), ('subvolume delete 5', 'top-level'),
            ('subvolume delete def', 'not permitted'), ('subvolume delete 99999999999999999999', 'No such file'),
            ('subvolume snapshot s t', 'File exists'), ('subvolume snapshot s t/x', 'Read-only'),
            ('subvolume snapshot s/dir x', 'is not a subvolume'), ('subvolume snapshot no x', 'No such file'),
            ('subvolume snapshot s', 'takes'), ('subvolume set-default s/dir', 'is not a subvolume'),
            ('subvolume set-default 999', 'No such file'), ('property set s ro yes', 'true or false'),
            ('property set s/dir ro true', 'is not a subvolume'), ('property set s label x', 'ro or compression'),
            ('property set s compression best', 'Invalid'), ('property get s ro', "unknown operation 'property get'"),
            ('rm s', 'Is a directory')):
        refused(path, f'mkdir new\n{script}\n'.encode(), says=says, line=2)
    usage(path, 'subvolume', 'create', says='takes [-p] PATH...')
    usage(path, 'subvolume', 'frob', says="unknown operation 'subvolume frob'")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        path, local = editing.make_image(scratch), os.path.join(scratch, 'local')
        with open(local, 'wb') as f:
            f.write(b'local\n')
        made_and_changed(path, local)
        forced(path)
        numbers_and_paths(path)
        deleted(path)
        removed(path)
        what_fails(path)
    print(f'{editing.checks} checks')


if __name__ == '__main__':
    sys.exit(main())
