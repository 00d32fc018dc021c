# SPDX-License-Identifier: LGPL-2.1-or-later
"""Helpers shared by the lints: listing files, removing comments, reporting the result."""
import collections
import pathlib
import re
import sys


def files(root, *patterns):
    """Return the matching files below @root, as (path, path relative to root as text)."""
    root = pathlib.Path(root)
    found = sorted({p for pattern in patterns for p in root.glob(pattern) if p.is_file()})
    return [(p, p.relative_to(root).as_posix()) for p in found]


def without_comments(text):
    """Return C source with comments and the contents of literals blanked, without changing line numbers."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] * 2
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


Function = collections.namedtuple("Function", "header name type parameters comment")


def functions(root):
    """Yield the functions that the public headers declare, in order; parameters are (type, name)."""
    declaration = re.compile(r"(?:/\*\*((?:(?!\*/).)*)\*/\n)?^([a-z][\w ]*?[ *]+(?:const \*)?)([a-z]\w*)"
                             r"\(([^;{}()]*)\)[^;{}()]*;", flags=re.M | re.S)
    for path, header in files(root, "include/btrkit/*.h"):
        for comment, kind, name, inside in declaration.findall(path.read_text()):
            if kind.startswith("typedef"):
                continue
            pairs = [re.fullmatch(r"(.*?)(\w+)(?:\[\d*\])?", " ".join(p.split())).groups()
                     for p in inside.split(",") if p.strip() != "void"]
            yield Function(header, name, kind.strip(), [(t.strip(), p) for t, p in pairs], comment)


def verdict(name, checked, what, problems):
    """End a lint: it fails on any problem, and if it checked nothing."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked} {what} checked, {len(problems)} problems")
    sys.exit(1 if problems or not checked else 0)
