// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that change the filesystem in a transaction. */
#include "tests/crash/calls.h"

#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const uint8_t bytes[CALLS_BYTES] = { 'x', 1, 2, 3 };

static int create(struct caller *c)
{
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFDIR | 0755, S_IFLNK | 0777, S_IFCHR | 0600,
					  S_IFIFO | 0600,
					  S_IFSOCK | 0600, 0, 0170000, UINT32_MAX };
	const struct btrkit_time time = { calls_pick(c, 2) ? 5 : INT64_MIN, calls_pick(c, 8) ? 7 : UINT32_MAX };
	const uint32_t mode = modes[calls_pick(c, calls_one_in(c, 6) ? 9 : 3)];
	const struct btrkit_new_inode what = { .flags = calls_flags(c, 0),
					       .mode = mode,
					       .uid = calls_one_in(c, 16) ? UINT32_MAX : 3,
					       .rdev = calls_one_in(c, 2) ? UINT64_MAX : makedev(1, 3),
					       .target = S_ISLNK(mode) && calls_pick(c, 9) ? "to" : NULL,
					       .time = calls_one_in(c, 4) ? &time : NULL };
	const uint64_t root = calls_root(c), dir = calls_inode(c);
	uint64_t inode;
	size_t len;
	const char *name = calls_name(c, &len);

	return btrkit_txn_create(c->txn, root, dir, name, len, calls_pick(c, 3) ? &what : NULL, &inode, &c->err);
}

static struct btrkit_place place(struct caller *c, char name[CALLS_NAME_MAX + 1])
{
	struct btrkit_place p = { .root = calls_root(c), .dir = calls_inode(c) };

	p.name = strcpy(name, calls_name(c, &p.len));
	return p;
}

static int link_name(struct caller *c)
{
	char name[CALLS_NAME_MAX + 1];
	const struct btrkit_place to = place(c, name);

	return btrkit_txn_link(c->txn, calls_pick(c, 4) ? to.root : calls_root(c), calls_inode(c), &to, &c->err);
}

static int unlink_name(struct caller *c)
{
	const uint64_t root = calls_root(c), dir = calls_inode(c);
	size_t len;
	const char *name = calls_name(c, &len);

	return btrkit_txn_unlink(c->txn, root, dir, name, len, (enum btrkit_unlink_what)calls_pick(c, 2), &c->err);
}

static int orphans_clean(struct caller *c)
{
	uint64_t count;

	return btrkit_txn_orphans_clean(c->txn, calls_root(c), &count, &c->err);
}

static int rename_name(struct caller *c)
{
	char old[CALLS_NAME_MAX + 1], new[CALLS_NAME_MAX + 1];
	const struct btrkit_place from = place(c, old);
	struct btrkit_place to = place(c, new);

	if (calls_pick(c, 3))
		to.root = from.root;
	return btrkit_txn_rename(c->txn, &from, &to, calls_flags(c, 3), &c->err);
}

static int write_bytes(struct caller *c)
{
	const struct btrkit_write_options how = { .flags = calls_flags(c, 0),
						  .compression = (enum btrkit_compression)calls_pick(c, 4),
						  .level = (int)calls_pick(c, 4) - 1,
						  .threads = 1 };
	const size_t len = calls_pick(c, calls_pick(c, 3) ? 9000 : CALLS_BYTES);

	return btrkit_txn_write(c->txn, calls_root(c), calls_inode(c), calls_offset(c), bytes, len,
				calls_pick(c, 2) ? &how : NULL, &c->err);
}

static int truncate_file(struct caller *c)
{
	return btrkit_txn_truncate(c->txn, calls_root(c), calls_inode(c), calls_offset(c), &c->err);
}

static int punch(struct caller *c)
{
	return btrkit_txn_punch(c->txn, calls_root(c), calls_inode(c), calls_offset(c), calls_offset(c), &c->err);
}

