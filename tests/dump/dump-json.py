#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""dump-tree --format json: every line must follow the schema, and nothing in the text output may be missing.

    dump-json.py ITEM-LINES [--deep]

ITEM-LINES prints items of every type. BTRKIT is the program under test. Exits with 77 if it cannot run.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import agree
from schema import SCHEMA, Validator, Wrong, load, parse

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGES = os.path.join(HERE, '..', '..', 'images')
FIELDS = os.path.join(HERE, '..', '..', 'lib', 'dump', 'dump_fields.py')
import unpack
from tool import BTRKIT, run, thinned

OPTIONS = [['--csum-items', '--csum-headers'], ['--hide-names', '--dfs'], ['-R'], ['-e']]
# Large images, of which the quick test dumps only some trees.
LARGE = ('good-half-dropped.img', 'good-keyed-references.img', 'good-levels.img')
SMALL_TREES = ['-t', 'root', '-t', 'chunk', '-t', 'device', '-t', 'csum', '--csum-headers']
DEEP = '--deep' in sys.argv
# One in so many lines is validated against the complete schema too.
WHOLE = 200


def must_refuse(validator, line, what):
    try:
        validator.check(line)
    except Wrong:
        return
    raise AssertionError(f'{what} was not seen: {line}')


def self_test(validator):
    """The schema must refuse a surplus, missing, duplicate or mistyped member."""
    key = {'objectid': 1, 'type': 60, 'type_name': 'DIR_LOG_ITEM', 'offset': 0}
    good = {'kind': 'item', 'tree': 5, 'bytenr': 0, 'level': 0, 'slot': 0, 'key': key, 'offset': 1, 'size': 8,
            'item': {'end': 5}}
    validator.check(json.dumps(good))
    validator.whole.validate(good)
    for what, bad in (('another member', {**good, 'more': 1}), ('another field', {**good, 'item': {'end': 5, 'x': 1}}),
                      ('no field', {**good, 'item': {}}), ('a string', {**good, 'item': {'end': '5'}}),
                      ('a large number', {**good, 'slot': 1 << 64}), ('a negative one', {**good, 'slot': -1}),
                      ('another kind', {**good, 'kind': 'other'}), ('no key', {**good, 'key': {}})):
        must_refuse(validator, json.dumps(bad), what)
        if validator.whole.is_valid(bad):
            raise AssertionError(f'{what} is valid by the whole schema')
    must_refuse(validator, json.dumps(good)[:-1] + ',"slot":0}', 'a member twice')
    agree.self_test()


def dump(image, *options):
    status, out, err = run('dump-tree', *options, image)
    assert status in (0, 1) and err.count('\n') <= 1 + err.count(': note') + 3, (image, status, err)
    return status, out.decode('utf-8', 'surrogateescape')


def ways(name):
    """Options with which an image is dumped; one combination is enough for most."""
    if name in LARGE:
        return OPTIONS[:1] if DEEP else [SMALL_TREES]
    return OPTIONS if DEEP or name in ('good-generations.img', 'bad-generation.img') else OPTIONS[:1]


def one_image(validator, image, agreed):
    lines = 0
    for options in ways(os.path.basename(image)):
        json_status, out = dump(image, '--format', 'json', *options)
        text_status, text = dump(image, *options)
        assert json_status == text_status, (image, options, json_status, text_status)
        if not out:
            continue
        values = [validator.check(line) for line in out.splitlines()]
        for value in values[::WHOLE]:
            validator.whole.validate(value)
        assert list(values[0]) == ['__header'], out[:200]
        assert all('__header' not in v for v in values[1:])
        lines += len(values)
        if '--hide-names' not in options:
            agreed.compare(text, values, image)
    return lines


def all_lines(schema):
    """The schema for a whole line must list all kinds of lines: this test selects the kind itself, other users rely on
    oneOf."""
    begins, has = {part['$ref'] for part in schema['oneOf']}, {f'#/$defs/lines/{n}' for n in schema['$defs']['lines']}
    assert begins == has, begins ^ has


