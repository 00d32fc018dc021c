#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the commands in README.md in order and compare their output with the text; "..." stands for any lines.

Usage: readme.py ROOT [--write]; --write fills in output where the text has none."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tool import BTRKIT

INDENT = '    '
IMAGE = re.compile(r'\b((?:good|bad)-[a-z0-9-]+)\.img')


def prepare(root, at, text):
    """The directory in which the commands run, with the images that they use and nothing else, as readers have it. The
    images are unpacked as the text says."""
    (at / 'bin').mkdir()
    (at / 'bin/btrkit').symlink_to(os.path.abspath(BTRKIT))
    for name in sorted(set(IMAGE.findall(text))):
        subprocess.run([root.absolute() / 'images/unpack.py', name, '.'], cwd=at, check=True, stdout=subprocess.PIPE)


def printed(command, at):
    env = dict(os.environ, PATH=f'{at}/bin:{os.environ["PATH"]}')
    done = subprocess.run(['bash', '-c', command], cwd=at, env=env, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return [line.rstrip() for line in done.stdout.decode().splitlines()]


def agrees(said, lines):
    """Whether the lines match, "..." matching any lines."""
    if not said:
        return not lines
    if said[0] == '...':
        return any(agrees(said[1:], lines[skip:]) for skip in range(len(lines) + 1))
    return bool(lines) and said[0] == lines[0] and agrees(said[1:], lines[1:])


def commands(lines):
    """Return (line number after the command, the command, expected output)."""
    for number, line in enumerate(lines):
        if not line.startswith(f'{INDENT}$ '):
            continue
        end = number + 1
        while end < len(lines) and not lines[end].startswith(f'{INDENT}$ ') and (
                lines[end].startswith(INDENT) or not lines[end].strip() and
                end + 1 < len(lines) and lines[end + 1].startswith(INDENT) and
                not lines[end + 1].startswith(f'{INDENT}$ ')):
            end += 1
        yield number + 1, line[len(INDENT) + 2:], [each[len(INDENT):].rstrip() for each in lines[number + 1:end]]


def main(root, *how):
    readme = pathlib.Path(root) / 'README.md'
    lines = readme.read_text().splitlines()
    for target in re.findall(r'\]\(([^):]+)\)', readme.read_text()):
        if not (pathlib.Path(root) / target).exists():
            sys.exit(f'README.md: leads to {target}, which is not there')
    ran, added = 0, 0
    written = list(lines)
    with tempfile.TemporaryDirectory() as at:
        prepare(pathlib.Path(root), pathlib.Path(at), '\n'.join(lines))
        for number, command, said in commands(lines):
            got = printed(command, pathlib.Path(at))
            ran += 1
            if how == ('--write',) and not said:
                written[number + added:number + added] = [(INDENT + line).rstrip() for line in got]
                added += len(got)
            elif not agrees(said, got):
                sys.exit(f'README.md:{number}: {command}\n' + '\n'.join(got))
    if added:
        readme.write_text('\n'.join(written) + '\n')
    if not ran:
        sys.exit('README.md shows no command')
    print(f'{ran} commands')


if __name__ == '__main__':
    main(*sys.argv[1:])
