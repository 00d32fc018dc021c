#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Build without optional libraries for other architectures, and run the unit tests there: i686 is 32-bit, and s390x is
# big-endian. Each program reads filesystems made here, and filesystems made there are read here, with equal findings.
# The last line counts the checks.
#
#	tests/portability.sh [DIR]	(DIR: build directory, which is kept; without it a temporary one is used)
#
# BTRKIT names the native program; without it that is built too.
#
# Needs Debian's cross compilers and qemu-user, which is called directly (no binfmt). Of the foreign packages only
# cmocka is needed, which apt-get downloads from the mirror into DIR without installing it.
set -euo pipefail
sources=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
jobs=${JOBS:-$(nproc)}
passed=0 failed=0

for needed in i686-linux-gnu-gcc s390x-linux-gnu-gcc qemu-s390x-static meson ninja pkg-config apt-get \
	/usr/i686-linux-gnu/include/stdio.h /usr/s390x-linux-gnu/include/stdio.h; do
	command -v "$needed" >/dev/null || [ -f "$needed" ] || { echo "skipped: needs $needed"; exit 77; }
done
if [ $# -gt 0 ]; then
	mkdir -p "$1"
	top=$(realpath "$1")
else
	top=$(mktemp -d "${TMPDIR:-/tmp}/btrkit-portability.XXXXXX")
	trap 'rm -rf "$top"' EXIT
fi

verdict()
{
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "failed: $2"
	fi
}

# Unpack cmocka for architecture $1 into $2/root, with the architecture-independent headers.
fetch()
{
	local dir=$2 package
	local options=(-qq -o "Dir::State=$dir/apt" -o "Dir::State::status=$dir/apt/status"
		-o "Dir::State::lists=$dir/apt/lists" -o "Dir::Cache=$dir/apt/cache"
		-o "Dir::Etc::sourcelist=$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "APT::Architecture=$1" -o "APT::Architectures::=$1" -o APT::Sandbox::User=
		-o Acquire::Retries=3)
	[ ! -f "$dir/root/usr/include/uthash.h" ] || return 0
	mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/root"
	: >"$dir/apt/status"
	# shellcheck disable=SC1091
	. /etc/os-release
	echo "deb [arch=$1] http://deb.debian.org/debian $VERSION_CODENAME main" >"$dir/apt/sources.list"
	(cd "$dir" && apt-get "${options[@]}" update &&
		apt-get "${options[@]}" download libcmocka-dev libcmocka0 uthash-dev)
	for package in "$dir"/*.deb; do
		dpkg -x "$package" "$dir/root"
	done
}

# meson's cross file: $1 triple, $2 family, $3 byte order, $4 directory, then the command that runs programs. Without
# needs_exe_wrapper meson would run those of i686 directly, for which most machines have no dynamic linker.
describe()
{
	local triple=$1 family=$2 endian=$3 dir=$4
	shift 4
	cat <<END
[binaries]
c = [$(! command -v ccache >/dev/null || echo "'ccache', ")'$triple-gcc']
ar = '$triple-ar'
strip = '$triple-strip'
pkgconfig = 'pkg-config'
exe_wrapper = [$(printf "'%s', " "$@")]
[built-in options]
c_args = ['-isystem', '$dir/root/usr/include']
[properties]
sys_root = '$dir/root'
pkg_config_libdir = '$(echo "$dir"/root/usr/lib/*/pkgconfig)'
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = '$family'
cpu = '$family'
endian = '$endian'
END
}

# Build into $1; the rest are options for meson.
build()
{
	local dir=$1
	shift
	[ -f "$dir/build.ninja" ] ||
		meson setup "$dir" "$sources" --auto-features=disabled -Dtests=enabled -Dwerror=true \
			--buildtype=release "$@" >"$dir.setup.log" || { cat "$dir.setup.log"; return 1; }
	ninja -C "$dir" -j "$jobs" >"$dir.build.log" || { grep -E -A 5 'error|FAILED' "$dir.build.log"; return 1; }
}

