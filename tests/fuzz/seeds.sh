#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Recreates the corpora of the fuzz targets from small filesystems made by Linux. Needs root, a loop device and
# mkfs.btrfs ($MKFS). Contents differ from run to run (UUIDs, times), the types of items do not.
# Usage: seeds.sh BTRKIT
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
btrkit=$(readlink -f "$1")
mkfs=${MKFS:-mkfs.btrfs}
work=$(mktemp -d "${TMPDIR:-/tmp}/btrkit-seeds.XXXXXX")
trap 'umount -q "$work/mnt" || true; rm -rf "$work"' EXIT
mkdir "$work/mnt"

# Print $2 bytes that compress well.
text()
{
	python3 -c 'import sys; sys.stdout.write(((sys.argv[1] + "\n") * int(sys.argv[2]))[:int(sys.argv[2])])' "$@"
}

# Create files with every feature.
fill()
(
	cd "$work/mnt"
	btrfs -q subvolume create sub
	mkdir dir
	head -c 20000 /dev/urandom >dir/file
	ln dir/file dir/second-name
	ln -s dir/file link
	mkfifo fifo
	echo inline >small
	python3 -c 'import os; os.setxattr("small", "user.attribute", b"value")'
	touch "$(printf 'n\377me \\ \n')"
	cp --reflink=always dir/file sub/clone
	fallocate -l 64k prealloc
	for kind in zlib lzo zstd; do
		: >"$kind"
		btrfs property set "$kind" compression "$kind"
		text "$kind" 40000 >"$kind"
	done
	truncate -s 1m sparse
	echo end >>sparse
	sync
	btrfs -q subvolume snapshot sub snapshot
	btrfs -q subvolume snapshot -r . read-only
	echo more >>sub/clone
	rm zlib
	sync
)

# Make a filesystem named $1, mounted with the options $2; the other arguments are for mkfs.
make()
{
	local name=$1 options=$2
	shift 2
	truncate -s 128m "$work/$name"
	"$mkfs" -q "$@" "$work/$name"
	mount -o "loop,$options" "$work/$name" "$work/mnt"
	fill
	umount "$work/mnt"
	"$here/pack.py" "$btrkit" "$work/$name" "$here/corpus" "$name"
	rm "$work/$name"
}

# Inputs of the codec target: a byte for the compression, a byte for the size of the output, the stream.
make_streams()
{
	mkdir -p "$here/corpus/codec"
	python3 - "$here/corpus/codec" <<'END'
import pathlib
import sys
import zlib
text = b"some text, and more of the same text " * 300
out = pathlib.Path(sys.argv[1])
(out / "zlib").write_bytes(b"\x01\x20" + zlib.compress(text))
(out / "zlib-stored").write_bytes(b"\x01\x10" + zlib.compress(bytes(range(256)) * 20, 0))
# One segment of 20 literals and the end marker, after the lengths that btrfs adds.
segment = bytes([17 + 20]) + text[:20] + b"\x11\x00\x00"
(out / "lzo").write_bytes(b"\x02\x01" + (8 + len(segment)).to_bytes(4, "little") + len(segment).to_bytes(4, "little")
                          + segment)
END
	printf '\003\020' >"$here/corpus/codec/zstd"
	text words 8000 | zstd -q >>"$here/corpus/codec/zstd"
}

# Inputs of super_place: the state, capacity and write pointer of each zone, then the last superblocks.
make_logs()
{
	mkdir -p "$here/corpus/super_place"
	python3 - "$here/corpus/super_place" <<'END'
import pathlib
import struct
import sys
ROOM, CONVENTIONAL, EMPTY, PARTLY, FULL = 1 << 20, 0, 1, 2, 3
LOGS = {"begun": (PARTLY, 4096, EMPTY, 0), "second": (FULL, 0, PARTLY, 8192), "both": (FULL, 0, FULL, 0),
        "again": (PARTLY, 12288, FULL, 0), "empty": (EMPTY, 0, EMPTY, 0), "anywhere": (CONVENTIONAL, 0, EMPTY, 0),
        "wrong": (PARTLY, 4096, PARTLY, 4096)}
for name, (*first, state, written) in LOGS.items():
    zones = b"".join(struct.pack("<BII", s, ROOM, w) for s, w in (first, (state, written)))
    supers = b"".join(bytes(64) + b"_BHRfS_M" + struct.pack("<Q", generation) + bytes(4016) for generation in (7, 6))
    (pathlib.Path(sys.argv[1]) / name).write_bytes(zones + (supers if name == "both" else b""))
END
}

make_specs()
{
	local n=0 spec
	mkdir -p "$here/corpus/spec"
	for spec in 'disk' 'disk?offset=4096' 'disk?offset=1m&size=2g' 'disk?partition=2' 'a?b?size=1k&offset=0'; do
		printf %s "$spec" >"$here/corpus/spec/$((n++))"
	done
}

find "$here/corpus" -type f ! -name 'found-*' -delete
make small-nodes compress=no,noatime -n 4096 -m single -d single
make mixed-v1 space_cache=v1,noatime -n 4096 -M -O ^free-space-tree,^no-holes
make defaults noatime -n 16384 -m dup -d single -O block-group-tree,quota
python3 "$here/../../images/unpack.py" unsupported-raid-stripe-tree "$work"
"$here/pack.py" "$btrkit" "$work/unsupported-raid-stripe-tree.img" "$here/corpus" stripes
python3 "$here/../../images/unpack.py" good-compressed "$work"
"$here/pack.py" "$btrkit" "$work/good-compressed.img" "$here/corpus" compressed --data
make_streams
make_logs
make_specs
du -sh "$here/corpus"
