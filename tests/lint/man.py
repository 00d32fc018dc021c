#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The man pages must have the same commands, long options and codes of check as the binary prints.
Usage: man.py ROOT BTRKIT [--write-codes]; --write-codes updates the codes in the page of check."""
import pathlib
import re
import subprocess
import sys

import common


def told(binary, *arguments):
    return subprocess.run([binary, *arguments], capture_output=True, text=True, check=True).stdout


def options(text):
    """Return the long options that begin a line of --help, perhaps after a short option."""
    return set(re.findall(r"^ +(?:-\w, +)?(--[a-z][a-z-]*)", text, flags=re.M))


def described(page):
    """Return the long options that have a paragraph in the page."""
    return {name for line in page.splitlines() if line.startswith("*-")
            for name in re.findall(r"\*(--[a-z][a-z-]*)\*", line)}


def compare(name, text, page):
    for option in sorted(options(text) - described(page)):
        yield f"man/{name}.8.scd: {option} has no paragraph"
    for option in sorted(described(page) - options(text)):
        yield f"man/{name}.8.scd: {option} is no option: {name} --help does not tell it"


CODES = re.compile(r"(?<=\n# CODES\n\n).*?(?=# EXIT STATUS\n)", flags=re.S)


def codes(binary):
    """Return the codes as paragraphs of the page of check."""
    rows = re.findall(r"^(\S+) (\S+): (.)(.*)", told(binary, "check", "--list-codes"), flags=re.M)
    return "".join(f"*{name}* ({severity})\n\t{first.upper()}{rest}.\n\n".replace("_", "\\_")
                   for name, severity, first, rest in rows)


def write_codes(manual, binary):
    page = manual / "btrkit-check.8.scd"
    page.write_text(CODES.sub(lambda _: codes(binary), page.read_text()))


def main(root, binary, *how):
    manual = pathlib.Path(root) / "man"
    if how == ("--write-codes",):
        write_codes(manual, binary)
    overview = told(binary, "--help")
    commands = re.findall(r"^  ([a-z][a-z-]*) ", overview, flags=re.M)
    pages = {path.name.removesuffix(".8.scd"): path.read_text() for path in manual.glob("*.8.scd")}
    wanted = {"btrkit": overview, **{f"btrkit-{name}": told(binary, name, "--help") for name in commands}}
    problems = [f"man/{name}.8.scd is missing" for name in sorted(wanted.keys() - pages.keys())]
    problems += [f"man/{name}.8.scd: there is no such command" for name in sorted(pages.keys() - wanted.keys())]
    for name in sorted(wanted.keys() & pages.keys()):
        problems += compare(name, wanted[name], pages[name])
    listed = (manual / "meson.build").read_text()
    problems += [f"man/meson.build: {name} is not built" for name in
                 sorted(path.name.removesuffix(".scd") for path in manual.glob("*.scd")) if f"'{name}'" not in listed]
    problems += [f"man/btrkit.8.scd: does not list *{name}*(8)" for name in sorted(wanted.keys() - {"btrkit"})
                 if f"*{name}*(8)" not in pages.get("btrkit", "")]
    if CODES.findall(pages.get("btrkit-check", "")) != [codes(binary)]:
        problems.append("man/btrkit-check.8.scd: has other codes than the binary: run this with --write-codes")
    common.verdict("man", sum(len(options(text)) for text in wanted.values()), "options", problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
