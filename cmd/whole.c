// SPDX-License-Identifier: LGPL-2.1-or-later
/* Atomic replacement of a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"

/* Resolves symbolic links, so that they are not replaced. */
static int find_place(struct cmd_whole *w, const char *file, mode_t *mode)
{
	const mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	*mode = 0666 & ~mask;
	if (stat(file, &st)) {
		if (errno != ENOENT || !*file)
			return -errno;
		/* A dangling link would be replaced. */
		if (!lstat(file, &st))
			return -ENOENT;
		w->path = strdup(file);
		return w->path ? 0 : -ENOMEM;
	}
	/* The directory may be writable although the file is not: do not replace it then. */
	if (faccessat(AT_FDCWD, file, W_OK, AT_EACCESS))
		return -errno;
	*mode = st.st_mode & 0777;
	w->path = realpath(file, NULL);
	return w->path ? 0 : -errno;
}

static void release(struct cmd_whole *w)
{
	if (w->fd >= 0) {
		close(w->fd);
		unlink(w->temporary);
	}
	free(w->temporary);
	free(w->path);
	*w = (struct cmd_whole){ .fd = -1 };
}

int cmd_whole_begin(struct cmd_whole *w, const char *file)
{
	mode_t mode = 0;
	int ret;

	*w = (struct cmd_whole){ .fd = -1 };
	ret = find_place(w, file, &mode);
	if (!ret && asprintf(&w->temporary, "%s.XXXXXX", w->path) < 0) {
		w->temporary = NULL;
		ret = -ENOMEM;
	}
	if (!ret) {
		w->fd = mkostemp(w->temporary, O_CLOEXEC);
		ret = w->fd < 0 || fchmod(w->fd, mode) ? -errno : 0;
	}
	if (ret)
		release(w);
	return ret;
}

int cmd_whole_end(struct cmd_whole *w, bool whole)
{
	int ret = 0;

	if (w->fd >= 0) {
		/* Flush the contents before the rename, so that the name never refers to an incomplete file. */
		ret = whole && fsync(w->fd) ? -errno : 0;
		if (close(w->fd) && !ret)
			ret = -errno;
		if (!ret && whole && rename(w->temporary, w->path))
			ret = -errno;
		if (ret || !whole)
			unlink(w->temporary);
		w->fd = -1;
	}
	release(w);
	return ret;
}
