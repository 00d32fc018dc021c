// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The data structures of the pass: sets that are stored once, tables sorted by address, and owners that are added
 * later.
 */
#include "tests/unit/unit.h"

#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/roots.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"
#include "tests/random.h"

/* Every set of eight owners, computed in many ways. */
static void equal_sets_are_one(void **state)
{
	const uint32_t counting[] = { 0, 1, 2, 3, 4, 5, 6, 6, 6 };
	uint32_t numbers[256] = { 0 };
	struct sets s;

	(void)state;
	assert_int_equal(sets_init(&s, 8, counting, 1 << 20, NULL), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(sets_single(&s, i, &numbers[1u << i], NULL), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned a = 0; a < 256; a++) {
			for (unsigned b = 0; b < 256; b++) {
				uint32_t both;

				if ((a && !numbers[a]) || (b && !numbers[b]))
					continue;
				assert_int_equal(sets_union(&s, (uint32_t[]){ numbers[a], numbers[b] }, 2, &both, NULL),
						 0);
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
}

/* Sets that are in use keep their contents and are found again; others are forgotten to make room. */
static void sets_are_forgotten(void **state)
{
	const uint32_t counting[65] = { 0 };
	uint32_t single[64], numbers[4096] = { 0 }, pair[63], again;
	struct sets s;
	uint64_t before;

	(void)state;
	assert_int_equal(sets_init(&s, 64, counting, 1 << 20, NULL), 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(sets_single(&s, i, &single[i], NULL), 0);
	for (uint32_t i = 0; i < 63; i++)
		for (uint32_t k = 63; k > i; k--)
			assert_int_equal(sets_union(&s, (uint32_t[]){ single[i], single[k] }, 2, &pair[i], NULL), 0);
	/* The last union is remembered by numbers, which will have other meanings. */
	assert_int_equal(sets_union(&s, (uint32_t[]){ 1, 2 }, 2, &again, NULL), 0);
	before = sets_bytes(&s);
	assert_true(s.n < 4096);
	for (uint32_t i = 0; i < 63; i += 2)
		numbers[pair[i]] = 1;
	assert_int_equal(sets_keep(&s, numbers, NULL), 0);
	assert_true(sets_bytes(&s) < before / 50);
	assert_int_equal(s.n, 33);
	assert_int_equal(sets_union(&s, (uint32_t[]){ 1, 2 }, 2, &again, NULL), 0);
	assert_int_equal(again, 33);
	for (uint32_t i = 0; i < 63; i += 2) {
		const struct set set = sets_get(&s, numbers[pair[i]]);

		assert_int_equal(set.num_runs, 1);
		assert_int_equal(set.runs[0].first, i);
		assert_int_equal(set.runs[0].last, i + 1);
		assert_int_equal(sets_single(&s, i, &single[0], NULL), 0);
		assert_int_equal(sets_single(&s, i + 1, &single[1], NULL), 0);
		assert_int_equal(sets_union(&s, single, 2, &again, NULL), 0);
		assert_int_equal(again, numbers[pair[i]]);
	}
	sets_release(&s);
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
	if (sizeof(size_t) > 4)
		assert_int_equal(usage_table_reserve(&t, 1, (size_t)(USAGE_TABLE_MAX + 1), NULL), -ENOMEM);
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

#define OWNERS 64u
#define ROUNDS 200u
#define BLOCKS 32u
/* More than two digits of the sort. Most of it is never touched, so it takes no memory. */
#define EXTENTS_MANY (5u << 20)

static size_t place(size_t entries, size_t k)
{
	/* In a large table, such that every bit distinguishes two places. */
	if (entries < EXTENTS_MANY)
		return 2 * k;
	return k <= 23 ? (size_t)1 << k >> 1 : (size_t)3 << (k - 24);
}

/* Adds random owners to random entries of a table, again and again, and compares with bitmaps. */
static void add_many_later(bool data, size_t entries, unsigned draws, uint64_t set_memory, unsigned collections_min)
{
	const uint32_t counting[OWNERS + 1] = { 0 };
	struct btrkit_usage *u = calloc(1, sizeof(*u));
	struct usage_work w = { .u = u, .opts = { .set_memory = set_memory } };
	struct array lists[2] = { { 0 }, { 0 } };
	struct usage_table *t = data ? &u->extents : &u->blocks;
	const size_t size = data ? sizeof(struct usage_extent) : sizeof(struct usage_block);
	uint64_t wanted[BLOCKS] = { 0 }, seed = 5;
	unsigned collections = 0;

	assert_non_null(u);
	*t = (struct usage_table){ .at = calloc(entries, size), .n = entries, .room = entries };
	assert_non_null(t->at);
	assert_int_equal(sets_init(&u->sets, OWNERS, counting, set_memory, NULL), 0);
	pthread_mutex_init(&w.lock, NULL);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const uint64_t kept = w.bytes_after_collection;
		/* All at once in a large table, more and more in others, so that many sets are made and dropped. */
		const uint32_t owners = entries < EXTENTS_MANY ? round * OWNERS / ROUNDS + 1 : OWNERS;
		uint64_t had[BLOCKS];
		uint32_t before, changed = 0;

		memcpy(had, wanted, sizeof(had));
		for (unsigned i = 0; i < draws; i++) {
			const size_t k = seed >> 33 & (BLOCKS - 1), at = place(entries, k);
			const uint32_t owner = (seed >> 40) % owners;
			atomic_uint *to = data ? &usage_extents_at(t, at)->set : &usage_blocks_at(t, at)->set;
			uint32_t set;

			random_step(&seed);
			assert_int_equal(sets_single(&u->sets, owner, &set, NULL), 0);
			assert_int_equal(usage_add_later(&lists[i % 2], at, to, set, NULL), 0);
			wanted[k] |= UINT64_C(1) << owner;
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(usage_pending_gather(&w, &lists[i], NULL), 0);
		before = u->sets.n;
		assert_int_equal(usage_pending_settle(&w, data, NULL), 0);
		assert_int_equal(w.pending.n, 0);
		/* No set is made that is not needed. */
		for (unsigned k = 0; k < BLOCKS; k++)
			changed += wanted[k] != had[k];
		assert_true(u->sets.n <= before + changed);
		collections += w.bytes_after_collection != kept;
		for (size_t k = 0; k < BLOCKS; k++) {
			const size_t at = place(entries, k);
			const struct set s = sets_get(&u->sets, data ? usage_extents_at(t, at)->set :
								       usage_blocks_at(t, at)->set);
			uint64_t has = 0;

			for (uint32_t r = 0; r < s.num_runs; r++)
				for (uint32_t owner = s.runs[r].first; owner <= s.runs[r].last; owner++)
					has |= UINT64_C(1) << owner;
			assert_int_equal(has, wanted[k]);
		}
	}
	assert_true(collections >= collections_min);
	for (unsigned i = 0; i < 2; i++)
		free(lists[i].at);
	free(w.pending.at);
	pthread_mutex_destroy(&w.lock);
	btrkit_usage_free(u);
}

static void owners_are_added_later(void **state)
{
	(void)state;
	add_many_later(true, EXTENTS_MANY, 300, 64 << 20, 0);
	add_many_later(false, EXTENTS_MANY, 300, 64 << 20, 0);
	/* Sets are dropped and renumbered while owners are being added. */
	add_many_later(true, 3 * BLOCKS, 30, 24 << 10, 5);
	add_many_later(false, 2 * BLOCKS, 30, 24 << 10, 5);
}

/* When next to nothing is left of the memory for sets, dropping unused ones after each new one would take forever. */
static void full_memory_is_told(void **state)
{
	const uint32_t counting[OWNERS + 1] = { 0 };
	struct btrkit_usage *u = calloc(1, sizeof(*u));
	struct usage_work w = { .u = u, .opts = { .set_memory = 1 << 20 } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct array list = { 0 };
	uint32_t single[OWNERS];

	(void)state;
	assert_non_null(u);
	pthread_mutex_init(&w.lock, NULL);
	u->blocks = (struct usage_table){ .at = calloc(OWNERS * OWNERS, sizeof(struct usage_block)) };
	assert_non_null(u->blocks.at);
	assert_int_equal(sets_init(&u->sets, OWNERS, counting, w.opts.set_memory, NULL), 0);
	for (uint32_t i = 0; i < OWNERS; i++)
		assert_int_equal(sets_single(&u->sets, i, &single[i], NULL), 0);
	for (uint32_t i = 0; i < OWNERS; i++) {
		for (uint32_t k = i + 3; k < OWNERS; k++) {
			const size_t at = u->blocks.n++;
			atomic_uint *set = &usage_blocks_at(&u->blocks, at)->set;
			uint32_t pair;

			assert_int_equal(sets_union(&u->sets, (uint32_t[]){ single[i], single[k] }, 2, &pair, NULL), 0);
			atomic_store(set, pair);
			assert_int_equal(usage_add_later(&list, at, set, single[i + 1], NULL), 0);
		}
	}
	assert_int_equal(usage_pending_gather(&w, &list, NULL), 0);
	w.bytes_after_collection = sets_bytes(&u->sets);
	w.opts.set_memory = u->sets.budget = w.bytes_after_collection + w.bytes_after_collection / 100;
	assert_int_equal(usage_pending_settle(&w, false, &err), -ENOMEM);
	assert_non_null(strstr(err.message, "sets of owners exceed"));
	free(list.at);
	free(w.pending.at);
	pthread_mutex_destroy(&w.lock);
	btrkit_usage_free(u);
}

/* The list of those to be added fills up according to the memory for sets. */
static void owners_fill_up(void **state)
{
	struct usage_work w = { .opts = { .set_memory = 8 * 8 * 100 } };
	struct array list = { 0 };
	atomic_uint set = 1;

	(void)state;
	pthread_mutex_init(&w.lock, NULL);
	for (unsigned i = 0; i < 100; i++) {
		assert_false(usage_pending_is_full(&w));
		assert_int_equal(usage_add_later(&list, 0, &set, 2, NULL), 0);
		assert_int_equal(usage_add_later(&list, 0, &set, 1, NULL), 0);
		assert_int_equal(usage_add_later(&list, 0, &set, 2, NULL), 0);
		assert_int_equal(list.n, 1);
		assert_int_equal(usage_pending_gather(&w, &list, NULL), 0);
	}
	assert_true(usage_pending_is_full(&w));
	assert_int_equal(set, 1);
	w.opts.set_memory = UINT64_MAX;
	assert_false(usage_pending_is_full(&w));
	w.pending.n = 16 << 20;
	assert_true(usage_pending_is_full(&w));
	free(list.at);
	free(w.pending.at);
	pthread_mutex_destroy(&w.lock);
}

static struct usage_root root_of(uint64_t id, uint64_t made, uint64_t generation, uint8_t uuid, uint8_t parent)
{
	return (struct usage_root){ .root = { .id = id, .key_offset = made, .generation = generation },
				    .refs = 1,
				    .uuid = { uuid },
				    .parent_uuid = { parent } };
}

/* Those that share most are neighbours, so that sets have few runs. */
static void owners_are_neighbours(void **state)
{
	const uint64_t wanted[] = { 257, 258, 261, 259, 260, 256, 300 };
	struct usage_root roots[] = {
		root_of(256, 0, 100, 1, 0), /* changed between its snapshots, and after them */
		root_of(257, 10, 10, 2, 1), root_of(258, 20, 90, 3, 1), /* a snapshot that was changed much later */
		root_of(259, 30, 45, 4, 1), /* one that was changed until a snapshot was made of it */
		root_of(260, 50, 50, 5, 1), root_of(261, 40, 40, 6, 4), root_of(300, 0, 5, 7, 0),
	};
	struct btrkit_usage *u = calloc(1, sizeof(*u));
	struct usage_work w = { .u = u, .opts = { .set_memory = 1 << 20 } };

	(void)state;
	assert_non_null(u);
	w.roots = (struct array){ roots, sizeof(roots) / sizeof(*roots), 0 };
	assert_int_equal(usage_name_owners(&w, NULL), 0);
	assert_int_equal(u->num_owners, 8);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(u->owners[u->outside[i]].id, wanted[i]);
	assert_int_equal(u->owners[u->outside[7]].kind, BTRKIT_USAGE_FILESYSTEM);
	free(w.orphans);
	btrkit_usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_sets_are_one),	 cmocka_unit_test(sets_are_forgotten),
		cmocka_unit_test(tables_find_and_merge), cmocka_unit_test(owners_are_added_later),
		cmocka_unit_test(full_memory_is_told),	 cmocka_unit_test(owners_fill_up),
		cmocka_unit_test(owners_are_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
