// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on a damaged filesystem: names and attributes. */
#include "tests/damage/modify.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>

#define VALUE_MAX (300u * BASE_FILES)

static const uint8_t bytes[VALUE_MAX] = { 1, 2, 3 };

static uint64_t dir_of(const struct doing *d, unsigned i)
{
	return i & 1 ? BASE_DIR : d->b->dir;
}

int doing_create(struct doing *d, uint64_t root, uint64_t dir, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode,
					       .target = S_ISLNK(mode) ? "to" : NULL,
					       .rdev = S_ISCHR(mode) ? makedev(1, 3) : 0 };
	char whole[64];
	const int len = snprintf(whole, sizeof(whole), "%s %u", name, d->round);

	return btrkit_txn_create(d->txn, root, dir, whole, (size_t)len, &what, NULL, d->err);
}

static int create_top(struct doing *d)
{
	return doing_create(d, BASE_TOP, BASE_DIR, "new", S_IFREG | 0644);
}

static int create_dir(struct doing *d)
{
	return doing_create(d, BASE_TOP, d->b->dir, "new dir", S_IFDIR | 0755);
}

static int create_link(struct doing *d)
{
	return doing_create(d, d->b->sub, BASE_DIR, "new link", S_IFLNK | 0777);
}

static int create_many(struct doing *d)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "one of many %u", i);
		ret = doing_create(d, BASE_TOP, d->b->full, name, i & 1 ? S_IFREG | 0644 : S_IFCHR | 0600);
	}
	return ret;
}

static int link_all(struct doing *d)
{
	char name[32];
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++) {
		const int len = snprintf(name, sizeof(name), "again %u %u", i, d->round);
		const struct btrkit_place to = { BASE_TOP, d->b->dir, name, (size_t)len };

		ret = doing_pass(btrkit_txn_link(d->txn, BASE_TOP, i ? doing_file(d, i) : d->b->many, &to, d->err));
	}
	return ret;
}

static int unlink_it(struct doing *d, uint64_t root, uint64_t dir, const char *name, enum btrkit_unlink_what what)
{
	return btrkit_txn_unlink(d->txn, root, dir, name, strlen(name), what, d->err);
}

static int unlink_file(struct doing *d)
{
	const unsigned i = d->round % BASE_FILES;
	char name[32];

	snprintf(name, sizeof(name), "file-%u", i);
	return unlink_it(d, BASE_TOP, dir_of(d, i), name, BTRKIT_UNLINK_FILE);
}

static int unlink_many(struct doing *d)
{
	char name[200];
	int ret = 0;

	for (unsigned i = 0; !ret && i < 30; i++) {
		snprintf(name, sizeof(name), "many-%0150u", i);
		ret = doing_pass(unlink_it(d, BASE_TOP, d->b->dir, name, BTRKIT_UNLINK_FILE));
	}
	return ret;
}

static int unlink_entries(struct doing *d)
{
	char name[32];
	int ret = 0;

	for (unsigned i = 0; !ret && i < 60; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		ret = doing_pass(unlink_it(d, BASE_TOP, d->b->full, name, BTRKIT_UNLINK_FILE));
	}
	return ret;
}

static int unlink_in_subvolume(struct doing *d)
{
	char name[200];
	int ret = 0;

	for (unsigned i = 0; !ret && i < 30; i++) {
		snprintf(name, sizeof(name), "in-%0100u", 3 * i);
		ret = doing_pass(unlink_it(d, d->b->sub, BASE_DIR, name, BTRKIT_UNLINK_FILE));
	}
	return ret;
}

static int rmdir_empty(struct doing *d)
{
	return unlink_it(d, BASE_TOP, d->b->dir, "empty", BTRKIT_UNLINK_DIR);
}

static int rmdir_full(struct doing *d)
{
	const int ret = unlink_it(d, BASE_TOP, d->b->dir, "full", BTRKIT_UNLINK_DIR);

	return ret;
}

static int rmdir_subvolume(struct doing *d)
{
	return unlink_it(d, d->b->sub, BASE_DIR, "inner", BTRKIT_UNLINK_DIR);
}

static int rmdir_place(struct doing *d)
{
	return unlink_it(d, d->b->snapshot, BASE_DIR, "inner", BTRKIT_UNLINK_DIR);
}

static int move(struct doing *d, uint64_t root, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		unsigned flags)
{
	const struct btrkit_place a = { root, dir, name, strlen(name) }, b = { root, to_dir, to, strlen(to) };

	return btrkit_txn_rename(d->txn, &a, &b, flags, d->err);
}

static int rename_file(struct doing *d)
{
	return move(d, BASE_TOP, d->b->dir, "file-0", BASE_DIR, "other", 0);
}

static int rename_over(struct doing *d)
{
	return move(d, BASE_TOP, BASE_DIR, "file-1", d->b->dir, "file-2", 0);
}