static int prealloc(struct caller *c)
{
	return btrkit_txn_prealloc(c->txn, calls_root(c), calls_inode(c), calls_offset(c), calls_offset(c),
				   calls_flags(c, 1), &c->err);
}

static int clone(struct caller *c)
{
	const struct btrkit_clone what = { .from_root = calls_root(c),
					   .from_inode = calls_inode(c),
					   .from_offset = calls_offset(c),
					   .to_root = calls_root(c),
					   .to_inode = calls_inode(c),
					   .to_offset = calls_offset(c),
					   .length = calls_pick(c, 2) ? 0 : calls_offset(c),
					   .flags = calls_flags(c, 0) };

	return btrkit_txn_clone(c->txn, &what, &c->err);
}

static int set_attr(struct caller *c)
{
	const struct btrkit_attr attr = { .mask = calls_flags(c, 127),
					  .mode = calls_pick(c, 010000),
					  .uid = calls_one_in(c, 9) ? UINT32_MAX : 1,
					  .gid = calls_one_in(c, 9) ? UINT32_MAX : 2,
					  .mtime = { 1, calls_one_in(c, 9) ? UINT32_MAX : 2 } };

	return btrkit_txn_set_attr(c->txn, calls_root(c), calls_inode(c), &attr, &c->err);
}

/* Flags that would make the inode useless for later calls are rare. */
static int set_flags(struct caller *c)
{
	static const uint32_t flags[] = { FS_NODUMP_FL, FS_NOCOW_FL, FS_COMPR_FL, FS_NOCOMP_FL,
					  FS_COMPR_FL | FS_NOCOMP_FL,
					  FS_ENCRYPT_FL, FS_APPEND_FL, UINT32_MAX };
	const uint32_t mask = flags[calls_pick(c, calls_one_in(c, 6) ? 8 : 5)];

	return btrkit_txn_set_flags(c->txn, calls_root(c), calls_inode(c), calls_pick(c, 2) ? mask : 0, mask, &c->err);
}

static const char *attribute(struct caller *c)
{
	static const char *const names[] = { "user.a", "user.b", "trusted.c", "btrfs.compression", "user.",
					     "system.posix_acl_access", "system.posix_acl_default", "none", "" };

	return names[calls_pick(c, 9)];
}

static int xattr_set(struct caller *c)
{
	/* rwx, r-x, --- */
	static const uint8_t acl[] = { 2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 5, 0, 255, 255, 255, 255,
				       32, 0, 0, 0, 255, 255, 255, 255 };
	const char *name = attribute(c);
	const bool is_acl = !strncmp(name, "system", 6), is_property = !strncmp(name, "btrfs", 5);
	const uint64_t root = calls_root(c), inode = calls_inode(c);
	const void *value = is_acl ? acl : is_property ? (const void *)"zlib" : bytes;
	size_t size = is_acl ? sizeof(acl) : is_property ? 4 : calls_pick(c, 300);

	if (calls_one_in(c, 8)) {
		value = bytes;
		size = calls_pick(c, 70000);
	}
	return btrkit_txn_xattr_set(c->txn, root, inode, name, value, size, calls_flags(c, 3), &c->err);
}

static int xattr_remove(struct caller *c)
{
	return btrkit_txn_xattr_remove(c->txn, calls_root(c), calls_inode(c), attribute(c), &c->err);
}

static int xattr_get(struct caller *c)
{
	uint8_t value[200];
	size_t size;

	return btrkit_txn_xattr_get(c->txn, calls_root(c), calls_inode(c), attribute(c), value,
				    calls_pick(c, sizeof(value) + 1), &size, &c->err);
}

static int lookup(struct caller *c)
{
	const uint64_t root = calls_root(c), dir = calls_inode(c);
	struct btrkit_found found;
	size_t len;
	const char *name = calls_name(c, &len);

	return btrkit_txn_lookup(c->txn, root, dir, name, len, &found, &c->err);
}

