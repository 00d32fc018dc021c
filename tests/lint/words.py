#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the words of comments and identifiers: comments in front of functions and declarations are in the third person
("Returns", not "Return") and do not begin with "The same", which sends the reader upwards; and private words do not
come back for what btrfs and the field have terms for (the table is in lib/README.md). Usage: words.py ROOT"""
import re
import sys

import common

# Verbs that begin comments. Those that are nouns, too, are not among them.
VERBS = set("""
Abort Accept Add Adopt Advance Allocate Append Apply Ask Assemble Assign Attach Begin Bind Bring Build Calculate
Choose Clear Close Collect Compare Compute Convert Create Decide Decode Decompress Delete Descend Detach Determine
Discard Distribute Divide Drop Emit Encode Ensure Enter Erase Evict Examine Exclude Expand Expect Extend Extract Fill
Find Finish Flush Follow Forget Generate Get Give Go Grow Hold Include Initialize Insert Install Invalidate Iterate
Keep Leave Let Locate Make Mark Merge Move Multiply Obtain Overwrite Parse Pass Plant Preallocate Prepare Print
Produce Propagate Prove Provide Publish Punch Put Raise Recall Reduce Refuse Register Reject Release Relocate Remember
Remove Rename Render Repeat Replace Require Reserve Resize Resolve Restore Retry Return Rewrite Save Scan Seal Select
Send Serve Shorten Shrink Simulate Skip Sleep Split Spoil Store Submit Substitute Subtract Swap Take Tell Throw
Translate Truncate Try Turn Unlink Unlock Unpin Update Validate Verify Visit Wait Walk Wipe Withdraw Wrap
""".split())

# Words that are not used any more, and what is said instead.
RETIRED = [
    (r"[Jj]udg(?:e|es|ed|ing)", "check, verify or validate"),
    (r"dying|DYING|partly_deleted", "dropped"),
    (r"row_writer|row_wanted|full_rows?", "full stripe"),
    (r"num_views|read_view", "mirror"),
    (r"(?:op|delayed|ticket|txn|rename)(?:_\w+)?_alone", "exclusive"),
]

COMMENT = re.compile(r"^/\*\*?(?: |\n \* ?)(\S+)( \S+)?", re.M)


def check_comments(text):
    """Yield (line number, message) for the comments that begin in the first column."""
    for match in COMMENT.finditer(text):
        line, first = text.count("\n", 0, match.start()) + 1, match.group(1)
        if first in VERBS:
            yield line, f'"{first}": comments are in the third person'
        if first == "Same" or first == "The" and re.match(r" same\b", match.group(2) or ""):
            yield line, '"The same": say what it is like, and how it differs'


def check_identifiers(text):
    """Yield (line number, message) for identifiers that are, or contain between underscores, a word of RETIRED."""
    code = common.without_comments(text)
    for match in re.finditer(r"[A-Za-z]\w*", code):
        for pattern, instead in RETIRED:
            if re.search(rf"(?:^|_)(?:{pattern})(?:_|$)", match.group()):
                yield code.count("\n", 0, match.start()) + 1, f"{match.group()}: say {instead}"


def main():
    root = sys.argv[1]
    sources = common.files(root, *(f"{folder}/**/*.{end}" for folder in ("lib", "cmd", "include", "tests", "examples")
                                   for end in "ch"))
    common.verdict("words", len(sources), "files",
                   [f"{source}:{line}: {message}" for path, source in sources
                    for text in [path.read_text()]
                    for check in (check_comments, check_identifiers) for line, message in check(text)])


if __name__ == "__main__":
    main()
