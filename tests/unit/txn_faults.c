// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each write, flush and allocation of a commit fails in turn: the error says which state the filesystem is in, which
 * must be true, and the handle does not write any more. Leaks are found by running this under AddressSanitizer.
 */
#include "tests/unit/unit.h"

#include "lib/reserve/reserve.h"
#include "lib/volume/volume.h"
#include "tests/unit/commit_words.h"
#include "tests/unit/memory.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define ITEMS 60u
#define TYPE 99u

/* Adds the items of round @round; some rounds also create a chunk. */
static int edit(struct btrkit_txn *txn, unsigned round, struct btrkit_error *err)
{
	struct edit_tree *t = NULL;
	uint8_t bytes[500] = { 0 };
	int ret = txn_tree(txn, OID_FS_TREE, &t, err);

	for (unsigned i = 0; !ret && i < ITEMS; i++)
		ret = edit_insert(t, &KEY(1000 + (i * 37) % ITEMS, TYPE, round), bytes, sizeof(bytes), err);
	if (!ret)
		ret = txn_reserve(txn, round % 2 ? 2200 : 1, err);
	return ret;
}

/* The last round with items on the device; its items must all be there. */
static unsigned last_round(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned n = 0, last = 0;
	struct tree_root root;
	struct cursor c;
	int ret;

	written_check(fs_find_root(fs, OID_FS_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(1000, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		n++;
		if (c.item.key.offset > last)
			last = (unsigned)c.item.key.offset;
	}
	cursor_release(&c);
	assert_int_equal(ret, 1);
	assert_int_equal(n, last * ITEMS);
	return last;
}

/* Makes a filesystem with one committed round. */
static void make(struct written *w, uint32_t nodesize)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;

	o.nodesize = nodesize;
	written_make(w, &o, SIZE);
	fs = written_open(w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	written_check(edit(txn, 1, &err), &err);
	written_commit(txn);
	btrkit_fs_close(fs);
}

static unsigned round_on_device(struct written *w)
{
	struct btrkit_fs *fs = written_open(w, 0);
	const unsigned round = last_round(fs);

	btrkit_fs_close(fs);
	return round;
}

/*
 * The state after call number @call of @calls in a commit failed. The first of the last five calls is the flush of the
 * tree blocks.
 */
static enum btrkit_commit_state expected_state(uint64_t call, uint64_t calls)
{
	if (call + 4 < calls)
		return BTRKIT_COMMIT_OLD;
	return call + 2 < calls ? BTRKIT_COMMIT_UNKNOWN : BTRKIT_COMMIT_NEW;
}

static void every_failing_call_is_told(void **state)
{
	uint64_t calls = UINT64_MAX;

	(void)state;
	for (uint64_t call = 0; call < calls; call++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD, expected;
		struct btrkit_txn *txn;
		struct btrkit_fs *fs;
		struct written w;
		uint64_t before;

		make(&w, 4096);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		if (calls == UINT64_MAX) {
			before = w.calls;
			txn = written_start(fs);
			written_check(edit(txn, 2, &err), &err);
			written_commit(txn);
			calls = w.calls - before;
			assert_int_equal(round_on_device(&w), 2);
			btrkit_fs_close(fs);
			written_destroy(&w);
			make(&w, 4096);
			fs = written_open(&w, BTRKIT_OPEN_WRITE);
		}
		txn = written_start(fs);
		written_check(edit(txn, 2, &err), &err);
		before = w.calls;
		w.fail_at = before + call;
		w.failures = 1;
		expected = expected_state(call, calls);
		assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EIO);
		assert_int_equal(reached, expected);
		assert_int_equal(err.code, BTRKIT_IO);
		assert_int_equal(err.devid, 1);
		assert_true(err.places & BTRKIT_AT_DEVID);
		expect_words(&err, expected);
		assert_int_equal(last_round(fs), expected == BTRKIT_COMMIT_NEW ? 2 : 1);
		/* Nothing is retried, and a flush in particular must not be. */
		assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
		assert_int_equal(w.calls - before, call + 1);
		btrkit_fs_close(fs);
		assert_int_equal(w.calls - before, call + 1);
		/*
		 * In this device a failed write writes nothing, so the new state exists from the flush of the primary
		 * superblock on.
		 */
		assert_int_equal(round_on_device(&w), call + 3 < calls ? 1 : 2);
		written_check_but(&w, call + 3 < calls ? AUDIT_ITEMS : AUDIT_ITEMS | AUDIT_MIRRORS);
		written_destroy(&w);
	}
	printf("%llu writes and flushes failed in turn\n", (unsigned long long)calls);
	assert_true(calls > 8);
}

static void every_failing_read_is_told(void **state)
{
	uint64_t failed = 0;
	struct written w;

	(void)state;
	make(&w, 4096);
	for (uint64_t at = 0; round_on_device(&w) == 1; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD;
		struct btrkit_txn *txn = NULL;
		struct btrkit_fs *fs = written_open_cached(&w, BTRKIT_OPEN_WRITE, 1);
		int ret;

		w.fail_read_at = w.reads + at;
		ret = btrkit_txn_start(fs, &txn, &err);
		if (!ret) {
			ret = edit(txn, 2, &err);
			if (ret)
				btrkit_txn_abort(txn);
			else
				ret = btrkit_txn_commit(txn, &reached, &err);
		}
		w.fail_read_at = UINT64_MAX;
		if (ret && (ret != -EIO || err.code != BTRKIT_IO || !(err.places & BTRKIT_AT_DEVID)))
			fail_msg("read %llu: %d: %s", (unsigned long long)at, ret, err.message);
		assert_int_equal(reached, ret ? BTRKIT_COMMIT_OLD : BTRKIT_COMMIT_NEW);
		failed += ret < 0;
		btrkit_fs_close(fs);
	}
	written_verify(&w);
	written_destroy(&w);
	printf("%llu reads failed in turn\n", (unsigned long long)failed);
	assert_true(failed > 5);
}

static void a_full_disk_is_met_before_anything_is_written(void **state)
{
	enum btrkit_commit_state reached = BTRKIT_COMMIT_NEW;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	uint64_t before;

	(void)state;
	make(&w, 16384);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	written_check(edit(txn, 2, &err), &err);
	before = w.calls;
	w.full = true;
	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -ENOSPC);
	assert_int_equal(reached, BTRKIT_COMMIT_OLD);
	expect_words(&err, BTRKIT_COMMIT_OLD);
	btrkit_fs_close(fs);
	assert_int_equal(w.calls, before);
	assert_int_equal(round_on_device(&w), 1);
	written_verify(&w);
	written_destroy(&w);
}

