// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Frees space caches are created, replaced and removed; an interruption at any point must leave a consistent
 * filesystem.
 */
#include "tests/unit/convert_rig.h"

/* From v1, from no cache, from a tree without the VALID flag, and from the flags without a tree. */
static void everything_becomes_v2(void **state)
{
	(void)state;
	for (unsigned v = 0; v < VARIANTS; v++) {
		struct btrkit_space_change planned, done;
		enum btrkit_space_cache_kind from;
		struct written w;
		uint64_t calls;

		rig_make(&w, v & TREE ? v | LEFTOVER : v);
		if (v & TREE)
			rig_put_super(&w, v & 1 ? COMPAT_RO_FREE_SPACE_TREE : 0, v & 2 ? UINT64_MAX : 0);
		calls = w.calls;
		planned = rig_convert(&w, BTRKIT_SPACE_CACHE_V2, BTRKIT_SPACE_DRY_RUN);
		assert_int_equal(w.calls, calls);
		done = rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		rig_check_v2(&w);
		assert_true(planned.changed && done.changed && planned.estimated_ns && !done.estimated_ns);
		done.estimated_ns = planned.estimated_ns;
		assert_memory_equal(&planned.cache_generation, &done.cache_generation,
				    sizeof(done) - offsetof(struct btrkit_space_change, cache_generation));
		assert_int_equal(done.v1_headers, FILES + 3);
		assert_int_equal(done.v1_files, FILES + NAMELESS);
		assert_int_equal(done.v1_extents, (FILES + NAMELESS) * EXTENTS);
		assert_int_equal(done.v1_bytes, (FILES + NAMELESS) * EXTENTS * EXTENT_BYTES);
		assert_int_equal(planned.v1_bytes, done.v1_bytes);
		assert_int_equal(planned.v2_groups, done.v2_groups);
		assert_int_equal(planned.v2_removed_blocks, v & TREE ? 1 : 0);
		assert_int_equal(done.v2_groups, rig_status(&w).groups);
		assert_true(done.v2_ranges && done.commits == 2 && done.bytes_written);
		assert_true(done.needed_bytes <= done.available_bytes);
		from = v & TREE && !(v & 2) ? BTRKIT_SPACE_CACHE_NONE : BTRKIT_SPACE_CACHE_V1;
		if (v & TREE && v & 1)
			from = BTRKIT_SPACE_CACHE_V2;
		assert_int_equal(done.from, from);
		assert_int_equal(done.was_valid, !(v & TREE) || !(v & 3));
		/* A second conversion has nothing to do. */
		calls = w.calls;
		done = rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		assert_true(!done.changed && done.was_valid && w.calls == calls);
		written_destroy(&w);
	}
}

/* What each change leaves in the superblock, and which caches remain. */
static const struct {
	bool clear;
	enum btrkit_space_cache_kind kind;
	bool tree;		   /* with a free space tree before; the v1 cache always exists */
	uint64_t cache_generation; /* before; UINT64_MAX - 1: the generation of the superblock */
	bool changed;
	uint64_t compat_ro_after, cache_generation_after; /* UINT64_MAX - 1: unchanged */
	bool v1_after;
} rules[] = {
#define KEPT (UINT64_MAX - 1)
	{ false, BTRKIT_SPACE_CACHE_NONE, false, KEPT, true, 0, 0, false },
	{ false, BTRKIT_SPACE_CACHE_NONE, false, 0, true, 0, 0, false },
	{ false, BTRKIT_SPACE_CACHE_NONE, true, 0, true, 0, 0, false },
	{ false, BTRKIT_SPACE_CACHE_V1, false, KEPT, false, 0, KEPT, true },
	{ false, BTRKIT_SPACE_CACHE_V1, false, 1, false, 0, 1, true },
	{ false, BTRKIT_SPACE_CACHE_V1, false, 0, true, 0, UINT64_MAX, true },
	{ false, BTRKIT_SPACE_CACHE_V1, true, 0, true, 0, UINT64_MAX, true },
	{ false, BTRKIT_SPACE_CACHE_V2, true, 0, false, BOTH, 0, true },
	{ true, BTRKIT_SPACE_CACHE_V1, false, KEPT, true, 0, UINT64_MAX, false },
	{ true, BTRKIT_SPACE_CACHE_V1, false, 0, true, 0, UINT64_MAX, false },
	{ true, BTRKIT_SPACE_CACHE_V1, true, 0, true, BOTH, 0, false },
	{ true, BTRKIT_SPACE_CACHE_V1, true, UINT64_MAX, true, BOTH, 0, false },
	{ true, BTRKIT_SPACE_CACHE_V2, true, 0, true, 0, 0, true },
	{ true, BTRKIT_SPACE_CACHE_V2, true, UINT64_MAX, true, 0, UINT64_MAX, true },
	{ true, BTRKIT_SPACE_CACHE_V2, false, KEPT, false, 0, KEPT, true },
};

