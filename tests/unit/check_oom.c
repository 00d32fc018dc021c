// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each allocation of a check fails in turn: the check either reports that, or has the usual findings. Damage is added
 * because collecting findings needs memory too. Leaks are found by running this under AddressSanitizer.
 */
#include "tests/unit/unit.h"

#include <btrkit/check.h>

#include "tests/unit/memory.h"
#include "tests/unit/usage_rig.h"

static struct rig rig;

/* A hash of all findings, and their number. */
struct findings {
	uint64_t hash, n;
};

static void add(struct findings *t, const char *text)
{
	for (; *text; text++)
		t->hash = (t->hash ^ (uint8_t)*text) * 0x100000001b3u;
}

static int note(void *ctx, const struct btrkit_finding *f)
{
	struct findings *t = ctx;

	t->n++;
	add(t, f->code->name);
	add(t, f->what.message);
	t->hash += f->what.logical + f->found + 3 * f->times;
	return 0;
}

static int use(struct btrkit_fs *fs, unsigned threads, struct findings *t, struct btrkit_error *err)
{
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;

	*t = (struct findings){ 0 };
	opts.flags = BTRKIT_CHECK_DATA;
	opts.threads = threads;
	opts.finding = note;
	opts.ctx = t;
	return btrkit_check(fs, &opts, NULL, err);
}

static void fail_in_turn(unsigned threads, bool damaged)
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct findings whole, told;
	struct btrkit_fs *fs;
	uint64_t needed;

	rig_begin(&rig);
	for (size_t i = 0; damaged && i < RIG_EXTENTS; i += 3)
		rig_drop(&rig, rig_find(&rig, rig_data(i)));
	if (damaged)
		rig_drop(&rig, rig_find(&rig, rig.s.fs_root));
	rig_finish(&rig);
	/* With a cache this small, every read of a block allocates. */
	how.cache_bytes = 1;
	assert_int_equal(syn_open(&rig.s, &how, &fs, NULL), 0);
	memory_count(MEMORY_SUFFICES, false);
	assert_int_equal(use(fs, threads, &whole, NULL), 0);
	needed = memory_end();
	assert_true(whole.n > 5);
	for (uint64_t at = 0; at < 2 * needed; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		int ret;

		memory_count(at / 2, at % 2);
		ret = use(fs, threads, &told, &err);
		memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret, err.message);
		if (!ret && (told.n != whole.n || told.hash != whole.hash))
			fail_msg("allocation %llu: %llu findings of %llu", (unsigned long long)at / 2,
				 (unsigned long long)told.n, (unsigned long long)whole.n);
	}
	printf("%llu allocations failed in turn, %llu findings\n", (unsigned long long)needed,
	       (unsigned long long)whole.n);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_filesystem),
		cmocka_unit_test(damaged_filesystem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
