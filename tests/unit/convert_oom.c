// SPDX-License-Identifier: LGPL-2.1-or-later
/* Conversions without memory: each fails with -ENOMEM, and leaves a whole filesystem. */
#include "tests/unit/convert_rig.h"

/* Counted while a conversion runs; number fail_at of them fails. */
static bool counting;
static uint64_t allocations, fail_at = UINT64_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool fails(void)
{
	return counting && !rig_in_device && allocations++ == fail_at;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

static int convert(struct written *w, enum btrkit_space_cache_kind to, struct btrkit_error *err)
{
	struct btrkit_fs *fs = written_open(w, BTRKIT_OPEN_WRITE);
	int ret;

	allocations = 0;
	counting = true;
	ret = btrkit_space_convert(fs, to, NULL, NULL, err);
	counting = false;
	btrkit_fs_close(fs);
	return ret;
}

static void try_kind(unsigned variant, enum btrkit_space_cache_kind to)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t total, failed = 0;
	struct written w;

	fail_at = UINT64_MAX;
	rig_make(&w, variant);
	written_check(convert(&w, to, &err), &err);
	written_destroy(&w);
	total = allocations;
	for (uint64_t at = 0; at < total; at++) {
		int ret;

		fail_at = UINT64_MAX;
		rig_make(&w, variant);
		fail_at = at;
		ret = convert(&w, to, &err);
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
		failed += ret != 0;
		rig_judge_whole(&w);
		fail_at = UINT64_MAX;
		rig_convert(&w, to, 0);
		assert_int_equal(rig_status(&w).in_use, to);
		rig_judge_whole(&w);
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
