#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""logical-resolve, inode-resolve, fiemap --owners and --stats on the committed images: they agree with each other and
with the listing; formats and refusals.

    resolve.py IMAGE...

BTRKIT is the program under test.
"""
import json
import sys

from tool import check_failure, run, thinned

ROWS = 30  # maximum number of rows per image that are looked up one by one


def lines(*args):
    status, out, err = run(*args)
    assert (status, err) == (0, ''), (args, status, err)
    return out.decode(errors='surrogateescape').split('\n')[:-1]


def rows(*args):
    header, *found = [json.loads(line) for line in lines(*args)]
    assert header['__header']['version'] == 1, header
    return found


def agree(path):
    """@return the number of compared references"""
    listed = rows('fiemap', '-a', '--owners', '--format', 'json', path)
    columns = [line.split('\t') for line in lines('fiemap', '-a', '--owners', '--format', 'tsv', path)]
    assert [tuple(map(int, row[7:])) if row[7] else () for row in columns] == [
        owner for row in listed
        for owner in ([tuple(ref.values()) for ref in row['owners']] or [()])]
    text = lines('fiemap', '-a', '--owners', path)
    assert sum(line.startswith('\troot ') for line in text) == sum(len(row['owners']) for row in listed)
    compared = 0
    for row in thinned(listed[::len(listed) // ROWS + 1], 5):
        mine = [ref for ref in row['owners'] if (ref['root'], ref['inode']) == (row['root'], row['inode'])]
        assert mine or not row['physical'], row
        if not row['physical']:
            continue
        # The address gives the same references to the whole extent.
        found = rows('logical-resolve', '-P', '-o', '--format', 'json', path, str(row['physical']))
        assert [(r['root'], r['inode'], r['offset']) for r in found] == [tuple(r.values()) for r in row['owners']], row
        here = rows('logical-resolve', '--format', 'json', path, str(row['physical']))
        assert (row['root'], row['inode']) in {(r['root'], r['inode']) for r in here}, (row, here)
        for ref in here:
            if 'path' in ref:
                names = rows('inode-resolve', '--subvol', str(ref['root']), '--format', 'json', path, str(ref['inode']))
                assert ref['path'] in [name['path'] for name in names], (ref, names)
                compared += 1
    assert listed, path
    return compared


def told(err):
    return {name: int(value) for name, value in (line.split('\t') for line in err.splitlines())}


def looked_up(result):
    """The items that the statistics of a run count."""
    assert result[0] == 0, result
    found = told(result[2])
    return found['checked'] + found['saved_by_leaf'] + found['saved_by_batch']


def statistics(path):
    """Each listed extent was looked up, or the lookup was saved."""
    listed = rows('fiemap', '-a', '--owners', '--format', 'json', path)
    one = next(row for row in listed if row['physical'])
    result = run('fiemap', '--stats', '--subvol', str(one['root']), '--format', 'tsv', path, '/' + one['path'])
    assert looked_up(result) == sum(row['physical'] != 0 and (row['root'], row['inode']) == (one['root'], one['inode'])
                                    for row in listed), (one, result)
    plain = lines('fiemap', '-a', '--format', 'tsv', path)
    status, out, err = result = run('fiemap', '-a', '--stats', '--format', 'tsv', path)
    assert (status, out.decode(errors='surrogateescape').split('\n')[:-1]) == (0, plain), (status, err)
    assert looked_up(result) == sum(row['physical'] != 0 for row in listed), err
    found = told(err)
    assert found['rows'] == len(plain) and found['files'] == len({(row['root'], row['inode']) for row in listed}), found
    assert (found['leaves'] > 0) == bool(plain), found
    result = run('fiemap', '--stats', path, 'no such file')
    assert 'no such file' in check_failure('fiemap', path, result), result


def refusals(path):
    result = run('logical-resolve', path, '1')
    assert 'nothing is allocated at 1' in check_failure('logical-resolve', path, result), result
    block = next(int(line.split()[1]) for line in lines('dump-tree', '-t', 'fs', path) if line.startswith('leaf '))
    result = run('logical-resolve', path, str(block))
    assert 'tree block of level 0' in check_failure('logical-resolve', path, result), result
    for command, number in (('logical-resolve', '1'), ('inode-resolve', '123456')):
        check_failure(command, path, run(command, '--format', 'json', path, number))
    result = run('inode-resolve', path, '123456')
    assert '123456' in check_failure('inode-resolve', path, result), result
    result = run('inode-resolve', '--subvol', '999', path, '256')
    assert '999' in check_failure('inode-resolve', path, result), result
    assert lines('inode-resolve', path, '256') == ['']
    for command in ('logical-resolve', 'inode-resolve'):
        for bad in ((), (path,), (path, 'x'), (path, '1', '2'), ('--format=tsv', path, '1'), ('--nothing', path, '1')):
            status, out, err = run(command, *bad)
            assert status == 2 and not out and err.count('\n') == 1, (command, bad, status, out, err)
    # A leading zero does not change the number.
    for padded in '7050', '07050':
        said = check_failure('inode-resolve', path, run('inode-resolve', path, padded))
        assert said.startswith('no inode 7050 '), said
    status, out, err = run('logical-resolve', path, '18446744073709551616')
    assert status == 2 and "'18446744073709551616' is too large" in err, err


def main():
    compared = 0
    for path in sys.argv[1:]:
        compared += agree(path)
        statistics(path)
        refusals(path)
    assert compared > 20, compared
    print(f'compared {compared} paths')


main()
