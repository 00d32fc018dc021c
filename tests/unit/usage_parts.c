// SPDX-License-Identifier: LGPL-2.1-or-later
/* The data structures of the pass: sets that are stored once, and tables sorted by address. */
#include "tests/unit/unit.h"

#include "lib/usage/sets.h"
#include "lib/usage/table.h"

/* Every set of eight owners, computed in many ways. */
static void equal_sets_are_one(void **state)
{
	const uint32_t counting[] = { 0, 1, 2, 3, 4, 5, 6, 6, 6 };
	uint32_t numbers[256] = { 0 };
	struct set_memo *memo = calloc(1, sizeof(*memo));
	struct sets s;

	(void)state;
	assert_non_null(memo);
	assert_int_equal(sets_init(&s, 8, counting, 1 << 20, NULL), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(sets_single(&s, i, &numbers[1u << i], NULL), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned a = 0; a < 256; a++) {
			for (unsigned b = 0; b < 256; b++) {
				uint32_t both;

				if ((a && !numbers[a]) || (b && !numbers[b]))
					continue;
				assert_int_equal(sets_union(&s, memo, numbers[a], numbers[b], &both, NULL), 0);
				if (!numbers[a | b])
					numbers[a | b] = both;
				assert_int_equal(numbers[a | b], both);
			}
		}
	}
	for (unsigned a = 1; a < 256; a++) {
		const struct set set = sets_get(&s, numbers[a]);
		unsigned has = 0;

		for (uint32_t r = 0; r < set.num_runs; r++)
			for (uint32_t i = set.runs[r].first; i <= set.runs[r].last; i++)
				has |= 1u << i;
		assert_int_equal(has, a);
		assert_int_equal(set.weight, __builtin_popcount(a & 63));
		assert_true(!a || set_compare(&set, &set) == 0);
	}
	sets_release(&s);
	free(memo);
}

/* Sets that are in use keep their contents and are found again; others are forgotten to make room. */
static void sets_are_forgotten(void **state)
{
	const uint32_t counting[65] = { 0 };
	struct set_memo *memo = calloc(1, sizeof(*memo));
	uint32_t single[64], numbers[4096] = { 0 }, pair[63], again;
	struct sets s;
	uint64_t before;

	(void)state;
	assert_non_null(memo);
	assert_int_equal(sets_init(&s, 64, counting, 1 << 20, NULL), 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(sets_single(&s, i, &single[i], NULL), 0);
	for (uint32_t i = 0; i < 63; i++)
		for (uint32_t k = 63; k > i; k--)
			assert_int_equal(sets_union(&s, memo, single[i], single[k], &pair[i], NULL), 0);
	before = sets_bytes(&s);
	assert_true(s.n < 4096);
	for (uint32_t i = 0; i < 63; i += 2)
		numbers[pair[i]] = 1;
	assert_int_equal(sets_keep(&s, numbers, NULL), 0);
	assert_true(sets_bytes(&s) < before / 50);
	assert_int_equal(s.n, 33);
	memset(memo, 0, sizeof(*memo));
	for (uint32_t i = 0; i < 63; i += 2) {
		const struct set set = sets_get(&s, numbers[pair[i]]);

		assert_int_equal(set.num_runs, 1);
		assert_int_equal(set.runs[0].first, i);
		assert_int_equal(set.runs[0].last, i + 1);
		assert_int_equal(sets_single(&s, i, &single[0], NULL), 0);
		assert_int_equal(sets_single(&s, i + 1, &single[1], NULL), 0);
		assert_int_equal(sets_union(&s, memo, single[0], single[1], &again, NULL), 0);
		assert_int_equal(again, numbers[pair[i]]);
	}
	sets_release(&s);
	free(memo);
}

static void tables_find_and_merge(void **state)
{
	struct usage_extent more[500];
	struct usage_table t = { 0 };
	size_t hint = 0;

	(void)state;
	for (size_t i = 0; i < 500; i++)
		more[i] = (struct usage_extent){ .start = (2 * i + 1) * 4096, .sectors = 1 };
	assert_int_equal(usage_table_merge(&t, sizeof(*more), more, 500, NULL), 0);
	for (size_t i = 0; i < 500; i++)
		more[i].start = 2 * i * 4096;
	assert_int_equal(usage_table_merge(&t, sizeof(*more), more, 500, NULL), 0);
	assert_int_equal(t.n, 1000);
	for (size_t i = 0; i < 1000; i++) {
		const size_t odd = (i * 389) % 1000;

		assert_int_equal(usage_table_address(&t, sizeof(*more), i), i * 4096);
		assert_int_equal(usage_table_find(&t, sizeof(*more), odd * 4096, &hint), odd);
		assert_int_equal(usage_table_lower_bound(&t, sizeof(*more), odd * 4096 + 1), odd + 1);
	}
	assert_int_equal(usage_table_find(&t, sizeof(*more), 1000 * 4096, &hint), SIZE_MAX);
	for (size_t i = 0; i + USAGE_FIND_MANY <= 1100; i++) {
		uint64_t addresses[USAGE_FIND_MANY];
		size_t at[USAGE_FIND_MANY];

		for (size_t k = 0; k < USAGE_FIND_MANY; k++)
			addresses[k] = (i + k) * 389 % 1100 * 4096;
		usage_table_find_many(&t, sizeof(*more), addresses, i % USAGE_FIND_MANY, at);
		for (size_t k = 0; k < i % USAGE_FIND_MANY; k++)
			assert_int_equal(at[k], addresses[k] < 1000 * 4096 ? addresses[k] / 4096 : SIZE_MAX);
	}
	usage_table_release(&t);
	/* Tables of any size, including empty ones. */
	for (size_t n = 0; n < 200; n++) {
		const uint64_t addresses[] = { 0, 4096, n * 4096 };
		size_t at[3];

		for (size_t i = 0; i < n; i++)
			more[i].start = (i + 1) * 4096;
		assert_int_equal(usage_table_merge(&t, sizeof(*more), more, n, NULL), 0);
		if (!n)
			assert_int_equal(usage_table_settle(&t, sizeof(*more), NULL), 0);
		usage_table_find_many(&t, sizeof(*more), addresses, 3, at);
		assert_int_equal(at[0], SIZE_MAX);
		assert_int_equal(at[1], n ? 0 : SIZE_MAX);
		assert_int_equal(at[2], n ? n - 1 : SIZE_MAX);
		usage_table_release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_sets_are_one),
		cmocka_unit_test(sets_are_forgotten),
		cmocka_unit_test(tables_find_and_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
