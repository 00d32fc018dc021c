// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A transaction that would need much memory inserts delayed items into the trees before the commit, and writes leaves
 * that are full. On the device nothing of that is visible before the commit; readers on the handle see all of it.
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "lib/reserve/reserve.h"
#include "lib/volume/volume.h"
#include "tests/unit/hurry.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define FILES 3000u

/* Large enough for another metadata chunk to take little of them: otherwise items are not delayed as long. */
static const struct rig_kind kinds[] = {
	{ "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 20000 } },
	{ "two copies", BTRKIT_PROFILE_DUP, BTRKIT_PROFILE_SINGLE, false, 16384, 0, 1, { 40000 } },
	{ "rows with parity", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 16384, 0, 3, { 3000, 3000, 3000 } },
};

struct early {
	struct rig r;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
	struct btrkit_error err;
	uint64_t dir, inodes[FILES];
};

static size_t name_of(unsigned i, char name[32])
{
	return (size_t)snprintf(name, 32, "%08x-file", i * 0x9e3779b9u);
}

/* Creates a directory with many files, with low limits of memory. */
static void make(struct early *e, const struct rig_kind *kind)
{
	const struct btrkit_new_inode what = { .mode = S_IFDIR | 0755 };
	char name[32];

	memset(e, 0, sizeof(*e));
	rig_make(&e->r, kind);
	e->fs = rig_open(&e->r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(e->fs, &e->txn, &e->err), &e->err);
	/* If space is short, the entries are inserted, too, because only then is it known how much they take. */
	rig_check(txn_reserve(e->txn, 4 * FILES, &e->err), &e->err);
	txn_hurry(e->txn);
	/* Delay items longer at first, so that the directory has a few entries before they are inserted. */
	e->txn->delayed->waiting_max = 64u << 10;
	rig_check(btrkit_txn_create(e->txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &what, &e->dir, &e->err), &e->err);
	for (unsigned i = 0; i < FILES; i++)
		rig_check(btrkit_txn_create(e->txn, BTRKIT_TOP_LEVEL, e->dir, name, name_of(i, name), NULL,
					    &e->inodes[i], &e->err),
			  &e->err);
}

static void destroy(struct early *e)
{
	btrkit_fs_close(e->fs);
	rig_destroy(&e->r);
}

/* Compares with the directory as a new handle finds it. */
static void expect_on_device(struct early *e, bool there)
{
	struct btrkit_fs *fs = rig_open(&e->r, 0, 0);
	struct btrkit_inode st;
	int ret;

	ret = btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, e->dir, &st, &e->err);
	rig_expect(ret, there ? 0 : -ENOENT, &e->err);
	if (there)
		assert_int_equal(st.size, 2 * 13 * (FILES - FILES / 7 - 1));
	btrkit_fs_close(fs);
}

static void change_some(struct early *e)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE, .mode = 0400 };
	struct btrkit_found found;
	char name[32];

	for (unsigned i = 0; i < FILES; i++) {
		const size_t len = name_of(i, name);

		rig_check(btrkit_txn_lookup(e->txn, BTRKIT_TOP_LEVEL, e->dir, name, len, &found, &e->err), &e->err);
		assert_int_equal(found.inode, e->inodes[i]);
		if (!(i % 5))
			rig_check(btrkit_txn_set_attr(e->txn, BTRKIT_TOP_LEVEL, e->inodes[i], &attr, &e->err), &e->err);
		if (!(i % 7))
			rig_check(btrkit_txn_unlink(e->txn, BTRKIT_TOP_LEVEL, e->dir, name, len, BTRKIT_UNLINK_FILE,
						    &e->err),
				  &e->err);
	}
}

static void check_files(struct early *e)
{
	struct btrkit_fs *fs = rig_open(&e->r, 0, 0);
	struct btrkit_inode st;

	for (unsigned i = 0; i < FILES; i++) {
		rig_expect(btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, e->inodes[i], &st, &e->err), i % 7 ? 0 : -ENOENT,
			   &e->err);
		if (i % 7)
			assert_int_equal(st.mode & 07777, i % 5 ? 0644 : 0400);
	}
	btrkit_fs_close(fs);
}

static void run(const struct rig_kind *kind, bool parity)
{
	struct btrkit_write_stats stats;
	struct early e;

	make(&e, kind);
	btrkit_fs_get_write_stats(e.fs, &stats);
	/*
	 * The inodes are in the trees; the entries of the new directory are delayed until they can be inserted
	 * together.
	 */
	assert_true(stats.item_batches.items > FILES);
	assert_int_equal(stats.index_batches.items, 1);
	if (parity)
		assert_int_equal(stats.writes, 0);
	else
		assert_true(stats.bytes_written > 100u * FILES);
	assert_int_equal(e.txn->overlay->num_away > 20, !parity);
	assert_int_equal(stats.barriers, 0);
	expect_on_device(&e, false);
	rig_verify(&e.r);
	change_some(&e);
	expect_on_device(&e, false);
	rig_check(btrkit_txn_commit(e.txn, NULL, &e.err), &e.err);
	rig_verify(&e.r);
	expect_on_device(&e, true);
	check_files(&e);
	destroy(&e);
}

static void test_committed(void **state)
{
	(void)state;
	run(&kinds[0], false);
	run(&kinds[1], false);
	if (UNIT_PARITY)
		run(&kinds[2], true);
}

static void test_aborted(void **state)
{
	struct early e;

	(void)state;
	make(&e, &kinds[0]);
	assert_true(e.txn->overlay->num_away);
	btrkit_txn_abort(e.txn);
	expect_on_device(&e, false);
	rig_verify(&e.r);
	destroy(&e);
}

