#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run every command in the EXAMPLES of the man pages literally, on filesystems that contain what it refers to.

Usage: man-examples.py MAN"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tool import BTRKIT

SECTION = re.compile(r'^# EXAMPLES\n(.*?)(?=^# |\Z)', flags=re.M | re.S)
# Escapes that scdoc removes from literal lines.
ESCAPE = re.compile(r'\\(.)')
FILLED = '''\
mkdir -p etc/ssh var/cache
put passwd etc/passwd
put passwd etc/fstab
put sshd_config etc/ssh/sshd_config
put build/tool var/cache/old
subvolume create home snapshots
mkdir -p home/user/mail
put build/tool home/user/mail/1
put build/tool home/user/file
subvolume snapshot -r home snap
subvolume create snapshots/monday
mkdir -p snapshots/monday/etc snapshots/monday/home/user
put passwd snapshots/monday/etc/fstab
put build/tool snapshots/monday/home/user/file
subvolume snapshot snapshots/monday snapshots/tuesday
put passwd home/user/new
'''
TABLE = 'label: gpt\n,40M\n,\n'
# Commands that print nothing for intact filesystems, or only change or write files.
SILENT = re.compile(r'check --json|missing|-C \+1000|--html| > |btrkit (edit|extract) ')
# Expected output of examples that select something.
PRINTS = {'.parent_uuid >': b'snapshots/tuesday\n'}
# External programs in examples that need not be installed.
OTHERS = ('duckdb',)


def examples(page):
    """Return the commands; continued lines are joined."""
    found = SECTION.search(page.read_text())
    for paragraph in re.split(r'\n\n+', found.group(1).strip('\n')) if found else ():
        if not paragraph.startswith('\t'):
            continue
        lines = [ESCAPE.sub(r'\1', line) for line in paragraph.strip().splitlines()]
        yield '\n'.join(line.removesuffix('++').lstrip('\t') for line in lines)


class World:
    """A directory with everything that the examples refer to: absolute paths are relative to it here."""

    def __init__(self, at):
        self.at = pathlib.Path(at)
        (self.at / 'bin').mkdir()
        (self.at / 'bin/btrkit').symlink_to(os.path.abspath(BTRKIT))
        self.env = dict(os.environ, PATH=f'{self.at}/bin:{os.environ["PATH"]}:/usr/sbin:/sbin')
        (self.at / 'passwd').write_text('root:x:0:0:root:/root:/bin/sh\n' * 500)
        (self.at / 'sshd_config').write_text('PermitRootLogin no\n')
        for directory in ('build', 'root/usr', 'root/etc/ssh', 'dev', 'mnt/rescue', 'var/tmp'):
            (self.at / directory).mkdir(parents=True)
        (self.at / 'build/tool').write_bytes(bytes(range(256)) * 2000)
        shutil.copytree(self.at / 'build', self.at / 'root/usr/bin')

    def run(self, command, stdin=b''):
        return subprocess.run(['bash', '-o', 'pipefail', '-c', command], cwd=self.at, env=self.env, check=False,
                              input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)

    def do(self, command, stdin=b''):
        done = self.run(command, stdin)
        if done.returncode:
            sys.exit(f'man-examples: {command}: exit {done.returncode}: {done.stderr.decode()}')
        return done.stdout

    def filesystem(self, name, *options):
        self.do(f'truncate -s 300m {name} && btrkit mkfs {" ".join(options)} {name} && btrkit edit {name}',
                FILLED.encode())

    def ready(self, page, command):
        """Make fresh files and devices as an example expects them. Examples that undo something continue from the
        previous example."""
        if command.startswith('btrkit undo ') or page == 'btrkit' and 'mkfs' not in command:
            return
        for old in [*self.at.glob('*.*'), *self.at.glob('dev/*'), *self.at.glob('var/tmp/*')]:
            old.unlink()
        if '--rootdir' in command:
            return
        if 'partition=' in command:
            self.do('truncate -s 1g disk.img && sfdisk -q --no-tell-kernel disk.img', TABLE.encode())
            if 'mkfs' not in command:
                self.do("btrkit mkfs 'disk.img?partition=2'")
        elif page == 'btrkit-mkfs':
            self.do('truncate -s 300m dev/sdb dev/sdc dev/sdd dev/sde')
            if not command.startswith('truncate'):
                self.do('truncate -s 300m disk.img')
        elif '--device' in command:
            self.do('truncate -s 300m a.img b.img && btrkit mkfs -m raid1 a.img b.img')
        else:
            for name in set(re.findall(r'dev/\w+|\w+\.img', command)) or ['disk.img']:
                self.filesystem(name, *(['-O', '^block-group-tree'] if page == 'btrkit-space-cache' else []))
            if page == 'btrkit-space-cache':
                self.do('btrkit space-cache convert --to v1 dev/sdb1')


def check(command, out):
    if not out and not SILENT.search(command):
        sys.exit(f'man-examples: {command}: prints nothing')
    for part, want in PRINTS.items():
        if part in command and out != want:
            sys.exit(f'man-examples: {command}: prints {out}')


def main(manual):
    if not shutil.which('jq') or not shutil.which('sfdisk'):
        print('needs jq and sfdisk')
        sys.exit(77)
    ran = 0
    with tempfile.TemporaryDirectory() as at:
        world = World(at)
        for page in sorted(pathlib.Path(manual).glob('btrkit*.8.scd')):
            name = page.name.removesuffix('.8.scd')
            commands = list(examples(page))
            if not commands:
                sys.exit(f'man-examples: {page.name} has none')
            for command in commands:
                here = re.sub(r'(?<=[ \'])/(?=dev/|mnt/|var/tmp/)', '', command)
                if command.split()[0] in OTHERS and not shutil.which(command.split()[0]):
                    print(f'{name}: not run, not installed: {command.split()[0]}')
                    continue
                world.ready(name, here)
                if name == 'btrkit-edit' and not command.startswith('btrkit'):
                    world.do('btrkit edit disk.img', here.encode())
                else:
                    check(here, world.do(here))
                ran += 1
    print(f'{ran} examples')


if __name__ == '__main__':
    main(sys.argv[1])