def same_types(schema):
    """A member must have the same type wherever it occurs; programs that read lines into tables need that."""
    types = {}

    def walk(part, path):
        while '$ref' in part:
            where, part = part['$ref'].split('/')[1:], schema
            for step in where:
                part = part[step]
        kind = part.get('type') or type(part.get('const', part.get('enum', [''])[0])).__name__
        kind = {'int': 'integer', 'str': 'string'}.get(kind, kind)
        if path:
            assert types.setdefault(path, kind) == kind, (path, types[path], kind)
        if 'items' in part:
            walk(part['items'], path + '[]')
        for name, value in part.get('properties', {}).items():
            walk(value, f'{path}.{name}')
    for line in schema['$defs']['lines'].values():
        walk(line, '')
    for item in schema['$defs']['items'].values():
        walk(item, '.item')
    return len(types)


def supers(image):
    """Superblocks: one object for each, with everything that the text says."""
    status, out, _ = run('dump-super', '-f', '-a', '-F', '--format', 'json', image)
    text_status, text, _ = run('dump-super', '-f', '-a', '-F', image)
    assert status == text_status, (image, status, text_status)
    values = [parse(line) for line in out.decode('utf-8', 'surrogateescape').splitlines()]
    texts = text.decode('utf-8', 'surrogateescape').split('superblock: ')[1:]
    assert values[0] == {'__header': {'version': 1, 'command': 'dump-super'}} and len(values) == len(texts) + 1, image
    for value, part in zip(values[1:], texts):
        lines = part.split('\n')
        assert lines[0] == f'bytenr={value["offset"]}, device={value["device"]}', lines[0]
        # Ignore labels of two words, layout words, and what is not text.
        lines = [re.sub(r'\[(match|DON\'T MATCH|2048|4)\]|^(label|magic)\t.*', '', line) for line in lines[2:]]
        said, bits = agree.leaves(value, set()), re.findall(r'^\t\t\t[( ] (\w+) ', '\n'.join(lines), re.M)
        assert set(bits) - {'unknown'} <= said, (image, bits, value)
        lines = [line for line in lines if not re.match(r'\t\t\t[( ] [A-Z]', line)]
        lines = [re.sub(r'\titem \d+ key|\tbackup \d:|crc32c', ' key', line) for line in lines]
        lacks = list(agree.missing(lines, said, False))
        assert not lacks, (image, lacks, value)
    return len(texts)


def items(validator, program):
    lines = 0
    for options in ([], ['hide']):
        out = subprocess.run([program, *options], stdout=subprocess.PIPE, check=True).stdout.decode()
        for number, line in enumerate(out.splitlines()):
            value = validator.check(line)
            lines += 1
            if number % WHOLE == 0:
                validator.whole.validate(value)
    lacking = [name for name in load()['$defs']['items'] if not validator.seen.get('items/' + name)]
    assert not lacking, f'no such items: {lacking}'
    return lines


def cut(value, path):
    """What --fields leaves of a value; None if nothing is left."""
    if isinstance(value, list):
        left = [c for c in (cut(v, path) for v in value) if c is not None]
        return left or None
    if not isinstance(value, dict):
        return None
    name, _, rest = path.partition('.')
    if name not in value or (rest and (left := cut(value[name], rest)) is None):
        return None
    return {name: left if rest else value[name]}


def merge(a, b):
    """Merge two cuts of one line."""
    if isinstance(a, list):
        return [merge(x, y) for x, y in zip(a, b)] if len(a) == len(b) else a
    return {k: merge(a[k], b[k]) if k in a and k in b and isinstance(a[k], (dict, list)) else a.get(k, b.get(k))
            for k in sorted(set(a) | set(b))} if isinstance(a, dict) else a


