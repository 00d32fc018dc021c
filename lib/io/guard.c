// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/fs.h>

#include "lib/base/err.h"
#include "lib/io/lock.h"
#include "lib/io/device_range.h"

/* For readers, a device that cannot be opened for lack of permission counts as unused, as most are. */
static bool is_in_use(const char *path, const struct guard *guard)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0) {
		close(fd);
		return false;
	}
	return guard->writes || errno == EBUSY;
}

/* Opens a device exclusively, unless somebody else has done so. */
static bool claim(const char *path, struct guard *guard)
{
	int fd;

	if (!guard->writes)
		return !is_in_use(path, guard);
	if (guard->n == GUARD_CLAIMS)
		return false;
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	/* Drop stale pages from its cache. This needs privileges that not every user has. */
	(void)ioctl(fd, BLKFLSBUF, 0);
	guard->claims[guard->n++] = fd;
	return true;
}

/*
 * Handles a loop device that shows @len bytes, starting at its offset @at, of what is used. @below: these are shown
 * through another loop device that our device is.
 */
static int check_loop(const struct loop *loop, uint64_t at, uint64_t len, bool below, struct guard *guard,
		      struct btrkit_error *err)
{
	struct partition part;
	char path[sizeof(loop->name) + 8];

	if (partition_find(loop->dev, at, len, &part)) {
		if (claim(part.path, guard))
			return 0;
		return err_because(err, BTRKIT_CAUSE_IN_USE,
				   err_set(err, BTRKIT_BUSY, "in use: it backs %.64s", part.path));
	}
	snprintf(path, sizeof(path), "/dev/%s", loop->name);
	/* Several loop devices on one file are not yet a reason to refuse. */
	if ((below || !guard->writes) && !is_in_use(path, guard))
		return 0;
	return err_because(err, BTRKIT_CAUSE_IN_USE, err_set(err, BTRKIT_BUSY, "in use: it backs %s", path));
}

static int check_overlaps(const struct loop *loop, const struct device_ranges *own, struct guard *guard,
			  struct btrkit_error *err)
{
	struct device_ranges its;

	/* Our device itself, or one that it lies on. */
	for (size_t i = 0; i < own->n; i++)
		if (own->at[i].block && own->at[i].dev == loop->dev)
			return 0;
	device_ranges_find(&loop->behind, &its);
	for (size_t i = 0; i < own->n; i++) {
		for (size_t j = 0; j < its.n; j++) {
			const struct device_range shared = device_range_overlap(&own->at[i], &its.at[j]);

			if (shared.len)
				return check_loop(loop, shared.start - its.at[j].start, shared.len, i >= own->own,
						  guard, err);
		}
	}
	return 0;
}

static int refuse_loops(const struct device_ranges *own, struct guard *guard, struct btrkit_error *err)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *d;
	int ret = 0;

	if (!dir)
		return 0;
	while (!ret && (d = readdir(dir))) {
		struct loop loop;

		if (!strncmp(d->d_name, "loop", 4) && isdigit((unsigned char)d->d_name[4]) &&
		    loop_find(d->d_name, &loop))
			ret = check_overlaps(&loop, own, guard, err);
	}
	closedir(dir);
	return ret;
}

int io_guard(int fd, const struct stat *st, uint64_t start, uint64_t len, bool writes, struct guard *guard,
	     struct btrkit_error *err)
{
	struct device_ranges own;
	struct device_range device_range;
	int ret = 0;

	*guard = (struct guard){ .writes = writes };
	if (writes)
		ret = S_ISBLK(st->st_mode) ? io_lock_block(fd, st, err) : io_lock_file(fd, start, len, err);
	if (ret)
		return ret;
	device_range = device_range_of(st, start, len);
	device_ranges_find(&device_range, &own);
	ret = refuse_loops(&own, guard, err);
	if (ret)
		io_guard_release(guard);
	return ret;
}

void io_guard_release(struct guard *guard)
{
	while (guard->n) {
		const int fd = guard->claims[--guard->n];

		(void)ioctl(fd, BLKFLSBUF, 0);
		close(fd);
	}
}
