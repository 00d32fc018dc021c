// SPDX-License-Identifier: LGPL-2.1-or-later
/* Conversions without memory: each fails with -ENOMEM and leaves a consistent filesystem. */
#include "tests/unit/convert_rig.h"
#include "tests/unit/memory.h"

/* Allocation number @at fails. @num: the number of allocations */
static int convert(struct written *w, enum btrkit_space_cache_kind to, uint64_t at, uint64_t *num,
		   struct btrkit_error *err)
{
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	int ret;

	memory_count(at, false);
	ret = btrkit_space_convert(fs, to, NULL, NULL, err);
	*num = memory_end();
	btrkit_fs_close(fs);
	return ret;
}

static void try_kind(unsigned variant, enum btrkit_space_cache_kind to)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t total, num, failed = 0;
	struct written w;

	rig_make(&w, variant);
	written_check(convert(&w, to, MEMORY_SUFFICES, &total, &err), &err);
	written_destroy(&w);
	for (uint64_t at = 0; at < total; at++) {
		int ret;

		rig_make(&w, variant);
		ret = convert(&w, to, at, &num, &err);
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
		failed += ret != 0;
		rig_check_whole(&w);
		rig_convert(&w, to, 0);
		assert_int_equal(rig_status(&w).in_use, to);
		rig_check_whole(&w);
		written_destroy(&w);
	}
	printf("%llu of %llu allocations failed\n", (unsigned long long)failed, (unsigned long long)total);
	assert_true(failed > total / 2);
}

static void without_memory(void **state)
{
	(void)state;
	try_kind(0, BTRKIT_SPACE_CACHE_V2);
	try_kind(1, BTRKIT_SPACE_CACHE_V2);
	try_kind(TREE, BTRKIT_SPACE_CACHE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
