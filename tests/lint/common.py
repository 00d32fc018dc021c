# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lints share: the files of a tree, text without comments, the verdict."""
import collections
import pathlib
import re
import sys


def files(root, *patterns):
    """Files of the tree @root that match, as (path, path relative to the root as text)."""
    root = pathlib.Path(root)
    found = sorted({p for pattern in patterns for p in root.glob(pattern) if p.is_file()})
    return [(p, p.relative_to(root).as_posix()) for p in found]


def without_comments(text):
    """C source with comments and the insides of literals blanked; every line keeps its number."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] * 2
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


Function = collections.namedtuple("Function", "header name type parameters comment")


def functions(root):
    """What the public headers declare, in their order; of each parameter its type and name."""
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
    """Ends a lint: it fails on any problem, and when it had nothing to look at."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked} {what} checked, {len(problems)} problems")
    sys.exit(1 if problems or not checked else 0)
