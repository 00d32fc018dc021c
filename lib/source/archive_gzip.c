// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decompresses gzip data in front of libarchive, because libarchive ignores gzip's checksum: a flipped bit in the
 * contents of a file would get into the filesystem and be given a valid checksum there. Other data is passed through.
 */
#include "lib/source/archive.h"

#if defined(HAVE_ARCHIVE) && defined(HAVE_ZLIB)

#include <archive.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/base/err.h"

#define READ_SIZE (256u << 10)
#define GZIP_MAGIC "\x1f\x8b"
#define GZIP_MAGIC_LEN 2u
/* For inflateInit2(): the largest window, plus 16 for gzip headers and trailers, whose checksums are then verified. */
#define GZIP_WINDOW (15 + 16)

struct gunzip {
	int fd;
	bool begun, gzip, inside; /* inside: in a gzip member, which must be completed */
	bool has_state;		  /* z is initialized */
	z_stream z;		  /* its input is the unused data, even if it is not gzip */
	uint8_t in[READ_SIZE], out[READ_SIZE];
};

static int fails(struct archive *a, int errnum, const char *what)
{
	archive_set_error(a, errnum, "%s", what);
	return -1;
}

/* Reads until @n bytes are available or the input ends. @return 0; -1 */
static int want(struct archive *a, struct gunzip *g, unsigned n)
{
	if (g->z.avail_in >= n)
		return 0;
	/* Move the few bytes that are left to the start. */
	for (unsigned i = 0; i < g->z.avail_in; i++)
		g->in[i] = g->z.next_in[i];
	g->z.next_in = g->in;
	while (g->z.avail_in < n) {
		const ssize_t got = read(g->fd, g->in + g->z.avail_in, READ_SIZE - g->z.avail_in);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fails(a, errno, "cannot read");
		if (!got)
			break;
		g->z.avail_in += (unsigned)got;
	}
	return 0;
}

static bool at_gzip(const struct gunzip *g)
{
	return g->z.avail_in >= GZIP_MAGIC_LEN && !memcmp(g->z.next_in, GZIP_MAGIC, GZIP_MAGIC_LEN);
}

/* Finds the next gzip member. Only zeros may come before it. @return 1: found; 0: end of input; -1 */
static int next_member(struct archive *a, struct gunzip *g)
{
	for (;;) {
		if (want(a, g, GZIP_MAGIC_LEN) < 0)
			return -1;
		if (at_gzip(g))
			break;
		if (!g->z.avail_in)
			return 0;
		if (*g->z.next_in)
			return fails(a, EILSEQ, "trailing data after the gzip data");
		g->z.next_in++;
		g->z.avail_in--;
	}
	if ((g->has_state ? inflateReset(&g->z) : inflateInit2(&g->z, GZIP_WINDOW)) != Z_OK)
		return fails(a, ENOMEM, "no memory");
	g->has_state = g->inside = true;
	return 1;
}

static la_ssize_t inflate_some(struct archive *a, struct gunzip *g)
{
	g->z.next_out = g->out;
	g->z.avail_out = READ_SIZE;
	while (g->z.avail_out == READ_SIZE) {
		int ret = g->inside ? 1 : next_member(a, g);

		if (ret <= 0)
			return ret;
		if (want(a, g, 1) < 0)
			return -1;
		if (!g->z.avail_in)
			return fails(a, EILSEQ, "gzip data is truncated");
		ret = inflate(&g->z, Z_NO_FLUSH);
		if (ret == Z_STREAM_END)
			g->inside = false;
		else if (ret == Z_MEM_ERROR)
			return fails(a, ENOMEM, "no memory");
		else if (ret != Z_OK)
			return fails(a, EILSEQ, "invalid gzip data or checksum");
	}
	return READ_SIZE - g->z.avail_out;
}

static la_ssize_t read_plain(struct archive *a, void *ctx, const void **block)
{
	struct gunzip *g = ctx;
	la_ssize_t len;

	if (want(a, g, g->begun ? 1 : GZIP_MAGIC_LEN) < 0)
		return -1;
	if (!g->begun)
		g->gzip = at_gzip(g);
	g->begun = true;
	if (g->gzip) {
		*block = g->out;
		return inflate_some(a, g);
	}
	*block = g->z.next_in;
	len = g->z.avail_in;
	g->z.avail_in = 0;
	return len;
}

static int close_plain(struct archive *a, void *ctx)
{
	struct gunzip *g = ctx;

	(void)a;
	if (g->has_state)
		inflateEnd(&g->z);
	free(g);
	return ARCHIVE_OK;
}

int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (!g)
		return err_nomem(err);
	g->fd = fd;
	/* libarchive calls close_plain() when @a is freed, even if this fails. */
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
