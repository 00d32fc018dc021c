#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each header compiles alone: the public ones as C11 and as C++, the others as this project's C.
Usage: headers.py ROOT BUILD CC... [--cxx CXX...]"""
import subprocess
import sys

import common

STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def compiles(command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if run.returncode == 0 else (run.stderr or "the compiler failed").strip().split("\n")[0]


def main(root, build, *compilers):
    compilers = list(compilers)
    cxx = []
    if "--cxx" in compilers:
        at = compilers.index("--cxx")
        compilers, cxx = compilers[:at], compilers[at + 1:]
    jobs = []
    for path, name in common.files(root, "include/**/*.h"):
        public = [*STRICT, f"-I{root}/include", str(path)]
        jobs.append((name, "C11", [*compilers, "-std=c11", "-pedantic-errors", "-x", "c", *public]))
        if cxx:
            jobs.append((name, "C++", [*cxx, "-std=c++11", "-pedantic-errors", "-x", "c++", *public]))
    for path, name in common.files(root, "lib/**/*.h", "cmd/**/*.h"):
        jobs.append((name, "C", [*compilers, "-std=gnu11", "-D_GNU_SOURCE", "-x", "c", *STRICT, "-Wno-unused-function",
                                 "-Wno-unused-const-variable", f"-I{root}", f"-I{root}/include", f"-I{build}",
                                 str(path)]))
    problems = []
    for name, language, command in jobs:
        problem = compiles(command)
        if problem:
            problems.append(f"{name}: does not compile alone as {language}: {problem}")
    if not cxx:
        print("headers: there is no C++ compiler: C only")
    common.verdict("headers", len(jobs), "compilations", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
