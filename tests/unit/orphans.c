// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cleaning up after a crash: orphan files and half-made verity metadata; and operations that fs-verity forbids. */
#include <btrkit/subvolume_modify.h>

#include "lib/format/items/files/verity.h"
#include "lib/modify/names/names.h"
#include "tests/unit/session.h"

#define SECTORS 300u

/* Makes a file with many extents. */
static uint64_t file(uint64_t root, const char *name)
{
	static const uint8_t bytes[4096] = { 1, 2, 3 };
	uint64_t inode;

	rig_check(btrkit_txn_create(txn, root, TOP, name, strlen(name), NULL, &inode, &err), &err);
	for (unsigned i = 0; i < SECTORS; i++)
		rig_check(btrkit_txn_write(txn, root, inode, i * 8192ull, bytes, sizeof(bytes), NULL, &err), &err);
	return inode;
}

/* Changes an inode and adds items for it as no library call does. */
static void leave(uint64_t root, uint64_t inode, int links, uint64_t flags, unsigned seal, bool orphan)
{
	static const struct ticket_need need = { .items = 200, .bytes = 100000 };
	const uint64_t inodes[] = { inode, OID_ORPHAN };
	static const uint8_t bytes[512] = { 0 };
	struct op_inode in;
	struct op op;

	rig_check(op_begin(&op, txn, root, &need, &err), &err);
	delayed_lock(op.t, inodes, 2, &op.locks);
	if (links >= 0) {
		rig_check(op_inode_get(&op, inode, &in, &err), &err);
		in.item.nlink = le32_put((uint32_t)links);
		in.item.flags = le64_put(le64_get(in.item.flags) | flags);
		rig_check(op_inode_put(&op, &in, &err), &err);
	}
	for (unsigned i = 0; i < seal; i++)
		rig_check(delayed_insert(op.t, &KEY(inode, KEY_VERITY_MERKLE_ITEM, i * 512), bytes, sizeof(bytes), NULL,
					 &err),
			  &err);
	if (flags & INODE_VERITY) {
		const struct disk_verity_desc desc = { .size = le64_put(sizeof(bytes)) };

		rig_check(delayed_insert(op.t, &KEY(inode, KEY_VERITY_DESC_ITEM, 0), &desc, sizeof(desc), NULL, &err),
			  &err);
		rig_check(delayed_insert(op.t, &KEY(inode, KEY_VERITY_DESC_ITEM, 1), bytes, sizeof(bytes), NULL, &err),
			  &err);
	}
	if (orphan)
		rig_check(delayed_insert(op.t, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, inode), "", 0, NULL, &err), &err);
	assert_int_equal(op_end(&op, 0, NULL), 0);
}

/* Counts the items of an inode, except for file data. */
static unsigned items_of(uint64_t root, uint64_t inode)
{
	struct btrkit_key key = KEY(inode, 0, 0);
	struct item item;
	unsigned n = 0;
	struct op op;

	rig_check(op_begin_reading(&op, txn, root, &err), &err);
	delayed_lock(op.t, &inode, 1, &op.locks);
	for (; !delayed_seek(op.t, &op.reader, &key, &item, &err); key.offset++) {
		key = item.key;
		n += key.type != KEY_EXTENT_DATA;
	}
	assert_int_equal(op_end(&op, 0, NULL), 0);
	return n;
}

static void clean(uint64_t root, uint64_t wanted)
{
	uint64_t n;

	rig_check(btrkit_txn_orphans_clean(txn, root, &n, &err), &err);
	assert_int_equal(n, wanted);
	assert_int_equal(items_of(root, OID_ORPHAN), 0);
}

