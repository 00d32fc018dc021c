#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare tests/LINUX.md with the table that it is made from, linux.txt, or write it.    linux_page.py [--write]"""
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PAGE = os.path.join(HERE, '..', 'LINUX.md')
HEAD = '''<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->
<!-- Made from tests/check/linux.txt by tests/check/linux_page.py --write. -->
# What Linux refuses

What Linux 6.18 checks when it mounts a filesystem or reads its tree blocks, and what `btrkit check` reports for a
filesystem that breaks the rule. There are {} rules. Of the filesystems made for them, Linux 6.18.44 refuses to mount {}
read-only, and to read some of {} others; {} it mounts, and {} were not tried. Whatever it refuses, `btrkit check`
reports with severity "refused". [check/linux.txt](check/linux.txt) describes the damage.
'''
TABLE = '''
## {}

| Rule | `btrkit check` | Severity | Linux |
|---|---|---|---|
'''


def escape(text):
    return text.replace('|', '\\|')


def page(lines):
    rows, body = [], []
    for line in lines:
        if ' | ' not in line:
            if body or line == '# Blocks':
                body.append(TABLE.format(line.removeprefix('# ')))
            continue
        rule, _, _, codes, severity, answer = line.split(' | ')
        rows.append(answer)
        codes = ', '.join(code.removeprefix('BTR-') for code in codes.split()) if codes.startswith('BTR-') else codes
        body.append(f'| {escape(rule)} | {codes} | {severity} | {escape(answer)} |\n')
    counts = [sum(answer.startswith(word) for answer in rows)
              for word in ('refuses to mount', 'refuses to read', 'mounts', 'not asked')]
    assert sum(counts) == len(rows), 'an unknown answer'
    return HEAD.format(len(rows), *counts) + ''.join(body)


def main(*arguments):
    with open(os.path.join(HERE, 'linux.txt'), encoding='utf-8') as f:
        wanted = page(f.read().rstrip('\n').split('\n'))
    if arguments == ('--write',):
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(wanted)
        return 0
    with open(PAGE, encoding='utf-8') as f:
        same = f.read() == wanted
    print('LINUX.md: is', 'up to date' if same else 'not up to date; run tests/check/linux_page.py --write')
    return not same


sys.exit(main(*sys.argv[1:]))