/* Runs a round in which allocation number @at fails. @num: the number of allocations; @return the first error */
static int one_round(struct written *w, unsigned round, uint64_t at, uint64_t *num, enum btrkit_commit_state *reached,
		     struct btrkit_error *err)
{
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	const size_t chunks = volume_num_chunks(fs->volume);
	struct btrkit_txn *txn = NULL;
	int ret;

	*reached = BTRKIT_COMMIT_OLD;
	memory_count(at, false);
	ret = btrkit_txn_start(fs, &txn, err);
	if (!ret) {
		ret = edit(txn, round, err);
		if (ret)
			btrkit_txn_abort(txn);
		else
			ret = btrkit_txn_commit(txn, reached, err);
	}
	*num = memory_end();
	/* An aborted transaction must leave the handle unchanged. */
	if (*reached == BTRKIT_COMMIT_OLD) {
		assert_int_equal(volume_num_chunks(fs->volume), chunks);
		assert_int_equal(last_round(fs), round - 1);
	}
	btrkit_fs_close(fs);
	return ret;
}

static void every_failing_allocation_is_told(void **state)
{
	uint64_t at = 0, told = 0, num;
	struct written w;

	(void)state;
	make(&w, 4096);
	for (unsigned round = 2; round < 4; round++) {
		for (at = 0;; at++) {
			struct btrkit_error err = BTRKIT_ERROR_INIT;
			enum btrkit_commit_state reached;
			const int ret = one_round(&w, round, at, &num, &reached, &err);

			/* Some allocations are not essential: then the round is committed. */
			if (!ret && num <= at)
				break;
			if (!ret) {
				assert_int_equal(reached, BTRKIT_COMMIT_NEW);
				assert_int_equal(round_on_device(&w), round);
				written_verify(&w);
				written_destroy(&w);
				make(&w, 4096);
				for (unsigned i = 2; i < round; i++)
					assert_int_equal(one_round(&w, i, MEMORY_SUFFICES, &num, &reached, &err), 0);
				continue;
			}
			if (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY)
				fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
			assert_int_equal(reached, BTRKIT_COMMIT_OLD);
			told++;
		}
		assert_int_equal(round_on_device(&w), round);
		written_verify(&w);
	}
	written_destroy(&w);
	printf("%llu allocations failed in turn\n", (unsigned long long)told);
	assert_true(told > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_is_told),
		cmocka_unit_test(every_failing_read_is_told),
		cmocka_unit_test(a_full_disk_is_met_before_anything_is_written),
		cmocka_unit_test(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
