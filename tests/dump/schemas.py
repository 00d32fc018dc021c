#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What other commands than dump-tree write as JSON Lines, and dump-tree --raw, by the schemas that are installed; a
member too many, one too few, and one of another type are seen in each object of each, at any depth. BTRKIT is
the program under test."""
import json
import os
import re
import sys
import tempfile

import schema

HERE = os.path.dirname(os.path.realpath(__file__))
IMAGES = os.path.join(HERE, '..', '..', 'images')
sys.path[:0] = [IMAGES, os.path.join(HERE, '..', 'cli')]
import unpack  # noqa: E402
from tool import run  # noqa: E402

NAMES = ('good-default', 'good-half-dropped', 'good-levels', 'good-log-tree', 'good-mixed', 'bad-item-past-leaf',
         'bad-item-size', 'bad-dir-name', 'bad-super-array-stripes', 'bad-node-zero', 'good-metadata-uuid',
         'unsupported-extent-tree-v2')
COMMANDS = ('diff', 'dump-raw', 'dump-super', 'list-subvolumes', 'tree-stats')


class Judge:
    """A schema, and which of its members have been there."""

    def __init__(self, command, items):
        from jsonschema import Draft202012Validator
        with open(os.path.join(os.path.dirname(schema.SCHEMA), command + '.schema.json'), encoding='ascii') as f:
            self.schema = json.load(f)
        Draft202012Validator.check_schema(self.schema)
        self.command, self.validator, self.items = command, Draft202012Validator(self.schema), items
        self.lines, self.seen, self.planters = 0, set(), {}

    def line(self, line):
        value = schema.parse(line)
        error = next(self.validator.iter_errors(value), None)
        if error:
            raise schema.Wrong(f'{self.command}: {error.json_path}: {error.message[:300]}\n{line[:600]}')
        self.lines += 1
        for part in (value, value.get('old', {}), value.get('new', {})):
            if 'item' in part:
                name = value['key']['type_name']
                self.items.judge('items/' + ('unknown' if name.startswith('UNKNOWN.') else name), part['item'], line)
        self.take(value, '')
        # What items say is judged above.
        self.planters.setdefault(value.get('kind', '__header' in value), schema.Planter(['item'])).take(value)

    def take(self, value, path):
        for v in value if isinstance(value, list) else ():
            self.take(v, path)
        for k, v in value.items() if isinstance(value, dict) else ():
            self.seen.add(path + k)
            if k != 'item':
                self.take(v, f'{path}{k}.')

    def planted(self):
        """How many wrong values were refused."""
        found = 0
        for planter in self.planters.values():
            for what, bad in planter.wrong():
                if self.validator.is_valid(bad):
                    raise schema.Wrong(f'{self.command}: {what}: {bad} is valid')
                found += 1
        return found


def lines(judge, *args):
    status, out, err = run(*args)
    assert status in (0, 1), (args, status, err)
    for line in out.decode('utf-8', 'surrogateescape').splitlines():
        judge.line(line)
    return out.decode('utf-8', 'surrogateescape')


def raw(judge, image):
    """Some blocks of each tree: the fields are all of the block, in whatever order, and each byte once."""
    _, text, _ = run('dump-tree', '--scan', '--format', 'json', image)
    blocks = [json.loads(line) for line in text.splitlines()[1:]]
    addresses = sorted({block['bytenr'] for block in blocks if 'bytenr' in block})
    for bytenr in addresses[::max(len(addresses) // 12, 1)]:
        out = lines(judge, 'dump-tree', '--raw', bytenr, '--format', 'json', image)
        values = [json.loads(line) for line in out.splitlines()[1:]]
        parts = sorted((v['offset'], bytes.fromhex(v['bytes'])) for v in values if 'bytes' in v)
        assert all(v['size'] == len(v['bytes']) // 2 for v in values if 'bytes' in v), values
        if values and not any('damaged' in v or v['kind'] == 'damage' for v in values):
            whole = b''.join(data for _, data in parts)
            assert [at for at, _ in parts if at] == [len(b''.join(d for _, d in parts[:i]))
                                                     for i, (at, _) in enumerate(parts) if at], image
            assert len(whole) in (4096, 8192, 16384, 32768, 65536), (image, len(whole))


def main():
    items = schema.Validator()
    judges = {command: Judge(command, items) for command in COMMANDS}
    with tempfile.TemporaryDirectory(prefix='btrkit-schemas-') as folder:
        for name in NAMES:
            if not os.path.exists(f'{IMAGES}/{name}.tar.xz'):
                continue
            image = unpack.unpack(name, folder, quick=True)
            lines(judges['dump-super'], 'dump-super', '-fa', '-F', '--format', 'json', image)
            lines(judges['dump-super'], 'dump-super', '--format', 'json', image)
            lines(judges['list-subvolumes'], 'list-subvolumes', '--deleted', '--format', 'json', image)
            lines(judges['tree-stats'], 'tree-stats', '--format', 'json', image)
            raw(judges['dump-raw'], image)
            if name == 'good-default':
                for options in ([], ['--brief'], ['--hide-names']):
                    lines(judges['diff'], 'diff', '--format', 'json', *options, '--from', 'sub', '--to', 'snap', image)
                    lines(judges['diff'], 'diff', '--format', 'json', *options, '--from', '5', '--to', 'sub', image)
            os.unlink(image)
        planted = sum(judge.planted() for judge in judges.values())
    for judge in judges.values():
        assert judge.lines > 10, judge.command
        allowed = set(re.findall(r'"([a-z_]+)": \{"\$ref"', json.dumps(judge.schema['$defs']['lines'])))
        lacking = allowed - {path.split('.')[-1] for path in judge.seen} - {'block_group_root', 'items', 'room'}
        assert not lacking, (judge.command, lacking)
    print(', '.join(f'{judge.lines} lines of {judge.command}' for judge in judges.values()) +
          f' are valid; {planted} wrong ones are none')
    return 0


if __name__ == '__main__':
    sys.exit(main())
