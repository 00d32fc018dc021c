// SPDX-License-Identifier: LGPL-2.1-or-later
/* An archive as a target: pax, by libarchive. */
#include "config.h"

#include "lib/extract/extract.h"

#include "lib/base/err.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/extract/tar.h"

/* What is written at once; at its end an archive is filled up to blocks of this second size, as tar does. */
#define BLOCK_BYTES 10240
#define OUTPUT_BYTES (100 * BLOCK_BYTES)
/* Holes are handed to libarchive as zeros, which it does not look at. That many need no memory. */
#define ZERO_BYTES ((size_t)0x7ffff000)
#define HOLE_UNIT 4096u
#define FEW_ZERO_BYTES ((size_t)64 << 10)

struct tar {
	struct archive *a;
	struct archive_entry *e;
	locale_t utf8; /* or 0 */
	btrkit_write_fn write;
	void *ctx;
	int error;	   /* what the write function returned; from then on nothing is written */
	bool abandoned;	   /* nor is it worth the trouble */
	void *zeros;	   /* MAP_FAILED: there are few */
	/* Of the file that is written: where it is, and where its last data ends. */
	uint64_t position, data_end;
};

static const uint8_t few_zeros[FEW_ZERO_BYTES];

/* A failure is kept from libarchive until the end: it would not free all of its memory after one. */
static la_ssize_t take(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct tar *t = ctx;

	(void)a;
	if (t->abandoned)
		return -1;
	if (!t->error)
		t->error = t->write(t->ctx, data, len);
	return (la_ssize_t)len;
}

/* What ends an archive: nothing can come behind it. */
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

static int write_bytes(struct extract *x, const void *data, uint64_t len, bool repeat, size_t most)
{
	struct tar *t = x->to;
	const uint8_t *at = data;

	while (len) {
		const size_t want = len < most ? (size_t)len : most;
		const la_ssize_t n = archive_write_data(t->a, at, want);
		int ret;

		if (n <= 0 || t->error)
			return fails(x);
		at += repeat ? 0 : n;
		len -= (uint64_t)n;
		t->position += (uint64_t)n;
		ret = repeat ? extract_progress(x) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

static int write_zeros(struct extract *x, uint64_t len)
{
	const struct tar *t = x->to;

	if (t->zeros == MAP_FAILED)
		return write_bytes(x, few_zeros, len, true, FEW_ZERO_BYTES);
	return write_bytes(x, t->zeros, len, true, ZERO_BYTES);
}

static int put(void *ctx, uint64_t offset, const void *data, size_t len)
{
	struct extract *x = ctx;
	const struct tar *t = x->to;
	int ret = offset > t->position ? write_zeros(x, offset - t->position) : 0;

	return ret ? ret : write_bytes(x, data, len, false, len);
}

/*
 * Where data is, if it is not everywhere, in whole units: GNU tar reads each range from the start of a block on. Behind
 * what cannot be read there is a hole.
 */
static void find_holes(struct extract *x, struct btrkit_file *f, const struct extract_item *item)
{
	struct tar *t = x->to;
	uint64_t at = 0, start, length, data = 0, first = 0, last = 0;

	while (!btrkit_file_next_data(f, at, &start, &length, NULL) && length) {
		at = start + length;
		start -= start % HOLE_UNIT;
		if (start > last) {
			if (last > first)
				archive_entry_sparse_add_entry(t->e, (la_int64_t)first, (la_int64_t)(last - first));
			data += last - first;
			first = start;
		}
		last = at % HOLE_UNIT ? at + (HOLE_UNIT - at % HOLE_UNIT) : at;
		if (last > item->i.size)
			last = item->i.size;
	}
	data += last - first;
	if (data != item->i.size)
		archive_entry_sparse_add_entry(t->e, (la_int64_t)first, (la_int64_t)(last - first));
	t->data_end = last;
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
	/* What is UTF-8 is then told as such, and what is not as bytes. */
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
	int ret;

	describe(t->e, item);
	find_holes(x, f, item);
	ret = tar_attributes(x, t->e, item);
	if (!ret)
		ret = write_header(x);
	if (!ret)
		ret = extract_contents(x, f, item, put, x, &end);
	/* What was cut has zeros in its place, and so has what a unit lacks; a hole at the end comes of itself. */
	if (ret >= 0)
		ret = write_zeros(x, t->data_end > t->position ? t->data_end - t->position : 0);
	/* The list of holes goes before the first byte that libarchive is given, and be that in a hole. */
	if (!ret && !t->position && item->i.size)
		ret = write_zeros(x, 1);
	return ret ? ret : finish(x);
}

static int other(struct extract *x, const struct extract_item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	int ret;

	if (S_ISSOCK(item->i.mode))
		return extract_left_out(x, item->path, "a socket, which an archive cannot hold");
	if (!S_ISREG(item->i.mode))
		return plain(x, item);
	if (item->i.size > INT64_MAX)
		return extract_unmade(x, item->path, EFBIG, "cannot put into an archive");
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

	/* All else is said under its first name. */
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
	if (!t->a || !t->e)
		return err_nomem(x->err);
	/* GNU tar knows star's form of attributes, and warns of that of libarchive. */
	if (archive_write_set_format_pax(t->a) != ARCHIVE_OK ||
	    archive_write_set_format_option(t->a, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(t->a, OUTPUT_BYTES) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(t->a, BLOCK_BYTES) != ARCHIVE_OK ||
	    archive_write_open(t->a, t, NULL, take, NULL) != ARCHIVE_OK)
		return fails(x);
	t->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	t->zeros = mmap(NULL, ZERO_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return 0;
}

static void close_archive(struct tar *t)
{
	if (t->zeros && t->zeros != MAP_FAILED)
		munmap(t->zeros, ZERO_BYTES);
	if (t->utf8)
		freelocale(t->utf8);
	archive_entry_free(t->e);
	archive_write_free(t->a);
}

int btrkit_extract_tar(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, btrkit_write_fn write,
		       void *ctx, const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		       struct btrkit_error *err)
{
	struct tar t = { .write = write, .ctx = ctx };
	struct extract x = { .fs = fs, .opts = opts, .target = &tar_target, .to = &t, .result = result, .err = err };
	int ret = open_archive(&x);

	if (!ret)
		ret = extract_run(&x, root, paths, n);
	/* What is not whole gets no end. */
	t.abandoned = ret;
	if (!ret && (archive_write_close(t.a) != ARCHIVE_OK || t.error))
		ret = fails(&x);
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
	(void)result;
	return err_set(err, BTRKIT_UNSUPPORTED, "this build writes no archives: it was made without libarchive");
}

#endif
