// SPDX-License-Identifier: LGPL-2.1-or-later
/* --html FILE: the file is there as a whole or as it was before. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "du.h"

static int refuse(const struct du_page *p, int ret, const char *why, struct btrkit_error *err)
{
	*err = (struct btrkit_error){ .code = BTRKIT_SYSTEM, .err = ret };
	snprintf(err->message, sizeof(err->message), "--html %s: %s", p->file, why);
	return ret;
}

static int fail(const struct du_page *p, int errnum, struct btrkit_error *err)
{
	return refuse(p, -errnum, strerror(errnum), err);
}

bool du_page_is_stdout(const struct du_page *p)
{
	return !strcmp(p->file, "-");
}

/* The place of the file itself, so that a link stays one. */
static int find_place(struct du_page *p, const char *const *devices, size_t n, mode_t *mode, struct btrkit_error *err)
{
	const mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	*mode = 0666 & ~mask;
	if (stat(p->file, &st)) {
		if (errno != ENOENT || !*p->file)
			return fail(p, errno, err);
		p->path = strdup(p->file);
		return p->path ? 0 : fail(p, ENOMEM, err);
	}
	if (!S_ISREG(st.st_mode))
		return refuse(p, -EINVAL, "is no regular file", err);
	for (size_t i = 0; i < n; i++)
		if (cmd_is_device(p->file, devices[i]))
			return refuse(p, -EINVAL, "is what is to be read", err);
	*mode = st.st_mode & 0777;
	p->path = realpath(p->file, NULL);
	return p->path ? 0 : fail(p, errno, err);
}

int du_page_begin(struct du_page *p, const char *const *devices, size_t n, struct btrkit_error *err)
{
	mode_t mode = 0;
	int r;

	p->fd = -1;
	if (!p->file || du_page_is_stdout(p))
		return 0;
	r = find_place(p, devices, n, &mode, err);
	if (r)
		return r;
	if (asprintf(&p->temporary, "%s.XXXXXX", p->path) < 0) {
		p->temporary = NULL;
		return fail(p, ENOMEM, err);
	}
	p->fd = mkostemp(p->temporary, O_CLOEXEC);
	if (p->fd < 0)
		return fail(p, errno, err);
	return fchmod(p->fd, mode) ? fail(p, errno, err) : 0;
}

int du_page_write(void *ctx, const void *data, size_t len)
{
	struct du_page *p = ctx;
	const char *at = data;

	while (len && !p->error) {
		ssize_t n = cmd_progress_stopped() ? -1 : write(p->fd, at, len);

		if (n < 0 && errno == EINTR && !cmd_progress_stopped())
			continue;
		if (n < 0) {
			p->error = cmd_progress_stopped() ? -EINTR : -errno;
			break;
		}
		at += n;
		len -= (size_t)n;
	}
	return p->error;
}

int du_page_end(struct du_page *p, int ret, struct btrkit_error *err)
{
	if (p->fd >= 0) {
		if (close(p->fd) && !p->error)
			p->error = -errno;
		if (!ret && !p->error && rename(p->temporary, p->path))
			p->error = -errno;
		if (ret || p->error)
			unlink(p->temporary);
		if (p->error && !cmd_was_interrupted(p->error))
			fail(p, -p->error, err);
	}
	free(p->temporary);
	free(p->path);
	return ret ? ret : p->error;
}