static void changes_follow_the_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_space_change c = { 0 };
		struct btrkit_space_summary sum;
		uint64_t before, calls;
		struct written w;
		struct btrkit_fs *fs;
		struct v1_count n;

		rig_make(&w, rules[i].tree ? TREE : 0);
		before = rules[i].cache_generation == KEPT ? rig_status(&w).generation : rules[i].cache_generation;
		rig_put_super(&w, rules[i].tree ? BOTH : 0, before);
		calls = w.calls;
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		written_check(rules[i].clear ? btrkit_space_clear(fs, rules[i].kind, NULL, &c, &err) :
					       btrkit_space_convert(fs, rules[i].kind, NULL, &c, &err),
			      &err);
		btrkit_fs_close(fs);
		if (c.changed != rules[i].changed || (w.calls != calls) != rules[i].changed)
			fail_msg("rule %zu: changed %d", i, c.changed);
		sum = rig_status(&w);
		fs = written_open(&w, 0);
		assert_int_equal(fs->super.compat_ro, rules[i].compat_ro_after);
		assert_int_equal(sum.cache_generation,
				 rules[i].cache_generation_after == KEPT ? before : rules[i].cache_generation_after);
		if (c.changed)
			assert_int_equal(c.cache_generation, sum.cache_generation);
		assert_int_equal(sum.v2.groups[BTRKIT_SPACE_EQUAL], rules[i].compat_ro_after ? sum.groups : 0);
		assert_int_equal(fs_find_root(fs, OID_FREE_SPACE_TREE, &(struct tree_root){ 0 }, NULL, NULL),
				 rules[i].compat_ro_after ? 0 : -ENOENT);
		assert_int_equal(v1_count(fs, &n, NULL), 0);
		assert_int_equal(n.files, rules[i].v1_after ? FILES + NAMELESS : 0);
		btrkit_fs_close(fs);
		rig_check_whole(&w);
		written_destroy(&w);
	}
}

static void what_is_refused(void **state)
{
	struct btrkit_space_change_options opts = BTRKIT_SPACE_CHANGE_OPTIONS_INIT;
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct written w;
	struct btrkit_fs *fs;

	(void)state;
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V1, NULL, NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "block-group-tree"));
	assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_NONE, NULL, NULL, &err), -EOPNOTSUPP);
	assert_int_equal(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "block-group-tree"));
	assert_int_equal(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_NONE, NULL, NULL, &err), -EINVAL);
	assert_int_equal(btrkit_space_convert(fs, (enum btrkit_space_cache_kind)3, NULL, NULL, &err), -EINVAL);
	assert_int_equal(btrkit_space_convert(fs, (enum btrkit_space_cache_kind) - 1, NULL, NULL, &err), -EINVAL);
	opts.flags = 2;
	assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, &opts, NULL, &err), -EINVAL);
	assert_int_equal(btrkit_space_clear(fs, BTRKIT_SPACE_CACHE_V1, &opts, NULL, &err), -EINVAL);
	btrkit_fs_close(fs);
	fs = written_open(&w, 0);
	assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, NULL, NULL, &err), -EROFS);
	/* A dry run must fail too if the filesystem cannot be written. */
	opts.flags = BTRKIT_SPACE_DRY_RUN;
	fs->super.compat_ro |= 1ull << 40;
	assert_int_equal(btrkit_space_convert(fs, BTRKIT_SPACE_CACHE_V2, &opts, NULL, &err), -EOPNOTSUPP);
	btrkit_fs_close(fs);
	assert_int_equal(w.calls, 0);
	written_destroy(&w);
}

struct teller {
	uint64_t calls, last, total, end_at;
};

static int tell(void *ctx, uint64_t done, uint64_t total)
{
	struct teller *t = ctx;

	assert_true(done <= total && (!t->calls || (done >= t->last && total == t->total)));
	t->last = done;
	t->total = total;
	return t->calls++ == t->end_at ? -EINTR : 0;
}

/* Cancel at every progress call: the filesystem stays consistent, and the next run completes the conversion. */
static void ended_anywhere(void **state)
{
	uint64_t ended = 0;
	int ret = -EINTR;

	(void)state;
	for (uint64_t at = 0; ret; at++) {
		struct teller t = { .end_at = at };
		const struct btrkit_space_change_options opts = { .progress = tell, .progress_ctx = &t };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_fs *fs;
		struct written w;

		rig_make(&w, at & 1);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		/* Hold so little per transaction that there are many commits. */
		ret = convert_holding(fs, BTRKIT_SPACE_CACHE_V2, &opts, at & 2 ? 1 : CONVERT_HELD_BYTES, NULL, &err);
		btrkit_fs_close(fs);
		assert_int_equal(ret, t.calls > at ? -EINTR : 0);
		rig_check_whole(&w);
		rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		rig_check_v2(&w);
		ended += ret != 0;
		written_destroy(&w);
	}
	printf("ended at %llu places\n", (unsigned long long)ended);
	assert_true(ended > 5);
}

/* From each write or flush in turn, all fail, as if the program had been killed there. */
static void killed_anywhere(void **state)
{
	bool converted = false;
	uint64_t at;

	(void)state;
	for (at = 0; !converted; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_fs *fs;
		struct written w;

		rig_make(&w, at & 1);
		w.fail_at = w.calls + at;
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		converted = !convert_holding(fs, BTRKIT_SPACE_CACHE_V2, NULL, at & 2 ? 1 : CONVERT_HELD_BYTES, NULL,
					     &err);
		btrkit_fs_close(fs);
		w.fail_at = UINT64_MAX;
		rig_check_whole(&w);
		rig_convert(&w, BTRKIT_SPACE_CACHE_V2, 0);
		rig_check_v2(&w);
		written_destroy(&w);
	}
	printf("killed at %llu places\n", (unsigned long long)at - 1);
	assert_true(at > 10);
}

/* More files than one transaction may hold. */
static void many_commits(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_change c;
	struct btrkit_fs *fs;
	struct written w;

	(void)state;
	rig_make(&w, 1);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	written_check(convert_holding(fs, BTRKIT_SPACE_CACHE_V2, NULL, 1, &c, &err), &err);
	btrkit_fs_close(fs);
	assert_true(c.commits > 2);
	rig_check_v2(&w);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_becomes_v2), cmocka_unit_test(changes_follow_the_rules),
		cmocka_unit_test(what_is_refused),	 cmocka_unit_test(ended_anywhere),
		cmocka_unit_test(killed_anywhere),	 cmocka_unit_test(many_commits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
