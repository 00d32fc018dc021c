# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the tests of `btrkit edit`: run scripts that must succeed, and scripts that must fail without an effect."""
import os
import subprocess

from tool import BTRKIT, check_failure, digest, run

checks = 0


def check(condition, *what):
    global checks
    assert condition, what
    checks += 1


def make_image(scratch):
    """Make an empty filesystem and return its path."""
    path = os.path.join(scratch, 'fs.img')
    with open(path, 'wb') as f:
        f.truncate(256 << 20)
    code, _, err = run('mkfs', '-q', path)
    check(code == 0, err)
    return path


def edit(path, script, *options):
    """Run a script, or a single operation given as a list of words."""
    if isinstance(script, list):
        return run('edit', *options, path, *script)
    done = subprocess.run([BTRKIT, 'edit', *options, path], input=script, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600)
    return done.returncode, done.stdout, done.stderr.decode(errors='backslashreplace')


def works(path, script, *options):
    code, out, err = edit(path, script, *options)
    check(code == 0 and not out and not err, script[:200], code, err)


def refused(path, script, *options, says, line=None):
    """The script must fail with this message and line, and must not change a byte."""
    before = digest(path)
    said = check_failure('edit', path, edit(path, script, *options))
    check(said.startswith(f'line {line}: ') if line else not said.startswith('line '), script, said)
    check(says in said, script, said)
    check(digest(path) == before, script, 'has written')
    return said


def usage(*words, says):
    code, out, err = run('edit', *words)
    check(code == 2 and not out and says in err and err.count('\n') == 1, words, code, err)
