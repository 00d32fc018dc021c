#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare tests/LINUX.md with what it is made from, linux.txt and linux-functions.txt, or write it.
linux_page.py [--write]. Each rule of linux.txt must be one of a function, and none may be missing; of each code that is
refused in a row although Linux mounts the filesystem, another row must have it with which Linux refuses one."""
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PAGE = os.path.join(HERE, '..', 'LINUX.md')
HEAD = '''<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->
<!-- Made from tests/check/linux.txt and linux-functions.txt by tests/check/linux_page.py --write. -->
# What Linux refuses

What Linux 6.18 checks when it mounts a filesystem, reads its tree blocks and works with it, and what `btrkit check`
reports for a filesystem that breaks the rule. There are {} rules, and a filesystem was made for each by changing a good
one; [check/linux.txt](check/linux.txt) describes the damage. Linux 6.18.15 answered in a virtual machine: a writable
device was mounted read-only, and everything read; a second one was mounted writable, everything read, some files made
and removed, all of it balanced, everything removed, and it was mounted again. Whatever Linux refuses to mount or to
read, crashes or hangs at, or turns read-only for, `btrkit check` reports with severity "refused". A code has one
severity, the worst of what Linux does for damage of its kind, so Linux mounts some of what is "refused", which a
table at the end lists. It "hangs" if nothing happened for a minute; each filesystem at which it does was tried twice.

| answer | read-only | writable |
|---|---|---|
{}
[check/README.md](check/README.md) says how to ask Linux again. Linux 6.18.44 gave the same answers to read-only mounts
of the {} filesystems that it was asked about, on read-only devices; except that it does not compare the size of all
devices with that in the superblock then.
'''
ASKED_BEFORE = 264
FUNCTIONS = '''
## Where Linux checks

Each function of Linux 6.18 that refuses what it reads or complains of it, and how many rules it enforces: those
above, by what Linux said when they were broken, and those that no image can break, or none here. Linux's messages
were compared with the source of 6.12 and 7.2, and with the messages and symbols in the modules of 6.18.15: rules that
only the later source has say so. [check/linux-functions.txt](check/linux-functions.txt) lists the rules of each.

| File | Function | Rules above | Others |
|---|---|---|---|
'''
MILDER = '''
## Refused, although Linux mounts it

A code has one severity. Linux mounts these filesystems, but refuses others with the same code: the last column says by
which rule.

| Rule | Code | Refused for |
|---|---|---|
'''
LATER, UNREADABLE = ' (Linux after 6.18)', ('cannot be opened', 'not supported')
OTHERS = '''
## Rules without an image

| Function | Rule | Why there is none |
|---|---|---|
'''
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


def read_functions(lines):
    """Return [file, function, rules with a row, [rule, why there is no row]]."""
    functions, file = [], None
    for line in lines:
        if line.startswith('# '):
            file = line.removeprefix('# ')
        elif line.startswith('\t- '):
            functions[-1][3].append(line.removeprefix('\t- ').split(': ', 1))
        elif line.startswith('\t'):
            functions[-1][2].append(line.removeprefix('\t'))
        else:
            functions.append([file, line, [], []])
    return functions


def mistakes(functions, rules):
    """Return what is wrong about the rules of the functions; rules: those of the table."""
    named = collections.Counter(rule for function in functions for rule in function[2])
    yield from (f'of no function: {rule}' for rule in sorted(set(rules) - set(named)))
    yield from (f'not in linux.txt: {rule}' for rule in sorted(set(named) - set(rules)))
    yield from (f'of two functions: {rule}' for rule, number in named.items() if number > 1)
    for file, name, with_row, others in functions:
        if not with_row and not others:
            yield f'without rules: {file} {name}'
        yield from (f'without a reason: {other[0]}' for other in others if len(other) < 2)


def functions_page(functions):
    return (FUNCTIONS + ''.join(f'| {file} | {escape(name)} | {len(with_row)} | {len(others) or ""} |\n'
                                for file, name, with_row, others in functions) +
            OTHERS + ''.join(f'| {escape(name)} | {escape(rule)} | {escape(why)} |\n'
                             for _, name, _, others in functions for rule, why in others))


def refused_codes():
    """Return the codes of severity refused."""
    with open(os.path.join(HERE, '..', '..', 'lib', 'check', 'codes.h'), encoding='utf-8') as f:
        return {f'BTR-{name}' for name in re.findall(r'CODE\(\w+, "([A-Z0-9-]+)", REFUSED', f.read())}


def is_refusal(answer):
    return answer != 'refuses to mount (EACCES)' and kind(answer) in (
        'refuses to mount', 'refuses to read', 'turns read-only', 'crashes', 'hangs')


def milder(lines):
    """Yield the rows of what is refused but by Linux: rule, code, why; the last is None if nothing says so."""
    refused, worse, rows = refused_codes(), {}, [line.split(' | ') for line in lines if ' | ' in line]
    for rule, _, _, codes, _, *answers in sorted(rows, key=lambda row: -row[3].count(' ')):
        if any(map(is_refusal, answers)):
            worse.update(dict.fromkeys(codes.split(), rule))
    for rule, _, _, codes, severity, *answers in rows:
        if severity != 'refused' or any(map(is_refusal, answers)):
            continue
        if codes in UNREADABLE:
            yield rule, codes, 'btrkit reads the field, Linux does not'
        elif rule.endswith(LATER):
            yield rule, codes.replace('BTR-', ''), 'Linux after 6.18 refuses it'
        else:
            for code in sorted(refused.intersection(codes.split())):
                yield rule, code.removeprefix('BTR-'), worse.get(code)


def milder_page(lines):
    return MILDER + ''.join(f'| {escape(rule)} | {code} | {escape(why or "")} |\n' for rule, code, why in milder(lines))


def page(lines, functions):
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
    return (HEAD.format(len(rows), ''.join(counts(rows)), ASKED_BEFORE) + ''.join(body) + milder_page(lines) +
            functions_page(functions))


def read_lines(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as f:
        return f.read().rstrip('\n').split('\n')


def main(*arguments):
    lines, functions = read_lines('linux.txt'), read_functions(read_lines('linux-functions.txt'))
    wrong = list(mistakes(functions, [line.split(' | ')[0] for line in lines if ' | ' in line]))
    wrong += [f'Linux refuses nothing with the code {code}, but check does: {rule}'
              for rule, code, why in milder(lines) if not why]
    if wrong:
        print('linux-functions.txt, linux.txt:', *wrong, sep='\n')
        return 1
    wanted = page(lines, functions)
    if arguments == ('--write',):
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(wanted)
        return 0
    with open(PAGE, encoding='utf-8') as f:
        same = f.read() == wanted
    print('LINUX.md: is', 'up to date' if same else 'not up to date; run tests/check/linux_page.py --write')
    return not same


sys.exit(main(*sys.argv[1:]))
