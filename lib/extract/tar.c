// SPDX-License-Identifier: LGPL-2.1-or-later
/* Extracts to an archive in pax format, using libarchive. */
#include "config.h"

#include "lib/extract/tar.h"

#include "lib/base/err.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Archives are padded to multiples of this size, like by tar. */
#define BLOCK_BYTES 10240u
#define OUTPUT_BYTES (100 * (size_t)BLOCK_BYTES)

static void flush(struct tar *t)
{
	if (!t->error && t->out_len)
		t->error = t->write(t->ctx, t->out, t->out_len);
	t->out_len = 0;
}

void tar_output(struct tar *t, const void *data, size_t len)
{
	const uint8_t *at = data;

	t->written += len;
	while (len) {
		const size_t room = OUTPUT_BYTES - t->out_len, n = len < room ? len : room;

		memcpy(t->out + t->out_len, at, n);
		t->out_len += n;
		if (t->out_len == OUTPUT_BYTES)
			flush(t);
		at += n;
		len -= n;
	}
}

/* Do not report a failure to libarchive before the end, because it would leak memory. */
static la_ssize_t take(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct tar *t = ctx;

	(void)a;
	if (t->abandoned)
		return -1;
	if (!t->silent)
		tar_output(t, data, len);
	return (la_ssize_t)len;
}

/* Returns an error that ends the archive. */
static int fails(struct extract *x)
{
	struct tar *t = x->to;
	const char *text = archive_error_string(t->a);

	if (t->error)
		return err_system(x->err, t->error, "archive");
	if (archive_errno(t->a) == ENOMEM)
		return err_nomem(x->err);
	return err_system(x->err, EIO, "archive: %s", text ? text : "cannot be written");
}

int tar_write(struct extract *x, const void *data, size_t len)
{
	struct tar *t = x->to;
	const uint8_t *at = data;

	while (len) {
		const la_ssize_t n = archive_write_data(t->a, at, len);

		if (n <= 0 || t->error)
			return fails(x);
		at += n;
		len -= (size_t)n;
		t->position += (uint64_t)n;
	}
	return 0;
}

/* Writes zeros for a file without holes. Damaged data is replaced by zeros. */
static int write_zeros(struct extract *x, uint64_t to)
{
	static const uint8_t zeros[65536];
	const struct tar *t = x->to;
	int ret = 0;

	while (!ret && t->position < to) {
		const uint64_t left = to - t->position;

		ret = tar_write(x, zeros, left < sizeof(zeros) ? (size_t)left : sizeof(zeros));
		if (!ret)
			ret = extract_progress(x);
	}
	return ret;
}

static int put(void *ctx, uint64_t offset, const void *data, size_t len)
{
	int ret = write_zeros(ctx, offset);

	return ret ? ret : tar_write(ctx, data, len);
}

static void describe(struct archive_entry *e, const struct extract_item *item)
{
	archive_entry_clear(e);
	archive_entry_copy_pathname(e, *item->path ? item->path : ".");
	archive_entry_set_mode(e, item->i.mode);
	archive_entry_set_uid(e, item->i.uid);
	archive_entry_set_gid(e, item->i.gid);
	archive_entry_set_nlink(e, item->i.nlink);
	archive_entry_set_mtime(e, item->i.mtime.sec, item->i.mtime.nsec);
	archive_entry_set_atime(e, item->i.atime.sec, item->i.atime.nsec);
	archive_entry_set_ctime(e, item->i.ctime.sec, item->i.ctime.nsec);
	if (S_ISCHR(item->i.mode) || S_ISBLK(item->i.mode)) {
		archive_entry_set_rdevmajor(e, major(item->i.rdev));
		archive_entry_set_rdevminor(e, minor(item->i.rdev));
	}
	if (item->target)
		archive_entry_copy_symlink(e, item->target);
	if (item->link)
		archive_entry_copy_hardlink(e, item->link);
	archive_entry_set_size(e, S_ISREG(item->i.mode) && !item->link ? (la_int64_t)item->i.size : 0);
}

static int write_header(struct extract *x)
{
	struct tar *t = x->to;
	/* In this locale, libarchive marks names in UTF-8 as such, and others as binary. */
	const locale_t before = t->utf8 ? uselocale(t->utf8) : (locale_t)0;
	const int ret = archive_write_header(t->a, t->e);

	if (t->utf8)
		uselocale(before);
	t->position = 0;
	if (t->error || (ret != ARCHIVE_OK && ret != ARCHIVE_WARN))
		return fails(x);
	x->result->names++;
	return 0;
}

static int finish(struct extract *x)
{
	struct tar *t = x->to;
	int ret = archive_write_finish_entry(t->a) == ARCHIVE_OK && !t->error ? 0 : fails(x);

	return ret ? ret : extract_progress(x);
}

