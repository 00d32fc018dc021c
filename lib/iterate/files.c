// SPDX-License-Identifier: LGPL-2.1-or-later
/* Iterators over what files and directories have. */
#include <errno.h>
#include <stdlib.h>

#include "lib/format/items/files/dir.h"
#include "lib/fs/inode.h"
#include "lib/fs/xattr.h"
#include "lib/iterate/iterate.h"

static int add_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	struct btrkit_iter *it = ctx;
	struct btrkit_dir_entry row = *e;

	if (it->n == ITERATE_AT_A_TIME)
		return iterate_enough(it);
	row.name = iterate_copy(it, e->name, e->name_len);
	if (!row.name || iterate_add(it, &row))
		return -ENOMEM;
	it->position = e->index;
	return 0;
}

static int more_entries(struct btrkit_iter *it, struct btrkit_error *err)
{
	return iterate_result(
		it, btrkit_inode_entries_after(it->fs, it->root, it->inode, it->position, add_entry, it, err), err);
}

int btrkit_iter_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after, struct btrkit_iter **ret,
			struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.root = root,
					.inode = inode,
					.position = after,
					.more = more_entries,
					.row_size = sizeof(struct btrkit_dir_entry) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_entry(struct btrkit_iter *it, const struct btrkit_dir_entry **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, more_entries, &row, err);

	if (!r)
		*ret = row;
	return r;
}

/*
 * An iterator around damage that is being made: it has all rows, because entries that were found otherwise come last.
 */
struct around {
	struct btrkit_iter *it;
	btrkit_lost_fn lost;
	void *ctx;
};

static int add_entry_around(void *ctx, const struct btrkit_dir_entry *e)
{
	const struct around *a = ctx;
	struct btrkit_dir_entry row = *e;

	if (a->it->position && e->index <= a->it->position)
		return 0;
	row.name = iterate_copy(a->it, e->name, e->name_len);
	return !row.name || iterate_add(a->it, &row) ? -ENOMEM : 0;
}

static int tell_lost(void *ctx, const struct btrkit_error *what)
{
	const struct around *a = ctx;

	return a->lost(a->ctx, what);
}

static int compare_entries(const void *x, const void *y)
{
	const struct btrkit_dir_entry *a = x, *b = y;

	return a->index < b->index ? -1 : a->index > b->index;
}

/* All rows are there from the beginning. */
static int no_more_entries(struct btrkit_iter *it, struct btrkit_error *err)
{
	(void)err;
	it->ended = true;
	return 0;
}

int btrkit_iter_entries_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after,
			       btrkit_lost_fn lost, void *ctx, struct btrkit_iter **ret, struct btrkit_error *err)
{
	const struct btrkit_iter like = { .fs = fs,
					  .position = after,
					  .all = true,
					  .more = no_more_entries,
					  .row_size = sizeof(struct btrkit_dir_entry) };
	struct around a = { .lost = lost, .ctx = ctx };
	int r = iterate_begin(&like, &a.it, err);

	if (r)
		return r;
	r = btrkit_inode_entries_around(fs, root, inode, add_entry_around, tell_lost, &a, err);
	r = iterate_result(a.it, r, err);
	if (r) {
		btrkit_iter_free(a.it);
		return r;
	}
	if (a.it->n)
		qsort(a.it->rows, a.it->n, a.it->row_size, compare_entries);
	/* The function that returns the rows is that of the other iterator over entries. */
	a.it->more = more_entries;
	*ret = a.it;
	return 0;
}

/* Names with the same hash are in one item, at which the next group of rows cannot begin in the middle. */
static int add_xattr(void *ctx, const struct btrkit_xattr *x)
{
	const uint64_t hash = dir_name_hash(x->name, x->name_len);
	struct btrkit_iter *it = ctx;
	struct btrkit_xattr row = *x;

	if (it->n >= ITERATE_AT_A_TIME && hash >= it->position)
		return iterate_enough(it);
	row.name = iterate_copy(it, x->name, x->name_len);
	row.value = iterate_copy(it, x->value, x->value_len);
	if (!row.name || !row.value || iterate_add(it, &row))
		return -ENOMEM;
	it->position = hash + 1;
	return 0;
}

