#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a static library of an archive of all objects. Usage: static.sh OUTPUT INPUT OBJCOPY AR CC...
set -e
output=$1 input=$2 objcopy=$3 ar=$4
shift 4
"$@" -r -nostdlib -Wl,--whole-archive "$input" -o "$output.o"
"$objcopy" --localize-hidden "$output.o"
rm -f "$output"
"$ar" crs "$output" "$output.o"
rm "$output.o"
