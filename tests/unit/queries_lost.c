// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which part of an answer is lost, when blocks or sectors of a filesystem in memory are. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "tests/unit/memory.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u
#define SECTOR 4096u
#define DATA_BYTES (5 * SECTOR)

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static uint64_t file, sub;

static void must(int ret)
{
	written_check(ret, &err);
}

/* A file of five sectors, of which the first is a hole; a subvolume in a directory. */
static int make(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_new_inode a_dir = { .mode = 040755 };
	static const uint8_t bytes[DATA_BYTES] = { 1, 2, 3 };
	struct btrkit_txn *txn;
	uint64_t dir;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "file", 4, NULL, &file, &err));
	must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, SECTOR, bytes, sizeof(bytes), NULL, &err));
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &a_dir, &dir, &err));
	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, dir, "sub", 3, NULL, &sub, &err));
	written_commit(txn);
	btrkit_fs_close(fs);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	written_destroy(&w);
	return 0;
}

/* Changes a byte of one copy. */
static int spoil(void *ctx, const struct btrkit_copy *copy)
{
	uint8_t byte;
	(void)ctx;

	must(btrkit_io_read(w.bytes, copy->physical, &byte, 1, &err));
	byte ^= 0x10;
	must(btrkit_io_write(w.bytes, copy->physical, &byte, 1, &err));
	return 0;
}

/* Changes a byte of all copies; another call restores it. Nothing of it is cached afterwards. */
static void turn(uint64_t logical)
{
	btrkit_fs_close(fs);
	fs = written_open(&w, 0);
	must(btrkit_logical_copies(fs, logical, spoil, NULL, &err));
	btrkit_fs_close(fs);
	fs = written_open(&w, 0);
}

static int open_it(void **state)
{
	(void)state;
	fs = written_open(&w, 0);
	return 0;
}

static int close_it(void **state)
{
	(void)state;
	btrkit_fs_close(fs);
	return 0;
}

static int see_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	*(uint64_t *)ctx = extent->bytenr;
	return 0;
}

/* One sector is lost, wherever reading begins; what is before and behind it is read. */
static void a_lost_sector_is_told(void **state)
{
	uint64_t start = 0, length = 0, bytenr = 0;
	uint8_t bytes[SECTOR + DATA_BYTES];
	struct btrkit_file *f;
	size_t len;
	(void)state;

	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, see_extent, &bytenr, &err));
	turn(bytenr + 2 * SECTOR);
	must(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, file, &f, &err));
	assert_int_equal(btrkit_file_read(f, 0, bytes, sizeof(bytes), &len, NULL), -EUCLEAN);
	assert_int_equal(btrkit_file_lost(f, &start, &length), 0);
	assert_int_equal(start, 3 * SECTOR);
	assert_int_equal(length, SECTOR);
	/* Only what was asked for counts. */
	assert_int_equal(btrkit_file_read(f, 3 * SECTOR + 100, bytes, 100, &len, NULL), -EUCLEAN);
	assert_int_equal(btrkit_file_lost(f, &start, &length), 0);
	assert_int_equal(start, 3 * SECTOR + 100);
	assert_int_equal(length, 100);
	must(btrkit_file_read(f, 4 * SECTOR, bytes, 2 * SECTOR, &len, &err));
	assert_int_equal(len, 2 * SECTOR);
	assert_int_equal(btrkit_file_lost(f, &start, &length), 1);
	must(btrkit_file_read(f, 0, bytes, 3 * SECTOR, &len, &err));
	assert_int_equal(len, 3 * SECTOR);
	btrkit_file_close(f);
	turn(bytenr + 2 * SECTOR);
}

struct listing {
	unsigned n, lost;
	bool nameless;
	char message[200];
};

static int see_subvolume(void *ctx, const struct btrkit_subvolume_item *s)
{
	struct listing *l = ctx;

	assert_int_equal(s->id, sub);
	assert_int_equal(s->parent, BTRKIT_TOP_LEVEL);
	if (s->path)
		assert_memory_equal(s->path, "dir/sub", s->path_len);
	l->nameless = !s->path;
	l->n++;
	return 0;
}

static int see_loss(void *ctx, const struct btrkit_error *what)
{
	struct listing *l = ctx;

	l->lost++;
	memcpy(l->message, what->message, sizeof(l->message));
	return 0;
}

static int stop(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return -EINTR;
}

/* The directory that holds the subvolume cannot be read, so its path is not known; all else of it is. */
static void a_lost_path_is_told(void **state)
{
	struct btrkit_subvolume_item top;
	struct listing l = { .n = 0 };
	(void)state;

	must(btrkit_subvolumes_around(fs, NULL, see_subvolume, see_loss, &l, &err));
	assert_int_equal(l.n, 1);
	assert_int_equal(l.lost, 0);
	assert_false(l.nameless);
	must(btrkit_subvolume_get(fs, BTRKIT_TOP_LEVEL, &top, &err));
	turn(top.bytenr + 200);
	must(btrkit_subvolumes_around(fs, NULL, see_subvolume, see_loss, &l, &err));
	assert_int_equal(l.n, 2);
	assert_int_equal(l.lost, 1);
	assert_true(l.nameless);
	assert_non_null(strstr(l.message, "256"));
	/* Without a function for what is lost, and if that function says so, it is an error. */
	assert_int_equal(btrkit_subvolumes_around(fs, NULL, see_subvolume, NULL, &l, NULL), -EUCLEAN);
	assert_int_equal(btrkit_subvolumes_around(fs, NULL, see_subvolume, stop, &l, NULL), -EINTR);
	turn(top.bytenr + 200);
}

