// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads an archive in two layers: the first one only decompresses, up to the end, so that checksums after the last
 * member are verified, too, and trailing data is noticed. The second one takes members from the decompressed data.
 */
#include "lib/source/archive.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/zero.h"

#define TAR_BLOCK 512u
#define TAR_SIZE_AT 124u
#define TAR_TYPE_AT 156u
#define TAR_MAGIC_AT 257u

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

static bool is_word(const char *at, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(at, word, len);
}

/*
 * Returns the length of a pax record as it states itself: digits followed by a space. @return 0: invalid; *digits:
 * number of digits
 */
static size_t record_length(const char *at, size_t left, size_t *digits)
{
	size_t len = 0;

	for (*digits = 0; *digits < left && at[*digits] >= '0' && at[*digits] <= '9' && len < SIZE_MAX / 16; ++*digits)
		len = 10 * len + (size_t)(at[*digits] - '0');
	return *digits < left && at[*digits] == ' ' && len > *digits + 1 ? len : 0;
}

/*
 * libarchive ignores global pax headers, which would go unnoticed. Checks the one at the start of the archive, as far
 * as it is in the block. @return the unsupported keyword, its length in *wrong_len; NULL: none
 */
static const char *wrong_global_header(const char *block, size_t len, size_t *wrong_len)
{
	const char *at = block + TAR_BLOCK;
	size_t left, said;

	if (len <= TAR_BLOCK || memcmp(block + TAR_MAGIC_AT, "ustar", 5) || block[TAR_TYPE_AT] != 'g')
		return NULL;
	/* strtoul() stops at the magic at the latest, because that is no digit. */
	said = strtoul(block + TAR_SIZE_AT, NULL, 8);
	for (left = said < len - TAR_BLOCK ? said : len - TAR_BLOCK; left;) {
		size_t digits, record = record_length(at, left, &digits);
		const char *keyword = at + digits + 1, *equals;
		const bool cut = record > left;

		if (digits == left)
			return NULL;
		if (!record) {
			*wrong_len = strlen("an invalid record");
			return "an invalid record";
		}
		if (cut)
			record = left;
		*wrong_len = record - digits - 1;
		equals = memchr(keyword, '=', *wrong_len);
		if (!equals && cut)
			return NULL;
		if (equals)
			*wrong_len = (size_t)(equals - keyword);
		if (!is_word(keyword, *wrong_len, "comment") && !is_word(keyword, *wrong_len, "hdrcharset"))
			return keyword;
		at += record;
		left -= record;
	}
	return NULL;
}

static la_ssize_t next_block(struct archive *members, void *ctx, const void **block)
{
	struct archive_stream *t = ctx;
	la_int64_t offset;
	size_t len = 0;
	int ret;

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
	if (!t->given && len) {
		size_t wrong_len;
		const char *wrong = wrong_global_header(*block, len, &wrong_len);

		if (wrong) {
			char text[80];

			snprintf(text, sizeof(text), "global header with %.*s is not supported",
				 wrong_len > 40 ? 40 : (int)wrong_len, wrong);
			archive_set_error(members, EILSEQ, "%s", text);
			return -1;
		}
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

int archive_stream_finish(struct archive_stream *t, struct btrkit_error *err)
{
	const int64_t at = archive_filter_bytes(t->members, 0);
	const bool tar = (archive_format(t->members) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
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
}

#endif