static int rename_exchange(struct doing *d)
{
	return move(d, BASE_TOP, BASE_DIR, "file-3", d->b->dir, "file-4", BTRKIT_RENAME_EXCHANGE);
}

static int rename_dir(struct doing *d)
{
	return move(d, BASE_TOP, d->b->dir, "full", BASE_DIR, "full", BTRKIT_RENAME_NOREPLACE);
}

static int rename_into_itself(struct doing *d)
{
	return move(d, BASE_TOP, BASE_DIR, "dir", d->b->full, "in itself", 0);
}

static int rename_subvolume(struct doing *d)
{
	return move(d, BASE_TOP, BASE_DIR, "snap", d->b->dir, "moved", 0);
}

static int rename_exchange_subvolumes(struct doing *d)
{
	return move(d, BASE_TOP, BASE_DIR, "sub", d->b->dir, "full", BTRKIT_RENAME_EXCHANGE);
}

static int look_up(struct doing *d)
{
	struct btrkit_found found;
	int ret = btrkit_txn_lookup(d->txn, BASE_TOP, BASE_DIR, "sub", 3, &found, d->err);

	return ret ? ret : btrkit_txn_lookup(d->txn, BASE_TOP, d->b->full, "entry-7", 7, &found, d->err);
}

/* Operations on attributes. */

static int set_attributes(struct doing *d)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE | BTRKIT_ATTR_UID, .mode = 0600, .uid = 7 };
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(btrkit_txn_set_attr(d->txn, BASE_TOP, doing_file(d, i), &attr, d->err));
	return ret;
}

static int set_flags(struct doing *d)
{
	const int ret = btrkit_txn_set_flags(d->txn, BASE_TOP, doing_file(d, d->round), FS_NODUMP_FL, FS_NODUMP_FL,
					     d->err);

	return ret ? ret : btrkit_txn_set_flags(d->txn, BASE_TOP, doing_file(d, d->round), 0, FS_NODUMP_FL, d->err);
}

static int set_xattrs(struct doing *d)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < BASE_FILES; i++)
		ret = doing_pass(
			btrkit_txn_xattr_set(d->txn, BASE_TOP, doing_file(d, i), "user.a", bytes, 300 * i, 0, d->err));
	if (!ret)
		ret = btrkit_txn_xattr_set(d->txn, BASE_TOP, d->b->dir, "btrfs.compression", "zstd", 4, 0, d->err);
	return ret;
}

static int set_acl(struct doing *d)
{
	static const uint8_t acl[] = { 2, 0, 0,	   0,	 1,    0,    7,	 0, 0xff, 0xff, 0xff, 0xff, 4,	  0,
				       5, 0, 0xff, 0xff, 0xff, 0xff, 32, 0, 4,	  0,	0xff, 0xff, 0xff, 0xff };
	int ret = btrkit_txn_xattr_set(d->txn, BASE_TOP, d->b->dir, "system.posix_acl_default", acl, sizeof(acl), 0,
				       d->err);

	if (!ret)
		ret = doing_create(d, BASE_TOP, d->b->dir, "inherits", S_IFREG | 0666);
	return ret;
}

static int get_xattr(struct doing *d)
{
	uint8_t value[4096];
	size_t size;

	return btrkit_txn_xattr_get(d->txn, BASE_TOP, doing_file(d, d->round), "user.a", value, sizeof(value), &size,
				    d->err);
}

static int remove_xattr(struct doing *d)
{
	return btrkit_txn_xattr_remove(d->txn, BASE_TOP, doing_file(d, d->round), "user.a", d->err);
}

#define OPERATION(what)     \
	{                   \
#what, what \
	}
const struct operation name_operations[] = {
	OPERATION(create_top),
	OPERATION(create_dir),
	OPERATION(create_link),
	OPERATION(create_many),
	OPERATION(link_all),
	OPERATION(look_up),
	OPERATION(rename_file),
	OPERATION(rename_over),
	OPERATION(rename_exchange),
	OPERATION(rename_dir),
	OPERATION(rename_into_itself),
	OPERATION(set_attributes),
	OPERATION(set_flags),
	OPERATION(set_xattrs),
	OPERATION(set_acl),
	OPERATION(get_xattr),
	OPERATION(remove_xattr),
	OPERATION(rename_subvolume),
	OPERATION(rename_exchange_subvolumes),
	OPERATION(unlink_file),
	OPERATION(unlink_many),
	OPERATION(unlink_entries),
	OPERATION(unlink_in_subvolume),
	OPERATION(rmdir_empty),
	OPERATION(rmdir_full),
	OPERATION(rmdir_place),
	OPERATION(rmdir_subvolume),
};
const size_t num_name_operations = sizeof(name_operations) / sizeof(name_operations[0]);