static int more_xattrs(struct btrkit_iter *it, struct btrkit_error *err)
{
	return iterate_result(it, xattrs_from(it->fs, it->root, it->inode, it->position, add_xattr, it, err), err);
}

int btrkit_iter_xattrs(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_iter **ret,
		       struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.root = root,
					.inode = inode,
					.more = more_xattrs,
					.row_size = sizeof(struct btrkit_xattr) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_xattr(struct btrkit_iter *it, const struct btrkit_xattr **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, more_xattrs, &row, err);

	if (!r)
		*ret = row;
	return r;
}

static int add_file_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	struct btrkit_iter *it = ctx;

	if (it->n == ITERATE_AT_A_TIME)
		return iterate_enough(it);
	if (iterate_add(it, extent))
		return -ENOMEM;
	/* At the last offset there can be, which is not valid, it comes again rather than all others. */
	it->position = extent->logical + (extent->logical < UINT64_MAX);
	return 0;
}

static int more_file_extents(struct btrkit_iter *it, struct btrkit_error *err)
{
	return iterate_result(
		it, inode_extents_from(it->fs, it->root, it->inode, it->position, add_file_extent, it, err), err);
}

int btrkit_iter_file_extents(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_iter **ret,
			     struct btrkit_error *err)
{
	const struct btrkit_iter it = { .fs = fs,
					.root = root,
					.inode = inode,
					.more = more_file_extents,
					.row_size = sizeof(struct btrkit_file_extent) };

	return iterate_begin(&it, ret, err);
}

int btrkit_iter_next_file_extent(struct btrkit_iter *it, const struct btrkit_file_extent **ret,
				 struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, more_file_extents, &row, err);

	if (!r)
		*ret = row;
	return r;
}

static int begin_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	(void)file;
	return 0;
}

static int add_extents(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = iterate_add(ctx, &rows[i]);
	return ret;
}

/* All rows are there from the beginning. */
static int no_more_extents(struct btrkit_iter *it, struct btrkit_error *err)
{
	(void)err;
	it->ended = true;
	return 0;
}

static int add_extents_around(void *ctx, const struct btrkit_extent *some, size_t n)
{
	const struct around *a = ctx;

	return add_extents(a->it, some, n);
}

static int tell_problem(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	const struct around *a = ctx;

	(void)file;
	return a->lost(a->ctx, what);
}

int btrkit_iter_fiemap_around(struct btrkit_fs *fs, uint64_t root, const char *path, btrkit_lost_fn lost, void *ctx,
			      struct btrkit_iter **ret, struct btrkit_error *err)
{
	const struct btrkit_iter like = { .fs = fs,
					  .all = true,
					  .more = no_more_extents,
					  .row_size = sizeof(struct btrkit_extent) };
	struct around a = { .lost = lost, .ctx = ctx };
	const struct btrkit_fiemap_sink sink = {
		.file = begin_file, .extents = add_extents_around, .ctx = &a, .problem = lost ? tell_problem : NULL
	};
	int r = iterate_begin(&like, &a.it, err);

	if (r)
		return r;
	r = iterate_result(a.it, btrkit_fiemap_path(fs, root, path, &sink, NULL, err), err);
	if (r)
		btrkit_iter_free(a.it);
	else
		*ret = a.it;
	return r;
}

int btrkit_iter_fiemap(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_iter **ret,
		       struct btrkit_error *err)
{
	return btrkit_iter_fiemap_around(fs, root, path, NULL, NULL, ret, err);
}

int btrkit_iter_next_extent(struct btrkit_iter *it, const struct btrkit_extent **ret, struct btrkit_error *err)
{
	const void *row;
	int r = iterate_next(it, no_more_extents, &row, err);

	if (!r)
		*ret = row;
	return r;
}
