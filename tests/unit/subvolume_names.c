// SPDX-License-Identifier: LGPL-2.1-or-later
/* Subvolumes are renamed, moved, and removed when empty; what Linux refuses is refused with the same errno. */
#include <sys/stat.h>

#include <btrkit/subvolume_modify.h>

#include "lib/modify/subvolume_remove.h"
#include "tests/unit/session.h"

static uint64_t subvolume(uint64_t root, const char *name)
{
	uint64_t id;

	rig_check(btrkit_txn_subvolume_create(txn, root, TOP, name, strlen(name), NULL, &id, &err), &err);
	return id;
}

static uint64_t folder(uint64_t root, const char *name)
{
	const struct btrkit_new_inode what = { .mode = S_IFDIR | 0755 };
	uint64_t inode;

	rig_check(btrkit_txn_create(txn, root, TOP, name, strlen(name), &what, &inode, &err), &err);
	return inode;
}

static struct btrkit_place at(uint64_t root, uint64_t dir, const char *name)
{
	return (struct btrkit_place){ root, dir, name, strlen(name) };
}

static int move(struct btrkit_place from, struct btrkit_place to, unsigned flags)
{
	return btrkit_txn_rename(txn, &from, &to, flags, &err);
}

static int take(uint64_t root, const char *name, enum btrkit_unlink_what what)
{
	return btrkit_txn_unlink(txn, root, TOP, name, strlen(name), what, &err);
}

static uint64_t root_at(struct btrkit_place p)
{
	struct btrkit_found f;

	rig_check(btrkit_txn_lookup(txn, p.root, p.dir, p.name, p.len, &f, &err), &err);
	assert_int_equal(f.inode, TOP);
	return f.root;
}

static void test_moves(void **state)
{
	uint64_t a, b, dir;

	(void)state;
	session_begin();
	a = subvolume(BTRKIT_TOP_LEVEL, "a");
	b = subvolume(BTRKIT_TOP_LEVEL, "b");
	dir = folder(a, "dir");
	rig_check(move(at(BTRKIT_TOP_LEVEL, TOP, "b"), at(BTRKIT_TOP_LEVEL, TOP, "c"), 0), &err);
	assert_int_equal(root_at(at(BTRKIT_TOP_LEVEL, TOP, "c")), b);
	session_commit();
	/* A subvolume can move into another one, but not into itself. */
	rig_check(move(at(BTRKIT_TOP_LEVEL, TOP, "c"), at(a, dir, "c"), 0), &err);
	assert_int_equal(root_at(at(a, dir, "c")), b);
	assert_int_equal(move(at(BTRKIT_TOP_LEVEL, TOP, "a"), at(a, dir, "x"), 0), -EINVAL);
	assert_int_equal(move(at(BTRKIT_TOP_LEVEL, TOP, "a"), at(b, TOP, "x"), 0), -EINVAL);
	assert_int_equal(move(at(a, TOP, "dir"), at(b, TOP, "x"), 0), -EINVAL);
	assert_int_equal(move(at(a, dir, "c"), at(BTRKIT_TOP_LEVEL, TOP, "a"), 0), -ENOTEMPTY);
	session_commit();
	assert_int_equal(move(at(a, TOP, "dir"), at(BTRKIT_TOP_LEVEL, TOP, "dir"), 0), -EXDEV);
	assert_int_equal(move(at(a, TOP, "none"), at(BTRKIT_TOP_LEVEL, TOP, "x"), 0), -ENOENT);
	assert_int_equal(move(at(a, dir, "c"), at(BTRKIT_TOP_LEVEL, TOP, "a"), BTRKIT_RENAME_NOREPLACE), -EEXIST);
	rig_check(move(at(a, dir, "c"), at(a, dir, "c"), 0), &err);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, b, true, false, &err), &err);
	assert_int_equal(move(at(a, dir, "c"), at(BTRKIT_TOP_LEVEL, TOP, "c"), 0), -EROFS);
	rig_check(move(at(a, dir, "c"), at(a, dir, "d"), 0), &err);
	assert_int_equal(move(at(a, dir, "d"), at(b, TOP, "d"), 0), -EINVAL);
	session_end();
}

