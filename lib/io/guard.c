// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/loop.h>

#include "lib/base/err.h"

#define LOCK_TRIES 60
#define LOCK_WAIT_NS 50000000	/* three seconds in all */

/*
 * udev's protocol: its workers hold a shared lock as long as they probe a device, which they do for a moment after
 * every change of it, so the lock is worth waiting for.
 */
static int lock_block(int fd, struct btrkit_error *err)
{
	const struct timespec wait = { 0, LOCK_WAIT_NS };

	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return err_system(err, errno, "cannot lock");
		if (i == LOCK_TRIES)
			return err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it");
		nanosleep(&wait, NULL);
	}
	return 0;
}

static int lock_file(int fd, struct btrkit_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it");
	return err_system(err, errno, "cannot lock");
}

/* What the loop driver itself says. @return whether it could be asked */
static bool ask_loop(const char *name, const struct stat *st, bool *backed)
{
	struct loop_info64 info = { 0 };	/* valgrind does not know what the ioctl writes */
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	*backed = !ioctl(fd, LOOP_GET_STATUS64, &info) &&
		  (S_ISBLK(st->st_mode) ? info.lo_rdevice == st->st_rdev :
					  info.lo_device == st->st_dev && info.lo_inode == st->st_ino);
	close(fd);
	return true;
}

/* Without the right to open loop devices there is the name of the file, which may be one of another mount namespace. */
static bool read_backing_file(const char *name, const struct stat *st)
{
	char path[PATH_MAX];
	struct stat backing;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, path, sizeof(path) - 1);
	close(fd);
	if (len <= 0)
		return false;
	path[len] = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (stat(path, &backing))
		return false;
	if (S_ISBLK(st->st_mode))
		return S_ISBLK(backing.st_mode) && backing.st_rdev == st->st_rdev;
	return backing.st_dev == st->st_dev && backing.st_ino == st->st_ino;
}

static int refuse_backing(const struct stat *st, struct btrkit_error *err)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *d;
	int ret = 0;

	if (!dir)
		dir = opendir("/dev");
	if (!dir)
		return 0;
	while (!ret && (d = readdir(dir))) {
		bool backed = false;

		if (strncmp(d->d_name, "loop", 4) || !isdigit((unsigned char)d->d_name[4]))
			continue;
		if (!ask_loop(d->d_name, st, &backed))
			backed = read_backing_file(d->d_name, st);
		if (backed)
			ret = err_set(err, BTRKIT_BUSY, "in use: it backs /dev/%.64s", d->d_name);
	}
	closedir(dir);
	return ret;
}

int io_guard(int fd, const struct stat *st, struct btrkit_error *err)
{
	int ret = S_ISBLK(st->st_mode) ? lock_block(fd, err) : lock_file(fd, err);

	return ret ? ret : refuse_backing(st, err);
}
