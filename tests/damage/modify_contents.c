// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on a damaged filesystem: file contents and subvolumes, and everything that reads. */
#include "tests/damage/modify.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <btrkit/check.h>
#include <btrkit/extract.h>
#include <btrkit/subvolume_modify.h>

#include "lib/base/err.h"

#define BYTES (150u << 10)
#define OUTPUT_MAX (64u << 20)

static const uint8_t bytes[BYTES] = { 1, 2, 3 };

/* Operations on file contents. */

static int put(struct doing *d, uint64_t at, size_t len, uint8_t compression)
{
	const struct btrkit_write_options how = { .compression = compression, .threads = 1 };
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(btrkit_txn_write(d->txn, BASE_TOP, doing_file(d, i), at, bytes, len, &how, d->err));
	return ret;
}

static int write_little(struct doing *d)
{
	return put(d, 100, 300, 0);
}

static int write_much(struct doing *d)
{
	return put(d, 3000, BYTES, 0);
}

static int write_compressed(struct doing *d)
{
	return put(d, 0, 70000, 3);
}

static int write_behind(struct doing *d)
{
	return put(d, 5u << 20, 10, 0);
}

static int write_in_subvolume(struct doing *d)
{
	int ret = 0;

	for (uint64_t inode = BASE_DIR + 1; !ret && inode < BASE_DIR + 40; inode += 3)
		ret = doing_pass(btrkit_txn_write(d->txn, d->b->sub, inode, 5000, bytes, 5000, NULL, d->err));
	return ret;
}

static int truncate_to(struct doing *d, uint64_t size)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(btrkit_txn_truncate(d->txn, BASE_TOP, doing_file(d, i), size, d->err));
	return ret;
}

static int truncate_grow(struct doing *d)
{
	return truncate_to(d, 3u << 20);
}

static int truncate_middle(struct doing *d)
{
	return truncate_to(d, 10001);
}

static int truncate_all(struct doing *d)
{
	return truncate_to(d, 0);
}

static int punch(struct doing *d)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(btrkit_txn_punch(d->txn, BASE_TOP, doing_file(d, i), 100, 50000, d->err));
	return ret;
}

static int keep(struct doing *d)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(btrkit_txn_prealloc(d->txn, BASE_TOP, doing_file(d, i), 20000, 1u << 20,
						     i & 1 ? BTRKIT_PREALLOC_KEEP_SIZE : 0, d->err));
	return ret;
}

static int clone_range(struct doing *d, uint64_t root, uint64_t from, uint64_t to, uint64_t at)
{
	const struct btrkit_clone what = { root, from, 0, BASE_TOP, to, at, 0 };

	return btrkit_txn_clone(d->txn, &what, d->err);
}

static int clone_files(struct doing *d)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i + 1 < BASE_FILES; i++)
		ret = doing_pass(clone_range(d, BASE_TOP, doing_file(d, i), doing_file(d, i + 1), 40960));
	return ret;
}

static int clone_from_snapshot(struct doing *d)
{
	int ret = 0;

	for (uint64_t inode = BASE_DIR + 1; !ret && inode < BASE_DIR + 30; inode += 3)
		ret = doing_pass(clone_range(d, d->b->snapshot, inode, doing_file(d, (unsigned)inode), 0));
	return ret;
}

/* Operations on subvolumes. */

static int subvolume_create(struct doing *d)
{
	char name[32];
	const int len = snprintf(name, sizeof(name), "new subvolume %u", d->round);
	uint64_t id;
	const int ret = btrkit_txn_subvolume_create(d->txn, BASE_TOP, d->b->dir, name, (size_t)len, NULL, &id, d->err);

	return ret ? ret : doing_create(d, id, BASE_DIR, "in it", S_IFREG | 0644);
}

static int take_snapshot(struct doing *d, uint64_t of)
{
	char name[32];
	const int len = snprintf(name, sizeof(name), "new snapshot %u of %u", d->round, (unsigned)of);
	uint64_t id;
	int ret;

	ret = btrkit_txn_subvolume_snapshot(d->txn, of, BASE_TOP, BASE_DIR, name, (size_t)len, NULL, &id, d->err);
	if (!ret)
		ret = doing_create(d, id, BASE_DIR, "in it", S_IFREG | 0644);
	return ret ? ret : doing_create(d, of, BASE_DIR, "since it", S_IFREG | 0644);
}