struct counts {
	struct btrkit_tree_stats stats;
	struct btrkit_reference ref;
	unsigned trees, refs, lost;
};

static int see_tree(void *ctx, const struct btrkit_tree_stats *stats)
{
	struct counts *c = ctx;

	c->stats = *stats;
	c->trees++;
	return 0;
}

static int see_reference(void *ctx, const struct btrkit_reference *ref)
{
	struct counts *c = ctx;

	c->ref = *ref;
	c->refs++;
	return 0;
}

/* The error comes before the answer that it is about. */
static int count_loss(void *ctx, const struct btrkit_error *what)
{
	struct counts *c = ctx;

	assert_int_equal(what->err, -EUCLEAN);
	assert_int_equal(c->trees + c->refs, 0);
	c->lost++;
	return 0;
}

static int count_any_loss(void *ctx, const struct btrkit_error *what)
{
	assert_true(what->message[0]);
	((struct counts *)ctx)->lost++;
	return 0;
}

/* The only leaf of the top level is lost: it has no items to count, and the extent tree still knows the file. */
static void what_a_lost_leaf_had_is_told(void **state)
{
	const uint64_t five = BTRKIT_TOP_LEVEL;
	struct counts c = { .lost = 0 };
	struct btrkit_subvolume_item top;
	uint64_t bytenr = 0;
	(void)state;

	must(btrkit_inode_extents(fs, five, file, see_extent, &bytenr, &err));
	must(btrkit_tree_stats_around(fs, &five, 1, see_tree, count_loss, &c, &err));
	assert_int_equal(c.trees, 1);
	assert_int_equal(c.lost, 0);
	assert_null(c.stats.damage);
	assert_in_range(c.stats.levels[0].items, 5, 50);
	must(btrkit_subvolume_get(fs, five, &top, &err));
	turn(top.bytenr + 200);

	c = (struct counts){ .lost = 0 };
	must(btrkit_tree_stats_around(fs, &five, 1, see_tree, count_loss, &c, &err));
	assert_int_equal(c.trees, 1);
	assert_int_equal(c.lost, 1);
	assert_int_equal(c.stats.tree, five);
	assert_int_equal(c.stats.levels[0].items, 0);
	assert_int_equal(btrkit_tree_stats_around(fs, &five, 1, see_tree, stop, &c, NULL), -EINTR);

	c = (struct counts){ .lost = 0 };
	must(btrkit_logical_references_around(fs, bytenr + 100, 0, see_reference, count_any_loss, &c, &err));
	assert_int_equal(c.refs, 1);
	assert_int_equal(c.lost, 1);
	assert_int_equal(c.ref.root, five);
	assert_int_equal(c.ref.inode, file);
	assert_int_equal(c.ref.offset, SECTOR + 100);
	assert_int_equal(c.ref.length, 0);
	assert_int_equal(btrkit_logical_references_around(fs, bytenr, 0, see_reference, NULL, &c, NULL), -EUCLEAN);
	assert_int_equal(btrkit_logical_references_around(fs, bytenr, 0, see_reference, stop, &c, NULL), -EINTR);
	turn(top.bytenr + 200);
}

/* Each allocation fails in turn: there is an answer, or an error that says so. */
static void memory_that_runs_out_is_told(void **state)
{
	struct counts c = { .lost = 0 };
	uint64_t bytenr = 0, needed;
	(void)state;

	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, see_extent, &bytenr, &err));
	memory_count(MEMORY_SUFFICES, false);
	must(btrkit_extent_references(fs, bytenr, see_reference, &c, &err));
	needed = memory_end();
	assert_true(needed > 2);
	for (uint64_t at = 0; at < 2 * needed; at++) {
		int ret;

		c = (struct counts){ .lost = 0 };
		err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		memory_count(at / 2, at % 2);
		ret = btrkit_extent_references(fs, bytenr, see_reference, &c, &err);
		memory_end();
		assert_true(ret ? ret == -ENOMEM && err.code == BTRKIT_NO_MEMORY : c.refs == 1);
	}
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lost_sector_is_told, open_it, close_it),
		cmocka_unit_test_setup_teardown(a_lost_path_is_told, open_it, close_it),
		cmocka_unit_test_setup_teardown(memory_that_runs_out_is_told, open_it, close_it),
		cmocka_unit_test_setup_teardown(what_a_lost_leaf_had_is_told, open_it, close_it),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
