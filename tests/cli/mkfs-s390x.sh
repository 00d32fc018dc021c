#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Make filesystems by a program for a big-endian machine, under qemu-user, and compare them byte for byte with those of
# the program BTRKIT. Needs Debian's gcc-s390x-linux-gnu, libc6-dev-s390x-cross and qemu-user-static, and a mirror from
# which apt-get can download libraries for s390x; these are not installed.
#
#	BTRKIT=build/cmd/btrkit tests/cli/mkfs-s390x.sh SOURCES DIR	(DIR: an empty directory, some 300 MB)
set -eu
sources=$(realpath "$1") dir=$(realpath "$2") triple=s390x-linux-gnu
here=$(dirname "$(realpath "$0")")
for program in $triple-gcc qemu-s390x-static; do
	command -v $program >/dev/null || { echo "skipped: needs $program"; exit 77; }
done
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/root"
: >"$dir/apt/status"
. /etc/os-release
echo "deb [arch=s390x] http://deb.debian.org/debian $VERSION_CODENAME main" >"$dir/apt/sources.list"
apt() {
	apt-get -qq -o Dir::State="$dir/apt" -o Dir::State::status="$dir/apt/status" \
		-o Dir::State::lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" \
		-o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o APT::Architecture=s390x -o APT::Architectures::=s390x "$@"
}
apt update
apt -y -d install --no-install-recommends libc6-dev libxxhash-dev libgcrypt20-dev libblkid-dev uuid-dev zlib1g-dev \
	liblzo2-dev libzstd-dev libarchive-dev >/dev/null
for package in "$dir"/apt/cache/archives/*.deb; do
	dpkg -x "$package" "$dir/root"
done
# Architecture-independent headers.
cp /usr/include/ut*.h "$dir/root/usr/include/"
libraries=$dir/root/usr/lib/$triple
cat >"$dir/cross.ini" <<END
[binaries]
c = ['$triple-gcc', '--sysroot=$dir/root', '-Wl,-rpath-link=$dir/root/lib/$triple']
ar = '$triple-ar'
strip = '$triple-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-s390x-static', '-L', '$dir/root']
[properties]
sys_root = '$dir/root'
pkg_config_libdir = '$libraries/pkgconfig:$dir/root/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 's390x'
cpu = 's390x'
endian = 'big'
END
meson setup "$dir/build" "$sources" --cross-file "$dir/cross.ini" -Dtests=disabled -Dman=disabled >"$dir/setup.log"
ninja -C "$dir/build" cmd/btrkit >"$dir/build.log"
python3 "$here/mkfs-same.py" --other qemu-s390x-static -L "$dir/root" -E "LD_LIBRARY_PATH=$dir/build/lib" \
	"$dir/build/cmd/btrkit"