static int snapshot_top(struct doing *d)
{
	return take_snapshot(d, BASE_TOP);
}

static int snapshot_sub(struct doing *d)
{
	return take_snapshot(d, d->b->sub);
}

static int set_read_only(struct doing *d)
{
	const int ret = btrkit_txn_subvolume_set_read_only(d->txn, d->b->snapshot, true, false, d->err);

	return ret ? ret : btrkit_txn_subvolume_set_read_only(d->txn, d->b->snapshot, false, true, d->err);
}

static int set_default(struct doing *d)
{
	const int ret = btrkit_txn_subvolume_set_default(d->txn, d->b->snapshot, d->err);

	return ret ? ret : btrkit_txn_subvolume_set_default(d->txn, BASE_TOP, d->err);
}

static int delete_snapshot(struct doing *d)
{
	return btrkit_txn_subvolume_delete(d->txn, d->b->snapshot, d->err);
}

static int delete_gone(struct doing *d)
{
	uint64_t id;
	const int ret = btrkit_subvolume_find(d->fs, "gone", &id, d->err);

	return ret ? ret : btrkit_txn_subvolume_delete(d->txn, id, d->err);
}

static int delete_sub(struct doing *d)
{
	const int ret = btrkit_txn_subvolume_delete(d->txn, d->b->sub, d->err);

	return ret;
}

static int clean_subvolumes(struct doing *d)
{
	return btrkit_txn_subvolumes_clean(d->txn, NULL, d->err);
}

static int clean_orphans(struct doing *d)
{
	const int ret = btrkit_txn_orphans_clean(d->txn, BASE_TOP, NULL, d->err);

	return ret ? ret : btrkit_txn_orphans_clean(d->txn, d->b->sub, NULL, d->err);
}

static int flush(struct doing *d)
{
	return btrkit_txn_flush(d->txn, d->err);
}

#define OPERATION(what)     \
	{                   \
#what, what \
	}
const struct operation content_operations[] = {
	OPERATION(flush),
	OPERATION(write_little),
	OPERATION(write_much),
	OPERATION(write_compressed),
	OPERATION(punch),
	OPERATION(clone_files),
	OPERATION(clone_from_snapshot),
	OPERATION(write_behind),
	OPERATION(write_in_subvolume),
	OPERATION(keep),
	OPERATION(truncate_middle),
	OPERATION(truncate_grow),
	OPERATION(subvolume_create),
	OPERATION(snapshot_top),
	OPERATION(snapshot_sub),
	OPERATION(set_read_only),
	OPERATION(set_default),
	OPERATION(truncate_all),
	OPERATION(clean_subvolumes),
	OPERATION(clean_orphans),
	OPERATION(delete_snapshot),
	OPERATION(delete_gone),
	OPERATION(delete_sub),
};
const size_t num_content_operations = sizeof(content_operations) / sizeof(content_operations[0]);

/* Readers. */

static int pass_over(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	(void)path;
	(void)len;
	if (!what->message[0])
		return *(int *)ctx = -EDOM;
	return 0;
}

static int swallow(void *ctx, const void *data, size_t len)
{
	struct doing *d = ctx;

	(void)data;
	d->extracted += len;
	return d->extracted > OUTPUT_MAX ? -EFBIG : 0;
}

int read_all(struct doing *d)
{
	struct btrkit_extract_options opts = BTRKIT_EXTRACT_OPTIONS_INIT;
	struct btrkit_check_options check = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_check_result found;
	int ret, silent = 0;

	opts.problem = pass_over;
	opts.problem_ctx = &silent;
	d->extracted = 0;
	ret = btrkit_extract_tar(d->fs, BASE_TOP, NULL, 0, swallow, d, &opts, NULL, d->err);
	if (silent)
		d->err->message[0] = '\0';
	if (silent || (ret && !d->err->message[0] && d->extracted <= OUTPUT_MAX))
		return -EDOM;
	*d->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	check.threads = 1;
	ret = btrkit_check(d->fs, &check, &found, d->err);
	if (!ret && found.findings[BTRKIT_CHECK_REFUSED])
		ret = err_corrupt(d->err, NULL, "check has findings");
	return ret;
}
