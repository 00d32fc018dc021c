#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The public API follows the rules of btrkit.h: every function has a comment with all parameters, @return and Since:;
a function whose first parameter is a handle has the prefix of that handle; structs that callers fill in can be
extended; a unit test calls every function. Usage: api.py ROOT"""
import pathlib
import re
import sys

import common

# The prefixes of functions whose first parameter is such a handle.
HANDLES = {"struct btrkit_txn *": "btrkit_txn_", "struct btrkit_file *": "btrkit_file_",
           "struct btrkit_usage *": "btrkit_usage_", "struct btrkit_usage_paths *": "btrkit_usage_paths_",
           "struct btrkit_descent *": "btrkit_descent_"}


def known(root):
    """Return the names of parameters that btrkit.h explains for all functions."""
    umbrella = pathlib.Path(root) / "include/btrkit/btrkit.h"
    lines = re.findall(r"^ \* - ((?:@c \w+(?:, )?)+):", umbrella.read_text(), flags=re.M) if umbrella.exists() else []
    return {name for line in lines for name in re.findall(r"@c (\w+)", line)}


def check_comment(f, everywhere, comments):
    if not f.comment:
        yield "has no comment"
        return
    if not re.search(r"\bSince: \d+\.\d+\s*$", f.comment):
        yield "its comment does not end with Since:"
    if f.type != "void" and "@return" not in f.comment:
        yield "its comment has no @return"
    # Parameters may be documented at another function that the comment refers to.
    told = f.comment + "".join(comments.get(name, "") for name in re.findall(r"\b(btrkit_\w+)\(\)", f.comment))
    for _, name in f.parameters:
        if name not in everywhere and not re.search(rf"@(?:param|p|c) {name}\b", told):
            yield f"its comment does not tell of {name}"


def check_name(f):
    if f.parameters:
        first = f.parameters[0][0].removeprefix("const ")
        if first in HANDLES and not f.name.startswith(HANDLES[first]):
            yield f"takes a {first.strip(' *')} and does not begin with {HANDLES[first]}"


def structs(root):
    """Return (header, comment, members) of each struct that the headers define."""
    found = {}
    for path, header in common.files(root, "include/btrkit/*.h"):
        for comment, name, members in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\nstruct (btrkit_\w+) \{\n(.*?)\n\};",
                                                 path.read_text(), flags=re.S):
            found[name] = header, comment, members
    return found


def main(root):
    functions = list(common.functions(root))
    everywhere, comments = known(root), {f.name: f.comment for f in functions}
    problems = [f"{f.header}: {f.name} {problem}" for f in functions
                for problem in (*check_comment(f, everywhere, comments), *check_name(f))]
    passed = {name for f in functions for kind, _ in f.parameters
              for name in re.findall(r"^(?:const )?struct (btrkit_\w+) \*$", kind)}
    for name, (header, comment, members) in structs(root).items():
        if "Since: " not in comment:
            problems.append(f"{header}: struct {name}: its comment has no Since:")
        if name in passed and "reserved[" not in members.split("\n")[-1] and "Never grows." not in comment:
            problems.append(f"{header}: struct {name} is passed by callers and does not end with reserved members")
    tests = "".join(path.read_text() for path, _ in common.files(root, "tests/unit/*.[ch]"))
    if tests:
        called = set(re.findall(r"\bbtrkit_\w+", tests))
        problems += [f"{f.header}: no test in tests/unit calls {f.name}" for f in functions if f.name not in called]
    common.verdict("api", len(functions), "functions", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
