// SPDX-License-Identifier: LGPL-2.1-or-later
/* Everything that Linux is asked to do with a filesystem. */
#include "tests/check/check_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BTRFS_IOC_SNAP_DESTROY _IOW(0x94, 15, char[4096])
#define BTRFS_IOC_BALANCE_V2 _IOWR(0x94, 32, char[1024])
#define BALANCE_ALL 7
#define SUBVOLUME_INODE 256
#define PATH_ROOM 4096
#define DEPTH_MAX 40u
#define ENTRIES_MAX 100000u

static unsigned entries;
bool check_failed[CHECK_ERRNOS];

static int note(int error)
{
	if (error > 0 && error < CHECK_ERRNOS)
		check_failed[error] = true;
	return error;
}

static void step(const char *name, int error)
{
	if (error)
		printf("STEP %s %d\n", name, error);
}

/* @return the first errno */
static int read_one(const char *path)
{
	static char bytes[1 << 16], names[1 << 16], value[1 << 16];
	struct stat st;
	ssize_t n;
	int ret = 0;

	if (lstat(path, &st))
		return errno;
	n = llistxattr(path, names, sizeof(names));
	if (n < 0 && errno != EOPNOTSUPP)
		ret = errno;
	for (const char *at = names; n > 0 && at < names + n && !ret; at += strlen(at) + 1)
		if (lgetxattr(path, at, value, sizeof(value)) < 0)
			ret = errno;
	if (S_ISLNK(st.st_mode) && readlink(path, bytes, sizeof(bytes)) < 0)
		ret = ret ? ret : errno;
	if (S_ISREG(st.st_mode)) {
		int fd = open(path, O_RDONLY);
		off_t at = 0;

		if (fd < 0)
			return errno;
		while (!ret && at < (64 << 20) && (n = pread(fd, bytes, sizeof(bytes), at)))
			if (n < 0)
				ret = errno;
			else
				at += n;
		close(fd);
	}
	return ret;
}

/* @return the first errno. The depth is limited because damaged directories may form a loop. */
static int read_all(const char *path, unsigned depth)
{
	DIR *dir;
	const struct dirent *e;
	int ret = note(read_one(path));
	struct stat st;

	if (depth > DEPTH_MAX || entries++ > ENTRIES_MAX || lstat(path, &st) || !S_ISDIR(st.st_mode))
		return ret;
	dir = opendir(path);
	if (!dir)
		return note(ret ? ret : errno);
	/* Damaged directories may have no end. */
	while (errno = 0, entries <= ENTRIES_MAX && (e = readdir(dir))) {
		char child[PATH_ROOM];
		int one;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", path, e->d_name) >= (int)sizeof(child))
			continue;
		one = read_all(child, depth + 1);
		ret = ret ? ret : one;
	}
	ret = ret ? ret : note(errno);
	closedir(dir);
	return ret;
}

int check_read(void)
{
	entries = 0;
	memset(check_failed, 0, sizeof(check_failed));
	return read_all(MNT, 0);
}

int check_write(void)
{
	static char bytes[200000];
	int fd, ret = 0;

	if (mkdir(MNT "/checked", 0700))
		return errno;
	for (unsigned i = 0; i < 20 && !ret; i++) {
		char path[64];

		snprintf(path, sizeof(path), MNT "/checked/%u", i);
		fd = open(path, O_CREAT | O_WRONLY, 0600);
		if (fd < 0 || write(fd, bytes, i * 10000) != (ssize_t)(i * 10000) ||
		    fsetxattr(fd, "user.checked", bytes, i, 0) || (!(i % 4) && fsync(fd)))
			ret = errno;
		close(fd);
	}
	fd = open(MNT, O_RDONLY | O_DIRECTORY);
	if (!ret && syncfs(fd))
		ret = errno;
	for (unsigned i = 0; i < 20 && !ret; i++) {
		char path[64];

		snprintf(path, sizeof(path), MNT "/checked/%u", i);
		ret = unlink(path) ? errno : 0;
	}
	if (!ret && (rmdir(MNT "/checked") || syncfs(fd)))
		ret = errno;
	close(fd);
	return ret;
}

int check_move(void)
{
	char args[1024] = { BALANCE_ALL };
	int fd = open(MNT, O_RDONLY | O_DIRECTORY), ret = 0;

	if (fd < 0 || ioctl(fd, BTRFS_IOC_BALANCE_V2, args))
		ret = errno;
	close(fd);
	return ret;
}

static int remove_one(DIR *dir, const char *name)
{
	char args[4096] = "";
	struct stat st;

	if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW))
		return errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dirfd(dir), name, 0) ? errno : 0;
	if (st.st_ino != SUBVOLUME_INODE)
		return unlinkat(dirfd(dir), name, AT_REMOVEDIR) ? errno : 0;
	snprintf(args + 8, sizeof(args) - 8, "%s", name);
	return ioctl(dirfd(dir), BTRFS_IOC_SNAP_DESTROY, args) ? errno : 0;
}

/* Nested contents of a subvolume are removed with it. @return the first errno */
static int remove_all(const char *path, unsigned depth)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	int ret = 0;

	if (!dir)
		return errno;
	while ((e = readdir(dir))) {
		char child[PATH_ROOM];
		struct stat st;
		int one = 0;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || entries++ > ENTRIES_MAX)
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", path, e->d_name) >= (int)sizeof(child))
			continue;
		if (depth < DEPTH_MAX && !lstat(child, &st) && S_ISDIR(st.st_mode) && st.st_ino != SUBVOLUME_INODE)
			one = remove_all(child, depth + 1);
		one = one ? one : remove_one(dir, e->d_name);
		ret = ret ? ret : one;
	}
	closedir(dir);
	return ret;
}

int check_remove(void)
{
	entries = 0;
	return remove_all(MNT, 0);
}

/* Deleted subvolumes are cleaned in the background after a commit; wait for that. */
static void settle(void)
{
	int fd = open(MNT, O_RDONLY | O_DIRECTORY);

	for (unsigned i = 0; i < 2; i++) {
		step("commit", syncfs(fd) ? errno : 0);
		usleep(300000);
	}
	close(fd);
}

bool check_is_read_only(void)
{
	char line[4096];
	bool ret = false;
	FILE *f = fopen("/proc/mounts", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " " MNT " "))
			ret = strstr(line, " btrfs ro");
	if (f)
		fclose(f);
	return ret;
}

void check_use(void)
{
	if (mount(LOOP, MNT, "btrfs", MS_RDONLY, "subvolid=5")) {
		step("mount", errno);
		return;
	}
	step("read", check_read());
	if (mount(LOOP, MNT, "btrfs", MS_REMOUNT, NULL)) {
		step("remount", errno);
	} else {
		step("write", check_write());
		step("move", check_move());
		step("remove", check_remove());
		settle();
		step("forced", check_is_read_only() ? EROFS : 0);
	}
	if (umount2(MNT, 0)) {
		step("umount", errno);
		umount2(MNT, MNT_DETACH);
		return;
	}
	/* Linux must be able to mount again what it wrote. */
	if (mount(LOOP, MNT, "btrfs", 0, "subvolid=5"))
		step("again", errno);
	else
		step("umount", umount2(MNT, 0) ? errno : 0);
}
