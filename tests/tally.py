#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Summarize runs of `meson test`: skipped tests with the reason, counts of comparisons, and finally one line of totals.
Usage: tally.py LOG.json...    With CI=true a skipped test counts as failed: everything must be available there.
Output lines that begin with "compared" are repeated, and the last lines of failed tests."""
import json
import os
import sys

LAST = 8  # lines printed for a failed test


def output_lines(test):
    text = test.get("stdout", "") + test.get("stderr", "")
    return [line.strip() for line in text.splitlines() if line.strip()]


def read(logs):
    for log in logs:
        if not os.path.exists(log):
            yield {"name": log, "result": "not there: its tests were not built, or not run"}
            continue
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)


def check(test, strict):
    """Return "passed", "failed" or "skipped"."""
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        return "passed"
    if test["result"] == "SKIP" and not strict:
        return "skipped"
    return "failed"


def main(logs):
    strict = os.environ.get("CI") == "true"
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in read(logs):
        verdict = check(test, strict)
        counts[verdict] += 1
        lines = output_lines(test)
        for line in lines:
            if line.startswith("compared"):
                print(f"{test['name']}: {line}")
        if test["result"] == "SKIP":
            print(f"{verdict}: {test['name']}: {lines[-1] if lines else 'no reason given'}")
        elif verdict == "failed":
            print(f"failed: {test['name']} ({test['result']})")
            for line in lines[-LAST:]:
                print(f"    {line}")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
