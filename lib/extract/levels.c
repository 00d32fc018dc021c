// SPDX-License-Identifier: LGPL-2.1-or-later
/* The path from the target down to the current directory. */
#include "lib/extract/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void close_level(struct level *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/* Reopen closed directories, beginning at the target. The deepest ones stay open. */
static int reopen(struct directory *d)
{
	const size_t last = d->n - 1;
	int fd = d->levels[0].fd;

	for (size_t i = 1; i <= last; i++) {
		struct level *l = &d->levels[i];
		int next = l->fd >= 0 ? l->fd : openat(fd, l->name, OPEN_DIRECTORY);
		const int errnum = errno;
		struct stat st;

		if (i > 1 && fd != d->levels[i - 1].fd)
			close(fd);
		errno = errnum;
		if (next < 0)
			return -1;
		/* It was replaced by a different directory. */
		if (l->fd < 0 && (fstat(next, &st) || st.st_dev != l->dev || st.st_ino != l->ino)) {
			close(next);
			errno = ESTALE;
			return -1;
		}
		if (last - i < LEVELS_OPEN)
			l->fd = next;
		fd = next;
	}
	return fd;
}

int levels_fd(struct directory *d)
{
	const struct level *l = &d->levels[d->n - 1];

	return l->fd >= 0 ? l->fd : reopen(d);
}

int levels_enter(struct directory *d, const char *name)
{
	int above = levels_fd(d), ret = 0;
	struct level l = { .fd = -1 };
	struct stat st;

	if (above < 0)
		return -errno;
	if (d->n == d->room) {
		struct level *more = reallocarray(d->levels, 2 * d->room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->levels = more;
		d->room *= 2;
	}
	l.fd = openat(above, name, OPEN_DIRECTORY);
	if (l.fd < 0)
		return -errno;
	l.name = strdup(name);
	if (!l.name)
		ret = -ENOMEM;
	else if (fstat(l.fd, &st))
		ret = -errno;
	if (ret) {
		close(l.fd);
		free(l.name);
		return ret;
	}
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	if (d->n > LEVELS_OPEN)
		close_level(&d->levels[d->n - LEVELS_OPEN]);
	d->levels[d->n++] = l;
	return 0;
}

void levels_leave(struct directory *d)
{
	struct level *l = &d->levels[--d->n];

	close_level(l);
	free(l->name);
}

void levels_close(struct directory *d)
{
	while (d->n)
		levels_leave(d);
	free(d->levels);
}

int levels_open_parent(const struct directory *d, const char *path)
{
	int fd = fcntl(d->levels[0].fd, F_DUPFD_CLOEXEC, 0);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		char *name = strndup(path, (size_t)(slash - path));
		int next = name ? openat(fd, name, OPEN_DIRECTORY) : -1;
		const int errnum = name ? errno : ENOMEM;

		free(name);
		close(fd);
		errno = errnum;
		fd = next;
		path = slash + 1;
	}
	return fd;
}
