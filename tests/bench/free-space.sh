#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# All benchmarks of free space, one after the other. The first time Linux creates the filesystems, which takes a quarter
# of an hour and 3 GB.
set -e
cd "$(dirname "$0")"
./space-convert.py
./load.py
./commit.py
