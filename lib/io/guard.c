// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/guard.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>

#include "lib/base/err.h"
#include "lib/io/place.h"

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
		if (i >= LOCK_TRIES)
			return err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it");
		nanosleep(&wait, NULL);
	}
	return 0;
}

/* Another part of the file may be another's. */
static int lock_file(int fd, uint64_t start, uint64_t len, struct btrkit_error *err)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, BTRKIT_BUSY, "in use: another program holds a lock on it");
	return err_system(err, errno, "cannot lock");
}

/* A reader takes a device that it may not open for one that nobody uses: most are. */
static bool is_in_use(const char *path, const struct guard *guard)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0) {
		close(fd);
		return false;
	}
	return guard->writes || errno == EBUSY;
}

/* Takes a device for itself, as long as nobody else has done that. */
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
	/* Nothing that was read by it before is to be taken for what is there; it needs a right that not all have. */
	(void)ioctl(fd, BLKFLSBUF, 0);
	guard->claims[guard->n++] = fd;
	return true;
}

/*
 * A loop device shows some of the bytes that will be written, those of @len from @at on. @below: as the writer's device
 * does itself, being another loop device.
 */
static int judge_loop(const struct loop *loop, uint64_t at, uint64_t len, bool below, struct guard *guard,
		      struct btrkit_error *err)
{
	struct partition part;
	char path[sizeof(loop->name) + 8];

	if (partition_find(loop->dev, at, len, &part)) {
		if (claim(part.path, guard))
			return 0;
		return err_set(err, BTRKIT_BUSY, "in use: it backs %.64s", part.path);
	}
	snprintf(path, sizeof(path), "/dev/%s", loop->name);
	/* Two devices of one file may be there for whatever reason: that is no use yet. */
	if ((below || !guard->writes) && !is_in_use(path, guard))
		return 0;
	return err_set(err, BTRKIT_BUSY, "in use: it backs %s", path);
}

static int judge_overlaps(const struct loop *loop, const struct places *own, struct guard *guard,
			  struct btrkit_error *err)
{
	struct places its;

	/* What the device itself lies on. */
	for (size_t i = 0; i < own->n; i++)
		if (own->at[i].block && own->at[i].dev == loop->dev)
			return 0;
	places_find(&loop->behind, &its);
	for (size_t i = 0; i < own->n; i++) {
		for (size_t j = 0; j < its.n; j++) {
			const struct place shared = place_overlap(&own->at[i], &its.at[j]);

			if (shared.len)
				return judge_loop(loop, shared.start - its.at[j].start, shared.len, i >= own->own,
						  guard, err);
		}
	}
	return 0;
}

static int refuse_loops(const struct places *own, struct guard *guard, struct btrkit_error *err)
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
			ret = judge_overlaps(&loop, own, guard, err);
	}
	closedir(dir);
	return ret;
}

int io_guard(int fd, const struct stat *st, uint64_t start, uint64_t len, bool writes, struct guard *guard,
	     struct btrkit_error *err)
{
	struct places own;
	struct place place;
	int ret = 0;

	*guard = (struct guard){ .writes = writes };
	if (writes)
		ret = S_ISBLK(st->st_mode) ? lock_block(fd, err) : lock_file(fd, start, len, err);
	if (ret)
		return ret;
	place = place_of(st, start, len);
	places_find(&place, &own);
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
