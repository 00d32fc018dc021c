// SPDX-License-Identifier: LGPL-2.1-or-later
/* --html FILE: the file is replaced atomically. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/du.h"

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

int du_page_begin(struct du_page *p, const char *const *devices, size_t n, struct btrkit_error *err)
{
	struct stat st;
	int r;

	p->whole.fd = -1;
	if (!p->file || du_page_is_stdout(p))
		return 0;
	if (!stat(p->file, &st)) {
		if (!S_ISREG(st.st_mode))
			return refuse(p, -EINVAL, "is not a regular file", err);
		for (size_t i = 0; i < n; i++)
			if (cmd_is_device(p->file, devices[i]))
				return refuse(p, -EINVAL, "is a device of the filesystem", err);
	}
	r = cmd_whole_begin(&p->whole, p->file);
	return r ? fail(p, -r, err) : 0;
}

int du_page_write(void *ctx, const void *data, size_t len)
{
	struct du_page *p = ctx;
	const char *at = data;

	while (len && !p->error) {
		ssize_t n = cmd_progress_stopped() ? -1 : write(p->whole.fd, at, len);

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
	int r;

	if (p->whole.fd < 0)
		return ret;
	r = cmd_whole_end(&p->whole, !ret && !p->error);
	if (!p->error)
		p->error = r;
	if (p->error && !cmd_was_interrupted(p->error))
		fail(p, -p->error, err);
	return ret ? ret : p->error;
}
