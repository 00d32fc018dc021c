#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks what the library exports, what it and the binary import, and that it has no mutable data.
Usage: symbols.py names ROOT                the symbol file lists the functions that the headers declare
       symbols.py exports ROOT LIBRARY      the library exports exactly these
       symbols.py imports library|binary FILE
       symbols.py data LIBRARY"""
import re
import subprocess
import sys

import common

PROCESSES = {"system", "popen", "fork", "vfork", "_Fork", "clone", "execl", "execle", "execlp", "execv", "execve",
             "execveat", "execvp", "execvpe", "fexecve", "posix_spawn", "posix_spawnp", "syscall", "dlopen", "mount",
             "umount", "umount2", "move_mount", "fsopen", "fsmount", "open_tree", "mount_setattr"}

# snprintf and similar functions only write to memory, and are allowed. So is __stack_chk_fail, which the stack
# protector of the compiler calls when it finds a smashed stack.
OUTPUT = {"printf", "vprintf", "fprintf", "vfprintf", "dprintf", "vdprintf", "puts", "fputs", "putchar", "putc",
          "fputc", "_IO_putc", "fwrite", "fflush", "perror", "psignal", "syslog", "vsyslog", "err", "errx", "warn",
          "warnx", "error", "stdout", "stderr"}

ENDS = {"exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail", "__assert_perror_fail", "assert", "raise",
        "kill", "longjmp", "siglongjmp", "pthread_exit"}

FORBIDDEN = {"library": PROCESSES | OUTPUT | ENDS, "binary": PROCESSES}

# Objects of the C runtime, which every shared library has.
RUNTIME_DATA = re.compile(r"completed\.\d+|__dso_handle|__TMC_END__|_edata|_end|__bss_start|__frame_dummy\w*")
# Whether libgcrypt, which has global state, has been initialized.
BEGUN = {"gcrypt_begun"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def declared(root):
    """Return the functions that the public headers declare, as {name: header}."""
    names = {}
    for path, header in common.files(root, "include/btrkit/*.h"):
        code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", common.without_comments(path.read_text()), flags=re.M)
        for name in re.findall(r"\b([a-z]\w*)\s*\((?!\s*\*)", code):
            names[name] = header
    return names


def listed(root):
    """Return the names that the symbol file exports, in order."""
    text = common.without_comments((common.pathlib.Path(root) / "lib/libbtrkit.sym").read_text())
    return [name for part in re.findall(r"global:(.*?)(?:local:|\})", text, flags=re.S)
            for name in re.findall(r"([^\s;]+)\s*;", part)]


def exported(library):
    """Return the defined dynamic symbols, except for the version node, which nm shows as absolute."""
    rows = [line.split() for line in run("nm", "-D", "--defined-only", library).splitlines()]
    return {row[-1].split("@")[0] for row in rows if row[-2] != "A"}


def names(root):
    headers, symbols = declared(root), listed(root)
    problems = [f"{header}: {name} does not begin with btrkit_"
                for name, header in headers.items() if not name.startswith("btrkit_")]
    problems += [f"{headers[name]} declares {name}: add the line '\t{name};' to lib/libbtrkit.sym"
                 for name in sorted(headers.keys() - set(symbols))]
    problems += [f"lib/libbtrkit.sym: {name} is declared in no header of include/btrkit: declare it or take it out"
                 for name in sorted(set(symbols) - headers.keys())]
    if symbols != sorted(set(symbols)):
        problems.append("lib/libbtrkit.sym: keep the names in order, each once")
    common.verdict("names", len(headers), "functions", problems)


def exports(root, library):
    headers, symbols = declared(root), exported(library)
    problems = [f"{library}: {name} is declared in {headers[name]} and not exported: is it written, and in the list?"
                for name in sorted(headers.keys() - symbols)]
    problems += [f"{library}: exports {name}, which no header of include/btrkit declares"
                 for name in sorted(symbols - headers.keys())]
    common.verdict("exports", len(symbols), "symbols", problems)


def plain(name):
    """Return the plain name of a fortified function: __fprintf_chk is fprintf."""
    name = name.split("@")[0]
    fortified = re.fullmatch(r"__(\w+)_chk", name)
    return fortified.group(1) if fortified else name


def imports(kind, file):
    rows = [line.split()[-1] for line in run("nm", "-D", "--undefined-only", file).splitlines()]
    problems = [f"{file}: imports {row}, which a {kind} may not" for row in rows if plain(row) in FORBIDDEN[kind]]
    common.verdict("imports", len(rows), "symbols", problems)


def data(library):
    sections = dict(re.findall(r"^\s*\[\s*(\d+)\]\s+(\S+)", run("readelf", "-SW", library), flags=re.M))
    objects = re.findall(r"^\s*\d+:\s+\S+\s+(\S+)\s+(?:OBJECT|TLS)\s+\S+\s+\S+\s+(\d+)\s+(\S+)",
                         run("readelf", "-sW", library), flags=re.M)
    problems = []
    for size, index, name in sorted(set(objects), key=lambda row: row[2]):
        section = sections.get(index, "?")
        if re.match(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)", section) and not (
                name in BEGUN or RUNTIME_DATA.fullmatch(name)):
            problems.append(f"{library}: {name} ({size} bytes in {section}) is data that can change: make it const, or "
                            "a member of a handle")
    common.verdict("data", len(objects), "objects", problems)


if __name__ == "__main__":
    {"names": names, "exports": exports, "imports": imports, "data": data}[sys.argv[1]](*sys.argv[2:])
