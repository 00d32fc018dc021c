#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The completions for each shell know every option of every command, and offer the right words when the shell runs
them. A shell that is not installed is skipped. Usage: completions.py BASH ZSH FISH, the generated files."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BTRKIT = os.environ['BTRKIT']
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f'completions: {what}')


def tell(*arguments):
    return subprocess.run([BTRKIT, *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()


def options(command):
    """The options in the output of --help, parsed independently of the generator."""
    words = set()
    for line in tell(command, '--help').splitlines():
        left = re.match(r' {2,6}(-\S.*?)(?:  |$)', line)
        if left:
            words |= {w for w in re.findall(r'(?<![\w-])(?:--[a-z][a-z0-9-]*|-\w)(?![\w-])', left.group(1))}
    return words


# What is typed, and words that must be offered.
CASES = (
    ('che', ['check']),
    ('mkfs --comp', ['--compress']),
    ('mkfs --compress z', ['zlib', 'zstd']),
    ('mkfs -d raid1', ['raid1', 'raid1c3', 'raid1c4', 'raid10']),
    ('mkfs --csum s', ['sha256']),
    ('mkfs -O block', ['block-group-tree']),
    ('mkfs -f --format t', ['text']),
    ('fiemap --format ', ['json', 'text', 'tsv']),
    ('dump-tree -t free', ['free_space']),
    ('dump-tree im', ['image']),
    ('mkfs --rootdir f', ['folder']),
    ('space-cache c', ['clear', 'convert']),
    ('space-cache clear im', ['image']),
    ('edit image mkd', ['mkdir']),
    ('edit --compress zlib image trunc', ['truncate']),
    ('features im', []),
)

BASH = '''
. "$1"; shift
bind() { :; }
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_btrkit
printf '%s\\n' "${COMPREPLY[@]}"
'''
# Run zsh in a terminal of its own and write what it offers to a file. Arguments: the directory of the function, the
# directory to start in, the file, and what to type.
ZSH = '''
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= ; RPROMPT= ; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; cd $2"
zpty -w shell "compadd() { local -a found; builtin compadd -O found \\"\$@\\"; print -rl -- \\"\$found[@]\\" >>$3;
	builtin compadd \\"\$@\\" }"
zpty -w shell "probe() { zle list-choices; print -n end-\$((2 + 2)) >/dev/tty }; zle -N probe; bindkey '^I' probe"
zpty -w shell "LISTMAX=2000; print ready-\$((1 + 1))"
zpty -r shell line '*ready-2*'
file=$3
shift 3
for typed; do
	print -r -- "== $typed" >>$file
	zpty -n -w shell "btrkit $typed"$'\\t'
	zpty -r shell line '*end-4*'
	zpty -n -w shell $'\\C-U'
done
zpty -d shell
'''


def bash(script, typed, folder):
    words = ['btrkit', *re.split(r' +', typed)]
    done = subprocess.run(['bash', '-c', BASH, 'bash', script, *words], stdout=subprocess.PIPE, check=True, cwd=folder)
    return done.stdout.decode().split()


def fish(script, typed, folder):
    done = subprocess.run(['fish', '--no-config', '-c', f'source {script}; complete -C "btrkit {typed}"'], cwd=folder,
                          stdout=subprocess.PIPE, check=True, env=dict(os.environ, HOME=folder))
    return [line.split('\t')[0].rstrip('/') for line in done.stdout.decode().splitlines()]


class Zsh:
    """All inputs are typed into a single shell, because starting one takes a second."""

    def __init__(self, script, folder):
        functions = pathlib.Path(folder, 'functions')
        functions.mkdir()
        shutil.copy(script, functions / '_btrkit')
        typed = [case[0] for case in CASES] + [f'{command} {dash}' for command in commands() for dash in ('-', '--')]
        there = pathlib.Path(folder, 'there')
        subprocess.run(['zsh', '-f', '-c', ZSH, 'zsh', functions, there, f'{folder}/offers', *typed], check=True,
                       stdout=subprocess.PIPE, timeout=300)
        self.offers = {}
        for line in pathlib.Path(folder, 'offers').read_text().splitlines():
            if line.startswith('== '):
                at = self.offers.setdefault(line[3:], set())
            elif line:
                at.add(line)

    def __call__(self, script, typed, folder):
        return self.offers[typed]


def offered(shell, script, folder, run):
    for typed, wanted in CASES:
        found = run(script, typed, folder)
        check(sorted(found) == sorted(wanted), f'{shell}: btrkit {typed}: {found}, not {wanted}')
    for command in commands():
        found = set(run(script, f'{command} -', folder)) | set(run(script, f'{command} --', folder))
        check(options(command) <= found, f'{shell}: {command} lacks {options(command) - found}')


def commands():
    return re.findall(r'^  ([a-z][a-z-]*) ', tell('--help'), re.M)


def listed(scripts):
    """Checks of the generated files that need no shell."""
    for command in commands():
        for word in options(command) - {'--help'}:
            row = rf"^\t{command}\) echo '(.* )?{word}[ ']"
            check(re.search(row, scripts['bash'], re.M), f'bash: {command} {word}')
            part = re.search(rf'^\t{command}\)\n(.*?) ;;$', scripts['zsh'], re.M | re.S).group(1)
            check(re.search(rf"^\t\t\t'\*?{word}[=+\[]", part, re.M), f'zsh: {command} {word}')
            flag = f'-l {word[2:]}' if word.startswith('--') else f'-s {word[1:]}'
            check(re.search(rf"__btrkit_command {command}' .*{flag} ", scripts['fish']), f'fish: {command} {word}')


def words_are_known():
    """The command accepts each word that is offered."""
    for option, words in (('-t', 'root extent chunk dev fs csum quota uuid free_space block_group tree_log'),):
        for word in words.split():
            done = subprocess.run([BTRKIT, 'dump-tree', option, word, '/nonexistent'], stderr=subprocess.PIPE,
                                  check=False)
            check(done.returncode == 1, f'dump-tree {option} {word}: {done.stderr.decode()}')


def main(*files):
    scripts = dict(zip(('bash', 'zsh', 'fish'), files))
    listed({shell: pathlib.Path(file).read_text(encoding='utf-8') for shell, file in scripts.items()})
    words_are_known()
    ran = []
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder, 'there')
        there.mkdir()
        (there / 'image').touch()
        (there / 'folder').mkdir()
        for shell in filter(shutil.which, scripts):
            script = os.path.abspath(scripts[shell])
            subprocess.run([shell, '-n', script], check=True)
            runs = {'bash': bash, 'fish': fish}
            offered(shell, script, there, runs[shell] if shell in runs else Zsh(script, folder))
            ran.append(shell)
    print(f'compared {checks} options and offers; run by {", ".join(ran)}')


if __name__ == '__main__':
    main(*sys.argv[1:])
