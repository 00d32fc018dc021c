// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Findings with a common cause are folded, in any order in which threads report them; with more causes than there is
 * room for, not at all.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "lib/check/findings.h"
#include "lib/check/folds.h"
#include "lib/check/hand_out.h"
#include "lib/volume/volume.h"
#include "tests/unit/memory.h"

#define NODE 4096u

struct told {
	unsigned n;
	struct btrkit_check_fold last;
};

static int tell(void *ctx, const struct btrkit_check_fold *f)
{
	struct told *t = ctx;

	t->n++;
	t->last = *f;
	return 0;
}

static struct check *begin(struct told *t, unsigned flags)
{
	static const struct super super = { .num_devices = 1, .devid = 1 };
	static struct btrkit_io io;
	static struct btrkit_io *const ios[] = { &io };
	struct check *c = calloc(1, sizeof(*c));
	struct btrkit_fs *fs = calloc(1, sizeof(*fs));

	assert_true(c && fs);
	assert_int_equal(volume_create(ios, &super, 1, &fs->volume, NULL), 0);
	c->fs = fs;
	*t = (struct told){ .n = 0 };
	c->opts.fold = tell;
	c->opts.ctx = t;
	c->opts.flags = flags;
	c->opts.repeats = 32;
	c->items.nodesize = NODE;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void end(struct check *c)
{
	free(c->findings[CHECK_BLOCK_READ].at);
	check_folds_release(c);
	pthread_mutex_destroy(&c->lock);
	volume_release(c->fs->volume);
	free(c->fs);
	free(c);
}

static void report(struct check *c, enum btrkit_cause cause, uint64_t devid, uint64_t tree, uint64_t logical)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	err_because(&what, cause, err_set(&what, BTRKIT_IO, "cannot be read"));
	err_at_device(&what, devid, logical);
	err_at_tree(&what, tree);
	err_at_logical(&what, logical);
	check_report(c, CHECK_BLOCK_READ, &what);
}

static void hand_out(struct check *c)
{
	size_t n;
	const struct btrkit_check_code *codes = btrkit_check_codes(&n);

	check_folds_settle(c);
	assert_int_equal(check_folds_hand_out(c, CHECK_BLOCK_READ, &codes[CHECK_BLOCK_READ]), 0);
}

static void a_device_is_one_finding(void **state)
{
	(void)state;
	/* From both ends, so that lower ones come before and after higher ones. */
	for (unsigned way = 0; way < 2; way++) {
		struct told t;
		struct check *c = begin(&t, BTRKIT_CHECK_FOLDED);

		for (unsigned i = 0; i < 1000; i++)
			report(c, BTRKIT_CAUSE_DEVICE_MISSING, 2, i % 7 + 1, NODE * (uint64_t)(way ? 1000 - i : i + 1));
		hand_out(c);
		assert_int_equal(t.n, 1);
		assert_int_equal(t.last.findings, 1000);
		assert_int_equal(t.last.bytes, 1000 * NODE);
		assert_int_equal(t.last.last, 1000 * NODE);
		assert_int_equal(t.last.num_addresses, BTRKIT_CHECK_FOLD_LISTED);
		assert_int_equal(t.last.num_trees, BTRKIT_CHECK_FOLD_LISTED + 1);
		for (unsigned i = 0; i < BTRKIT_CHECK_FOLD_LISTED; i++) {
			assert_int_equal(t.last.addresses[i], (i + 1) * NODE);
			assert_int_equal(t.last.trees[i], i + 1);
		}
		assert_int_equal(c->findings[CHECK_BLOCK_READ].total, 0);
		assert_true(c->folds[0].list.n <= 32);
		end(c);
	}
}

static void few_are_not_folded(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 12; n++) {
		for (unsigned k = 0; k < 2; k++) {
			const enum btrkit_cause cause = k ? BTRKIT_CAUSE_CSUM : BTRKIT_CAUSE_DEVICE_STALE;
			const bool folded = n > (k ? 8u : 1u);
			struct told t;
			struct check *c = begin(&t, BTRKIT_CHECK_FOLDED);

			for (unsigned i = 0; i < n; i++)
				report(c, cause, 1, 5, NODE * (uint64_t)(i + 1));
			hand_out(c);
			assert_int_equal(t.n, folded);
			assert_int_equal(c->findings[CHECK_BLOCK_READ].total, folded ? 0 : n);
			end(c);
		}
	}
}

static void without_the_flag_all_are_there(void **state)
{
	struct told t;
	struct check *c = begin(&t, 0);
	(void)state;

	for (unsigned i = 0; i < 100; i++)
		report(c, BTRKIT_CAUSE_DEVICE_MISSING, 2, 5, NODE * (uint64_t)(i + 1));
	hand_out(c);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.last.findings, 100);
	assert_int_equal(c->findings[CHECK_BLOCK_READ].total, 100);
	assert_int_equal(c->findings[CHECK_BLOCK_READ].n, 32);
	end(c);
}

/* Which causes come first is chance, so with too many of them none is folded, and the first by location are kept. */
static void too_many_are_not_folded(void **state)
{
	const unsigned devices = CHECK_FOLDS_MAX + 20;
	(void)state;

	for (unsigned way = 0; way < 2; way++) {
		struct told t;
		struct check *c = begin(&t, BTRKIT_CHECK_FOLDED);
		const struct check_findings *l = &c->findings[CHECK_BLOCK_READ];

		for (unsigned i = 0; i < devices * 50; i++) {
			const unsigned at = way ? devices * 50 - 1 - i : i;

			report(c, BTRKIT_CAUSE_DEVICE_MISSING, at % devices + 1, 5, NODE * (uint64_t)(at + 1));
		}
		hand_out(c);
		assert_int_equal(t.n, 0);
		assert_int_equal(c->num_folds, CHECK_FOLDS_MAX);
		assert_int_equal(l->total, devices * 50);
		assert_int_equal(l->n, 32);
		for (unsigned i = 0; i < 32; i++)
			assert_int_equal(l->at[i].what.logical, (i + 1) * NODE);
		end(c);
	}
}

/* Findings that are not folded are moved, which needs memory. Without it the check fails, and has no fewer findings. */
static void without_memory_none_is_lost(void **state)
{
	struct told t;
	struct check *c = begin(&t, BTRKIT_CHECK_FOLDED);
	(void)state;

	for (unsigned i = 0; i < 5; i++)
		report(c, BTRKIT_CAUSE_CSUM, 1, 5, NODE * (uint64_t)(i + 1));
	memory_count(0, true);
	assert_int_equal(check_hand_out(c), -ENOMEM);
	memory_end();
	end(c);
}

static void the_flag_needs_a_callback(void **state)
{
	struct btrkit_check_options opts = { .flags = BTRKIT_CHECK_FOLDED };
	(void)state;

	assert_int_equal(btrkit_check(NULL, &opts, NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_one_finding),
		cmocka_unit_test(few_are_not_folded),
		cmocka_unit_test(without_the_flag_all_are_there),
		cmocka_unit_test(too_many_are_not_folded),
		cmocka_unit_test(without_memory_none_is_lost),
		cmocka_unit_test(the_flag_needs_a_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
