// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading in an open transaction after a flush: names, inodes and contents are the current ones; whatever needs the
 * extent tree returns -EBUSY, since references are added by the commit.
 */
#include "lib/print/stat.h"
#include "lib/print/tree_stats.h"
#include "tests/unit/session.h"

#include <btrkit/btrkit.h>

static int no_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)ctx;
	(void)file;
	return 0;
}

static int see_shared(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(unsigned *)ctx += rows[i].flags & BTRKIT_EXTENT_SHARED ? 1 : 0;
	return 0;
}

static int see_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	*(uint64_t *)ctx = extent->bytenr;
	return 0;
}

static int see_entry(void *ctx, const struct btrkit_dir_entry *entry)
{
	(void)entry;
	++*(unsigned *)ctx;
	return 0;
}

static int swallow(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(size_t *)ctx += len;
	return 0;
}

static int see_reference(void *ctx, const struct btrkit_reference *ref)
{
	(void)ctx;
	(void)ref;
	return 0;
}

static int see_chunk(void *ctx, const struct btrkit_chunk *chunk)
{
	(void)ctx;
	(void)chunk;
	return 0;
}

static void write_file(const char *name, const void *bytes, size_t len, uint64_t *inode)
{
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, strlen(name), NULL, inode, &err), &err);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, *inode, 0, bytes, len, NULL, &err), &err);
}

static uint64_t address_of(uint64_t inode)
{
	uint64_t at = 0;

	rig_check(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, inode, see_extent, &at, &err), &err);
	return at;
}

/* Must be refused with an error message. */
static void expect_busy(int ret)
{
	assert_int_equal(ret, -EBUSY);
	assert_int_equal(err.code, BTRKIT_BUSY);
	assert_string_equal(err.message, "a transaction is open");
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
}

static void expect_all_busy(uint64_t address)
{
	struct btrkit_space_change_options dry = { .flags = BTRKIT_SPACE_DRY_RUN };
	const struct btrkit_fiemap_sink sink = { .file = no_file, .extents = see_shared, .ctx = &(unsigned){ 0 } };
	const char *const path[] = { "b" };
	struct btrkit_allocation found;
	struct btrkit_usage *u;
	size_t bytes = 0;

	expect_busy(btrkit_fiemap_path(fs, BTRKIT_TOP_LEVEL, "b", &sink, NULL, &err));
	expect_busy(btrkit_fiemap_all(fs, &sink, NULL, &err));
	expect_busy(btrkit_extent_references(fs, address, see_reference, NULL, &err));
	expect_busy(btrkit_logical_find(fs, address, &found, &err));
	expect_busy(btrkit_logical_references(fs, address, 0, see_reference, NULL, &err));
	expect_busy(print_stat(fs, BTRKIT_TOP_LEVEL, path, 1, NULL, swallow, &bytes, &err));
	expect_busy(btrkit_space_status(fs, NULL, NULL, &err));
	expect_busy(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V1, &dry, NULL, &err));
	expect_busy(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, &err));
	expect_busy(btrkit_chunks(fs, see_chunk, NULL, &err));
	expect_busy(btrkit_usage_load(fs, NULL, &u, &err));
	expect_busy(btrkit_check(fs, NULL, NULL, &err));
	expect_busy(btrkit_used_ranges(fs, 0, NULL, NULL, &err));
	assert_int_equal(bytes, 0);
}

static void the_extent_tree_is_not_asked(void **state)
{
	const struct btrkit_fiemap_sink sink = { .file = no_file, .extents = see_shared, .ctx = &(unsigned){ 0 } };
	struct btrkit_clone what = { .from_root = BTRKIT_TOP_LEVEL, .to_root = BTRKIT_TOP_LEVEL };
	uint8_t bytes[8192];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	session_begin();
	write_file("a", bytes, sizeof(bytes), &what.from_inode);
	session_commit();
	write_file("b", bytes, 1, &what.to_inode);
	rig_check(btrkit_txn_clone(txn, &what, &err), &err);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	assert_int_equal(address_of(what.to_inode), address_of(what.from_inode));
	expect_all_busy(address_of(what.to_inode));
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_fiemap_path(fs, BTRKIT_TOP_LEVEL, "b", &sink, NULL, &err), &err);
	assert_int_equal(*(unsigned *)sink.ctx, 1);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

static int lose(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	fail_msg("%s", what->message);
	return 0;
}

/* The number of blocks of the top-level tree. */
static unsigned top_level_blocks(void)
{
	struct btrkit_subvolume s;
	size_t bytes = 0;

	rig_check(btrkit_subvolume_next(fs, 0, &s, &err), &err);
	assert_int_equal(s.id, BTRKIT_TOP_LEVEL);
	rig_check(print_tree_stats(fs, &s.id, 1, BTRKIT_FORMAT_JSON, lose, NULL, swallow, &bytes, &err), &err);
	return (unsigned)bytes;
}

static void expect_contents(struct btrkit_file *f, const uint8_t *wanted, size_t len)
{
	uint8_t bytes[8192];
	size_t got;

	rig_check(btrkit_file_read(f, 0, bytes, sizeof(bytes), &got, &err), &err);
	assert_int_equal(got, len);
	assert_memory_equal(bytes, wanted, len);
}

/* Nobody else holds the root node of the top level, which is its only block. */
static void expect_let_go(void)
{
	struct tree_root root;
	struct node *n;

	rig_check(fs_find_root(fs, BTRKIT_TOP_LEVEL, &root, NULL, &err), &err);
	rig_check(node_get(fs, &(struct node_ref){ root.bytenr, root.generation, root.id, root.level, NULL }, &n, &err),
		  &err);
	assert_int_equal(n->level, 0);
	assert_int_equal(n->pins, 1);
	node_put(fs, n);
}

static void files_are_as_they_are_now(void **state)
{
	struct btrkit_subvolume before, after;
	struct btrkit_inode found;
	struct btrkit_file *f;
	unsigned entries = 0, blocks;
	uint8_t bytes[8192];
	uint64_t inode;

	(void)state;
	memset(bytes, 'y', sizeof(bytes));
	session_begin();
	blocks = top_level_blocks();
	rig_check(btrkit_subvolume_next(fs, 0, &before, &err), &err);
	write_file("plain", bytes, sizeof(bytes), &inode);
	rig_check(btrkit_txn_flush(txn, &err), &err);
	rig_check(btrkit_inode_find(fs, BTRKIT_TOP_LEVEL, "plain", &found, &err), &err);
	assert_int_equal(found.inode, inode);
	assert_int_equal(found.size, sizeof(bytes));
	rig_check(btrkit_inode_entries(fs, BTRKIT_TOP_LEVEL, TOP, see_entry, &entries, &err), &err);
	assert_int_equal(entries, 1);
	rig_check(btrkit_subvolume_next(fs, 0, &after, &err), &err);
	assert_int_not_equal(after.root_bytenr, before.root_bytenr);
	assert_int_not_equal(top_level_blocks(), blocks);
	rig_check(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, inode, &f, &err), &err);
	expect_contents(f, bytes, sizeof(bytes));
	/* The open file holds no blocks of the transaction; the commit turns those into cached blocks. */
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	expect_contents(f, bytes, sizeof(bytes));
	btrkit_file_close(f);
	expect_let_go();
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	session_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_extent_tree_is_not_asked),
		cmocka_unit_test(files_are_as_they_are_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