static int plain(struct extract *x, const struct extract_item *item)
{
	struct tar *t = x->to;
	int ret;

	describe(t->e, item);
	ret = tar_attributes(x, t->e, item);
	if (!ret)
		ret = write_header(x);
	return ret ? ret : finish(x);
}

static int write_file(struct extract *x, struct btrkit_file *f, const struct extract_item *item)
{
	struct tar *t = x->to;
	uint64_t end;
	int ret, sparse;

	describe(t->e, item);
	sparse = tar_find_holes(x, f, item);
	if (sparse < 0)
		return sparse;
	ret = tar_attributes(x, t->e, item);
	if (!ret)
		ret = write_header(x);
	if (!ret)
		ret = extract_contents(x, f, item, sparse ? tar_put_sparse : put, x, &end);
	if (ret >= 0)
		ret = sparse ? tar_end_sparse(x, item) : write_zeros(x, item->i.size);
	/* The data was written without libarchive, which would write zeros for it. */
	t->silent = sparse;
	if (!ret)
		ret = finish(x);
	t->silent = false;
	return ret;
}

static int other(struct extract *x, const struct extract_item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	int ret;

	if (S_ISSOCK(item->i.mode))
		return extract_left_out(x, item->path, "sockets cannot be stored in an archive");
	if (!S_ISREG(item->i.mode))
		return plain(x, item);
	if (item->i.size > INT64_MAX)
		return extract_unmade(x, item->path, EFBIG, "cannot store in an archive");
	ret = btrkit_file_open(x->fs, item->i.root, item->i.inode, &f, &what);
	if (ret)
		return extract_problem(x, item->path, ret, &what);
	ret = write_file(x, f, item);
	btrkit_file_close(f);
	return ret;
}

static int make_link(struct extract *x, const struct extract_item *item)
{
	struct extract_item bare = *item;

	/* Attributes are stored with the first name. */
	bare.num_xattrs = 0;
	return S_ISSOCK(item->i.mode) ? other(x, item) : plain(x, &bare);
}

static int leave(struct extract *x, const struct extract_item *item)
{
	(void)x;
	(void)item;
	return 0;
}

static int above(struct extract *x, const char *name)
{
	(void)x;
	(void)name;
	return 0;
}

static int above_end(struct extract *x)
{
	(void)x;
	return 0;
}

static const struct extract_target tar_target = { above, above_end, plain, leave, other, make_link };

static int open_archive(struct extract *x)
{
	struct tar *t = x->to;

	t->a = archive_write_new();
	t->e = archive_entry_new();
	t->out = malloc(OUTPUT_BYTES);
	if (!t->a || !t->e || !t->out)
		return err_nomem(x->err);
	/* GNU tar supports the attribute format of star, and warns about that of libarchive. */
	if (archive_write_set_format_pax(t->a) != ARCHIVE_OK ||
	    archive_write_set_format_option(t->a, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(t->a, 0) != ARCHIVE_OK ||
	    archive_write_open(t->a, t, NULL, take, NULL) != ARCHIVE_OK)
		return fails(x);
	t->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return 0;
}

static int end_archive(struct extract *x)
{
	static const uint8_t zeros[BLOCK_BYTES];
	struct tar *t = x->to;

	if (archive_write_close(t->a) != ARCHIVE_OK)
		return fails(x);
	if (t->written % BLOCK_BYTES)
		tar_output(t, zeros, BLOCK_BYTES - t->written % BLOCK_BYTES);
	flush(t);
	return t->error ? fails(x) : 0;
}

static void close_archive(struct tar *t)
{
	if (t->utf8)
		freelocale(t->utf8);
	archive_entry_free(t->e);
	archive_write_free(t->a);
	free(t->regions);
	free(t->out);
}

int btrkit_extract_tar(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, btrkit_write_fn write,
		       void *ctx, const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		       struct btrkit_error *err)
{
	struct tar t = { .write = write, .ctx = ctx };
	struct extract x = { .fs = fs, .opts = opts, .target = &tar_target, .to = &t, .result = result, .err = err };
	int ret;

	if (result)
		*result = (struct btrkit_extract_result){ 0 };
	ret = open_archive(&x);
	if (!ret)
		ret = extract_run(&x, root, paths, n);
	/* Do not finish an incomplete archive. */
	t.abandoned = ret;
	if (!ret)
		ret = end_archive(&x);
	close_archive(&t);
	return ret;
}

#else

int btrkit_extract_tar(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, btrkit_write_fn write,
		       void *ctx, const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		       struct btrkit_error *err)
{
	(void)fs;
	(void)root;
	(void)paths;
	(void)n;
	(void)write;
	(void)ctx;
	(void)opts;
	if (result)
		*result = (struct btrkit_extract_result){ 0 };
	return err_set(err, BTRKIT_UNSUPPORTED, "archives are not supported: built without libarchive");
}

#endif
