#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A directory of which one leaf is lost, of DIR_INDEX or of DIR_ITEM items: whoever reads finds names by the other kind
of item; edit refuses what needs the lost leaf, names the damage and the next step, and changes nothing."""
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from lost_leaves import leaves, lose
from tool import BTRKIT, digest, run

NAMES = 2000
STEP = 'btrkit check lists all damage'


def lose_one(path, kind, place=0.5):
    """Damage one of the leaves that have only items of this kind, by default the middle one, and return its dump."""
    inner = [leaf for leaf in leaves(path) if leaf.count(f' {kind} ') == leaf.count('\titem ')]
    assert len(inner) > 2, len(inner)
    leaf = inner[int(len(inner) * place)]
    lose(path, leaf)
    return leaf


def make(scratch):
    """Return the filesystem, and for each kind of item one where a leaf of these is lost, with the names in it."""
    whole, folder = f'{scratch}/whole.img', f'{scratch}/folder'
    os.makedirs(f'{folder}/d')
    for k in range(NAMES):
        with open(f'{folder}/d/name-{k:04}', 'wb') as f:
            f.write(b'%d' % k)
    os.mkdir(f'{folder}/e')
    with open(whole, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '-m', 'single', '--rootdir', folder, whole)[0] == 0
    made = {}
    for kind in 'DIR_INDEX', 'DIR_ITEM':
        path = f'{scratch}/{kind}.img'
        subprocess.run(['cp', '--sparse=always', whole, path], check=True)
        made[kind] = path, re.findall(r'name: (name-\d+)', lose_one(path, kind))
    return made


def operations(name, host, folder):
    """Operations with a name that is in the lost leaf: what needs both kinds of items, what only the DIR_ITEM, and what
    would make the name."""
    both = [['rm', name], ['rm', '-r', 'd'], ['rm', '-r', name], ['mv', name, 'x'], ['mv', name, 'd/x'],
            ['mv', name, 'e/x'], ['mv', '-x', name, 'e'], ['put', '-f', host, name], ['put', '-r', '-f', folder, name]]
    item = [['ln', name, 'x'], ['truncate', name, '0'], ['chmod', '600', name], ['chown', '1:1', name],
            ['touch', '@1', name], ['setxattr', 'user.a', '1', name], ['write', name, '0', host],
            ['punch', name, '0', '1'], ['clone', name, 'x'], ['chattr', '+A', name], ['prealloc', name, '0', '4096'],
            ['property', 'set', name, 'compression', 'zstd'], ['setfacl', '-m', 'u:1:rw', name],
            ['rmxattr', 'user.a', name]]
    there = [['put', host, name], ['mkdir', name], ['ln', 'd/name-0000', name], ['ln', '-s', 'to', name],
             ['mv', '-n', 'e', name], ['mkdir', '-p', name], ['mknod', name, 'p'], ['put', '-r', folder, name],
             ['subvolume', 'create', name], ['subvolume', 'snapshot', '5', name]]
    return both, item, there


def edit(scratch, made):
    host, folder = f'{scratch}/host', f'{scratch}/put'
    os.makedirs(f'{folder}/below')
    with open(host, 'wb') as f:
        f.write(b'text')
    for kind, (path, lost) in made.items():
        before = digest(path)

        def refused(words, says, path=path, before=before):
            status, out, err = run('edit', path, *words)
            assert status == 1 and not out and err.count('\n') == 1, (path, words, status, err)
            assert all(word in err for word in says), (path, words, err)
            assert digest(path) == before, (path, words, 'has written')
        name = f'd/{lost[len(lost) // 2]}'
        both, item, there = operations(name, host, folder)
        damage = ['tree block checksum mismatch, tree 5, block ', STEP]
        for words in both:
            refused(words, damage)
        refused(['rmdir', 'd'], ['Directory not empty'])
        # A directory with a lost name cannot tell that a name is free, so nothing is made under it, either.
        for words in there + [['subvolume', 'create', '-p', f'{name}/x']] * (kind == 'DIR_ITEM'):
            refused(words, damage if kind == 'DIR_ITEM' else ['File exists'])
        for words in ['delete', name], ['set-default', name], ['snapshot', name, 'x']:
            refused(['subvolume', *words], damage if kind == 'DIR_ITEM' else [f'{name} is not a subvolume'])
        if kind == 'DIR_ITEM':
            for words in item:
                refused(words, damage)
            item = []
        # Linux needs no DIR_INDEX for the others, and nothing of what a symbolic link leads to.
        for words in item + [['ln', '-s', name, 'x'], ['subvolume', 'sync']]:
            copy = f'{scratch}/copy.img'
            subprocess.run(['cp', '--sparse=always', path, copy], check=True)
            if words[0] == 'rmxattr':
                assert run('edit', copy, 'setxattr', 'user.a', '1', name) == (0, b'', ''), name
            assert run('edit', copy, *words) == (0, b'', ''), words


def paths(scratch, made):
    """stat, cat, fiemap and extract of a path, whichever item is lost."""
    for kind, (path, lost) in made.items():
        for name in lost[0], lost[-1]:
            text = b'%d' % int(name[5:])
            status, out, err = run('stat', path, f'd/{name}')
            assert status == 0 and not err and name.encode() in out, (kind, err)
            assert run('cat', path, f'd/{name}')[:2] == (0, text), (kind, name)
            status, out, err = run('fiemap', path, f'd/{name}')
            assert status == 0 and not err and b'1 extent found' in out, (kind, out, err)
            assert run('ls', path, f'd/{name}') == (0, f'd/{name}\n'.encode(), ''), (kind, name)
            out = f'{scratch}/out'
            os.mkdir(out)
            status, _, err = run('extract', '-C', out, path, f'd/{name}')
            assert status == 0 and not err, (kind, err)
            with open(f'{out}/d/{name}', 'rb') as f:
                assert f.read() == text, (kind, name)
            shutil.rmtree(out)
            status, _, err = run('extract', f'--tar={scratch}/out.tar', path, f'd/{name}')
            assert status == 0 and not err, (kind, err)
            with tarfile.open(f'{scratch}/out.tar') as t:
                assert t.extractfile(f'd/{name}').read() == text
        # What no item has cannot be told from what was lost, unless its hash lies elsewhere.
        status, _, err = run('stat', path, 'd/none')
        assert status == 1 and err.count('\n') == 1, (kind, err)


def links(scratch):
    """Hard links of one file, which have INODE_REF and INODE_EXTREF, and subvolumes among them, which have ROOT_REF."""
    path = f'{scratch}/links.img'
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '-m', 'single', path)[0] == 0
    script, names, subvolumes = ['mkdir d', 'mknod f p'], set(), set()
    for k in range(1600):
        script.append(f'ln f d/link-{k:04}')
        names.add(f'link-{k:04}')
        if not k % 20:
            script += [f'subvolume create d/sub-{k:04}', f'mkdir d/sub-{k:04}/in-{k:04}']
            subvolumes.add(f'sub-{k:04}')
    done = subprocess.run([BTRKIT, 'edit', path], input='\n'.join(script).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    items = run('dump-tree', '-t', '5', path)[1].decode().split('\titem ')
    extended = {name for item in items if ' INODE_EXTREF ' in item.split('\n')[0]
                for name in re.findall(r'name: (link-\d+)', item)}
    lost = re.findall(r'name: (\S+)', lose_one(path, 'DIR_INDEX', place=0.8))
    assert extended & set(lost), 'none with INODE_EXTREF is lost'
    assert subvolumes & set(lost), 'no subvolume is lost'
    name = f'd/{sorted(subvolumes & set(lost))[0]}'
    before = digest(path)
    for words in ['delete', name], ['delete', '-R', name]:
        status, _, err = run('edit', path, 'subvolume', *words)
        assert status == 1 and 'tree block checksum mismatch, tree 5, ' in err and STEP in err, (words, err)
        assert digest(path) == before, words
    for words in (['subvolume', 'snapshot', name, 'x'], ['subvolume', 'snapshot', '-r', name, 'x'],
                  ['subvolume', 'set-default', name], ['property', 'set', name, 'ro', 'true']):
        copy = f'{scratch}/copy.img'
        subprocess.run(['cp', '--sparse=always', path, copy], check=True)
        assert run('edit', copy, *words) == (0, b'', ''), words
    status, out, err = run('ls', path, 'd')
    assert status == 1 and set(out.decode().split()) == names | subvolumes, err
    assert f', {len(lost)} names without index were found by DIR_ITEM; none is missing' in err, err
    assert err.count('\n') == 2, err
    status, out, err = run('ls', '-R', path)
    assert status == 1 and len(set(re.findall(r'(?m)^in-\d+', out.decode()))) == len(subvolumes), err
    # A recovered name of an inode that was copied already is a link to that.
    status, _, err = run('extract', f'--tar={scratch}/links.tar', path)
    assert status == 1 and err.count('\n') == 2, err
    with tarfile.open(f'{scratch}/links.tar') as t:
        kinds = {os.path.basename(m.name): m.type for m in t}
    assert names | subvolumes <= set(kinds), names - set(kinds)
    assert [kinds[name] for name in names].count(tarfile.LNKTYPE) >= len(names) - 1
    assert all(kinds[name] == tarfile.DIRTYPE for name in subvolumes)


def references(scratch, made):
    """With a leaf of inodes and their references lost, too, no item tells the index of some names: these
    are counted."""
    path = f'{scratch}/references.img'
    subprocess.run(['cp', '--sparse=always', made['DIR_INDEX'][0], path], check=True)
    lost = made['DIR_INDEX'][1]
    leaves = re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]
    leaf = next(leaf for leaf in leaves
                if re.search(rf' INODE_REF .*\n.*name: {lost[len(lost) // 2]}\n', leaf))
    gone = set(re.findall(r' INODE_REF .*\n.*name: (name-\d+)\n', leaf))
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')
    both = gone & set(lost)
    assert both, (gone, lost)
    found = (f', {len(lost) - len(both)} names without index were found by DIR_ITEM; names of '
             f'{sum(map(len, both))} bytes are still missing; entries without readable reference: {len(gone)}')
    status, out, err = run('ls', path, 'd')
    assert status == 1 and found in err and len(out.split()) == NAMES - len(both), (found, err)
    status, _, err = run('extract', '--tar=/dev/null', path, 'd')
    assert status == 1 and found in err, (found, err)


def only_references(scratch, made):
    """With a leaf of DIR_INDEX and leaves of DIR_ITEM items lost, names in both are found by INODE_REF or INODE_EXTREF;
    without that of some, too, these are counted."""
    path, other = f'{scratch}/only.img', f'{scratch}/only.links.img'
    subprocess.run(['cp', '--sparse=always', made['DIR_INDEX'][0], path], check=True)
    lost = set(made['DIR_INDEX'][1])
    both = lost & set(re.findall(r'name: (name-\d+)', lose_one(path, 'DIR_ITEM')))
    assert len(both) > 3, both
    found = (f', {len(lost - both)} names without index were found by DIR_ITEM, {len(both)} by INODE_REF; '
             'none is missing')
    status, out, err = run('ls', path, 'd')
    assert status == 1 and found in err and len(out.split()) == NAMES, (found, err)
    status, out, err = run('ls', '-l', path, 'd')
    assert status == 1 and found in err and len(re.findall(rb'(?m)^-rw\S+ 1 ', out)) == NAMES, err
    out = f'{scratch}/out'
    os.mkdir(out)
    status, _, err = run('extract', '-C', out, path)
    assert status == 1 and found in err, err
    for k in range(NAMES):
        with open(f'{out}/d/name-{k:04}', 'rb') as f:
            assert f.read() == b'%d' % k
    shutil.rmtree(out)
    leaves = re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]
    name = min(both)
    leaf = next(leaf for leaf in leaves if re.search(rf' INODE_REF .*\n.*name: {name}\n', leaf))
    gone = both & set(re.findall(r' INODE_REF .*\n.*name: (name-\d+)\n', leaf))
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')
    status, out, err = run('ls', path, 'd')
    assert status == 1 and not gone & set(out.decode().split()), (gone, err)
    assert f'{len(both - gone)} by INODE_REF; names of ' in err or both == gone, err
    subprocess.run(['cp', '--sparse=always', f'{scratch}/links.img', other], check=True)
    status, out, _ = run('ls', other, 'd')
    items = set(re.findall(r'name: (link-\d+)', lose_one(other, 'DIR_ITEM')))
    status, again, err = run('ls', other, 'd')
    assert status == 1 and set(filter(lambda name: b'link' in name, out.split())) <= set(again.split()), err
    by_ref = re.search(r'found by DIR_ITEM, (\d+) by INODE_REF; ', err)
    assert by_ref and 0 < int(by_ref[1]) <= len(items), err


def main():
    with tempfile.TemporaryDirectory() as scratch:
        made = make(scratch)
        edit(scratch, made)
        paths(scratch, made)
        links(scratch)
        references(scratch, made)
        only_references(scratch, made)


if __name__ == '__main__':
    main()
