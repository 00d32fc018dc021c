#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each source file that mentions an optional library compiles without a warning, as in the build, with each of these
libraries switched off, and with all of them. Usage: optional.py ROOT BUILD"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import common


def commands(build):
    """Return the compiler command of each source file, without its output files."""
    found = {}
    for each in json.loads((build / "compile_commands.json").read_text()):
        words = iter(shlex.split(each["command"]))
        kept = [word for word in words
                if word not in ("-MD", "-c") and not (word in ("-MQ", "-MF", "-o") and next(words))]
        found.setdefault(os.path.realpath(os.path.join(each["directory"], each["file"])), (each["directory"], kept))
    return found


def variants(text, config):
    """Yield the macros that are switched off, and the config.h for that: each that a file tests alone, and all."""
    tested = sorted(set(re.findall(r"\bHAVE_\w+", text)))
    for off in [{name} for name in tested] + ([set(tested)] if len(tested) > 1 else []):
        yield off, "".join(line for line in config.splitlines(keepends=True)
                           if not any(re.search(rf"\b{name}\b", line) for name in off))


def compiles(directory, command, config):
    """Return the first line of the compiler about a problem, or None."""
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "config.h").write_text(config)
        command = [*command[:-1], "-Werror", "-fdiagnostics-color=never", "-S", "-o", "/dev/null", command[-1]]
        # The first directory wins. A wrapper such as ccache precedes the compiler.
        first = next(i for i, word in enumerate(command) if word.startswith("-"))
        run = subprocess.run([*command[:first], f"-I{place}", *command[first:]], cwd=directory, capture_output=True,
                             text=True, check=False)
    said = run.stderr.splitlines()
    return None if not run.returncode else next((line for line in said if "error:" in line), "the compiler failed")


def main(root, build):
    build = pathlib.Path(build)
    config, known = (build / "config.h").read_text(), commands(build)
    jobs = []
    for path, name in common.files(root, "lib/**/*.c", "cmd/**/*.c"):
        if os.path.realpath(path) in known:
            jobs += [(name, off, *known[os.path.realpath(path)], header)
                     for off, header in variants(common.without_comments(path.read_text()), config)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda job: compiles(*job[2:]), jobs)
        problems = [f"{name} without {', '.join(sorted(off))}: {problem}"
                    for (name, off, *_), problem in zip(jobs, results) if problem]
    common.verdict("optional", len(jobs), "compilations", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
