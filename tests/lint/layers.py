#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks includes: each layer of lib/ may include only layers below it, and cmd/ only public headers and printers. A
layer must define what its headers declare, so that it calls nothing above it either. lib/README.md, which shows the
layers, must name each source file under its layer. Usage: layers.py ROOT"""
import fnmatch
import pathlib
import re
import sys

import common

# From the bottom up.
LAYERS = ["base", "format", "io", "volume", "tree", "space", "backref", "sweep", "fs", "commit", "delayed",
          "reserve", "txn", "modify", "usage", "check", "report", "iterate", "dump", "space_cache", "source", "mkfs",
          "extract", "print"]

# What printers may know besides public headers: how to write, and names in the format.
PRINTERS_SHARE = ("base", "format", "print")

# Headers that neither the library nor the commands may use: processes, mounts, and foreign on-disk structs.
FORBIDDEN = {"sys/mount.h", "mntent.h", "spawn.h", "sys/wait.h", "linux/btrfs.h", "linux/btrfs_tree.h"}

# lib/base and lib/format work on bytes only.
IO_HEADERS = {"fcntl.h", "unistd.h", "sys/ioctl.h", "sys/uio.h", "linux/fs.h", "btrkit/io.h",
              "btrkit/filesystem.h"}

PUBLIC_SYSTEM = {"stdbool.h", "stddef.h", "stdint.h"}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M)
# The type, the name, which may be in parentheses, the parameters, attributes, and what follows.
FUNCTION = re.compile(r"^[A-Za-z_][\w \t\n*]*?(?:\(([a-z_]\w*)\)|\b([a-z_]\w*))\s*\([^;{}]*?\)"
                      r"(?:\s*[A-Z_]+(?:\([^)]*\))?)*\s*([;{])", re.M)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def check_lib(layer, form, name):
    if form == "<":
        if layer in ("base", "format") and name in IO_HEADERS:
            return f"lib/{layer} works on bytes and does no I/O"
        return None
    if name == "config.h":
        return None
    parts = name.split("/")
    if parts[0] != "lib" or len(parts) < 3:
        return "quoted includes in lib/ are written from the root, as lib/LAYER/FILE.h"
    if parts[1] not in LAYERS:
        return f"lib/{parts[1]} is no layer; layers.py lists them"
    if LAYERS.index(parts[1]) > LAYERS.index(layer):
        return f"lib/{layer} lies below lib/{parts[1]}"
    if layer == "print" and parts[1] not in PRINTERS_SHARE:
        return "lib/print includes only <btrkit/*.h>, headers of the system, lib/base and lib/format"
    return None


def check_cmd(form, name):
    if form == "<" or (re.fullmatch(r"cmd/(?:\w+/)?[^/]+\.h", name)):
        return None
    if re.fullmatch(r"lib/print/[^/]+\.h", name):
        return None
    return "cmd/ includes only <btrkit/*.h>, lib/print/*.h, headers of the system and cmd/*.h"


def check_public(form, name):
    if form == "<" and (name in PUBLIC_SYSTEM or re.fullmatch(r"btrkit/[^/]+\.h", name)):
        return None
    return "a public header includes only <btrkit/*.h> and " + ", ".join(sorted(PUBLIC_SYSTEM))


def check(source, form, name):
    top, *rest = source.split("/")
    if name in FORBIDDEN:
        return "nothing here uses that"
    if top == "include":
        return check_public(form, name)
    if top == "cmd":
        return check_cmd(form, name)
    if rest[0] not in LAYERS:
        return f"lib/{rest[0]} is no layer; layers.py lists them"
    return check_lib(rest[0], form, name)


def functions(text, end):
    """The functions that the text declares (@end is ";") or defines ("{")."""
    text = COMMENT.sub("", text)
    return {match[1] or match[2] for match in FUNCTION.finditer(text)
            if match[3] == end and not match[0].startswith(("typedef", "static"))}


def check_declarations(root):
    """Yield what headers declare that no source file of their layer defines."""
    for layer in LAYERS:
        defined = set()
        for path, _ in common.files(root, f"lib/{layer}/**/*.[ch]"):
            defined |= functions(path.read_text(), "{")
        for path, header in common.files(root, f"lib/{layer}/**/*.h"):
            for name in sorted(functions(path.read_text(), ";") - defined):
                yield f"{header}: declares {name}(), which lib/{layer} does not define"


def check_page(root):
    """Yield the problems of lib/README.md, which lists the files of each layer. Names may have wildcards; a directory
    that is named stands for all of its files."""
    page = pathlib.Path(root, "lib/README.md").read_text()
    lists = dict(re.findall(r"^### lib/(\w+)[^\n]*\n(.*?)(?=^#|\Z)", page, re.M | re.S))
    for layer in LAYERS:
        named = re.findall(r"`([\w*]+\.\w+)`", lists.get(layer, ""))
        whole = [f"lib/{layer}/{name}" for name in re.findall(r"`(\w+/)`", lists.get(layer, ""))]
        sources = [(path.name, source) for path, source in common.files(root, f"lib/{layer}/**/*.*")
                   if not source.startswith(tuple(whole))]
        for name, source in sources:
            if name.endswith(".c") and not any(fnmatch.fnmatch(name, pattern) for pattern in named):
                yield f"lib/README.md: nothing of {source}"
        for pattern in named:
            if not any(fnmatch.fnmatch(name, pattern) for name, _ in sources):
                yield f"lib/README.md: there is no {pattern} in lib/{layer}"


def main(root):
    problems = [*check_page(root), *check_declarations(root)]
    checked = 0
    for path, source in common.files(root, "lib/*/**/*.[ch]", "cmd/**/*.[ch]", "include/**/*.h"):
        for form, name in INCLUDE.findall(path.read_text()):
            checked += 1
            problem = check(source, form, name)
            if problem:
                problems.append(f"{source}: includes {name}: {problem}")
    common.verdict("layers", checked, "includes", problems)


if __name__ == "__main__":
    main(sys.argv[1])
