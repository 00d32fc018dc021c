#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that a header declares what the source file of its name defines. A declaration of another file stands behind a
comment that names the file: "/* In y.c: */" above it or above those before it, or "y.c" in its own comment.
Usage: homes.py ROOT"""
import pathlib
import re
import sys

import common

DEFINITION = re.compile(r"^(?!static|typedef|extern|struct \w+ \{|#)[A-Za-z][^;{}#]*?\b(\w+)\((?:[^;{}]|\n)*?\)\n\{",
                        re.M)
PIECE = re.compile(r"/\*.*?\*/|^(?!static|typedef|#)[A-Za-z][^;{}#/]*?\(?\b(\w+)\)?\([^;{}]*?;|"
                   r"^(?:static|typedef|struct|union|enum)\b[^;{]*\{.*?^\}[^;\n]*;?|^[^\n]*$", re.M | re.S)
HEADING = re.compile(r"/\*\s*(?:\*\s*)?In ([\w-]+\.c(?:, [\w-]+\.c)*(?: and [\w-]+\.c)?):.*\*/", re.S)
NAMED = re.compile(r"\b([\w-]+)\.c\b")


def definitions(root):
    """Return {function: {stems of the files that define it}}."""
    found = {}
    for path, source in common.files(root, "lib/**/*.c", "cmd/**/*.c"):
        for match in DEFINITION.finditer(common.without_comments(path.read_text())):
            found.setdefault(match.group(1), set()).add(path.stem)
    return found


def check_header(header, text, found):
    """Yield (line number, message)."""
    stem, section, comment, end = pathlib.Path(header).stem, set(), "", 0
    for match in PIECE.finditer(text):
        piece = match.group()
        if piece.startswith("/*"):
            if HEADING.fullmatch(piece):
                section = set(NAMED.findall(piece))
                comment = ""
            else:
                comment, end = piece, match.end()
        elif match.group(1):
            name = match.group(1)
            homes = found.get(name, set())
            if text[end:match.start()].strip():
                comment = ""
            known = (section or {stem}) | set(NAMED.findall(comment))
            if homes and not homes & known:
                yield text.count("\n", 0, match.start()) + 1, f"{name}() is defined in {', '.join(sorted(homes))}.c"
            end = match.end()


def main():
    root = sys.argv[1]
    found = definitions(root)
    headers = common.files(root, "lib/**/*.h", "cmd/**/*.h")
    common.verdict("homes", len(headers), "headers",
                   [f"{header}:{line}: {message}" for path, header in headers
                    for line, message in check_header(header, path.read_text(), found)])


if __name__ == "__main__":
    main()