# Make filesystems named $1; the rest is the command to run btrkit.
make()
{
	local image=$1 data
	shift
	for data in single dup; do
		rm -f "$image.$data"
		truncate -s 300M "$image.$data"
		"$@" mkfs -q -f -d "$data" --rootdir "$sources/images" "$image.$data"
	done
}

# Print the findings on the filesystems named $1; the rest is the command to run btrkit.
look()
{
	local image=$1 data
	shift
	for data in single dup; do
		"$@" check --data "$image.$data"
		"$@" fiemap -a "$image.$data" | sha256sum
		"$@" cat "$image.$data" SHA256SUMS | sha256sum
		[ "$image" != "$top/made" ] || "$@" dump-tree "$image.$data" | sha256sum
	done
}

# $1 Debian architecture, $2 triple, $3 family, $4 byte order; then the command that runs programs.
machine()
{
	local arch=$1 triple=$2 family=$3 endian=$4 dir=$top/$1 name status num=0
	shift 4
	fetch "$arch" "$dir"
	case $1 in
	*/ld-linux*) set -- "$@" --library-path "/usr/$triple/lib:$(echo "$dir"/root/usr/lib/*/)" ;;
	*) set -- "$@" -E "LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*/)" ;;
	esac
	describe "$triple" "$family" "$endian" "$dir" "$@" >"$dir/cross.ini"
	if ! build "$dir/build" --cross-file "$dir/cross.ini"; then
		verdict 1 "$arch: build"
		return
	fi
	verdict 0
	status=0
	meson test -C "$dir/build" --no-rebuild --suite unit --num-processes "$jobs" --timeout-multiplier 4 \
		>"$dir/unit.log" 2>&1 || status=1
	num=$(grep -c ' OK  ' "$dir/unit.log") || status=1
	passed=$((passed + num))
	while read -r name; do
		verdict 1 "$arch: unit test $name, see $dir/unit.log"
	done < <(sed -nE 's/.*btrkit:unit \/ (\S+) +(FAIL|TIMEOUT|ERROR).*/\1/p' "$dir/unit.log")
	[ $status = 0 ] || [ $failed -gt 0 ] || verdict 1 "$arch: unit tests, see $dir/unit.log"
	# Read filesystems made here on the other architecture, and vice versa.
	look "$top/made" "$@" "$dir/build/cmd/btrkit" >"$dir/read" || true
	cmp -s "$top/read" "$dir/read" && status=0 || status=1
	verdict $status "$arch: reads images differently: $top/read, $dir/read"
	make "$dir/made" "$@" "$dir/build/cmd/btrkit" || true
	look "$dir/made" "$reference" >"$dir/written" || true
	cmp -s "$top/written" "$dir/written" && status=0 || status=1
	verdict $status "$arch: images made there differ: $top/written, $dir/written"
	rm -f "$dir"/made.*
	echo "compared on $arch: $num unit tests, $(cat "$dir/read" "$dir/written" | wc -l) checksums"
}

reference=${BTRKIT:-$top/native/cmd/btrkit}
[ -n "${BTRKIT:-}" ] || build "$top/native" -Dtests=disabled
make "$top/made" "$reference"
look "$top/made" "$reference" >"$top/read"
# The expected findings on filesystems made elsewhere: without the hash of a dump, which contains random UUIDs.
mkdir -p "$top/again"
make "$top/again/made" "$reference"
look "$top/again/made" "$reference" >"$top/written"
rm "$top"/again/made.*
machine i386 i686-linux-gnu x86 little /usr/i686-linux-gnu/lib/ld-linux.so.2
machine s390x s390x-linux-gnu s390x big qemu-s390x-static -L /usr/s390x-linux-gnu
echo "$passed passed, $failed failed"
[ $failed = 0 ]
