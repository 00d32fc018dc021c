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

What Linux 6.18 checks when it mounts a filesystem, reads its tree blocks and works with it, and what `btrkit check`
reports for a filesystem that breaks the rule. There are {} rules, and a filesystem was made for each by changing a good
one; [check/linux.txt](check/linux.txt) describes the damage. Linux 6.18.15 answered in a virtual machine: a writable
device was mounted read-only, and everything read; a second one was mounted writable, everything read, some files made
and removed, all of it balanced, everything removed, and it was mounted again. Whatever Linux refuses to mount or to
read, crashes or hangs at, or turns read-only for, `btrkit check` reports with severity "refused". A code has one
severity, the worst of what Linux does for damage of its kind, so Linux mounts some of what is "refused". It "hangs" if
nothing happened for a minute.

| answer | read-only | writable |
|---|---|---|
{}
[check/README.md](check/README.md) says how to ask Linux again. Linux 6.18.44 gave the same answers to read-only mounts
of the {} filesystems that it was asked about, on read-only devices; except that it does not compare the size of all
devices with that in the superblock then.
'''
ASKED_BEFORE = 264
TABLE = '''
## {}

| Rule | `btrkit check` | Severity | Mounted read-only | Mounted writable |
|---|---|---|---|---|
'''
ANSWERS = ('mounts', 'refuses to mount', 'refuses to read', 'refuses to write', 'refuses to remove',
           'refuses to mount again', 'refuses to unmount', 'turns read-only', 'crashes', 'hangs')


def kind(answer):
    return max((word for word in ANSWERS if answer.startswith(word)), key=len)


def counts(rows):
    for word in ANSWERS:
        numbers = [sum(kind(row[how]) == word for row in rows) for how in (0, 1)]
        if any(numbers):
            yield f'| {word} | {numbers[0]} | {numbers[1]} |\n'


def escape(text):
    return text.replace('|', '\\|')


def page(lines):
    rows, body = [], []
    for line in lines:
        if ' | ' not in line:
            if body or line == '# Blocks':
                body.append(TABLE.format(line.removeprefix('# ')))
            continue
        rule, _, _, codes, severity, *answers = line.split(' | ')
        rows.append(answers)
        codes = ', '.join(code.removeprefix('BTR-') for code in codes.split()) if codes.startswith('BTR-') else codes
        body.append(f'| {escape(rule)} | {codes} | {severity} | {answers[0]} | {answers[1]} |\n')
    return HEAD.format(len(rows), ''.join(counts(rows)), ASKED_BEFORE) + ''.join(body)


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
