// SPDX-License-Identifier: LGPL-2.1-or-later
/* What lies of one file or name, which an operation must not believe: it fails, and tells nothing of it. */
#include <btrkit/subvolume_modify.h>

#include "lib/format/items/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/modify/op.h"
#include "tests/unit/session.h"

#define SIZE 12000u /* of an inline extent: it fits into a leaf, and not into a sector */

static const struct rig_kind large_nodes = {
	"16k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 16384, 0, 1, { 160 }
};

static void put(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size)
{
	int ret = edit_insert(t, key, data, size, &err);

	if (ret == -EEXIST)
		ret = edit_replace(t, key, data, size, &err);
	rig_check(ret, &err);
}

/* A file whose inline extent has more bytes than a sector, and an empty one. */
static void make_files(uint64_t *file, uint64_t *other)
{
	static uint8_t bytes[FILE_EXTENT_INLINE_START + SIZE];
	const struct disk_file_extent d = { .ram_bytes = le64_put(SIZE), .type = FILE_EXTENT_INLINE };
	struct disk_inode_item item;
	struct edit_tree *t;
	uint8_t *data;
	uint32_t n;

	rig_check(btrkit_txn_create(txn, TOP_LEVEL, TOP, "inline", 6, NULL, file, &err), &err);
	rig_check(btrkit_txn_create(txn, TOP_LEVEL, TOP, "other", 5, NULL, other, &err), &err);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(overlay_tree(txn->overlay, TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, &KEY(*file, KEY_INODE_ITEM, 0), &data, &n, &err), &err);
	memcpy(&item, data, sizeof(item));
	item.size = le64_put(SIZE);
	memcpy(data, &item, sizeof(item));
	memcpy(bytes, &d, FILE_EXTENT_INLINE_START);
	put(t, &KEY(*file, KEY_EXTENT_DATA, 0), bytes, sizeof(bytes));
}

/* None of it is written or cloned as if there were room for it; but all of it can go. */
static void test_large_inline(void **state)
{
	static const uint64_t sizes[] = { 5000, 100, 0 };

	(void)state;
	for (unsigned how = 0; how < 5; how++) {
		struct btrkit_clone what = { TOP_LEVEL, 0, 0, TOP_LEVEL, 0, how ? 0 : 4096, 0 };
		int ret;

		rig_make(&rig, &large_nodes);
		fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
		rig_check(btrkit_txn_start(fs, &txn, &err), &err);
		make_files(&what.from_inode, &what.to_inode);
		if (how < 2)
			ret = btrkit_txn_clone(txn, &what, &err);
		else
			ret = btrkit_txn_truncate(txn, TOP_LEVEL, what.from_inode, sizes[how - 2], &err);
		assert_int_equal(ret, how == 4 ? 0 : -EUCLEAN);
		txn = btrkit_txn_abort(txn);
		btrkit_fs_close(fs);
		rig_destroy(&rig);
	}
}

/* Whether an entry is a subvolume's cannot be read: nothing is told of it as if it could. */
static void test_unread_place(void **state)
{
	struct btrkit_found found = { .root = 1 };
	struct edit_tree *roots;
	uint64_t id;

	(void)state;
	rig_make(&rig, &large_nodes);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_subvolume_create(txn, TOP_LEVEL, TOP, "sub", 3, NULL, &id, &err), &err);
	rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	put(roots, &KEY(TOP_LEVEL, KEY_ROOT_REF, id), "x", 1);
	assert_int_equal(btrkit_txn_lookup(txn, TOP_LEVEL, TOP, "sub", 3, &found, &err), -EUCLEAN);
	assert_int_equal(found.root, 1);
	txn = btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&rig);
}

/*
 * Blocks that are said to be newer than the last snapshot are copied without a look at who else has them. What such a
 * block refers to would lose an owner: the files of the snapshot would be overwritten.
 */
static void test_snapshot_unknown(void **state)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_NEW;
	struct disk_root_item item;
	struct edit_tree *roots;
	uint64_t id, snapshot;
	char name[16];
	uint8_t *data;
	uint32_t n;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_subvolume_create(txn, TOP_LEVEL, TOP, "sub", 3, NULL, &id, &err), &err);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		rig_check(btrkit_txn_create(txn, id, TOP, name, strlen(name), NULL, NULL, &err), &err);
	}
	session_commit();
	rig_check(btrkit_txn_subvolume_snapshot(txn, id, TOP_LEVEL, TOP, "s", 1, NULL, &snapshot, &err), &err);
	session_commit();
	rig_check(txn_tree(txn, OID_ROOT_TREE, &roots, &err), &err);
	rig_check(edit_bytes(roots, &KEY(id, KEY_ROOT_ITEM, 0), &data, &n, &err), &err);
	memcpy(&item, data, sizeof(item));
	assert_int_not_equal(le64_get(item.last_snapshot), 0);
	item.last_snapshot = le64_put(0);
	memcpy(data, &item, sizeof(item));
	rig_check(btrkit_txn_create(txn, id, TOP, "another", 7, NULL, NULL, &err), &err);
	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EUCLEAN);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	assert_non_null(strstr(err.message, "is not shared"));
	assert_int_equal(err.tree, OID_EXTENT_TREE);
	btrkit_fs_close(fs);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_inline),
		cmocka_unit_test(test_unread_place),
		cmocka_unit_test(test_snapshot_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