static int flush(struct caller *c)
{
	return btrkit_txn_flush(c->txn, &c->err);
}

static int reserve_stats(struct caller *c)
{
	struct btrkit_reserve_stats stats;

	btrkit_txn_get_reserve_stats(c->txn, &stats);
	return 0;
}

static int subvolume_create(struct caller *c)
{
	static const uint8_t uuid[16] = { 1, 2, 3 };
	const struct btrkit_new_subvolume what = { .flags = calls_flags(c, 0),
						   .mode = 0755,
						   .uuid = calls_one_in(c, 2) ? uuid : NULL };
	const uint64_t root = calls_root(c), dir = calls_inode(c);
	uint64_t id;
	size_t len;
	const char *name = calls_name(c, &len);

	return btrkit_txn_subvolume_create(c->txn, root, dir, name, len, calls_pick(c, 2) ? &what : NULL, &id, &c->err);
}

static int subvolume_snapshot(struct caller *c)
{
	const struct btrkit_new_snapshot what = { .flags = calls_flags(c, BTRKIT_NEW_SNAPSHOT_READ_ONLY) };
	const uint64_t source = calls_root(c), root = calls_root(c), dir = calls_inode(c);
	uint64_t id;
	size_t len;
	const char *name = calls_name(c, &len);

	return btrkit_txn_subvolume_snapshot(c->txn, source, root, dir, name, len, &what, &id, &c->err);
}

static int subvolume_delete(struct caller *c)
{
	return btrkit_txn_subvolume_delete(c->txn, calls_root(c), &c->err);
}

static int subvolumes_clean(struct caller *c)
{
	uint64_t count;

	return btrkit_txn_subvolumes_clean(c->txn, &count, &c->err);
}

static int subvolume_set_default(struct caller *c)
{
	return btrkit_txn_subvolume_set_default(c->txn, calls_root(c), &c->err);
}

static int subvolume_set_read_only(struct caller *c)
{
	return btrkit_txn_subvolume_set_read_only(c->txn, calls_root(c), calls_one_in(c, 3), calls_one_in(c, 2),
						  &c->err);
}

const struct call calls_changing[] = {
	{ "create", create, CALLS_TXN },
	{ "create", create, CALLS_TXN },
	{ "link", link_name, CALLS_TXN },
	{ "unlink", unlink_name, CALLS_TXN },
	{ "orphans_clean", orphans_clean, CALLS_TXN },
	{ "rename", rename_name, CALLS_TXN },
	{ "write", write_bytes, CALLS_TXN },
	{ "write", write_bytes, CALLS_TXN },
	{ "truncate", truncate_file, CALLS_TXN },
	{ "punch", punch, CALLS_TXN },
	{ "prealloc", prealloc, CALLS_TXN },
	{ "clone", clone, CALLS_TXN },
	{ "set_attr", set_attr, CALLS_TXN },
	{ "set_flags", set_flags, CALLS_TXN | CALLS_SELDOM },
	{ "xattr_set", xattr_set, CALLS_TXN },
	{ "xattr_remove", xattr_remove, CALLS_TXN },
	{ "xattr_get", xattr_get, CALLS_TXN },
	{ "lookup", lookup, CALLS_TXN },
	{ "flush", flush, CALLS_TXN },
	{ "reserve_stats", reserve_stats, CALLS_TXN | CALLS_WITHOUT_ERROR },
	{ "subvolume_create", subvolume_create, CALLS_TXN },
	{ "subvolume_snapshot", subvolume_snapshot, CALLS_TXN },
	{ "subvolume_delete", subvolume_delete, CALLS_TXN },
	{ "subvolumes_clean", subvolumes_clean, CALLS_TXN },
	{ "subvolume_set_default", subvolume_set_default, CALLS_TXN },
	{ "subvolume_set_read_only", subvolume_set_read_only, CALLS_TXN },
};
const size_t num_calls_changing = sizeof(calls_changing) / sizeof(calls_changing[0]);
