#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Make the table of crash states by operation and profile in EVIDENCE.md from the log of `./dev test --deep`.
Usage: table.py LOG.json [EVIDENCE.md]    print the table, or write it between the marks of the page"""
import collections
import json
import re
import sys

BEGIN, END = "<!-- crash states -->\n", "<!-- end of crash states -->\n"
LOOKED = re.compile(r"^(.+): \d+ commits?, .* (\d+) states looked at, (\d+) distinct.* removed (\d+) times", re.M)
CHECKED = re.compile(r"^(.+): (\d+) states checked by Linux, (\d+) also", re.M)
# Tests that examine states, and tests that let Linux check some of them.
TESTS = {"crash-txn-deep": LOOKED, "crash-modify-deep": LOOKED, "txn-crash-deep": CHECKED, "modify-crash-deep": CHECKED}
PROFILE = re.compile(r"(raid\w+), (.*)")
NODES = re.compile(r"(.*), (\d+)K")


def place(kind):
    """Split the name of a kind into the operation and the form of the filesystem."""
    match = PROFILE.fullmatch(kind)
    if match:
        return match.group(2).split(", ")[0], match.group(1)
    match = NODES.fullmatch(kind)
    if match:
        return match.group(1), f"nodes of {match.group(2)} KiB"
    operation, _, form = kind.partition(", ")
    return operation, form or "one device"


def read(log):
    """For each operation: its forms, and the sums of states, distinct states, removals of devices, states checked by
    Linux, and those checked with devices missing."""
    forms, sums, found = collections.defaultdict(list), collections.defaultdict(lambda: [0] * 5), set()
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1]
            if name not in TESTS or test["result"] != "OK":
                continue
            found.add(name)
            for kind, *numbers in TESTS[name].findall(test["stdout"]):
                operation, form = place(kind)
                if form not in forms[operation]:
                    forms[operation].append(form)
                at = 0 if TESTS[name] is LOOKED else 3
                for i, number in enumerate(numbers):
                    sums[operation][at + i] += int(number)
    if len(found) < len(TESTS):
        sys.exit(f"table.py: {log}: no good run of " + ", ".join(sorted(set(TESTS) - found)))
    return forms, sums


def table(log):
    forms, sums = read(log)
    yield "| operation | on | states | distinct | devices removed | checked by Linux | without devices |"
    yield "|---|---|---|---|---|---|---|"
    for operation, on in forms.items():
        yield f"| {operation} | {'; '.join(on)} | " + " | ".join(f"{n:,}" for n in sums[operation]) + " |"
    total = [sum(column) for column in zip(*sums.values())]
    yield "| all | | " + " | ".join(f"{n:,}" for n in total) + " |"


def main(log, page=None):
    text = "\n".join(table(log)) + "\n"
    if not page:
        sys.stdout.write(text)
        return
    with open(page, encoding="utf-8") as f:
        before, _, rest = f.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"table.py: {page}: no marks")
    with open(page, "w", encoding="utf-8") as f:
        f.write(before + BEGIN + text + END + after)


if __name__ == "__main__":
    main(*sys.argv[1:])
