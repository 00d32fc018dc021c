#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Build the Debian packages, check them with lintian, install them in a minimal Debian system, and try their contents
# there: the command on an image, and an example compiled against the library. Then build the RPMs and examine their
# contents. The last line counts the checks.
#
#	tests/packages.sh [DIR]	(DIR: a new directory, which is kept; without it a temporary one is used)
#
# Needs root for the minimal Debian system; debhelper, lintian, debootstrap, rpm, and a Debian mirror.
set -euo pipefail
sources=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
PATH=$PATH:/usr/sbin:/sbin
passed=0

for program in dpkg-buildpackage dh lintian debootstrap rpmbuild rpmspec meson scdoc git; do
	command -v "$program" >/dev/null || { echo "skipped: needs $program"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
if [ $# -gt 0 ]; then
	mkdir "$1"
	top=$(realpath "$1")
else
	top=$(mktemp -d "${TMPDIR:-/tmp}/btrkit-packages.XXXXXX")
fi

# debootstrap leaves mounts behind when it fails.
cleanup()
{
	local status=$? at
	awk -v at="$top/" 'index($5, at) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r at; do
		umount -l "$at"
	done
	[ -n "${kept:-}" ] || rm -rf "$top"
	[ $status = 0 ] || echo "1 failed after $passed passed"
}
[ $# = 0 ] || kept=1
trap cleanup EXIT
trap 'exit 130' INT TERM

# Run a command; its output is shown if it fails.
step()
{
	local name=$1
	shift
	if ! "$@" >"$top/$name.log" 2>&1; then
		tail -n 60 "$top/$name.log"
		echo "failed: $name"
		exit 1
	fi
	passed=$((passed + 1))
	echo "$name: well"
}

in_chroot()
{
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		chroot "$top/root" "$@"
}

unpack()
{
	mkdir -p "$top/btrkit-$version"
	(cd "$sources" && git ls-files -z | tar -c --null -T - ) | tar -x -C "$top/btrkit-$version"
}

check()
{
	lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$top"/*.changes
}

install_debs()
{
	mkdir "$top/root/debs"
	mount -t proc proc "$top/root/proc"
	cp "$top"/*.deb "$top/root/debs"
	rm -f "$top"/root/debs/*-dbgsym*
	in_chroot apt-get -qq update
	in_chroot sh -c 'apt-get -qq install -y --no-install-recommends /debs/*.deb gcc libc6-dev pkgconf'
}

try_command()
{
	in_chroot sh -euc '
		mkdir -p /tmp/tree/folder
		seq 100000 >/tmp/tree/folder/numbers
		btrkit mkfs -q --rootdir /tmp/tree --compress zstd /tmp/new.img
		btrkit dump-tree /tmp/new.img | grep -q "name: numbers"
		btrkit check --data /tmp/new.img
		btrkit cat /tmp/new.img folder/numbers | cmp - /tmp/tree/folder/numbers
		btrkit --version | grep -q "licence GPL-2.0-or-later"
		test -f /usr/share/man/man8/btrkit-mkfs.8.gz'
}

try_library()
{
	# shellcheck disable=SC2016	# the shell in there takes them for variables
	in_chroot sh -euc '
		cd /tmp
		cp /usr/share/doc/libbtrkit-dev/examples/*.c .
		gcc -Wall -Werror make-filesystem.c -o make-filesystem $(pkg-config --cflags --libs btrkit)
		gcc -Wall -Werror list-extents.c -o list-extents $(pkg-config --cflags --libs btrkit)
		./make-filesystem other.img 300 label
		btrkit check --data other.img
		./list-extents other.img'
}

remove_debs()
{
	in_chroot apt-get -qq purge -y btrkit libbtrkit-dev libbtrkit1
	[ -z "$(find "$top/root/usr" -name '*btrkit*' -print -quit)" ]
}

build_rpm()
{
	local spec=$sources/packaging/btrkit.spec
	mkdir -p "$top/rpm/SOURCES"
	rpmspec -P "$spec" >/dev/null
	tar -C "$top" --exclude=obj-* --exclude=debian -czf "$top/rpm/SOURCES/btrkit-$version.tar.gz" "btrkit-$version"
	# Debian's rpm lacks the macros for meson, and does not know package names of Fedora.
	rpmbuild -bb --nodeps --define "_topdir $top/rpm" --define "debug_package %{nil}" \
		--define "_lto_cflags %{nil}" --without tests "$spec"
}

look_at_rpm()
{
	rpm -qlp "$top"/rpm/RPMS/*/btrkit-"$version"*.rpm | grep -x /usr/bin/btrkit
	rpm -qlp "$top"/rpm/RPMS/*/libbtrkit-"$version"*.rpm | grep '/libbtrkit\.so\.0$'
	rpm -qlp "$top"/rpm/RPMS/*/libbtrkit-devel-"$version"*.rpm | grep '/btrkit\.pc$'
}

version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$sources/meson.build" | head -n 1)
unpack
cd "$top/btrkit-$version"
step debian-build dpkg-buildpackage -b -us -uc
step lintian check
step debootstrap debootstrap --variant=minbase bookworm "$top/root" "$mirror"
step debian-install install_debs
step debian-command try_command
step debian-library try_library
step debian-remove remove_debs
step rpm-build build_rpm
step rpm-contents look_at_rpm
echo "$passed passed, 0 failed"
