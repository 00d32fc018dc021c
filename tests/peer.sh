#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Provide a btrfs-progs that is recent enough for comparisons: at least 6.14, which dumps the same text as 6.19.
# Usage: peer.sh DIR    write DIR/env, which sets BTRFS, MKFS and BTRFSTUNE, for sourcing by a shell
# Programs given in the environment come first; then installed ones; then those of Debian trixie, unpacked below DIR
# from the mirror that apt uses (or $DEBIAN_MIRROR) and started by their own dynamic loader. Needs no root.
set -euo pipefail

need=6.14
suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

new_enough()
{
	local version
	version=$("$1" --version 2>/dev/null | sed -n 's/^btrfs-progs v\([0-9.]*\).*/\1/p') || return 1
	[ -n "$version" ] && printf '%s\n' "$need" "$version" | sort -V -C
}

write_env()
{
	printf 'export BTRFS=%q MKFS=%q BTRFSTUNE=%q\n' "$1" "$2" "$3" >"$dir/env"
	"$1" --version | head -1
}

mirror()
{
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "$DEBIAN_MIRROR"
		return
	fi
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

# Run apt-get with a private configuration that knows only this suite and no installed packages.
private_apt()
{
	apt-get -qq -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts="$dir/apt/none" \
		-o Dir::Etc::preferencesparts="$dir/apt/none" -o Dir::State="$dir/apt" \
		-o Dir::State::lists="$dir/apt/lists" -o Dir::State::status="$dir/apt/status" -o Dir::Cache="$dir/apt" \
		-o Dir::Cache::archives="$dir/apt/archives" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
		-o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

fetch()
{
	local uri deb
	uri=$(mirror)
	[ -n "$uri" ] || { echo "peer.sh: apt has no mirror of Debian: set DEBIAN_MIRROR" >&2; return 1; }
	[ -r "$keyring" ] || { echo "peer.sh: no $keyring: install debian-archive-keyring" >&2; return 1; }
	rm -rf "$dir/apt" "$dir/root"
	mkdir -p "$dir/apt/none" "$dir/apt/lists/partial" "$dir/apt/archives/partial" "$dir/root"
	: >"$dir/apt/status"
	echo "deb [signed-by=$keyring] $uri $suite main" >"$dir/apt/sources.list"
	private_apt update
	private_apt install -y --no-install-recommends --download-only btrfs-progs
	for deb in "$dir"/apt/archives/*.deb; do
		dpkg-deb -x "$deb" "$dir/root"
	done
	rm -rf "$dir/apt"
}

# Make a wrapper script named $1 for a program of the unpacked suite.
wrapper()
{
	local loader program libs
	loader=$(find "$dir/root" -name 'ld-linux*.so*' ! -type d | head -1)
	program=$(find "$dir/root" -name "$1" -path '*bin/*' | head -1)
	libs=$(find "$dir/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
	[ -n "$loader" ] && [ -n "$program" ] || { echo "peer.sh: no $1 in btrfs-progs of $suite" >&2; return 1; }
	printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$loader" "$libs" "$program" >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
}

[ $# = 1 ] || { echo "usage: peer.sh DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)

if [ -n "${BTRFS:-}" ] && [ -n "${MKFS:-}" ] && [ -n "${BTRFSTUNE:-}" ]; then
	write_env "$BTRFS" "$MKFS" "$BTRFSTUNE"
elif PATH=$PATH:/usr/sbin:/sbin && new_enough btrfs; then
	write_env "$(command -v btrfs)" "$(command -v mkfs.btrfs)" "$(command -v btrfstune)"
else
	if ! new_enough "$dir/bin/btrfs"; then
		fetch
		rm -rf "$dir/bin"
		mkdir "$dir/bin"
		for name in btrfs mkfs.btrfs btrfstune; do
			wrapper "$name"
		done
	fi
	write_env "$dir/bin/btrfs" "$dir/bin/mkfs.btrfs" "$dir/bin/btrfstune"
fi