static void test_exchange(void **state)
{
	const unsigned exchange = BTRKIT_RENAME_EXCHANGE;
	uint64_t a, b, c;

	(void)state;
	session_begin();
	a = subvolume(BTRKIT_TOP_LEVEL, "a");
	b = subvolume(BTRKIT_TOP_LEVEL, "b");
	c = subvolume(a, "c");
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "f", 1, NULL, NULL, &err), &err);
	rig_check(btrkit_txn_create(txn, a, TOP, "g", 1, NULL, NULL, &err), &err);
	rig_check(move(at(BTRKIT_TOP_LEVEL, TOP, "b"), at(a, TOP, "c"), exchange), &err);
	assert_int_equal(root_at(at(BTRKIT_TOP_LEVEL, TOP, "b")), c);
	assert_int_equal(root_at(at(a, TOP, "c")), b);
	session_commit();
	rig_check(move(at(BTRKIT_TOP_LEVEL, TOP, "b"), at(BTRKIT_TOP_LEVEL, TOP, "f"), exchange), &err);
	assert_int_equal(root_at(at(BTRKIT_TOP_LEVEL, TOP, "f")), c);
	assert_int_equal(move(at(BTRKIT_TOP_LEVEL, TOP, "f"), at(a, TOP, "g"), exchange), -EXDEV);
	assert_int_equal(move(at(BTRKIT_TOP_LEVEL, TOP, "a"), at(a, TOP, "c"), exchange), -EINVAL);
	assert_int_equal(move(at(a, TOP, "c"), at(BTRKIT_TOP_LEVEL, TOP, "a"), exchange), -EINVAL);
	assert_int_equal(move(at(BTRKIT_TOP_LEVEL, TOP, "f"), at(a, TOP, "none"), exchange), -ENOENT);
	session_end();
}

/* A snapshot has empty stubs in place of nested subvolumes. */
static void test_places(void **state)
{
	uint64_t a, b, s;

	(void)state;
	session_begin();
	a = subvolume(BTRKIT_TOP_LEVEL, "a");
	b = subvolume(a, "b");
	subvolume(a, "c");
	rig_check(btrkit_txn_subvolume_snapshot(txn, a, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &s, &err), &err);
	session_commit();
	folder(s, "dir");
	rig_check(btrkit_txn_create(txn, s, TOP, "f", 1, NULL, NULL, &err), &err);
	assert_int_equal(move(at(s, TOP, "b"), at(s, TOP, "x"), 0), -ENOTEMPTY);
	assert_int_equal(move(at(s, TOP, "b"), at(s, TOP, "dir"), BTRKIT_RENAME_EXCHANGE), -ENOTEMPTY);
	assert_int_equal(move(at(s, TOP, "f"), at(s, TOP, "b"), 0), -EISDIR);
	rig_check(move(at(s, TOP, "b"), at(s, TOP, "b"), 0), &err);
	assert_int_equal(take(s, "b", BTRKIT_UNLINK_FILE), -EISDIR);
	/* The real subvolume may replace its own stub, and a directory may replace any stub. */
	rig_check(move(at(a, TOP, "b"), at(s, TOP, "b"), 0), &err);
	assert_int_equal(root_at(at(s, TOP, "b")), b);
	rig_check(move(at(s, TOP, "dir"), at(s, TOP, "c"), 0), &err);
	session_commit();
	rig_check(btrkit_txn_subvolume_snapshot(txn, a, BTRKIT_TOP_LEVEL, TOP, "t", 1, NULL, &s, &err), &err);
	rig_check(take(s, "c", BTRKIT_UNLINK_DIR), &err);
	assert_int_equal(take(s, "c", BTRKIT_UNLINK_DIR), -ENOENT);
	session_end();
}