/* Another program commits to the same devices. */
static void write_elsewhere(struct rig *r)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = rig_open(r, BTRKIT_OPEN_WRITE, 0);
	struct btrkit_txn *txn;
	uint64_t inode;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "theirs", 6, NULL, &inode, &err), &err);
	rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, 0, "theirs", 6, NULL, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
}

/* After that nothing more is written: neither data, nor leaves before the commit. */
static void test_changed_since(void **state)
{
	static const uint8_t bytes[40000];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t inode, calls;
		struct early e;
		char name[32];
		int ret = 0;

		make(&e, &kinds[i]);
		write_elsewhere(&e.r);
		calls = e.r.calls;
		for (unsigned k = FILES; !i && !ret && k < 2 * FILES; k++)
			ret = btrkit_txn_create(e.txn, BTRKIT_TOP_LEVEL, e.dir, name, name_of(k, name), NULL, &inode,
						&e.err);
		if (i)
			ret = btrkit_txn_write(e.txn, BTRKIT_TOP_LEVEL, e.inodes[0], 0, bytes, sizeof(bytes), NULL,
					       &e.err);
		assert_int_equal(ret, -EBUSY);
		assert_non_null(strstr(e.err.message, "changed by another program"));
		assert_int_equal(btrkit_txn_create(e.txn, BTRKIT_TOP_LEVEL, TOP, "more", 4, NULL, &inode, &e.err),
				 -EBUSY);
		assert_int_equal(btrkit_txn_commit(e.txn, NULL, &e.err), -EBUSY);
		assert_int_equal(e.r.calls, calls);
		rig_verify(&e.r);
		destroy(&e);
	}
}

static void unlink_some(struct early *e, unsigned from, unsigned to)
{
	char name[32];

	for (unsigned i = from; i < to; i++)
		rig_check(btrkit_txn_unlink(e->txn, BTRKIT_TOP_LEVEL, e->dir, name, name_of(i, name),
					    BTRKIT_UNLINK_FILE, &e->err),
			  &e->err);
}

/* Data for rows with parity is kept in pieces until the commit, and reads may span several pieces. */
static void test_kept(void **state)
{
	static const size_t size = (3u << 20) + 5000, from[] = { 0, 1, 4096, 5000, 1u << 20 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint8_t *bytes, *there;
	uint64_t inode;
	struct rig r;

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	bytes = malloc(size);
	there = malloc(size);
	assert_non_null(bytes);
	assert_non_null(there);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	rig_make(&r, &kinds[2]);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "file", 4, NULL, &inode, &err), &err);
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < 700001 ? size - at : 700001;
		rig_check(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, inode, at, bytes + at, n, NULL, &err), &err);
	}
	rig_check(btrkit_txn_flush(txn, &err), &err);
	for (unsigned i = 0; i < ARRAY_SIZE(from); i++) {
		struct btrkit_file *file;
		size_t got;

		rig_check(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, inode, &file, &err), &err);
		rig_check(btrkit_file_read(file, from[i], there, size, &got, &err), &err);
		assert_int_equal(got, size - from[i]);
		assert_memory_equal(there, bytes + from[i], got);
		btrkit_file_close(file);
	}
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	rig_verify(&r);
	rig_destroy(&r);
	free(bytes);
	free(there);
}

/* Leaves become empty before they were written. */
static void test_dropped(void **state)
{
	struct early e;
	char name[32];

	(void)state;
	make(&e, &kinds[0]);
	e.txn->early_bytes = 256u << 10;
	for (unsigned round = 0; round < 3; round++) {
		rig_check(btrkit_txn_flush(e.txn, &e.err), &e.err);
		unlink_some(&e, FILES / 2, FILES);
		rig_check(btrkit_txn_flush(e.txn, &e.err), &e.err);
		for (unsigned i = FILES / 2; i < FILES; i++)
			rig_check(btrkit_txn_create(e.txn, BTRKIT_TOP_LEVEL, e.dir, name, name_of(i, name), NULL,
						    &e.inodes[i], &e.err),
				  &e.err);
	}
	unlink_some(&e, 0, FILES / 2);
	rig_check(btrkit_txn_commit(e.txn, NULL, &e.err), &e.err);
	rig_verify(&e.r);
	destroy(&e);
}

/* Destroy, on the device, all blocks that were written early and dropped from memory. */
static void lose(struct early *e)
{
	static const uint8_t zeros[4096];
	struct node *n, *next;

	HASH_ITER(hh, e->txn->overlay->nodes, n, next)
	{
		struct copy c;

		if (n->data)
			continue;
		rig_check(volume_map(e->fs->volume, n->bytenr, n->size, 0, &c, &e->err), &e->err);
		rig_check(btrkit_io_write(c.io, c.physical, zeros, n->size, &e->err), &e->err);
	}
}

static void test_lost(void **state)
{
	const struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE, .mode = 0400 };
	enum btrkit_commit_state reached;
	struct early e;
	int ret = 0;

	(void)state;
	make(&e, &kinds[0]);
	lose(&e);
	for (unsigned i = 0; !ret && i < FILES; i++)
		ret = btrkit_txn_set_attr(e.txn, BTRKIT_TOP_LEVEL, e.inodes[i], &attr, &e.err);
	rig_expect(ret, -EUCLEAN, &e.err);
	rig_expect(btrkit_txn_commit(e.txn, &reached, &e.err), -EUCLEAN, &e.err);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	expect_on_device(&e, false);
	rig_verify(&e.r);
	destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_committed),
		cmocka_unit_test(test_aborted),
		cmocka_unit_test(test_changed_since),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
