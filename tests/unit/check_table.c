// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables of a check, in memory and in a file. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "lib/check/trees/table.h"

#define ADDRESS(i) ((uint64_t)(i)*4096)

static void fill(struct check_tables *t, size_t n)
{
	assert_int_equal(check_table_reserve(t, &t->blocks, n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		check_block_at(t, i)->tagged = ADDRESS(2 * i + 1);
	t->blocks.n = n;
}

static void expect_order(const struct check_tables *t)
{
	size_t hint = 0;

	for (size_t i = 0; i < t->blocks.n; i++) {
		assert_int_equal(check_block_bytenr(check_block_at(t, i)), ADDRESS(i + 1));
		assert_ptr_equal(check_find_block(t, ADDRESS(i + 1), &hint), check_block_at(t, i));
		assert_int_equal(hint, i);
		/* Every hint must work, for addresses in the table and between them. */
		for (size_t from = 0; from < t->blocks.n; from += 1 + t->blocks.n / 7) {
			hint = from;
			assert_int_equal(check_table_lower_bound(&t->blocks, ADDRESS(i + 1), &hint), i);
			hint = from;
			assert_int_equal(check_table_lower_bound(&t->blocks, ADDRESS(i) + 1, &hint), i);
		}
	}
	hint = 0;
	assert_int_equal(check_table_lower_bound(&t->blocks, UINT64_MAX, &hint), t->blocks.n);
}

static void merged(uint64_t memory, const char *spill)
{
	const size_t n = 500;
	struct check_block more[501] = { 0 };
	struct check_tables t;

	check_tables_init(&t, memory, spill);
	fill(&t, n);
	for (size_t i = 0; i <= n; i++)
		more[i].tagged = ADDRESS(2 * i + 2);
	/* Every new block but the last goes between two that exist; the last goes to the end. */
	assert_int_equal(check_table_merge(&t, &t.blocks, more, n, NULL), 0);
	assert_int_equal(t.blocks.n, 2 * n);
	expect_order(&t);
	assert_int_equal(t.blocks.fd >= 0, spill != NULL);
	assert_int_equal(t.bytes > 0, !spill);
	check_tables_release(&t);
	assert_int_equal(t.bytes, 0);
}

static void come_in_order(void **state)
{
	(void)state;
	merged(0, NULL);
	merged(4096, "/tmp");
}

/* Moving a table from memory to a file must not lose anything. */
static void go_to_a_file(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct check_tables t;

	(void)state;
	check_tables_init(&t, 200000, NULL);
	fill(&t, 4096);
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1u << 20, &err), -ENOMEM);
	t.spill = "/tmp";
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1u << 20, &err), 0);
	assert_true(t.blocks.fd >= 0);
	assert_int_equal(t.bytes, 0);
	for (size_t i = 0; i < t.blocks.n; i++)
		assert_int_equal(check_block_bytenr(check_block_at(&t, i)), ADDRESS(2 * i + 1));
	check_tables_release(&t);
}

/* A size that overflows is reported as lack of memory; the table must not become too small instead. */
static void too_many(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct check_tables t;

	(void)state;
	check_tables_init(&t, 0, NULL);
	assert_int_equal(check_table_reserve(&t, &t.blocks, SIZE_MAX / sizeof(struct check_block) + 1, &err), -ENOMEM);
	assert_int_equal(err.code, BTRKIT_NO_MEMORY);
	assert_int_equal(check_table_reserve(&t, &t.blocks, SIZE_MAX, &err), -ENOMEM);
	fill(&t, 10);
	assert_int_equal(check_table_reserve(&t, &t.blocks, SIZE_MAX - 5, &err), -ENOMEM);
	assert_int_equal(t.blocks.n, 10);
	check_tables_release(&t);
}

/* Errors of the spill file are returned as the system reports them. */
static void file_refused(void **state)
{
	const struct rlimit small = { 1 << 20, RLIM_INFINITY };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rlimit before;
	struct check_tables t;

	(void)state;
	check_tables_init(&t, 1, "/tmp/there/is/no/such/directory");
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1, &err), -ENOENT);
	t.spill = "/tmp";
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ small.rlim_cur, before.rlim_max }), 0);
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1u << 20, &err), -EFBIG);
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1, &err), 0);
	assert_int_equal(check_table_reserve(&t, &t.blocks, 1u << 20, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	check_tables_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_in_order),
		cmocka_unit_test(go_to_a_file),
		cmocka_unit_test(too_many),
		cmocka_unit_test(file_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