static void test_rmdir(void **state)
{
	uint64_t a, b;

	(void)state;
	session_begin();
	a = subvolume(BTRKIT_TOP_LEVEL, "a");
	b = subvolume(a, "b");
	assert_int_equal(take(BTRKIT_TOP_LEVEL, "a", BTRKIT_UNLINK_DIR), -ENOTEMPTY);
	assert_int_equal(take(BTRKIT_TOP_LEVEL, "a", BTRKIT_UNLINK_FILE), -EISDIR);
	rig_check(btrkit_txn_subvolume_set_default(txn, b, &err), &err);
	assert_int_equal(take(a, "b", BTRKIT_UNLINK_DIR), -EPERM);
	rig_check(btrkit_txn_subvolume_set_default(txn, BTRKIT_TOP_LEVEL, &err), &err);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, b, true, false, &err), &err);
	rig_check(take(a, "b", BTRKIT_UNLINK_DIR), &err);
	session_commit();
	rig_check(btrkit_txn_subvolume_set_read_only(txn, a, true, false, &err), &err);
	/* ENOENT takes precedence over EROFS; and a read-only subvolume can itself be removed. */
	assert_int_equal(take(a, "b", BTRKIT_UNLINK_DIR), -ENOENT);
	rig_check(take(BTRKIT_TOP_LEVEL, "a", BTRKIT_UNLINK_DIR), &err);
	assert_int_equal(take(BTRKIT_TOP_LEVEL, "a", BTRKIT_UNLINK_DIR), -ENOENT);
	session_end();
}

/* Compression is inherited from the containing subvolume; the group is not inherited from the directory. */
static void test_inherited(void **state)
{
	struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE | BTRKIT_ATTR_GID, .mode = 02755, .gid = 77 };
	struct btrkit_inode inode;
	uint64_t dir, id;
	char value[8];
	size_t size;

	(void)state;
	session_begin();
	dir = folder(BTRKIT_TOP_LEVEL, "dir");
	rig_check(btrkit_txn_set_attr(txn, BTRKIT_TOP_LEVEL, dir, &attr, &err), &err);
	rig_check(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, TOP, "btrfs.compression", "lzo", 3, 0, &err), &err);
	rig_check(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, dir, "btrfs.compression", "zstd", 4, 0, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, dir, "a", 1, NULL, &id, &err), &err);
	rig_check(btrkit_txn_xattr_get(txn, id, TOP, "btrfs.compression", value, sizeof(value), &size, &err), &err);
	assert_int_equal(size, 3);
	assert_memory_equal(value, "lzo", 3);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(btrkit_inode_get(fs, id, TOP, &inode, &err), &err);
	assert_int_equal(inode.gid, 0);
	assert_int_equal(inode.mode, S_IFDIR | 0755);
	session_end();
}

/* A subvolume that has moved since it was looked up is not removed, even if it has the same name there. */
static void test_moved_meanwhile(void **state)
{
	struct roots_place found = { .dir = TOP, .name = { "s", 1 } };
	uint64_t a, b, s;

	(void)state;
	session_begin();
	a = found.parent = subvolume(BTRKIT_TOP_LEVEL, "a");
	b = subvolume(BTRKIT_TOP_LEVEL, "b");
	s = subvolume(a, "s");
	rig_check(move(at(a, TOP, "s"), at(b, TOP, "s"), 0), &err);
	assert_int_equal(subvolume_remove_empty(txn, s, &found, &err), -ENOENT);
	assert_int_equal(root_at(at(b, TOP, "s")), s);
	found.parent = b;
	rig_check(subvolume_remove_empty(txn, s, &found, &err), &err);
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves), cmocka_unit_test(test_exchange),	cmocka_unit_test(test_places),
		cmocka_unit_test(test_rmdir), cmocka_unit_test(test_inherited), cmocka_unit_test(test_moved_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
