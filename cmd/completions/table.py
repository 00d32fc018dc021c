# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can follow on a command line, from the binary's --help, which is printed from the same tables as it is parsed by."""
import dataclasses
import re
import subprocess

# One line of --help; two spaces end what stands on the left.
OPTION = re.compile(r"^ +(?:-(\w), +)?--([a-z][a-z0-9-]*)(?: (\S+)|\[=(\S+)\])?  +(\S.*)$")
PROFILES = "single dup raid0 raid1 raid1c3 raid1c4 raid10 raid5 raid6".split()
# By the name of an argument: words that it can be.
WORDS = {"PROFILE": PROFILES, "TYPE": "crc32c xxhash sha256 blake2".split(),
         "ALGO[:LEVEL]": "no zlib lzo zstd".split(), "TYPE[:LEVEL]": "no zlib lzo zstd".split()}
TREES = "root extent chunk dev fs csum quota uuid free_space block_group tree_log".split()


@dataclasses.dataclass
class Kind:
    """What an argument is: one of some words; a file, a directory or a device of this machine; or none of these."""
    name: str
    what: str = "other"
    words: tuple = ()


@dataclasses.dataclass
class Option:
    short: str
    long: str
    help: str
    kind: Kind = None       # None: it takes no argument
    optional: bool = False  # which stands behind "=" then, or is not there


@dataclasses.dataclass
class Command:
    name: str
    summary: str
    options: list
    first: Kind     # the first argument; None: there is none
    others: Kind    # those after it


def kind_of(argument, features):
    if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", argument):
        return Kind(argument, "words", tuple(argument.split("|")))
    if argument in WORDS:
        return Kind(argument, "words", tuple(WORDS[argument]))
    if argument == "TREE":
        return Kind(argument, "words", tuple(TREES))
    if argument == "LIST" and features is not None:
        return Kind(argument, "words", tuple(features))
    name = re.split(r"[|-]", argument)[0]
    if name in ("FILE", "DEV"):
        return Kind(argument, "file")
    return Kind(argument, "directory" if argument == "DIR" else "other")


def arguments_of(usage, text):
    """The first argument and those after it, from a line of usage."""
    words = usage.split("]... ", 1)[1].replace("[", "").replace("]", "").replace("...", " ...").split() \
        if "]... " in usage else []
    if not words:
        return None, None
    if "|" in words[0]:
        # Of words that have one behind them the first alone matters.
        choices = [w for w in usage.split("]... ", 1)[1].rsplit(" ", 1)[0].split("|")]
        return Kind("ACTION", "words", tuple(dict.fromkeys(c.split()[0] for c in choices))), Kind("DEV", "file")
    first = kind_of(words[0], None)
    operations = re.findall(r"^  ([a-z]+) ", text.partition("one operation on each line:")[2], re.M)
    if operations:
        return first, Kind("OPERATION", "words", tuple(dict.fromkeys(operations)))
    if words[-1] == "..." and len(words) == 2:
        return first, first
    return first, kind_of(words[1], None) if len(words) > 1 else None


def read_command(name, summary, tell):
    text = tell(name, "--help")
    features = [line.split()[0] for line in tell(name, "-O", "list-all").splitlines()[1:]] if name == "mkfs" else None
    options = []
    for line in text.split("\n\n")[1].splitlines():
        found = OPTION.match(line)
        if found:
            short, long, needed, maybe, said = found.groups()
            argument = needed or maybe
            known = features and ("quota", "free-space-tree") if short == "R" else features
            options.append(Option(short, long, said.strip(), kind_of(argument, known) if argument else None,
                                  bool(maybe)))
        elif options and line.startswith("   "):
            options[-1].help += " " + line.strip()
    return Command(name, summary, options, *arguments_of(text.splitlines()[0], text))


def read(binary):
    def tell(*arguments):
        return subprocess.run([binary, *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = re.findall(r"^  ([a-z][a-z-]*) +(\S.*)$", tell("--help"), re.M)
    return [read_command(name, summary, tell) for name, summary in rows]
