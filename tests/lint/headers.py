#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each header compiles alone: public headers as C99, C11 and C++, others as the C of this project. Variables that are
initialized by the _INIT macros compile too. Usage: headers.py ROOT BUILD CC... [--cxx CXX...]"""
import re
import subprocess
import sys

import common

STRICT = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def compiles(command, source=None):
    run = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return None if run.returncode == 0 else (run.stderr or "the compiler failed").strip().split("\n")[0]


def initialised(headers):
    """Return a program that uses every macro NAME_INIT to initialize a struct NAME."""
    names = [name for path, _ in headers for name in re.findall(r"^#define (BTRKIT_\w+)_INIT\b", path.read_text(),
                                                               flags=re.M)]
    return "".join([*(f"#include <{name.removeprefix('include/')}>\n" for _, name in headers),
                    "int main(void)\n{\n\tint n = 0;\n",
                    *(f"\t{{ struct {name.lower()} x = {name}_INIT; n += *(char *)&x; }}\n" for name in names),
                    "\treturn n;\n}\n"]) if names else ""


def main(root, build, *compilers):
    compilers = list(compilers)
    cxx = []
    if "--cxx" in compilers:
        at = compilers.index("--cxx")
        compilers, cxx = compilers[:at], compilers[at + 1:]
    jobs = []
    strict = [*STRICT, "-pedantic-errors", f"-I{root}/include"]
    languages = [(language, [*compilers, f"-std={language.lower()}", *strict, "-x", "c"])
                 for language in ("C99", "C11")]
    if cxx:
        languages.append(("C++", [*cxx, "-std=c++11", *strict, "-x", "c++"]))
    headers = common.files(root, "include/**/*.h")
    for path, name in headers:
        jobs += [(name, language, [*command, str(path)]) for language, command in languages]
    for path, name in common.files(root, "lib/**/*.h", "cmd/**/*.h"):
        jobs.append((name, "C", [*compilers, "-std=gnu11", "-D_GNU_SOURCE", "-x", "c", *STRICT, "-Wno-unused-function",
                                 "-Wno-unused-const-variable", f"-I{root}", f"-I{root}/include", f"-I{build}",
                                 str(path)]))
    problems = []
    program = initialised(headers)
    for language, command in languages if program else ():
        problem = compiles([*command, "-"], program)
        if problem:
            problems.append(f"include/btrkit: what the macros initialise does not compile as {language}: {problem}")
    for name, language, command in jobs:
        problem = compiles(command)
        if problem:
            problems.append(f"{name}: does not compile alone as {language}: {problem}")
    if not cxx:
        print("headers: there is no C++ compiler: C only")
    common.verdict("headers", len(jobs), "compilations", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
