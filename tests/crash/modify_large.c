// SPDX-License-Identifier: LGPL-2.1-or-later
#include "modify_large.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/modify/subvolume_remove.h"
#include "modify_between.h"
#include "modify_doing.h"
#include "modify_plans.h"

#define FILE_MODE (S_IFREG | 0644)
#define LARGE 700u /* extents */

/* Writes the same sector repeatedly with holes between: many items, little data. */
static void make_large(struct doing *d, const char *path)
{
	make(d, path, FILE_MODE);
	for (unsigned i = 0; i < LARGE; i++)
		share(d, "dir/file", i % 10 * 4 * KIB, 4 * KIB, path, (uint64_t)i * 8 * KIB);
}

int prepare_large(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d;
	int ret = prepare(fs, err);

	if (ret)
		return ret;
	d = doing_start(fs, err);
	make_large(&d, "large");
	make_large(&d, "dir/large");
	return doing_end(&d);
}

int large_files(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	make(&d, "dir/new", FILE_MODE);
	between_commit_every(4);
	drop(&d, "large");
	between_commit_every(5);
	move(&d, "dir/new", "dir/large", 0);
	between_commit_every(0);
	set_xattr(&d, "dir", "user.end", 10);
	return doing_end(&d);
}

int large_truncates(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	between_commit_every(5);
	cut(&d, "large", 20 * KIB + 100);
	between_commit_every(1);
	cut(&d, "large", 1u << 20);
	punch(&d, "dir/large", 100, 5u << 20);
	put(&d, "dir/large", 8 * KIB, 60 * KIB, 2, 0);
	between_commit_every(0);
	return doing_end(&d);
}

int deletion_in_steps(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);
	struct tree_drop drop = { .id = at(&d, "snap").root };
	bool done = false;

	if (!d.ret)
		d.ret = subvolume_take_name(d.txn, drop.id, err);
	while (!d.ret && !done) {
		doing_commit(&d);
		if (!d.ret)
			d.ret = subvolume_drop_some(d.txn, &drop, 4, &done, err);
	}
	doing_commit(&d);
	between_commit_every(1);
	delete_subvolume(&d, "sub");
	between_commit_every(0);
	return doing_end(&d);
}

int go_on_cleaning(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	if (!d.ret)
		d.ret = btrkit_txn_subvolumes_clean(d.txn, NULL, err);
	doing_end(&d);
	return d.ret ? d.ret : go_on(fs, err);
}

/* Preallocates all data space, so that no room is left for another chunk. */
static void fill_data(struct doing *d)
{
	uint64_t end = 0;

	make(d, "fill", FILE_MODE);
	for (uint64_t size = 32u << 20; size >= 4 * KIB && !d->ret; size /= 2) {
		while (!d->ret) {
			keep(d, "fill", end, size, 0);
			end += size;
		}
		/* The last preallocation may have succeeded in part. */
		doing_allow(d, -ENOSPC);
	}
}

int prepare_full(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d;
	int ret = prepare(fs, err);

	if (ret)
		return ret;
	d = doing_start(fs, err);
	for (unsigned i = 0; i < 3; i++) {
		char path[16];

		snprintf(path, sizeof(path), "spare %u", i);
		make(&d, path, FILE_MODE);
		keep(&d, path, 0, 128 * KIB, 0);
	}
	fill_data(&d);
	return doing_end(&d);
}

int full_of_data(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	d.may_commit = true;
	if (!d.ret)
		btrkit_txn_set_may_commit(d.txn, true);
	for (unsigned i = 0; i < 3; i++) {
		char path[16];

		snprintf(path, sizeof(path), "spare %u", i);
		drop(&d, path);
		snprintf(path, sizeof(path), "dir/new %u", i);
		make(&d, path, FILE_MODE);
		put(&d, path, 0, 100 * KIB, 2 * i, 0);
		put(&d, "dir/plain", 0, 20 * KIB, 2 * i, 0);
	}
	drop(&d, "dir/new 1");
	put(&d, "dir/kept", 0, 40 * KIB, 8, 0);
	return doing_end(&d);
}

/* Makes inline files until the metadata is full. */
static void fill_trees(struct doing *d, const char *folder, unsigned from)
{
	char path[64];

	for (unsigned n = from; !d->ret; n++) {
		snprintf(path, sizeof(path), "%s/%u", folder, n);
		make(d, path, FILE_MODE);
		put(d, path, 0, 1900, n, 0);
	}
	doing_allow(d, -ENOSPC);
}

/* Removes as many of these files as exist. */
static void drop_some(struct doing *d, unsigned from, unsigned n)
{
	char path[64];

	for (unsigned i = from; i < from + n && !d->ret; i++) {
		snprintf(path, sizeof(path), "other/%u", i);
		drop(d, path);
	}
	doing_allow(d, -ENOENT);
}

int prepare_full_trees(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d;
	int ret = prepare_full(fs, err);

	if (ret)
		return ret;
	d = doing_start(fs, err);
	fill_trees(&d, "other", 0);
	return doing_end(&d);
}

int full_of_trees(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);

	d.may_commit = true;
	if (!d.ret)
		btrkit_txn_set_may_commit(d.txn, true);
	for (unsigned round = 0; round < 2; round++) {
		drop_some(&d, 40 * round, 40);
		fill_trees(&d, "dir", 1000 * round);
	}
	return doing_end(&d);
}

int go_on_full(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct doing d = doing_start(fs, err);
	int ret;

	cut(&d, "fill", 0);
	drop_some(&d, 80, 600);
	ret = doing_end(&d);
	if (!ret)
		ret = go_on(fs, err);
	/* The trees may have no space left; the failure must have changed nothing. */
	return ret == -ENOSPC ? 0 : ret;
}
