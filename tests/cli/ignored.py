#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Check that each option of each command has a test that fails if the option is ignored: accepted and validated as
usual, but without effect. A preloaded library records which options the tests use, and hides one option from the
program. For each option, the tests that use it run without it until one fails, first those whose names have a word of
the command's, and the fastest of these; slow suites are tried only for options that are left.

    ignored.py BUILD LIBRARY [COMMAND[:OPTION]]...    all options, or the given ones"""
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'cmd/completions'))
import table  # noqa: E402  pylint: disable=wrong-import-position,import-error

SUITES = ('cli', 'golden'), ('page', 'damage'), ('kernel',)
TIMEOUT = 600
# Options that no test can notice, with the reason.
UNSEEN = {}


class Tests:
    """The tests, with their run times and the options that they use."""

    def __init__(self, build, library, folder):
        self.build, self.folder, self.numbers = build, folder, itertools.count()
        # The original may be where unprivileged users, as whom some tests run the program, cannot read it.
        self.library = shutil.copy(library, folder)
        self.took, self.users = {}, collections.defaultdict(set)
        told = subprocess.run(['meson', 'introspect', build, '--tests'], stdout=subprocess.PIPE, check=True).stdout
        # Require BTRKIT: some unit tests have the same names.
        self.known = {t['name']: t for t in json.loads(told) if 'BTRKIT' in t['env'] and
                      {s.split(':')[-1] for s in t['suite']} & set(sum(SUITES, ()))}

    def run(self, test, ignored=':'):
        """@return exit status, run time, options used"""
        # A short name: messages end in the middle of a long path, and sockets cannot have one.
        scratch = pathlib.Path(self.folder, str(next(self.numbers)))
        noted = scratch / 'noted'
        noted.mkdir(parents=True)
        # Some tests run the program as an unprivileged user.
        for path in noted, scratch:
            path.chmod(0o1777)
        env = {**os.environ, **test['env'], 'LD_PRELOAD': self.library, 'NOTED': noted, 'IGNORED': ignored,
               'TMPDIR': str(scratch)}
        begun = time.monotonic()
        with subprocess.Popen(test['cmd'], cwd=test['workdir'] or self.build, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                # Give it the chance to unmount what it has mounted.
                process.send_signal(signal.SIGINT)
        options = {path.name for path in noted.iterdir()}
        subprocess.run(['rm', '-rf', '--one-file-system', scratch], check=False)
        return process.returncode, time.monotonic() - begun, options

    def learn(self, pool, suites, words):
        """Run tests of the suites to record their options: all of the first suites, which are fast, otherwise only
        those whose script contains one of the words."""
        chosen = [t for t in self.known.values() if {s.split(':')[-1] for s in t['suite']} & set(suites) and (
            suites == SUITES[0] or any(word in pathlib.Path(script).read_text(encoding='utf-8')
                                       for script in t['cmd'] if script.endswith('.py') for word in words))]
        for test, (status, seconds, options) in zip(chosen, pool.map(self.run, chosen)):
            if status:
                print(f'{test["name"]}: {"skipped" if status == 77 else "fails with all options"}, not asked')
                continue
            self.took[test['name']] = seconds
            for option in options:
                self.users[option].add(test['name'])
        print(f'{len(self.took)} tests, {sum(self.took.values()):.0f} s', flush=True)

    def seen_by(self, option, asked):
        """Return the first test not in @asked that fails if the option is ignored, or None."""
        words = option.split(':')[0].split('-')

        def order(name):
            return not any(word in name for word in words), self.took[name]

        return next((name for name in sorted(self.users[option] - asked, key=order)
                     if self.run(self.known[name], option)[0]), None)


def ask(tests, options, pool):
    """@return the options that no test notices"""
    left = options
    for suites in SUITES:
        asked = set(tests.took)
        tests.learn(pool, suites, {'--' + option.split(':')[1] for option in left})
        seen = set()
        for option, name in zip(left, pool.map(lambda option, asked=asked: tests.seen_by(option, asked), left)):
            if name:
                seen.add(option)
                print(f'{option}: {name}, {tests.took[name]:.1f} s', flush=True)
        left = [option for option in left if option not in seen]
        if not set(left) - set(UNSEEN):
            break
    return left


def main():
    build, library, wanted = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), set(sys.argv[3:])
    options = [f'{c.name}:{o.long}' for c in table.read(f'{build}/cmd/btrkit') for o in c.options
               if not wanted or wanted & {c.name, f'{c.name}:{o.long}'}]
    if os.environ.get('SANITIZED'):
        print('skipped: a sanitizer wants to be the first library')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='ignored-') as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.chmod(folder, 0o755)
        left = ask(Tests(build, library, folder), options, pool)
    for option in left:
        print(f'{option}: {UNSEEN.get(option, "no test fails when it is ignored")}')
    for option in set(UNSEEN) & set(options) - set(left):
        print(f'{option}: a test fails when it is ignored, and it is said that none does')
    print(f'{len(options)} options, {len(options) - len(left)} of which have a test that fails when they are ignored, '
          f'{len(set(left) & set(UNSEEN))} that cannot have one')
    sys.exit(1 if set(left) ^ set(UNSEEN) & set(options) or not options else 0)


if __name__ == '__main__':
    main()
