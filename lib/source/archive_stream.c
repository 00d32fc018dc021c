// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads an archive in two layers: the first one only decompresses, up to the end, so that checksums after the last
 * member are verified, too, and trailing data is noticed. The second one takes members from the decompressed data.
 */
#include "lib/source/archive.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/zero.h"

#define TAR_BLOCK 512u
#define HEADERS_MAX (64u << 20)

int archive_fails(struct archive *a, const char *name, struct btrkit_error *err)
{
	const char *text = archive_error_string(a);
	const int errnum = archive_errno(a);

	if (errnum == ENOMEM)
		return err_nomem(err);
	if (errnum == EIO || errnum == EISDIR)
		return err_system(err, errnum, "%s: cannot read archive", name);
	return err_corrupt(err, NULL, "%s: broken archive: %s", name, text ? text : "unexpected end");
}

/* Enables the filters that libarchive has built in. For others it would start a program. */
static void support_filters(struct archive *a)
{
	(void)archive_read_support_filter_compress(a);
	if (archive_zlib_version())
		(void)archive_read_support_filter_gzip(a);
	if (archive_bzlib_version())
		(void)archive_read_support_filter_bzip2(a);
	if (archive_liblz4_version())
		(void)archive_read_support_filter_lz4(a);
	if (archive_libzstd_version())
		(void)archive_read_support_filter_zstd(a);
	if (archive_liblzma_version()) {
		(void)archive_read_support_filter_xz(a);
		(void)archive_read_support_filter_lzma(a);
		(void)archive_read_support_filter_lzip(a);
	}
}

/*
 * Keeps the bytes of the current block up to the offset @end, since libarchive does not show the headers that it reads.
 * Those of one member are at most some MiB, because libarchive refuses others.
 */
static int keep_headers(struct archive_stream *t, uint64_t end)
{
	const uint64_t begin = t->given - t->len, from = t->headers_at + t->headers_len;
	const uint64_t last = end < t->given ? end : t->given;
	const size_t len = from >= begin && from < last ? (size_t)(last - from) : 0;

	if (!len)
		return 0;
	if (t->headers_len + len > HEADERS_MAX)
		return -E2BIG;
	if (t->headers_len + len > t->headers_max) {
		char *grown = realloc(t->headers, 2 * (t->headers_len + len));

		if (!grown)
			return -ENOMEM;
		t->headers = grown;
		t->headers_max = 2 * (t->headers_len + len);
	}
	memcpy(t->headers + t->headers_len, (const char *)t->block + (from - begin), len);
	t->headers_len += len;
	return 0;
}

static la_ssize_t next_block(struct archive *members, void *ctx, const void **block)
{
	struct archive_stream *t = ctx;
	la_int64_t offset;
	size_t len = 0;
	int ret = t->collects ? keep_headers(t, UINT64_MAX) : 0;

	if (ret) {
		archive_set_error(members, -ret, "headers of a member are too large");
		return -1;
	}
	do
		ret = archive_read_data_block(t->bytes, block, &len, &offset);
	while (ret == ARCHIVE_OK && !len);
	if (ret == ARCHIVE_EOF)
		len = 0;
	else if (ret != ARCHIVE_OK) {
		const char *text = archive_error_string(t->bytes);

		archive_set_error(members, archive_errno(t->bytes), "%s", text ? text : "invalid compressed data");
		return -1;
	}
	if (len) {
		const size_t last = len < TAR_BLOCK ? len : TAR_BLOCK;

		t->ends_in_zeros = is_all_zeros((const char *)*block + len - last, last);
	}
	t->block = *block;
	t->len = len;
	t->given += len;
	return (la_ssize_t)len;
}

static int open_bytes(struct archive_stream *t, const char *path, struct btrkit_error *err)
{
	struct archive_entry *all;
	int ret;

	t->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (t->fd < 0)
		return err_system(err, errno, "%s: cannot open archive", t->name);
	t->bytes = archive_read_new();
	if (!t->bytes)
		return err_nomem(err);
	support_filters(t->bytes);
	if (archive_read_support_format_raw(t->bytes) != ARCHIVE_OK)
		return archive_fails(t->bytes, t->name, err);
	ret = archive_open_fd(t->bytes, t->fd, t->name, err);
	if (ret < 0)
		return ret;
	if (archive_read_next_header(t->bytes, &all) != ARCHIVE_OK)
		return archive_fails(t->bytes, t->name, err);
	return 0;
}

