#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""check: every option and exit status; the findings on each committed image, as text and as JSON that follows the
schema; the same results with any number of threads and with tables in a file. BTRKIT is the program under test."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tool
from tool import BTRKIT, check_failure, run, watched

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGES = os.path.join(HERE, '..', '..', 'images')
import damages
import unpack
from schema import Planter

checks = 0

# The codes that damaged images must report, and no others.
DAMAGED = {
    'bad-bytenr': {'BTR-BLOCK-HEADER'},
    'bad-checksum': {'BTR-BLOCK-CSUM'},
    'bad-chunk-stripes': {'BTR-ITEM-INVALID'},
    'bad-compressed-nothing': {'BTR-FILE-EXTENT'},
    'bad-dir-name': {'BTR-ITEM-INVALID'},
    'bad-empty-name': {'BTR-ITEM-INVALID'},
    'bad-extent-type': {'BTR-ITEM-INVALID'},
    'bad-fsid': {'BTR-BLOCK-HEADER'},
    'bad-generation': {'BTR-BLOCK-HEADER'},
    'bad-inline-ref': {'BTR-ITEM-INVALID'},
    'bad-item-count': {'BTR-BLOCK-ORDER'},
    'bad-item-past-leaf': {'BTR-BLOCK-ORDER'},
    'bad-item-size': {'BTR-BLOCK-ORDER'},
    'bad-key-order': {'BTR-BLOCK-ORDER'},
    'bad-last-tree': {'BTR-TREE-MISSING', 'BTR-EXTENT-REF-MISSING', 'BTR-EXTENT-REF-EXTRA', 'BTR-ROOT-UNKNOWN'},
    'bad-level': {'BTR-BLOCK-HEADER'},
    'bad-no-items': {'BTR-BLOCK-PARENT'},
    'bad-node-zero': {'BTR-BLOCK-CSUM'},
    'bad-one-copy': {'BTR-BLOCK-COPY'},
    'bad-owner': {'BTR-BLOCK-HEADER'},
    'bad-pointer-cycle': {'BTR-BLOCK-CYCLE', 'BTR-EXTENT-REF-MISSING'},
    'bad-pointer-far': {'BTR-BLOCK-READ'},
    'bad-pointer-key': {'BTR-BLOCK-PARENT'},
    'bad-pointer-unaligned': {'BTR-BLOCK-ORDER'},
    'bad-root-level': {'BTR-ITEM-INVALID'},
    'bad-super-array-stripes': {'BTR-SYSTEM-CHUNK', 'BTR-BLOCK-READ'},
    'bad-super-primary': {'BTR-SUPER-PRIMARY'},
    'bad-truncated': {'BTR-DEVICE-SIZE', 'BTR-BLOCK-READ'},
}
# Images without a usable superblock.
UNUSABLE = {
    'bad-super-all': 'superblock checksum mismatch',
    'bad-super-array-size': 'system chunk array',
    'bad-super-nodesize': 'nodesize 12345',
    'bad-super-root-level': 'root level 9',
    'unsupported-extent-tree-v2': 'not supported: extent-tree-v2',
}


def check(condition, what):
    global checks
    assert condition, what
    checks += 1


def fails(*args, device, says, status=8):
    said = check_failure('check', device, run('check', *args), status=status)
    check(says in said, f'{args}: {said!r} lacks {says!r}')


def misused(*args, says):
    fails(*args, device=None, says=says, status=16)


class Schema:
    def __init__(self):
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            tool.skip('needs python3-jsonschema')
        with open(os.path.join(HERE, '..', '..', 'schema', 'check.schema.json'), encoding='ascii') as f:
            self.validator = Draft202012Validator(json.load(f))
        self.planters = {}

    def lines(self, out):
        values = [json.loads(line) for line in out.decode('utf-8', 'surrogateescape').splitlines()]
        for value in values:
            error = next(self.validator.iter_errors(value), None)
            check(not error, f'{value}: {error and error.message[:300]}')
            self.planters.setdefault(value.get('kind'), Planter()).take(value)
        check(values[0] == {'__header': {'version': 1, 'command': 'check'}}, values[0])
        return values[1:]

    def planted(self):
        """Plant surplus, missing and mistyped members at any depth; the schema must reject each."""
        found = 0
        for planter in self.planters.values():
            for what, bad in planter.wrong():
                check(not self.validator.is_valid(bad), f'{what}: {bad} is valid')
                found += 1
        return found


