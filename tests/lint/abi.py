#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The sizes and offsets of public structs, and the values of constants, must be those of abi.txt, which programs that
were built earlier depend on. For 64-bit machines, which all agree.
Usage: abi.py ROOT CC... [--write]; --write updates abi.txt from the headers."""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

import common

TABLE = "tests/lint/abi.txt"


def members(body):
    """Yield the names of the members of a struct, whose comments have been removed."""
    for declaration in body.split(";"):
        function = re.search(r"\(\*(\w+)(?:\[\w+\])?\)\(", declaration)
        if function:
            yield function.group(1)
        elif declaration.strip():
            for one in re.sub(r"\([^()]*\)", "", declaration).split(","):
                yield re.search(r"(\w+)(?:\s*\[[^\]]*\])*\s*$", one).group(1)


def program(headers):
    """Return a C program that prints the table."""
    lines = []
    for path, _ in headers:
        code = common.without_comments(path.read_text())
        for name, body in re.findall(r"^struct (btrkit_\w+) \{\n(.*?)\n\};", code, flags=re.M | re.S):
            lines.append(f'printf("struct {name} %zu\\n", sizeof(struct {name}));')
            lines += [f'printf("\\t{m} %zu %zu\\n", offsetof(struct {name}, {m}), sizeof(((struct {name} *)0)->{m}));'
                      for m in members(body)]
        constants = [constant for body in re.findall(r"^enum \w+ \{(.*?)\};", code, flags=re.M | re.S)
                     for constant in re.findall(r"\bBTRKIT_\w+(?=\s*(?:=|,|$|\}))", body, flags=re.M)]
        constants += re.findall(r"^#define (BTRKIT_\w+)[ \t]+\(?\d\w*\)?[ \t]*$", code, flags=re.M)
        lines += [f'printf("{name} %lld\\n", (long long){name});' for name in dict.fromkeys(constants)]
    includes = ["stddef.h", "stdio.h", *(name.removeprefix("include/") for _, name in headers)]
    return ("".join(f"#include <{name}>\n" for name in includes) +
            "int main(void)\n{\n\tif (sizeof(void *) != 8)\n\t\treturn 77;\n\t" + "\n\t".join(lines) +
            "\n\treturn 0;\n}\n")


def measure(root, headers, compiler):
    with tempfile.TemporaryDirectory() as folder:
        binary = f"{folder}/abi"
        subprocess.run([*compiler, "-x", "c", "-", f"-I{root}/include", "-o", binary], input=program(headers),
                       text=True, check=True)
        try:
            run = subprocess.run([binary], capture_output=True, text=True, check=False)
        except OSError:
            run = None
    if not run or run.returncode == 77:
        print("skipped: the table is of machines with 64 bits, and needs one to run on")
        sys.exit(77)
    return run.stdout


def main(root, *compiler):
    headers = common.files(root, "include/btrkit/*.h")
    found = measure(root, headers, [word for word in compiler if word != "--write"])
    table = pathlib.Path(root) / TABLE
    if "--write" in compiler:
        table.write_text(found)
    wanted = table.read_text() if table.exists() else ""
    problems = [line for line in difflib.unified_diff(wanted.split("\n"), found.split("\n"), TABLE, "the headers",
                                                      lineterm="", n=1)]
    if problems:
        problems.append("programs that were built before break by this; before a release run this with --write")
    common.verdict("abi", found.count("\n"), "sizes, offsets and numbers", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