static void test_left(void **state)
{
	uint64_t id, inode, other;

	(void)state;
	session_begin();
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "s", 1, NULL, &id, &err), &err);
	inode = file(id, "f");
	other = file(id, "g");
	rig_check(btrkit_txn_unlink(txn, id, TOP, "f", 1, BTRKIT_UNLINK_FILE, &err), &err);
	rig_check(btrkit_txn_create(txn, id, TOP, "h", 1, NULL, &inode, &err), &err);
	session_commit();
	clean(id, 0);
	/*
	 * An orphan item without an inode, in a read-only subvolume; then half-made verity metadata of a file with a
	 * name.
	 */
	leave(id, 100000, -1, 0, 0, true);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, id, true, false, &err), &err);
	session_commit();
	clean(id, 1);
	assert_int_equal(btrkit_txn_orphans_clean(txn, 4711, NULL, &err), -ENOENT);
	rig_check(btrkit_txn_subvolume_set_read_only(txn, id, false, false, &err), &err);
	leave(id, other, 1, 0, 100, true);
	session_commit();
	clean(id, 1);
	assert_int_equal(items_of(id, other), 2);
	session_end();
}

/* Removes the last name without deleting the inode; the rest must follow when the subvolume is cleaned. */
static void test_nameless(void **state)
{
	static const struct ticket_need need = { .items = 20, .bytes = 1000 };
	uint64_t inode, index;
	struct op_inode dir;
	struct op op;

	(void)state;
	session_begin();
	inode = file(BTRKIT_TOP_LEVEL, "f");
	session_commit();
	rig_check(op_begin(&op, txn, BTRKIT_TOP_LEVEL, &need, &err), &err);
	delayed_lock(op.t, (const uint64_t[]){ TOP, inode }, 2, &op.locks);
	rig_check(op_inode_get(&op, TOP, &dir, &err), &err);
	rig_check(name_ref_remove(&op, inode, TOP, &(struct name){ "f", 1 }, &index, &err), &err);
	rig_check(name_remove(&op, &dir, &(struct name){ "f", 1 }, index, &err), &err);
	rig_check(op_inode_put(&op, &dir, &err), &err);
	assert_int_equal(op_end(&op, 0, NULL), 0);
	leave(BTRKIT_TOP_LEVEL, inode, 0, 0, 50, true);
	session_commit();
	clean(BTRKIT_TOP_LEVEL, 1);
	assert_int_equal(items_of(BTRKIT_TOP_LEVEL, inode), 0);
	session_end();
}

static void test_sealed(void **state)
{
	const struct btrkit_clone from = { .from_root = BTRKIT_TOP_LEVEL, .to_root = BTRKIT_TOP_LEVEL, .length = 8192 };
	struct btrkit_clone what = from;
	uint64_t inode, other;

	(void)state;
	session_begin();
	inode = file(BTRKIT_TOP_LEVEL, "f");
	other = file(BTRKIT_TOP_LEVEL, "g");
	leave(BTRKIT_TOP_LEVEL, inode, 1, INODE_VERITY, 100, true);
	session_commit();
	/* Complete verity metadata stays. */
	clean(BTRKIT_TOP_LEVEL, 1);
	assert_int_equal(items_of(BTRKIT_TOP_LEVEL, inode), 104);
	assert_int_equal(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, "x", 1, NULL, &err), -EPERM);
	assert_int_equal(btrkit_txn_truncate(txn, BTRKIT_TOP_LEVEL, inode, 0, &err), -EPERM);
	assert_int_equal(btrkit_txn_punch(txn, BTRKIT_TOP_LEVEL, inode, 0, 4096, &err), -EPERM);
	assert_int_equal(btrkit_txn_prealloc(txn, BTRKIT_TOP_LEVEL, inode, 0, 4096, 0, &err), -EPERM);
	what.from_inode = other;
	what.to_inode = inode;
	assert_int_equal(btrkit_txn_clone(txn, &what, &err), -EPERM);
	what.from_inode = inode;
	what.to_inode = other;
	rig_check(btrkit_txn_clone(txn, &what, &err), &err);
	session_commit();
	rig_check(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, "f", 1, BTRKIT_UNLINK_FILE, &err), &err);
	assert_int_equal(items_of(BTRKIT_TOP_LEVEL, inode), 0);
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
