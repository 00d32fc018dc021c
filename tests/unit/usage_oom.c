// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each allocation of a load, and of the queries of its result, fails in turn: that must be reported, and nothing leaks
 * (seen under AddressSanitizer). Damage is added because reporting it needs memory too.
 */
#include "tests/unit/unit.h"

#include "lib/print/usage.h"
#include "lib/print/usage_html.h"
#include "tests/unit/memory.h"
#include "tests/unit/usage_rig.h"

static struct rig rig;

static int pass_over(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return 0;
}

static int ask(const struct btrkit_usage *u, struct btrkit_usage_space *sum, struct btrkit_error *err)
{
	struct btrkit_usage_space matrix[16];
	const uint32_t both[] = { 0, 1 };
	int ret = btrkit_usage_freed(u, both, 2, sum, err);

	return ret ? ret : btrkit_usage_matrix(u, matrix, err);
}

/* Receives pieces of output until it refuses one. */
struct taker {
	size_t taken, most, refused;
};

static int take(void *ctx, const void *data, size_t len)
{
	struct taker *t = ctx;

	(void)data;
	assert_true(len > 0 && !t->refused);
	if (t->taken == t->most) {
		t->refused++;
		return -ENOSPC;
	}
	t->taken++;
	return 0;
}

static int print(struct btrkit_fs *fs, const struct btrkit_usage *u, struct taker *t, struct btrkit_error *err)
{
	struct usage_printer_options opts = USAGE_PRINTER_OPTIONS_INIT;

	opts.damage = pass_over;
	return print_usage_html(fs, u, NULL, &opts, take, t, err);
}

/* @return the first failure */
static int use(struct btrkit_fs *fs, unsigned threads, struct btrkit_usage_space *sum, struct btrkit_error *err)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_usage *u = NULL;
	int ret;

	opts.threads = threads;
	opts.damage = pass_over;
	ret = btrkit_usage_load(fs, &opts, &u, err);
	if (!ret)
		ret = ask(u, sum, err);
	if (!ret)
		ret = print(fs, u, &(struct taker){ .most = SIZE_MAX }, err);
	btrkit_usage_free(u);
	return ret;
}

static void make(bool damaged)
{
	rig_begin(&rig);
	if (damaged) {
		for (size_t i = 0; i < RIG_EXTENTS; i += 3)
			rig_drop(&rig, rig_find(&rig, rig_data(i)));
		rig_drop(&rig, rig_find(&rig, rig.s.fs_root));
		rig.snapshot.refs = le32_put(0);
		rig.snapshot.drop_progress = key_put(&KEY(257, KEY_EXTENT_DATA, 100 * RIG_LENGTH));
		rig.snapshot.drop_level = 1;
	}
	rig_finish(&rig);
}

static void fail_in_turn(unsigned threads, bool damaged)
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_usage_space whole = { 0 }, sum;
	struct btrkit_fs *fs;
	uint64_t needed;

	make(damaged);
	/* With a cache this small, every read of a block allocates. */
	how.cache_bytes = 1;
	assert_int_equal(syn_open(&rig.s, &how, &fs, NULL), 0);
	memory_count(MEMORY_SUFFICES, false);
	assert_int_equal(use(fs, threads, &whole, NULL), 0);
	needed = memory_end();
	/* Threads share the work in varying order, so only the number of the allocation is the same. */
	for (uint64_t at = 0; at < 2 * needed; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		int ret;

		memory_count(at / 2, at % 2);
		ret = use(fs, threads, &sum, &err);
		memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret, err.message);
		if (!ret)
			assert_memory_equal(&sum, &whole, sizeof(sum));
	}
	printf("%llu allocations failed in turn\n", (unsigned long long)needed);
	assert_true(needed > 50);
	btrkit_fs_close(fs);
}

static void whole_filesystem(void **state)
{
	(void)state;
	fail_in_turn(1, false);
	fail_in_turn(2, false);
}

static void damaged_filesystem(void **state)
{
	(void)state;
	fail_in_turn(1, true);
	fail_in_turn(2, true);
}

/* An error of the output function is returned, and the function is not called again. */
static void refused(void **state)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct taker all = { .most = SIZE_MAX };
	struct btrkit_usage *u = NULL;
	struct btrkit_fs *fs;

	(void)state;
	make(false);
	assert_int_equal(syn_open(&rig.s, NULL, &fs, NULL), 0);
	assert_int_equal(btrkit_usage_load(fs, &opts, &u, NULL), 0);
	assert_int_equal(print(fs, u, &all, NULL), 0);
	assert_true(all.taken >= 3);
	for (size_t most = 0; most < all.taken; most++) {
		struct taker some = { .most = most };

		assert_int_equal(print(fs, u, &some, NULL), -ENOSPC);
		assert_int_equal(some.refused, 1);
	}
	btrkit_usage_free(u);
	btrkit_fs_close(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_filesystem),
		cmocka_unit_test(damaged_filesystem),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
