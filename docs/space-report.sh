#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes space-report.png anew: the page of du --html of a filesystem with some snapshots, as Chromium shows it.
# Usage: docs/space-report.sh BTRKIT
set -euo pipefail
btrkit=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# data FILE BYTES SEED: the same bytes in every run, which no two files have.
data()
{
	python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(int(sys.argv[2])).randbytes(int(sys.argv[1])))' \
		"$2" "$3" >"$1"
}

mkdir -p root/home root/srv/vm root/srv/mail
cp -r "$here/../lib" "$here/../include" "$here/../man" root/home
data root/srv/vm/disk-1 3000000 1
data root/srv/vm/disk-2 5000000 2
data root/srv/mail/inbox 1500000 3
"$btrkit" mkfs -q --rootdir root --subvol rw:home --subvol rw:srv --free 200m space.img
data disk 2500000 4
data inbox 1200000 5
"$btrkit" edit space.img <<'END'
mkdir snapshots
subvolume snapshot -r srv snapshots/srv-monday
subvolume snapshot -r home snapshots/home-monday
write srv/vm/disk-2 1000000 disk
put -f inbox srv/mail/inbox
rm -r home/lib/check
subvolume snapshot -r srv snapshots/srv-tuesday
subvolume snapshot -r home snapshots/home-tuesday
write srv/vm/disk-1 200000 inbox
put -f disk srv/mail/inbox
rm -r home/lib/report
END
"$btrkit" du --html space.html space.img
chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1150 --virtual-time-budget=3000 \
	--screenshot="$here/space-report.png" "file://$work/space.html" 2>/dev/null
