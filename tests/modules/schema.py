# SPDX-License-Identifier: LGPL-2.1-or-later
"""Validate lines of dump-tree --format json against the schema."""
import json
import os
import re
import sys

SCHEMA = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'schema', 'dump-tree.schema.json')


class Wrong(Exception):
    pass


def pairs(members):
    """Make an object; duplicate members, which JSON libraries silently merge, are an error."""
    names = [name for name, _ in members]
    if len(names) != len(set(names)):
        raise Wrong(f'a member comes twice: {sorted(n for n in names if names.count(n) > 1)}')
    return dict(members)


def parse(line):
    return json.loads(line, object_pairs_hook=pairs)


def load():
    with open(SCHEMA, encoding='ascii') as f:
        return json.load(f)


FORMS = [re.compile(p) for p in (r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', r'([0-9a-f]{2})*', r'HIDDEN', r'.*')]
WORDS = {'kind', 'code', 'command', 'type_name'}


def form(value, name=None, words=frozenset(WORDS)):
    """Return everything that the schema can distinguish, so that equal forms need to be validated only once. @words:
    names of members whose strings are enumerated"""
    if isinstance(value, dict):
        return tuple((k, form(v, k, words)) for k, v in value.items())
    if isinstance(value, list):
        return tuple(value) if name.endswith('_names') else frozenset(form(v, None, words) for v in value)
    if isinstance(value, bool) or name in words:
        return value
    if isinstance(value, int):
        return value if name in ('level', 'version') else ('+' if value >= 0 else '-', value >> 63, value >> 64)
    return next(i for i, f in enumerate(FORMS) if f.fullmatch(value.replace('\n', '')))


class Validator:
    """Validate lines by kind, and items by type: the schema for a whole line is equivalent but slow."""

    def __init__(self):
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            print('skipped: needs python3-jsonschema')
            sys.exit(77)
        self.schema = load()
        Draft202012Validator.check_schema(self.schema)
        self.make = Draft202012Validator
        self.whole = Draft202012Validator(self.schema)
        self.parts, self.seen, self.checked, self.planters = {}, {}, set(), {}

    def part(self, name):
        if name not in self.parts:
            part = {'$defs': self.schema['$defs'], '$ref': f'#/$defs/{name}'}
            if name == 'lines/item':
                item = {k: v for k, v in self.schema['$defs']['lines']['item'].items() if k != 'allOf'}
                part = {'$defs': self.schema['$defs'], **item}
            self.parts[name] = self.make(part)
        return self.parts[name]

    def check(self, line):
        """Validate a line. Returns its value."""
        value = parse(line)
        self.check_value('lines/' + value.get('kind', 'header'), value, line)
        if value.get('kind') == 'item':
            name = value['key']['type_name']
            self.check_value('items/' + ('unknown' if name.startswith('UNKNOWN.') else name), value['item'], line)
        return value

    def check_value(self, name, value, line):
        if name.split('/')[1] not in self.schema['$defs'][name.split('/')[0]]:
            raise Wrong(f'the schema has no {name}: {line}')
        self.seen[name] = self.seen.get(name, 0) + 1
        alike = name, form(value)
        if alike in self.checked:
            return
        self.checked.add(alike)
        error = next(self.part(name).iter_errors(value), None)
        if error:
            raise Wrong(f'{name}: {error.json_path}: {error.message[:300]}\n{line[:600]}')
        self.planters.setdefault(name, Planter(['item'])).take(value)

    def planted(self):
        """Return the number of wrong values that were refused, over all kinds seen."""
        found = 0
        for name, planter in self.planters.items():
            for what, bad in planter.wrong():
                if self.part(name).is_valid(bad):
                    raise Wrong(f'{name}: {what}: {bad} is valid')
                found += 1
        return found


SIGNED = {'sec'}
# Missing with extent tree v2, in references from a parent block, and for devices when the library prints alone.
OPTIONAL = {'extent_root', 'inline_refs.root', 'devices.total_bytes', 'devices.uuid'}


def shape(value):
    """The members of a value, at any depth."""
    if isinstance(value, dict):
        return tuple((k, shape(v)) for k, v in sorted(value.items()))
    return frozenset(map(shape, value)) if isinstance(value, list) else type(value).__name__


class Planter:
    """Collects one value of each shape of a kind, and generates faults: in each object at any depth, a surplus member,
    each mandatory member missing, and each member with another type. @free: top-level members that the schema does not
    describe"""

    def __init__(self, free=()):
        self.shapes, self.members, self.free = {}, {}, free

    def take(self, value):
        if self.shapes.setdefault(shape(value), value) is value:
            self.meet(value, ())

    def meet(self, value, path):
        """Record which members all objects in a place have."""
        for v in value if isinstance(value, list) else ():
            self.meet(v, path)
        if not isinstance(value, dict) or path and path[-1] in self.free:
            return
        self.members[path] = self.members.get(path, set(value)) & set(value)
        for k, v in value.items():
            self.meet(v, path + (k,))

    def wrong(self):
        """Generate pairs of a fault and a value that has it."""
        for value in self.shapes.values():
            yield from self.plant(value, ())

    def plant(self, value, path):
        where = '.'.join(path)
        if isinstance(value, list):
            for i, v in enumerate(value):
                for what, bad in self.plant(v, path):
                    yield what, value[:i] + [bad] + value[i + 1:]
                yield f'{where}: an element of another type', value[:i] + [other_type(v)] + value[i + 1:]
        if not isinstance(value, dict):
            return
        yield f'{where}: a member too many', {**value, 'more': 1}
        for k, v in value.items():
            # If something is damaged, anything may be missing.
            if k in self.members[path] and '.'.join(path + (k,)) not in OPTIONAL and 'damaged' not in value:
                yield f'{where}: no {k}', {m: w for m, w in value.items() if m != k}
            if k in self.free:
                continue
            yield f'{where}: {k} of another type', {**value, k: other_type(v)}
            if isinstance(v, int) and not isinstance(v, bool):
                yield f'{where}: {k} a fraction', {**value, k: 0.5}
                yield f'{where}: {k} too small', {**value, k: -1 - (0 if k not in SIGNED else 1 << 63)}
            for what, bad in self.plant(v, path + (k,)):
                yield what, {**value, k: bad}


def other_type(value):
    return [] if isinstance(value, dict) else {'other': 0}
