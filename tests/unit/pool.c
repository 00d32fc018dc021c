// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory pools: freed memory is used first, and no memory is given to two users. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/pool.h"
#include "lib/base/stock.h"
#include "lib/tree/node.h"
#include "lib/tree/slab.h"

#define MANY 100u

static int by_address(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void apart(char **at, unsigned n, size_t size)
{
	qsort(at, n, sizeof(*at), by_address);
	for (unsigned i = 1; i < n; i++)
		assert_true((size_t)(at[i] - at[i - 1]) >= size);
}

static void test_stock(void **state)
{
	char *chunks[MANY], *again[MANY];
	struct stock s;

	(void)state;
	stock_init(&s);
	for (unsigned i = 0; i < MANY; i++) {
		chunks[i] = stock_take(&s);
		assert_non_null(chunks[i]);
		assert_int_equal((uintptr_t)chunks[i] % 64, 0);
		memset(chunks[i], (int)i, SLICE_SIZE);
	}
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(chunks[i][0], i);
		assert_int_equal(chunks[i][SLICE_SIZE - 1], i);
		assert_ptr_equal(stock_slice_of(chunks[i] + SLICE_SIZE - 1), chunks[i]);
	}
	apart(chunks, MANY, SLICE_SIZE);
	/* Chunks of partly used pages are reused. */
	for (unsigned i = 0; i < MANY; i += 2)
		stock_give(&s, chunks[i]);
	for (unsigned i = 0; i < MANY / 2; i++)
		again[i] = stock_take(&s);
	apart(again, MANY / 2, SLICE_SIZE);
	for (unsigned i = 0; i < MANY / 2; i++) {
		unsigned k;

		for (k = 0; k < MANY && chunks[k] != again[i]; k += 2)
			;
		assert_true(k < MANY);
		stock_give(&s, again[i]);
	}
	for (unsigned i = 1; i < MANY; i += 2)
		stock_give(&s, chunks[i]);
	/* Few free pages are kept, and none after this. */
	assert_in_range(s.spare, 1, 8);
	stock_trim(&s);
	assert_null(s.with_room);
	stock_destroy(&s);
}

static void fill_pool(struct pool *p, unsigned from, unsigned to)
{
	for (unsigned mark = from; mark < to; mark++)
		for (unsigned i = 0; i < 50; i++)
			memset(pool_take_marked(p, 1000, 8, mark), (int)mark, 1000);
}

static void test_pool_release(void **state)
{
	struct pool p = { 0 };
	unsigned char *last, *large;
	struct stock s;

	(void)state;
	stock_init(&s);
	p.stock = &s;
	fill_pool(&p, 1, 100);
	large = pool_take_marked(&p, 1 << 20, 8, 100);
	memset(large, 100, 1 << 20);
	last = pool_take_marked(&p, 1000, 8, 100);
	memset(last, 100, 1000);
	assert_int_equal(s.spare, 0);
	/* Releases everything except the piece with the last mark, and what was allocated for it. */
	pool_release(&p, 99);
	assert_in_range(s.spare, 1, 8);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(last[i], 100);
	for (unsigned i = 0; i < 1 << 20; i++)
		assert_int_equal(large[i], 100);
	fill_pool(&p, 101, 200);
	/* Nothing with that mark is left, so nothing is released. */
	pool_release(&p, 99);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(last[i], 100);
	pool_free(&p);
	assert_null(p.pieces);
	assert_ptr_equal(p.stock, &s);
	/* A single large piece, before any other. */
	large = pool_take_marked(&p, 1 << 20, 8, 7);
	memset(large, 7, 1 << 20);
	last = pool_take(&p, 1, 1);
	*last = 7;
	pool_release(&p, 6);
	assert_int_equal(large[(1 << 20) - 1], 7);
	pool_release(&p, 7);
	assert_int_equal(*last, 7);
	pool_free(&p);
	stock_destroy(&s);
}

static void blocks(uint32_t nodesize)
{
	struct node **at = malloc(1000 * sizeof(*at));
	struct slabs slabs;
	struct stock s;

	assert_non_null(at);
	stock_init(&s);
	slabs_init(&slabs, &s);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 1000; i++) {
			at[i] = slab_take(&slabs, nodesize);
			assert_non_null(at[i]);
			assert_int_equal(at[i]->size, nodesize);
			assert_int_equal(at[i]->nritems, 0);
			at[i]->bytenr = i;
			at[i]->nritems = 1;
			memset(at[i]->data, (int)i, nodesize);
		}
		for (unsigned i = 0; i < 1000; i++) {
			assert_int_equal(at[i]->bytenr, i);
			assert_int_equal(at[i]->data[0], i % 256);
			assert_int_equal(at[i]->data[nodesize - 1], i % 256);
		}
		for (unsigned i = 0; i < 1000; i++)
			node_free(&slabs, at[(i * 7 + round) % 1000]);
	}
	assert_null(slabs.with_room);
	assert_int_equal(slabs.of_heap, 0);
	slabs_destroy(&slabs);
	stock_destroy(&s);
	free(at);
}

static void test_slabs(void **state)
{
	(void)state;
	for (uint32_t nodesize = 4096; nodesize <= 65536; nodesize *= 2)
		blocks(nodesize);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stock),
		cmocka_unit_test(test_pool_release),
		cmocka_unit_test(test_slabs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