int archive_stream_open(struct archive_stream *t, const char *path, const char *name, struct btrkit_error *err)
{
	int ret;

	*t = (struct archive_stream){ .fd = -1 };
	source_escape(name, strlen(name), t->name, sizeof(t->name));
	ret = open_bytes(t, path, err);
	if (ret < 0)
		return ret;
	t->members = archive_read_new();
	if (!t->members)
		return err_nomem(err);
	if (archive_read_support_format_tar(t->members) != ARCHIVE_OK ||
	    archive_read_support_format_cpio(t->members) != ARCHIVE_OK ||
	    archive_read_open(t->members, t, NULL, next_block, NULL) != ARCHIVE_OK)
		return archive_fails(t->members, t->name, err);
	return 0;
}

/*
 * Names must be passed through as bytes. In the C locale, which is set here, libarchive does that, but warns that it
 * cannot convert UTF-8 from a pax header. That warning is ignored.
 */
static bool is_harmless(struct archive *a)
{
	const char *text = archive_error_string(a);

	return text && strstr(text, "can't be converted from UTF-8");
}

static bool is_format(const struct archive_stream *t, int format)
{
	return (archive_format(t->members) & ARCHIVE_FORMAT_BASE_MASK) == format;
}

/* Keeps the rest of the headers that were read, and gives the part of the current member to archive_globals_apply(). */
static int take_globals(struct archive_stream *t, struct archive_entry *e, struct btrkit_error *err)
{
	const uint64_t end = (uint64_t)archive_filter_bytes(t->members, 0);
	const uint64_t begin = (uint64_t)archive_read_header_position(t->members);
	int ret = keep_headers(t, end);

	if (ret)
		return ret == -ENOMEM ? err_nomem(err) :
					err_corrupt(err, NULL, "%s: broken archive: headers are too large", t->name);
	if (begin < t->headers_at || begin > end || end > t->headers_at + t->headers_len)
		return err_corrupt(err, NULL, "%s: broken archive: position of a header is unknown", t->name);
	return archive_globals_apply(t, t->headers + (begin - t->headers_at), (size_t)(end - begin), e, err);
}

/* libarchive takes all cpio members with several links and inode 0 for names of one file. */
static void separate(const struct archive_stream *t, struct archive_entry *e)
{
	if (is_format(t, ARCHIVE_FORMAT_CPIO) && archive_entry_hardlink(e) && !archive_entry_ino64(e))
		archive_entry_set_hardlink(e, NULL);
}

int archive_stream_next(struct archive_stream *t, struct archive_entry **ret, struct btrkit_error *err)
{
	struct archive *a = t->members;
	int status = t->in_member ? archive_read_data_skip(a) : ARCHIVE_OK;

	t->in_member = false;
	if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
		return archive_fails(a, t->name, err);
	t->headers_at = (uint64_t)archive_filter_bytes(a, 0);
	t->headers_len = 0;
	t->collects = true;
	status = archive_read_next_header(a, ret);
	t->collects = false;
	if (status == ARCHIVE_EOF)
		return 1;
	if (status != ARCHIVE_OK && !(status == ARCHIVE_WARN && is_harmless(a)))
		return archive_fails(a, t->name, err);
	t->in_member = true;
	separate(t, *ret);
	return is_format(t, ARCHIVE_FORMAT_TAR) ? take_globals(t, *ret, err) : 0;
}

int archive_stream_finish(struct archive_stream *t, struct btrkit_error *err)
{
	const int64_t at = archive_filter_bytes(t->members, 0);
	const bool tar = is_format(t, ARCHIVE_FORMAT_TAR);
	const void *block;
	la_ssize_t len = 0;

	/*
	 * A tar archive ends with blocks of zeros. One that was truncated between two headers has none, and all of its
	 * data was read.
	 */
	if (tar && (at <= archive_read_header_position(t->members) || (!t->len && !t->ends_in_zeros)))
		return err_corrupt(err, NULL, "%s: broken archive: no end-of-archive marker", t->name);
	if (at >= 0 && (uint64_t)at <= t->given && t->given - (uint64_t)at <= t->len &&
	    !is_all_zeros((const char *)t->block + t->len - (t->given - (uint64_t)at),
			  (size_t)(t->given - (uint64_t)at)))
		return err_corrupt(err, NULL, "%s: trailing data after the end of the archive", t->name);
	while (t->len && (len = next_block(t->members, t, &block)) > 0)
		if (!is_all_zeros(block, (size_t)len))
			return err_corrupt(err, NULL, "%s: trailing data after the end of the archive", t->name);
	return len < 0 ? archive_fails(t->members, t->name, err) : 0;
}

void archive_stream_close(struct archive_stream *t)
{
	if (t->members)
		archive_read_free(t->members);
	if (t->bytes)
		archive_read_free(t->bytes);
	if (t->fd >= 0)
		close(t->fd);
	free(t->headers);
}

#endif
