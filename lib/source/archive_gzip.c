// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The first layer beneath libarchive takes gzip off, because libarchive passes over gzip's checksum: a bit that fell
 * over in a file's contents would get into the filesystem and be given a good checksum there. What is not gzip comes
 * through as it is.
 */
#include "lib/source/archive.h"

#if defined(HAVE_ARCHIVE) && defined(HAVE_ZLIB)

#include <archive.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/err.h"

#define READ_SIZE (256u << 10)

struct gunzip {
	gzFile file;
	char bytes[READ_SIZE];
};

static la_ssize_t read_plain(struct archive *a, void *ctx, const void **block)
{
	struct gunzip *g = ctx;
	int status, len;

	errno = 0;
	len = gzread(g->file, g->bytes, READ_SIZE);
	if (len > 0) {
		*block = g->bytes;
		return len;
	}
	/* One that was cut off says so only here. */
	(void)gzerror(g->file, &status);
	if (len == 0 && status == Z_OK)
		return 0;
	if (status == Z_ERRNO)
		archive_set_error(a, errno ? errno : EIO, "cannot read");
	else if (status == Z_MEM_ERROR)
		archive_set_error(a, ENOMEM, "no memory");
	else
		archive_set_error(a, EILSEQ,
				  status == Z_BUF_ERROR ? "gzip data that end too early"
							: "gzip data or their checksum");
	return -1;
}

static int close_plain(struct archive *a, void *ctx)
{
	struct gunzip *g = ctx;

	(void)a;
	(void)gzclose_r(g->file);
	free(g);
	return ARCHIVE_OK;
}

int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err)
{
	struct gunzip *g = malloc(sizeof(*g));
	int own;

	if (!g)
		return err_nomem(err);
	/* It closes what it was given. */
	own = dup(fd);
	g->file = own < 0 ? NULL : gzdopen(own, "rb");
	if (!g->file) {
		const int errnum = own < 0 ? errno : ENOMEM;

		if (own >= 0)
			close(own);
		free(g);
		return err_system(err, errnum, "%s: cannot read archive", name);
	}
	/* Whatever comes of opening, libarchive then calls close_plain() when it is freed. */
	(void)gzbuffer(g->file, READ_SIZE);
	return archive_read_open(a, g, NULL, read_plain, close_plain) == ARCHIVE_OK ? 0 : archive_fails(a, name, err);
}

#elif defined(HAVE_ARCHIVE)

#include <archive.h>

#define READ_SIZE ((size_t)256 << 10)

int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err)
{
	return archive_read_open_fd(a, fd, READ_SIZE) == ARCHIVE_OK ? 0 : archive_fails(a, name, err);
}

#endif
