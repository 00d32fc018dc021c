#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Extracts the offsets of the fields of all on-disk structs from the headers that declare them, as C tables.
Usage: fields.py OUTPUT HEADER..."""
import re
import sys

WIDTHS = {'le64': 8, 'le32': 4, 'le16': 2, 'uint8_t': 1, 'char': 1}
PIECES_MAX = 5


def constants(text):
    """Constants that can be the lengths of arrays."""
    found = {name: int(value) for name, value in re.findall(r'^#define (\w+) (\d+)\b', text, re.M)}
    for names in re.findall(r'^enum \w+ \{([^={}]*)\};', text, re.M):
        found.update({name.strip(): i for i, name in enumerate(names.split(','))})
    return found


def members(body, numbers):
    """Yield (type, name, number of elements) of each member."""
    for line in re.sub(r'/\*.*?\*/', '', body, flags=re.S).split(';'):
        if not line.strip():
            continue
        kind, names = re.fullmatch(r'\s*(?:struct )?(\w+)\s+(.*)', line, re.S).groups()
        for name in names.split(','):
            length = re.search(r'\[(\w+)\]', name)
            count = length[1] if length else '1'
            yield kind, name.split('[')[0].strip(), int(count) if count.isdigit() else numbers[count]


def layout(name, structs, numbers):
    """Return (fields as (offset, width, name), size). Of byte arrays, the first bytes are fields of eight bytes."""
    fields, at = [], 0
    for kind, member, count in members(structs[name], numbers):
        if kind in structs:
            inner, width = layout(kind, structs, numbers)
            for _ in range(count):
                fields += [(at + place, size, f'{member}.{inside}') for place, size, inside in inner]
                at += width
            continue
        width = WIDTHS[kind]
        step = 8 if width == 1 and count >= 8 else width
        places = range(at, at + min(width * count - step + 1, PIECES_MAX * step), step)
        fields += [(place, step, member) for place in places]
        at += width * count
    return fields, at


def main(output, *headers):
    text = ''.join(open(header, encoding='ascii').read() for header in headers)
    structs = dict(re.findall(r'^struct (disk_\w+) \{\n(.*?)^\};', text, re.M | re.S))
    numbers = constants(text)
    with open(output, 'w', encoding='ascii') as f:
        for name in structs:
            fields, size = layout(name, structs, numbers)
            f.write(f'static_assert(sizeof(struct {name}) == {size}, "{name}");\n')
            f.write(f'static const struct field fields_{name}[] = {{\n')
            f.writelines(f'\t{{ {place}, {width}, "{member}" }},\n' for place, width, member in fields)
            f.write(f'}};\nstatic const struct layout {name} = {{ {size}, {len(fields)}, fields_{name} }};\n')


main(*sys.argv[1:])
