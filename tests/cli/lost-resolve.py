#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""inode-resolve and logical-resolve with lost leaves: paths are found by the entries of directories, files by the
extent tree, what is missing is said, and the exit status is 1.

BTRKIT is the program under test.
"""
import json
import os
import re
import tempfile

from lost_leaves import copy, edit, leaves, lose, number
from tool import run

LINKS, DIRS, EXTENTS = 1600, 400, 2000


def make(path):
    """A file with many names, and files each of which has two names, the second in a directory that no other has."""
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    with open(f'{path}.host', 'wb') as f:
        f.write(b'inline')
    assert run('mkfs', '-q', '-m', 'single', path)[0] == 0
    script = ['mkdir d', 'mknod f p']
    for k in range(LINKS):
        script.append(f'ln f d/link-{k:04}')
    script += [f'put {path}.host file-{k:03}' for k in range(DIRS)]
    script += [f'mkdir dir-{k:03}' for k in range(DIRS)] + [f'mkdir dir-{k:03}/below' for k in range(DIRS)]
    script += [f'ln file-{k:03} dir-{k:03}/below/name-{k:03}' for k in range(DIRS)]
    edit(path, script)


def with_only(path, *kinds):
    """The leaves that have only items of these types."""
    return [leaf for leaf in leaves(path)
            if sum(leaf.count(f' {kind} ') for kind in kinds) == leaf.count('\titem ')]


def names(leaf):
    return set(re.findall(r'name: (\S+)', leaf))


def lost_references(whole, path):
    """Of a file with many names, leaves of references are lost, then also one of DIR_ITEM, then one of DIR_INDEX."""
    copy(whole, path)
    inode = number(path, 'f')
    status, out, err = run('inode-resolve', path, inode)
    wanted = {'f'} | {f'd/link-{k:04}' for k in range(LINKS)}
    assert (status, err) == (0, '') and set(out.decode().split()) == wanted, err
    lost = with_only(path, 'INODE_EXTREF')
    assert len(lost) > 1, len(lost)
    gone = set().union(*map(names, lost[:2]))
    for leaf in lost[:2]:
        lose(path, leaf)

    def check(names_found, says):
        status, out, err = run('inode-resolve', path, inode)
        assert status == 1 and len(out.split()) == len(wanted) - len(gone) + names_found, (status, err)
        assert len(set(out.split())) == len(out.split()) and set(out.decode().split()) <= wanted
        assert err.count('\n') == 3 and err.count(f'; references of inode {inode} are missing') == 2, err
        assert err.endswith(f'of inode {inode}, {names_found} names without reference were found by DIR_ITEM or '
                            f'DIR_INDEX; {says}, tree 5\n'), err
        form = run('inode-resolve', '--format=json', path, inode)
        assert form[0] == 1 and form[1].count(b'"path"') == len(out.split()) and form[2] == err
    check(len(gone), 'none is missing')
    by_item = max(with_only(path, 'DIR_ITEM'), key=lambda leaf: len(names(leaf) & gone))
    lose(path, by_item)
    assert names(by_item) & gone
    check(len(gone), 'none is missing')
    by_index = max(with_only(path, 'DIR_INDEX'), key=lambda leaf: len(names(leaf) & gone & names(by_item)))
    lose(path, by_index)
    missing = len(names(by_index) & names(by_item) & gone)
    assert missing
    check(len(gone) - missing, f'{missing} are still missing')


def listed_files(path, gone):
    """fiemap -a lists the files below lost directories, with their paths; without, if no entry leads to them."""
    def listed():
        status, out, err = run('fiemap', '-a', '--format=json', other)
        return status, [json.loads(line)['path'] for line in out.splitlines()[1:]], err
    other = copy(path, f'{path}.other')
    edit(other, [f'rm file-{k:03}' for k in range(DIRS)])
    wanted = sorted(f'dir-{k:03}/below/name-{k:03}' for k in range(DIRS))
    status, found, err = listed()
    assert status == 1 and sorted(found) == wanted and err.count('\n') == 1, (len(found), err)
    entries = with_only(other, 'DIR_ITEM', 'DIR_INDEX')
    for leaf in entries:
        lose(other, leaf)
    status, found, err = listed()
    nameless = len(found) - len(set(found) & set(wanted))
    assert status == 1 and len(found) == DIRS and found.count('') == nameless and 0 < nameless <= len(gone), nameless
    status, _, err = run('fiemap', '-av', other)
    assert status == 1 and len(re.findall(r'; the path of inode \d+ is not known', err)) == nameless, err


def lost_directories(whole, path):
    """References of directories on the way to the root are lost, then the inode of a file, too."""
    copy(whole, path)
    files = {k: number(path, f'file-{k:03}') for k in range(DIRS)}
    tops = {number(path, f'dir-{k:03}'): k for k in range(DIRS)}
    dirs = {number(path, f'dir-{k:03}/below'): k for k in range(DIRS)} | tops
    lost = max(leaves(path), key=lambda leaf: sum(inode in tops for inode in re.findall(
        r'key \((\d+) INODE_REF', leaf)))
    gone = {dirs[inode] for inode in re.findall(r'key \((\d+) INODE_REF', lost) if inode in dirs}
    lose(path, lost)
    for k in sorted(gone)[::7]:
        assert run('inode-resolve', path, files[k]) == (
            0, f'file-{k:03}\ndir-{k:03}/below/name-{k:03}\n'.encode(), ''), k
    listed_files(path, gone)
    # The names of the lost directories themselves.
    inside = [inode for inode in re.findall(r'key \((\d+) INODE_REF', lost) if inode in dirs][1:-1]
    status, out, err = run('inode-resolve', path, inside[5])
    k = dirs[inside[5]]
    assert status == 1 and out.decode().strip() in (f'dir-{k:03}', f'dir-{k:03}/below'), (out, err)
    assert f'; inode {inside[5]} is missing' in err and err.endswith('; how many are missing is unknown, tree 5\n'), err
    # Of others, nothing is read that is not needed.
    status, out, err = run('inode-resolve', path, '99999')
    assert status == 1 and not out and 'no inode 99999 in subvolume 5' in err, err
    # The entries of one are lost, too.
    entries = with_only(path, 'DIR_ITEM', 'DIR_INDEX')
    for leaf in entries:
        lose(path, leaf)
    items = [item for leaf in entries for item in leaf.split('\titem ')[1:]]
    item, index = (names(''.join(one for one in items if f' {kind} ' in one)) for kind in ('DIR_ITEM', 'DIR_INDEX'))
    both = [k for k in gone & {tops.get(inode) for inode in inside} if f'dir-{k:03}' in item & index]
    assert both, len(entries)
    status, out, err = run('inode-resolve', path, files[both[0]])
    assert status == 1 and out.decode() == f'file-{both[0]:03}\n', (out, err)
    assert re.search(rf'; a path of inode {files[both[0]]}, through directory \d+, is missing, tree 5', err), err


def resolved(path, *args):
    """The references to an address, their number of paths, and the standard error."""
    status, out, err = run('logical-resolve', '--format=json', *args[:-1], path, str(args[-1]))
    rows = [json.loads(line) for line in out.splitlines()[1:]]
    assert status == bool(err), (status, err)
    return [(row['root'], row.get('path', ''), row['offset'], row['length'], row['extent_offset']) for row in rows], err


def lost_extents(scratch):
    """A leaf of extents is lost that a snapshot shares. Others refer to the same extents: a clone, and the clone in the
    snapshot, which has been changed since."""
    path, folder = f'{scratch}/extents.img', f'{scratch}/folder'
    os.mkdir(folder)
    with open(f'{folder}/sparse', 'wb') as f:
        for k in range(EXTENTS):
            f.seek(2 * k * 4096)
            f.write(b'%04d;' % k * 800)
    with open(path, 'wb') as f:
        f.truncate(200 << 20)
    assert run('mkfs', '-q', '--free', '64m', '--rootdir', folder, path)[0] == 0
    edit(path, ['clone sparse copy', 'subvolume snapshot 5 snap'])
    with open(f'{scratch}/changed', 'wb') as f:
        f.write(b'changed' * 1000)
    edit(path, [f'write copy {8192 * 7} {scratch}/changed'])
    inode = number(path, 'sparse')
    rows = [json.loads(line) for line in run('fiemap', '--format=json', path, 'sparse')[1].splitlines()[1:]]
    found = {row['logical']: row['physical'] for row in rows}
    mine = [leaf for leaf in with_only(path, 'EXTENT_DATA')
            if set(re.findall(r'key \((\d+) EXTENT_DATA', leaf)) == {inode}]
    # The block of the clone's first extents is not shared with the snapshot any more.
    leaf = mine[len(mine) // 2]
    lost = [int(offset) for offset in re.findall(r'EXTENT_DATA (\d+)\)', leaf)]
    lost = [offset for offset in lost if offset in found]
    outside = [offset for offset in found if offset not in lost]
    before = {offset: resolved(path, found[offset] + 5) for offset in lost[::40] + outside[::300]}
    whole = {offset: resolved(path, '-o', '-P', found[offset]) for offset in lost[::40]}
    places = re.findall(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        for place in places:
            f.seek(int(place) + 4000)
            f.write(b'damage')
    for offset, (wanted, err) in before.items():
        now = resolved(path, found[offset] + 5)
        assert not err and len(wanted) > 3, (wanted, err)
        if offset in outside:
            assert now == (wanted, ''), (offset, wanted, now)
            continue
        unknown = [row for row in now[0] if not row[3]]
        assert {row[1] for row in unknown} == {'sparse', 'snap/sparse'}, now
        assert sorted(row[:3] for row in wanted) == sorted(row[:3] for row in now[0]), (wanted, now)
        assert set(wanted) - set(now[0]) == {row for row in wanted if row[1] in ('sparse', 'snap/sparse')}, now
        assert f'; inode {inode} of subvolume 5 refers to the extent, but which of its bytes do is not known' in now[1]
        assert now[1].count('\n') == 1, now[1]
        text = run('logical-resolve', path, str(found[offset] + 5))
        assert sorted(text[1].decode().split()) == sorted(row[1] for row in wanted) and text[::2] == (1, now[1]), text
        now = resolved(path, '-o', '-P', found[offset])
        assert [row[:3] for row in now[0]] == [row[:3] for row in whole[offset][0]], (now, whole[offset])
    # The tree itself is lost.
    root = re.search(r'(?m)^(?:node|leaf) (\d+)', run('dump-tree', '-t', '5', path)[1].decode())[1]
    for place in re.findall(rb'physical (\d+)', run('map-logical', path, root)[1]):
        with open(path, 'r+b') as f:
            f.seek(int(place) + 4000)
            f.write(b'damage')
    rows, err = resolved(path, '-P', found[outside[0]])
    assert any(row[0] == 5 for row in rows) and any(row[0] != 5 for row in rows), (rows, err)
    # Nothing is known without the extent tree, and that is said.
    status, out, err = run('logical-resolve', path, str(found[lost[0]] + (1 << 40)))
    assert status == 1 and not out and 'nothing is allocated' in err, err


def lost_back_references(scratch):
    """A leaf of the extent tree is lost that has only references to one extent."""
    path, host, count = f'{scratch}/backrefs.img', f'{scratch}/host', 900
    with open(host, 'wb') as f:
        f.write(b'text' * 5000)
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '-m', 'single', path)[0] == 0
    edit(path, [f'put {host} one'] + [f'clone one copy-{k}' for k in range(count - 1)])
    address = json.loads(run('fiemap', '--format=json', path, 'one')[1].splitlines()[1])['physical']
    before = resolved(path, address)
    assert len(before[0]) == count and not before[1], before[1]
    texts = re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '2', path)[1].decode())[1:]
    leaf = next(leaf for leaf in texts if leaf.count(f'({address} EXTENT_DATA_REF ') == leaf.count('\titem '))
    lose(path, leaf)
    rows, err = resolved(path, address)
    known = count - leaf.count('\titem ')
    assert f'; of {count} references to the extent, {known} are known, ' in err and err.count('\n') == 1, err
    assert known and len(rows) == known and set(rows) < set(before[0]), len(rows)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        whole = f'{scratch}/whole.img'
        make(whole)
        lost_references(whole, f'{scratch}/references.img')
        lost_directories(whole, f'{scratch}/directories.img')
        lost_extents(scratch)
        lost_back_references(scratch)


if __name__ == '__main__':
    main()