def told(schema, *args, codes):
    """Run check with --json and compare with its text output. Returns (status, findings, more, summary)."""
    status, out, err = run('check', '--json', *args)
    check(status in (0, 4), (args, status, err))
    *rows, summary = schema.lines(out)
    rows = [row for row in rows if row['kind'] != 'fold']
    check(summary['kind'] == 'summary' and all(row['kind'] in ('finding', 'more') for row in rows), rows)
    counts = collections.Counter()
    for row in rows:
        check(codes[row['code']] == row['severity'], row)
        counts[row['severity']] += row['times'] if row['kind'] == 'more' else 1
    check(all(counts[name] == summary[name] for name in ('refused', 'misbehaves', 'leftover')), (counts, summary))
    check(status == (4 if summary['refused'] or summary['misbehaves'] else 0), (args, status, summary))
    places = [list(codes).index(row['code']) for row in rows]
    check(places == sorted(places), 'the order of codes')
    # With a number of repeats, text has the single findings, too.
    text_status, text, _ = run('check', '--repeats', '32', *args)
    lines = text.decode(errors='surrogateescape').splitlines()
    check(text_status == status and len(lines) == len(rows) + 1, (args, lines))
    for line, row in zip(lines, rows):
        check(line.startswith(f"{row['code']} {row['severity']}: ") and
              (row['kind'] == 'more' or row['message'].split('\\')[0][:20] in line), (line, row))
    check(lines[-1].startswith(f"checked {summary['blocks']} tree blocks, {summary['extents']} data"), lines[-1])
    check(('no errors' in lines[-1]) == (status == 0), lines[-1])
    return status, [row for row in rows if row['kind'] == 'finding'], summary


def options(image):
    misused(says='too few arguments')
    misused('--list-codes', image, says='too many arguments')
    misused('--format', 'xml', image, says="'xml' is unknown")
    misused('--nonsense', image, says="unknown option '--nonsense'")
    misused('-q', image, says="unknown option '-q'")
    misused('--data=1', image, says='takes no argument')
    misused('--super', '3', image, says='must be 0, 1 or 2')
    misused('--backup', '4', image, says='must be from 0 to 3')
    for option, most in (('--threads', 1024), ('--repeats', 65536)):
        for bad in ('0', str(most + 1), '-1', 'x', ''):
            misused(option, bad, image, says=option)
        check(run('check', option, most, image)[0] == 0, option)
    for bad in ('0', 'x', '1y'):
        misused('--memory', bad, image, says='--memory')
    misused('--spill', '/tmp', image, says='--spill requires --memory')
    misused('--memory', '1m', '--spill', '', image, says='empty')
    status, out, err = run('check', '--help')
    check(status == 0 and not err and b'Usage: btrkit check [OPTION]... DEV...' in out, err)


def list_codes(schema):
    """Return all codes with their severities."""
    status, text, err = run('check', '--list-codes')
    check(status == 0 and not err, err)
    rows = schema.lines(run('check', '--list-codes', '--format', 'json')[1])
    check([f"{row['code']} {row['severity']}: {row['meaning']}" for row in rows] == text.decode().splitlines(), text)
    codes = {row['code']: row['severity'] for row in rows}
    check(len(codes) == len(rows) > 10, 'a code is there twice')
    check(all(not row['meaning'].endswith('.') for row in rows), 'meanings are no sentences')
    return codes


