#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Generates C with the members of dump-tree's JSON lines, from the schema. Usage: dump_fields.py OUTPUT SCHEMA"""
import json
import sys


def members(schema, part, path, into):
    """Adds all paths below @path that @part of the schema allows. The elements of arrays have no path of their own."""
    while '$ref' in part:
        where, part = part['$ref'].split('/')[1:], schema
        for step in where:
            part = part[step]
    if 'items' in part:
        members(schema, part['items'], path, into)
    for name, value in part.get('properties', {}).items():
        into.add(path + name)
        members(schema, value, f'{path}{name}.', into)


def main(output, source):
    with open(source, encoding='ascii') as f:
        schema = json.load(f)
    names = set()
    for kind, line in schema['$defs']['lines'].items():
        if kind != 'header':
            members(schema, line, '', names)
    for item in schema['$defs']['items'].values():
        members(schema, item, 'item.', names)
    with open(output, 'w', encoding='ascii') as f:
        f.write('#include "lib/dump/dump_fields.h"\n\nconst char *const dump_fields[] = {\n')
        f.writelines(f'\t"{name}",\n' for name in sorted(names))
        f.write(f'}};\n\nconst size_t dump_fields_count = {len(names)};\n')


main(*sys.argv[1:])
