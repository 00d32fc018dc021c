#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""inode-resolve with lost leaves: paths are found by the entries of directories, what is missing is said, and the exit
status is 1.

BTRKIT is the program under test.
"""
import re
import subprocess
import tempfile

from tool import BTRKIT, run

LINKS, DIRS = 1600, 400


def edit(path, script):
    subprocess.run([BTRKIT, 'edit', path], input='\n'.join(script).encode(), check=True)


def make(path):
    """A file with many names, and files each of which has two names, the second in a directory that no other has."""
    with open(path, 'wb') as f:
        f.truncate(128 << 20)
    assert run('mkfs', '-q', '-m', 'single', path)[0] == 0
    script = ['mkdir d', 'mknod f p']
    for k in range(LINKS):
        script.append(f'ln f d/link-{k:04}')
    script += [f'mknod file-{k:03} p' for k in range(DIRS)]
    script += [f'mkdir dir-{k:03}' for k in range(DIRS)] + [f'mkdir dir-{k:03}/below' for k in range(DIRS)]
    script += [f'ln file-{k:03} dir-{k:03}/below/name-{k:03}' for k in range(DIRS)]
    edit(path, script)


def leaves(path):
    return re.split(r'(?m)^leaf (?=\d+ items)', run('dump-tree', '-t', '5', path)[1].decode())[1:]


def lose(path, leaf):
    place = re.search(rb'physical (\d+)', run('map-logical', path, leaf.split()[0])[1])
    with open(path, 'r+b') as f:
        f.seek(int(place[1]) + 4000)
        f.write(b'damage')


def copy(path, to):
    subprocess.run(['cp', '--sparse=always', path, to], check=True)
    return to


def number(path, name):
    return re.match(r'\s*(\d+)', run('ls', '-di', path, name)[1].decode())[1]


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


def main():
    with tempfile.TemporaryDirectory() as scratch:
        whole = f'{scratch}/whole.img'
        make(whole)
        lost_references(whole, f'{scratch}/references.img')
        lost_directories(whole, f'{scratch}/directories.img')


if __name__ == '__main__':
    main()
