// SPDX-License-Identifier: LGPL-2.1-or-later
/* A damaged item keeps its leaf from being written, unless it is known, and only as long as its bytes do not change. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/format/items/files/dir.h"
#include "lib/tree/edit.h"
#include "lib/tree/known_bad.h"
#include "lib/volume/volume.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u
#define FILES 4u

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static struct btrkit_txn *txn;
static struct edit_tree *tree;
static uint64_t inodes[FILES];

static void must(int ret)
{
	char line[BTRKIT_ERROR_LINE];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

static void open_tree(void)
{
	txn = written_start(fs);
	must(txn_tree(txn, BTRKIT_TOP_LEVEL, &tree, &err));
}

static const struct btrkit_key *index_key(unsigned i)
{
	static struct btrkit_key key;

	key = (struct btrkit_key){ TOP, KEY_DIR_INDEX, 2 + i };
	return &key;
}

/* Gives the entry of file @i a type that does not exist, in each copy of its leaf. */
static void damage(unsigned i)
{
	uint8_t block[16384];
	struct cursor c;
	struct copy copy;
	uint64_t at;
	size_t offset;

	open_tree();
	cursor_init(&c, fs, &tree->c.root);
	must(cursor_find(&c, index_key(i), &err));
	at = cursor_leaf(&c)->bytenr;
	offset = (size_t)((const uint8_t *)c.item.data - cursor_leaf(&c)->data);
	assert_int_equal(cursor_leaf(&c)->size, sizeof(block));
	for (unsigned mirror = 0; !volume_map(fs->volume, at, sizeof(block), mirror, &copy, &err); mirror++) {
		must(btrkit_io_read(copy.io, copy.physical, block, sizeof(block), &err));
		block[offset + offsetof(struct disk_dir_item, type)] = 77;
		memset(block, 0, 32);
		fs->geometry.csum->compute(block + 32, sizeof(block) - 32, block);
		must(btrkit_io_write(copy.io, copy.physical, block, sizeof(block), &err));
	}
	cursor_release(&c);
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
}

static int begin(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	char name[2] = "a";
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	for (unsigned i = 0; i < FILES; i++, name[0]++)
		must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, 1, NULL, &inodes[i], &err));
	written_commit(txn);
	damage(1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	btrkit_fs_close(fs);
	written_destroy(&w);
	return 0;
}

/* Changes what is beside the damage. */
static void change_neighbour(void)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE, .mode = 0400 };

	must(btrkit_txn_set_attr(txn, BTRKIT_TOP_LEVEL, inodes[2], &attr, &err));
}

static void expect_refused(unsigned i)
{
	enum btrkit_commit_state reached;

	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EUCLEAN);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	assert_true(err.places & BTRKIT_AT_KEY);
	assert_int_equal(key_cmp(&err.key, index_key(i)), 0);
}

static void damage_is_not_written(void **state)
{
	(void)state;
	open_tree();
	change_neighbour();
	expect_refused(1);
}

static void what_is_known_may_stand(void **state)
{
	struct btrkit_inode inode;
	struct cursor c;
	(void)state;

	open_tree();
	must(known_bad_add(tree, index_key(1), &err));
	change_neighbour();
	must(btrkit_txn_commit(txn, NULL, &err));
	must(btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, inodes[2], &inode, &err));
	assert_int_equal(inode.mode & 07777, 0400);
	open_tree();
	cursor_init(&c, fs, &tree->c.root);
	must(cursor_find(&c, index_key(1), &err));
	assert_int_equal(((const struct disk_dir_item *)c.item.data)->type, 77);
	cursor_release(&c);
	/* The permission has ended with the transaction. */
	change_neighbour();
	expect_refused(1);
}

static void nothing_else_may_stand(void **state)
{
	(void)state;
	damage(3);
	open_tree();
	must(known_bad_add(tree, index_key(1), &err));
	change_neighbour();
	expect_refused(3);
}

static void both_may_stand(void **state)
{
	(void)state;
	damage(3);
	open_tree();
	must(known_bad_add(tree, index_key(1), &err));
	must(known_bad_add(tree, index_key(3), &err));
	change_neighbour();
	must(btrkit_txn_commit(txn, NULL, &err));
}

/* Other bytes are no better for being in the place of bad ones. */
static void changed_bytes_may_not_stand(void **state)
{
	uint32_t size;
	uint8_t *data;
	(void)state;

	open_tree();
	must(known_bad_add(tree, index_key(1), &err));
	must(edit_bytes(tree, index_key(1), &data, &size, &err));
	data[offsetof(struct disk_dir_item, type)] = 78;
	expect_refused(1);
}

static void only_bad_items_are_known(void **state)
{
	const struct btrkit_key none = { TOP, KEY_DIR_INDEX, 999 };
	(void)state;

	open_tree();
	assert_int_equal(known_bad_add(tree, index_key(0), &err), -EINVAL);
	assert_memory_equal(&err.key, index_key(0), sizeof(err.key));
	assert_int_equal(known_bad_add(tree, &none, &err), -ENOENT);
	btrkit_txn_abort(txn);
}

/* Once it is repaired, no permission is needed. */
static void repaired_items_are_written(void **state)
{
	uint32_t size;
	uint8_t *data;
	(void)state;

	open_tree();
	must(known_bad_add(tree, index_key(1), &err));
	must(edit_bytes(tree, index_key(1), &data, &size, &err));
	data[offsetof(struct disk_dir_item, type)] = FT_REG;
	change_neighbour();
	must(btrkit_txn_commit(txn, NULL, &err));
	written_verify(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(damage_is_not_written, begin, end),
		cmocka_unit_test_setup_teardown(what_is_known_may_stand, begin, end),
		cmocka_unit_test_setup_teardown(nothing_else_may_stand, begin, end),
		cmocka_unit_test_setup_teardown(both_may_stand, begin, end),
		cmocka_unit_test_setup_teardown(changed_bytes_may_not_stand, begin, end),
		cmocka_unit_test_setup_teardown(only_bad_items_are_known, begin, end),
		cmocka_unit_test_setup_teardown(repaired_items_are_written, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
