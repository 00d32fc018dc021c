#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Provide the newest btrfs-progs that can be had and whose output the tests know, for comparisons.
# Usage: peer.sh DIR    write DIR/env, which sets BTRFS, MKFS and BTRFSTUNE, for sourcing by a shell
# Programs given in the environment come first. Otherwise these are tried in this order: installed ones of version 7.3;
# those of Debian unstable (7.3), testing (7.1) and trixie (6.14), unpacked below DIR from the mirror that apt uses (or
# $DEBIAN_MIRROR) and started by their own dynamic loader; installed ones of any version. Needs no root.
# BTRKIT_PEER names which of them to try, of: unstable testing trixie installed none.
set -euo pipefail

newest=7.3	# later ones may word things differently, and are taken only if BTRKIT_PEER names them
oldest=6.14	# earlier ones do so
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
programs=(btrfs mkfs.btrfs btrfstune)

# Print the version of a btrfs program as MAJOR.MINOR.
version_of()
{
	"$1" --version 2>/dev/null | sed -n 's/^btrfs-progs v\([0-9]*\.[0-9]*\).*/\1/p' | grep .
}

# Return whether versions are in ascending order.
ascending()
{
	printf '%s\n' "$@" | sort -V -C
}

write_env()
{
	printf 'export BTRFS=%q MKFS=%q BTRFSTUNE=%q\n' "$1" "$2" "$3" >"$dir/env"
	echo "$("$1" --version | head -1)$4"
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
	apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
		-o Dir::Etc::preferencesparts="$apt/none" -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
		-o Debug::NoLocking=1 -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3 \
		-o Acquire::http::Timeout=20 "$@"
}

# Unpack btrfs-progs of suite $1, with all libraries that it needs, below $1 of the directory.
fetch()
{
	local suite=$1 root=$dir/$1/root apt=$dir/$1/apt uri deb
	uri=$(mirror)
	[ -n "$uri" ] || { echo "peer.sh: apt has no mirror of Debian: set DEBIAN_MIRROR" >&2; return 1; }
	[ -r "$keyring" ] || { echo "peer.sh: no $keyring: install debian-archive-keyring" >&2; return 1; }
	rm -rf "${dir:?}/$suite"
	mkdir -p "$apt/none" "$apt/lists/partial" "$apt/archives/partial" "$root" "$dir/$suite/bin"
	: >"$apt/status"
	echo "deb [signed-by=$keyring] $uri $suite main" >"$apt/sources.list"
	private_apt update || return 1
	private_apt install -y --no-install-recommends --download-only btrfs-progs || return 1
	for deb in "$apt"/archives/*.deb; do
		dpkg-deb -x "$deb" "$root" || return 1
	done
	rm -rf "$apt"
	for deb in "${programs[@]}"; do
		wrapper "$suite" "$deb" || return 1
	done
}

# Make a wrapper script for program $2 of the unpacked suite $1.
wrapper()
{
	local root=$dir/$1/root loader program libs
	loader=$(find "$root" -name 'ld-linux*.so*' ! -type d | sed -n 1p)
	program=$(find "$root" -name "$2" -path '*bin/*' | sed -n 1p)
	libs=$(find "$root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
	[ -n "$loader" ] && [ -n "$program" ] || { echo "peer.sh: no $2 in btrfs-progs of $1" >&2; return 1; }
	printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$loader" "$libs" "$program" >"$dir/$1/bin/$2"
	chmod +x "$dir/$1/bin/$2"
}

# Use the programs of suite $1 if they can be had, work here, and have a version that the tests know.
from_debian()
{
	local bin=$dir/$1/bin version
	version=$(version_of "$bin/btrfs") || { fetch "$1" && version=$(version_of "$bin/btrfs"); } ||
		{ echo "peer.sh: no btrfs-progs of Debian $1" >&2; return 1; }
	if [ -z "${BTRKIT_PEER:-}" ] && ! ascending "$oldest" "$version" "$newest"; then
		echo "peer.sh: the tests do not know btrfs-progs $version of Debian $1" >&2
		return 1
	fi
	write_env "$bin/btrfs" "$bin/mkfs.btrfs" "$bin/btrfstune" " of Debian $1"
}

# Use the installed programs if they have a version from $1 to $2.
installed()
{
	local version
	version=$(version_of btrfs) && ascending "$1" "$version" "$2" || return 1
	write_env "$(command -v btrfs)" "$(command -v mkfs.btrfs)" "$(command -v btrfstune)" ", which is installed"
}

[ $# = 1 ] || { echo "usage: peer.sh DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
rm -f "$dir/env"
PATH=$PATH:/usr/sbin:/sbin

if [ -n "${BTRFS:-}" ] && [ -n "${MKFS:-}" ] && [ -n "${BTRFSTUNE:-}" ]; then
	write_env "$BTRFS" "$MKFS" "$BTRFSTUNE" ", as given"
	exit
fi
[ -n "${BTRKIT_PEER:-}" ] || ! installed "$newest" "$newest" || exit 0
for choice in ${BTRKIT_PEER:-unstable testing trixie installed}; do
	case $choice in
	unstable | testing | trixie) ! from_debian "$choice" || exit 0 ;;
	installed) ! installed 0 999 || exit 0 ;;
	none) ;;
	*) echo "peer.sh: BTRKIT_PEER: unknown choice '$choice'" >&2; exit 2 ;;
	esac
done
exit 1
