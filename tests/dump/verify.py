# SPDX-License-Identifier: LGPL-2.1-or-later
"""Validate JSON Lines of a command against its schema, and record which members have occurred."""
import json
import os

import schema

FOLDER = os.path.dirname(schema.SCHEMA)
# The members below are described by the schema of dump-tree.
ITEM = 'item'


def load(command):
    with open(os.path.join(FOLDER, command + '.schema.json'), encoding='ascii') as f:
        return json.load(f)


def members(whole, part, path):
    """Generate the path of each member in a part of a schema, at any depth; array elements share one path."""
    while '$ref' in part:
        found = whole
        for step in part['$ref'].split('/')[1:]:
            found = found[step]
        part = found
    if 'items' in part:
        yield from members(whole, part['items'], path)
    for name, value in part.get('properties', {}).items():
        yield f'{path}.{name}'
        yield from members(whole, value, f'{path}.{name}')


def met(value, path):
    """The same for a printed value."""
    for v in value if isinstance(value, list) else ():
        yield from met(v, path)
    for name, v in value.items() if isinstance(value, dict) else ():
        yield f'{path}.{name}'
        if name != ITEM:
            yield from met(v, f'{path}.{name}')


def words(part):
    """Return the names of members that have an enumeration of strings."""
    for name, value in part.items():
        if isinstance(value, dict):
            if 'enum' in value or 'const' in value:
                yield name
            yield from words(value)


class Check:
    def __init__(self, command, items):
        from jsonschema import Draft202012Validator
        self.schema = load(command)
        Draft202012Validator.check_schema(self.schema)
        self.command, self.validator, self.items = command, Draft202012Validator(self.schema), items
        names = self.schema['$defs']['lines']
        self.kinds = {name: Draft202012Validator({'$defs': self.schema['$defs'], '$ref': f'#/$defs/lines/{name}'})
                      for name in names}
        self.words = frozenset({*words(self.schema['$defs']), *schema.WORDS})
        self.known = {}  # kind by form
        self.lines, self.seen, self.planters = 0, set(), {}

    def kind(self, value, line):
        """Return the only kind of line that matches."""
        alike = schema.form(value, words=self.words)
        if alike not in self.known:
            self.known[alike] = self.find_kind(value, line)
        return self.known[alike]

    def find_kind(self, value, line):
        found = [name for name, validator in self.kinds.items() if validator.is_valid(value)]
        if len(found) == 1:
            return found[0]
        shapes = self.schema['$defs']['lines']
        # Report the errors for the kind with most members in common.
        close = max(shapes, key=lambda name: len(set(value) & set(shapes[name]['properties'])))
        errors = [f'{e.json_path}: {e.message[:200]}' for e in self.kinds[close].iter_errors(value)]
        raise schema.Wrong(f'{self.command}: is a line of {found or "no kind"}: {errors}\n{line[:600]}')

    def line(self, line):
        value = schema.parse(line)
        kind = self.kind(value, line)
        self.lines += 1
        for part in (value, value.get('old', {}), value.get('new', {})):
            if ITEM in part:
                name = value['key']['type_name']
                item = 'unknown' if name.startswith('UNKNOWN.') else name
                self.items.check_value(f'items/{item}', part[ITEM], line)
        self.seen.update(met(value, kind))
        # Contents of items have been validated above.
        self.planters.setdefault(kind, schema.Planter([ITEM])).take(value)

    def planted(self):
        """Return the number of wrong values that were refused."""
        found = 0
        for planter in self.planters.values():
            for what, bad in planter.wrong():
                if self.validator.is_valid(bad):
                    raise schema.Wrong(f'{self.command}: {what}: {bad} is valid')
                found += 1
        return found

    def unseen(self):
        """Return members of the schema that occurred in no line."""
        return {path for kind, part in self.schema['$defs']['lines'].items()
                for path in members(self.schema, part, kind)} - self.seen