def refused(folder, image):
    def make(name, data=b'', size=0):
        path = os.path.join(folder, name)
        with open(path, 'wb') as f:
            f.write(data)
            f.truncate(max(size, len(data)))
        return path

    for path in (make('empty'), make('zeros', size=1 << 20), make('short', size=65536 + 4095), folder):
        fails(path, device=path, says='not a btrfs filesystem')
    fails('/no/such/file', device='/no/such/file', says='No such file')
    fails('/dev/null', device='/dev/null', says='neither a block device nor a regular file')
    fails(image, image, device=image, says='given twice')
    fails('--super', '2', image, device=image, says='past the end of the device')
    with open('/dev/full', 'wb') as full:
        for args in ([image], ['--list-codes'], ['--help']):
            done = subprocess.run([BTRKIT, 'check', *args], stdout=full, stderr=subprocess.PIPE, check=False)
            check(done.returncode == 8 and
                  done.stderr == b'btrkit check: standard output: No space left on device\n', done)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([BTRKIT, 'check', image], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    check(done.returncode == 8 and not done.stderr, done)
    fails('--memory', '1', image, device=image, says='no directory to spill to')
    fails('--memory', '1', '--spill', '/no/such/folder', image, device=image, says='No such file')


def starts(image):
    """Check from other copies of the superblock, and with the addresses of the roots given as options."""
    shown = run('dump-super', image)[1].decode()
    root, chunk_root = (line.split()[1] for name in ('root', 'chunk_root') for line in shown.splitlines()
                        if line.startswith(f'{name}\t'))
    for args in (['--super', '1'], ['-s', '0'], ['--tree-root', root], ['--chunk-root', chunk_root], ['--noscan'],
                 ['--force'], ['--data']):
        status, out, err = run('check', *args, image)
        check(status == 0 and not err and b'no errors' in out, (args, out, err))
    status, out, err = run('check', f'{image}?offset=0')
    check(status == 0 and b'no errors' in out, (out, err))


def lost_roots(folder, image):
    """A superblock with bad addresses does not matter if the roots are given by address or come from a backup."""
    path = os.path.join(folder, 'lost.img')
    shown = re.findall(r'backup_tree_root:\t(\d+)', run('dump-super', '-f', image)[1].decode())
    for offset, option in ((80, '--tree-root'), (88, '--chunk-root')):
        shutil.copyfile(image, path)
        lost = tool.Super(path)
        root = lost.get(offset)
        slot = shown.index(str(lost.get(80)))
        lost.put(offset, root + (1 << 20))
        lost.write()
        for args, wanted in (([], {'BTR-BLOCK-CSUM'}), ([option, root], set()), (['--backup', slot], set())):
            status, out, err = run('check', *args, path)
            found = {line.split()[0] for line in out.decode().splitlines()[:-1]}
            check(status == 4 and not err and found & {'BTR-BLOCK-CSUM'} == wanted and 'BTR-SUPER-COPY' in found,
                  (args, out, err))
    os.unlink(path)


def progress(image):
    for args, wanted in ((['-p'], True), (['--progress', '--data'], True), ([], False)):
        status, out, said = watched('check', *args, image)
        check(status == 0 and b'no errors' in out and ('checking: ' in said and ' %' in said) == wanted, (args, said))
    status, out, err = run('check', '-p', image)
    check(status == 0 and not err, 'progress where there is no terminal')
    status, out, said = watched('check', '-p', image, number=signal.SIGINT)
    check(status == 32 and not out and said.endswith('interrupted\r\n'), (status, out, said))


def threads(image):
    """The number of threads is as asked for if there is enough work (here for two); one thread waits for nobody."""
    of_sanitizer = int('TSAN_OPTIONS' in os.environ)

    def count(pid, wanted):
        end = time.monotonic() + (10 if wanted > 1 else 0.3)
        while (found := len(os.listdir(f'/proc/{pid}/task'))) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        check(wanted <= found <= wanted + of_sanitizer * (wanted > 1), f'{found} threads, not {wanted}')

    for n in 1, 2:
        watched('check', '-p', '--threads', str(n), image, number=signal.SIGINT, held=lambda pid, n=n: count(pid, n))


def several(folder):
    """A filesystem on two devices, complete and with one missing."""
    if not shutil.which(tool.MKFS):
        return
    paths = [os.path.join(folder, f'several-{i}') for i in range(2)]
    for path in paths:
        with open(path, 'wb') as f:
            f.truncate(128 << 20)
    done = subprocess.run([tool.MKFS, '-q', '-f', '-d', 'raid1', '-m', 'raid1', *paths], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        return
    for args in (paths, ['--device', paths[1], paths[0]], ['--data', paths[1], '--noscan', paths[0]]):
        status, out, err = run('check', *args)
        check(status == 0 and not err and b'no errors' in out, (args, out, err))
    status, out, err = run('check', '--noscan', paths[0])
    check(status == 4 and b'missing' in out, (out, err))


def compressed(folder, schema, codes):
    """Damage in one copy of compressed data is a single finding, whether or not the other copy is good."""
    source, image = os.path.join(folder, 'source'), os.path.join(folder, 'compressed.img')
    os.mkdir(source)
    with open(os.path.join(source, 'file'), 'wb') as f:
        f.write(b'abcd' * 16384)
    check(run('mkfs', '-q', '-d', 'dup', '--compress', 'zlib', '--rootdir', source, image)[0] == 0, 'mkfs')

    def rows(*args):
        return [json.loads(line) for line in run(*args)[1].splitlines()[1:]]

    extent, = rows('fiemap', '--format', 'json', image, 'file')
    copies = rows('map-logical', '--format', 'json', image, str(extent['physical']))
    check(len(copies) == 2, copies)
    for copy, code in zip(copies, ('BTR-DATA-COPY', 'BTR-DATA-CSUM')):
        with open(image, 'r+b') as f:
            f.seek(copy['physical'])
            f.write(bytes(64))
        status, found, _ = told(schema, '--data', image, codes=codes)
        check(status == 4 and {row['code'] for row in found} == {code}, (code, found))
        check(told(schema, image, codes=codes)[0] == 0, 'data was read')


def same(schema, image, codes):
    """The findings depend neither on the number of threads nor on where tables are kept."""
    def shown(*args):
        status, out, err = run('check', '--json', '--data', *args, image)
        *rows, summary = schema.lines(out)
        del summary['table_bytes']
        return status, rows, summary, err

    one = shown('--threads', '1')
    for args in (['--threads', '2'], ['--threads', '8'], ['--threads', '8', '--memory', '4k', '--spill', '/tmp']):
        check(shown(*args) == one, (image, args))


def folded(schema, image, codes):
    """Findings beyond --repeats are only counted, and the reported ones are the first. Here no file has checksums."""
    fs = damages.Filesystem(image)
    leaf = fs.root(7)
    block = fs.block(leaf)
    block[96:100] = bytes(4)
    fs.put(leaf, block)
    fs.save()
    _, rows, all_of_it = told(schema, '--repeats', '65536', image, codes=codes)
    for repeats in (1, 2):
        _, some, summary = told(schema, '--repeats', repeats, image, codes=codes)
        wanted = [row for i, row in enumerate(rows)
                  if sum(r['code'] == row['code'] for r in rows[:i]) < repeats]
        check(some == wanted and summary == all_of_it, (image, repeats))
    check(len(rows) > 3 + len({row['code'] for row in rows}), 'nothing was folded')
    same(schema, image, codes)


def images(schema, folder, codes):
    names = sorted(name.removesuffix('.img') for name in unpack.sums() if name.endswith('.img'))
    wrong = []
    for name in names:
        image = unpack.unpack(name, folder, quick=True)
        if name in UNUSABLE:
            fails(image, device=image, says=UNUSABLE[name])
            os.unlink(image)
            continue
        with_data = name != 'good-single'
        if name == 'unsupported-raid-stripe-tree':
            fails('--data', image, device=image, says='checking file data is not supported: raid-stripe-tree')
            with_data = False
        status, rows, _ = told(schema, *(['--data'] if with_data else []), image, codes=codes)
        found = {row['code'] for row in rows}
        if name.startswith('bad-') or name in ('good-clones', 'good-quota', 'good-levels'):
            same(schema, image, codes)
        wanted = DAMAGED.get(name, set())
        if status != (4 if wanted else 0) or found != wanted:
            wrong.append((name, status, sorted(found)))
        os.unlink(image)
    check(not wrong, '\n'.join(map(str, wrong)))


def main():
    schema = Schema()
    codes = list_codes(schema)
    with tempfile.TemporaryDirectory(prefix='btrkit-check-') as folder:
        image = unpack.unpack('good-default', folder, quick=True)
        before = tool.digest(image)
        compressed(folder, schema, codes)
        options(image)
        refused(folder, image)
        starts(image)
        lost_roots(folder, image)
        progress(image)
        threads(image)
        several(folder)
        check(tool.digest(image) == before, 'the image was changed')
        folded(schema, image, codes)
        images(schema, folder, codes)
    check(schema.planted() > 100, 'few defects were planted')
    print(f'{checks} checks, {len(codes)} codes')
    return 0


if __name__ == '__main__':
    sys.exit(main())