def fields(image):
    """Compare --fields for each member alone, and for some together, with cuts of the complete output."""
    whole = [json.loads(line) for line in dump(image, '--format', 'json')[1].splitlines()][1:]
    paths = subprocess.run([sys.executable, FIELDS, '/dev/stdout', SCHEMA], stdout=subprocess.PIPE, check=True)
    paths = re.findall(r'"([a-z_.0-9]+)",', paths.stdout.decode())
    chosen, seen = thinned(paths, 8), 0
    for path in chosen:
        out = dump(image, '--format', 'json', '--fields', path)[1].splitlines()[1:]
        want = [c for c in (cut(v, path) for v in whole) if c is not None]
        assert [json.loads(line) for line in out] == want, (path, out[:2], want[:2])
        seen += bool(want)
    for several in (['kind', 'key.objectid', 'item.size'], ['item.names.name', 'item.names.index', 'slot'],
                    ['key', 'key.type'], ['key.type', 'key'], ['item.atime.sec', 'item.atime', 'kind', 'kind']):
        out = dump(image, '--format', 'json', '--fields', ','.join(several))[1].splitlines()[1:]
        want = []
        for value in whole:
            cuts = [c for c in (cut(value, path) for path in several) if c is not None]
            if cuts:
                want.append(functools.reduce(merge, sorted(cuts, key=lambda c: -len(json.dumps(c)))))
        assert [json.loads(line) for line in out] == want, (several, out[:2], want[:2])
    for bad in ('', 'kind,', 'item.none', 'Kind', 'kind.x', 'item.', 'key..type', '__header'):
        status, out, err = run('dump-tree', '--format', 'json', '--fields', bad, image)
        assert status == 2 and not out and err.count('\n') == 1, (bad, status, out, err)
    status, out, err = run('dump-tree', '--fields', 'kind', image)
    assert status == 2 and not out and 'json' in err, (status, err)
    assert len(paths) > 200 and seen * 2 > len(chosen), (len(paths), seen)
    return len(paths)


def jq(image):
    """Run the examples of the manual page."""
    if not shutil.which('jq'):
        print('no jq here')
        return 0
    with open(os.path.join(HERE, '..', '..', 'man', 'btrkit-dump-tree.8.scd'), encoding='utf-8') as f:
        page = f.read()
    examples = re.findall(r'^\t(btrkit dump-tree .* disk.img \| jq .*)$', page, re.M)
    for example in examples:
        command = example.replace('\\', '').replace('btrkit ', BTRKIT + ' ', 1).replace('disk.img', image)
        done = subprocess.run(['bash', '-o', 'pipefail', '-c', command], stdout=subprocess.PIPE, check=False)
        assert done.returncode == 0 and done.stdout, f'{command}: {done}'
        if 'uniq -c' in example:
            items = dump(image, '--format', 'json')[1].count('"kind":"item"')
            assert sum(int(line.split()[0]) for line in done.stdout.splitlines()) == items, (image, done.stdout, items)
    assert len(examples) >= 3, examples
    return len(examples)


def main():
    validator, agreed = Validator(), agree.Agreement()
    self_test(validator)
    all_lines(validator.schema)
    assert same_types(validator.schema) > 250
    of_items = items(validator, sys.argv[1])
    lines = images = examples = members = blocks = 0
    names = sorted(n[:-7] for n in os.listdir(IMAGES) if n.endswith('.tar.xz'))
    with tempfile.TemporaryDirectory(prefix='btrkit-json-') as scratch:
        for name in names:
            unpack.unpack(name, scratch, quick=True)
            got = one_image(validator, f'{scratch}/{name}.img', agreed)
            lines += got
            blocks += supers(f'{scratch}/{name}.img')
            images += bool(got)
            # Other images contain pointers too whose keys look like those of names.
            examples += jq(f'{scratch}/{name}.img') if name in ('good-default', 'good-hard-links') else 0
            if name == 'good-default':
                members = fields(f'{scratch}/{name}.img')
            os.unlink(f'{scratch}/{name}.img')
    planted = validator.planted()
    print(f'{of_items} items and {lines} lines of {images} of {len(names)} images are valid, {examples} examples of jq '
          f'run, {members} members are chosen; {agreed}, and so do {blocks} '
          f'superblocks; {planted} wrong lines are refused')
    return 0 if blocks > 40 and lines > 10000 and images > 30 and agreed.items > 5000 else 1


if __name__ == '__main__':
    sys.exit(main())
