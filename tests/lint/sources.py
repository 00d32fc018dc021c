#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the size, format and licence line of each source file, and its ioctls. Usage: sources.py ROOT"""
import re
import sys

import common

FILE_LINES = 600
COMMAND_LINES = 300
FUNCTION_LINES = 100
COLUMNS = 120
SPDX = "SPDX-License-Identifier: LGPL-2.1-or-later"

# Only ioctls of block devices are allowed, none of filesystems, with two exceptions: SCAN_DEVICE tells the kernel about
# a new filesystem, and FICLONERANGE lets an image share blocks with other files, on any filesystem that can do that.
IOCTLS = {"BLKDISCARD", "BLKFLSBUF", "BLKGETSIZE64", "BLKGETZONESZ", "BLKREPORTZONE", "BLKROGET", "FICLONERANGE",
          "LOOP_GET_STATUS64", "SCAN_DEVICE"}
# Extracted files get their original flags, on a mounted filesystem; blocks of nodatacow files are not shared.
FLAGS_OF_FILES = {"lib/extract/flags.c": {"FS_IOC_GETFLAGS", "FS_IOC_SETFLAGS", "FS_IOC_FSGETXATTR",
                                          "FS_IOC_FSSETXATTR"},
                  "lib/mkfs/filled/contents.c": {"FS_IOC_GETFLAGS"}}


def functions(lines):
    """Yield (line number, length) of each function body, which starts with a brace alone in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start + 1
            start = None


def check_lines(lines):
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield number, "a note to do something later"
        if re.match(r"(<{7}|={7}|>{7})( |$)", line):
            yield number, "the mark of a conflict"
        if len(line.expandtabs(8)) > COLUMNS:
            yield number, f"more than {COLUMNS} columns"
        if line != line.rstrip():
            yield number, "white space at the end"


def check_c(source, text, lines):
    opening = f"/* {SPDX} */" if source.endswith(".h") else f"// {SPDX}"
    if not lines or lines[0] != opening:
        yield 1, f"the first line must be: {opening}"
    guard = re.search(r"^#ifndef (\w+_H)$", text, flags=re.M) if source.endswith(".h") else None
    if guard and not guard.group(1).endswith(re.sub(r"\W", "_", source.rsplit("/", 1)[-1]).upper()):
        yield text.count("\n", 0, guard.start()) + 1, f"{guard.group(1)} does not end with the name of the file"
    limit = COMMAND_LINES if source.startswith("cmd/") else FILE_LINES
    if len(lines) > limit:
        yield len(lines), f"more than {limit} lines in a file"
    for start, length in functions(lines):
        if length > FUNCTION_LINES:
            yield start, f"a function of {length} lines, more than {FUNCTION_LINES}"
    if source.startswith("tests/"):
        return
    code = common.without_comments(text)
    allowed = FLAGS_OF_FILES.get(source, set())
    for match in re.finditer(r"\bioctl\s*\(\s*[^,]+,\s*(\w+)", code):
        if match.group(1) not in IOCTLS | allowed:
            yield code.count("\n", 0, match.start()) + 1, f"ioctl {match.group(1)} is not one of sources.py's"
    for match in re.finditer(r"\b(BTRFS_IOC_\w+|FS_IOC_\w+|FIBMAP)\b", code):
        if match.group(1) in allowed:
            continue
        yield code.count("\n", 0, match.start()) + 1, f"{match.group(1)}: an ioctl of a filesystem"


def check(source, text):
    lines = text.split("\n")
    if lines[-1]:
        yield len(lines), "no newline at the end of the file"
    lines = lines[:-1]
    if source.endswith((".c", ".h")):
        yield from check_c(source, text, lines)
    else:
        if SPDX not in "\n".join(lines[:2]):
            yield 1, f"no licence line ({SPDX}) among the first two"
        if source.endswith((".html", ".css", ".js")) and len(lines) > FILE_LINES:
            yield len(lines), f"more than {FILE_LINES} lines in a file"
    # The patterns in this file would match themselves.
    if source != "tests/lint/sources.py":
        yield from check_lines(lines)


def main(root):
    problems = []
    found = common.files(root, "lib/**/*.[ch]", "lib/**/*.py", "lib/**/*.html", "lib/**/*.css", "lib/**/*.js",
                         "cmd/**/*.[ch]", "include/**/*.h", "examples/*.[ch]", "tests/**/*.[ch]", "tests/**/*.py",
                         "tests/**/*.sh", "images/**/*.py", "images/**/*.sh", "**/meson.build", "dev", ".ci/run")
    found = [(path, source) for path, source in found if not source.startswith("build")]
    for path, source in found:
        problems += [f"{source}:{number}: {what}" for number, what in check(source, path.read_text())]
    common.verdict("sources", len(found), "files", problems)


if __name__ == "__main__":
    main(sys.argv[1])
