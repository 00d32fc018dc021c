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

/* The same sector over and over, with holes between: many items, and little data. */
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

	between_commit_every(1);
	cut(&d, "large", 20 * KIB + 100);
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
		d.ret = btrkit_subvolumes_clean(d.txn, NULL, err);
	doing_end(&d);
	return d.ret ? d.ret : go_on(fs, err);
}
