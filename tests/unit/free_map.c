// SPDX-License-Identifier: LGPL-2.1-or-later
/* The map of free space, compared with an array of sectors, in both of its forms, and without memory. */
#include "tests/unit/unit.h"

#include "lib/space/free_map.h"
#include "tests/random.h"

#define SECTOR 4096u
#define SECTORS 5000u
#define BITMAP_SIZE ((SECTORS + 7) / 8)
#define START (1ull << 40)

static uint64_t allocations, fail_at = UINT64_MAX;
static unsigned to_bitmap, to_list;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool fails(void)
{
	return allocations++ >= fail_at;
}

/* malloc() is called for a list only when a bitmap becomes one, or two maps are joined. */
void *__wrap_malloc(size_t size)
{
	to_list++;
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	to_bitmap += n * size == BITMAP_SIZE;
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	assert_true(n * size <= BITMAP_SIZE);
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

struct model {
	struct free_map *map;
	bool free[SECTORS];
};

static uint64_t seed;

/* Pseudo-random numbers, the same in every run. */
static uint64_t pick(uint64_t below)
{
	random_step(&seed);
	return (seed >> 33) % below;
}

static void model_create(struct model *m)
{
	const struct range over = { START, (uint64_t)SECTORS * SECTOR };

	memset(m, 0, sizeof(*m));
	assert_int_equal(free_map_create(&over, SECTOR, &m->map, NULL), 0);
}

static struct range sectors_of(uint64_t first, uint64_t n)
{
	return (struct range){ START + first * SECTOR, n * SECTOR };
}

static uint64_t run_length(const struct model *m, uint64_t at)
{
	uint64_t n = 0;

	while (at + n < SECTORS && m->free[at + n] == m->free[at])
		n++;
	return n;
}

/* The map must have the same ranges as the array, each found by free_map_next(), and the same number of bytes. */
static void expect_equal(const struct model *m)
{
	uint64_t bytes = 0, at = 0;
	struct range r;

	while (at < SECTORS) {
		const uint64_t n = run_length(m, at);

		if (m->free[at]) {
			assert_true(free_map_next(m->map, START + at * SECTOR, &r));
			assert_int_equal(r.start, START + at * SECTOR);
			assert_int_equal(r.length, n * SECTOR);
			assert_true(free_map_next(m->map, range_end(&r) - 1, &r));
			assert_int_equal(r.length, 1);
			bytes += n * SECTOR;
		} else {
			const struct range gap = sectors_of(at, n);

			assert_false(free_map_touches(m->map, &gap));
		}
		at += n;
	}
	assert_int_equal(free_map_bytes(m->map), bytes);
	assert_false(free_map_next(m->map, START + (uint64_t)SECTORS * SECTOR, &r));
}

static void expect_find(const struct model *m, uint64_t from, uint64_t min, uint64_t max, uint64_t align)
{
	struct range r;
	bool found;

	found = free_map_find(m->map, START + from * SECTOR, min * SECTOR, max * SECTOR, align * SECTOR, &r);
	for (uint64_t at = from; at < SECTORS; at++) {
		const uint64_t n = run_length(m, at);

		if (!m->free[at] || n < min || (START / SECTOR + at) % align)
			continue;
		assert_true(found);
		assert_int_equal(r.start, START + at * SECTOR);
		assert_int_equal(r.length, (n < max ? n : max) * SECTOR);
		return;
	}
	assert_false(found);
}

static void expect_pieces(const struct model *m, uint64_t size, uint64_t enough)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at + size <= SECTORS; at++)
		if (!((START / SECTOR + at) % size) && m->free[at] && run_length(m, at) >= size)
			n++;
	assert_int_equal(free_map_pieces(m->map, size * SECTOR, enough), n < enough ? n : enough);
}

/* Adds or removes a range that is entirely absent or present; any other change must be refused and change nothing. */
static void change(struct model *m, uint64_t first, uint64_t n, bool add)
{
	const struct range r = sectors_of(first, n);
	bool good = true;
	int ret;

	for (uint64_t i = first; i < first + n; i++)
		good &= m->free[i] != add;
	ret = add ? free_map_add(m->map, &r, NULL) : free_map_remove(m->map, &r, NULL);
	assert_int_equal(ret, good ? 0 : -EUCLEAN);
	for (uint64_t i = first; good && i < first + n; i++)
		m->free[i] = add;
}

static void bits_are_found(void **state)
{
	uint8_t map[40];

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		const uint64_t n = 1 + pick(8 * sizeof(map));
		uint64_t from = pick(n + 1), expected = from;
		const bool set = pick(2);

		for (size_t i = 0; i < sizeof(map); i++)
			map[i] = pick(3) ? (uint8_t)(set ? 0 : 255) : (uint8_t)pick(256);
		while (expected < n && (map[expected / 8] >> expected % 8 & 1) != set)
			expected++;
		assert_int_equal(bits_find(map, n, from, set), expected);
	}
}

/* Alternate between many short ranges and few long ones: the map becomes a bitmap and a list again. */
static void random_changes_agree(void **state)
{
	struct model m;

	(void)state;
	model_create(&m);
	to_bitmap = to_list = 0;
	for (unsigned step = 0; step < 8000; step++) {
		const bool crowded = step / 500 % 2;
		uint64_t at = pick(SECTORS), n;

		/* Flip whole runs, so that they merge with their neighbours. */
		while (!crowded && at && m.free[at - 1] == m.free[at])
			at--;
		n = run_length(&m, at);
		change(&m, at, crowded && n > 3 ? 1 + pick(3) : n, !m.free[at]);
		if (crowded)
			change(&m, pick(SECTORS - 9), 5 + pick(5), pick(2));
		expect_find(&m, pick(SECTORS), 1 + pick(20), 20 + pick(20), 1ull << pick(5));
		expect_find(&m, pick(SECTORS), 1 + pick(20), UINT64_MAX / SECTOR, 1ull << pick(5));
		if (step % 50)
			continue;
		expect_pieces(&m, 1ull << pick(5), pick(2) ? UINT64_MAX : pick(100));
		expect_equal(&m);
	}
	assert_true(to_bitmap > 1 && to_list > 1);
	free_map_destroy(m.map);
}

static void outside_is_refused(void **state)
{
	const struct range bad[] = {
		{ START - SECTOR, SECTOR },
		{ START - SECTOR, 2 * SECTOR },
		{ START, 0 },
		{ START + 512, SECTOR },
		{ START, SECTOR + 512 },
		{ START + (SECTORS - 1ull) * SECTOR, 2 * SECTOR },
		{ START + (uint64_t)SECTORS * SECTOR, SECTOR },
		{ START, UINT64_MAX - SECTOR + 1 },
		{ UINT64_MAX - SECTOR + 1, SECTOR },
	};
	struct model m;

	(void)state;
	model_create(&m);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(free_map_add(m.map, &bad[i], NULL), -EUCLEAN);
		assert_int_equal(free_map_remove(m.map, &bad[i], NULL), -EUCLEAN);
	}
	change(&m, 0, SECTORS, true);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(free_map_remove(m.map, &bad[i], NULL), -EUCLEAN);
	expect_equal(&m);
	change(&m, 0, SECTORS, false);
	expect_equal(&m);
	free_map_destroy(m.map);
}

static void fill(struct model *m, uint64_t pieces, uint64_t phase)
{
	for (uint64_t i = 0; i < pieces; i++) {
		const uint64_t at = (pick(SECTORS / 4) * 4 + phase) % SECTORS;

		if (!m->free[at])
			change(m, at, 1, true);
	}
}

/* Joins maps with few and with many ranges, in all four combinations of forms. */
static void moves_join(void **state)
{
	static const uint64_t pieces[] = { 3, 700 };

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct model a, b;

		model_create(&a);
		model_create(&b);
		fill(&a, pieces[i & 1], 0);
		fill(&b, pieces[i >> 1 & 1], 1);
		/* In the second half, both have one sector in common. */
		if (i & 4) {
			change(&a, 42, 1, true);
			change(&b, 42, 1, true);
			assert_int_equal(free_map_move(a.map, b.map, NULL), -EUCLEAN);
			expect_equal(&a);
			expect_equal(&b);
			change(&b, 42, 1, false);
		}
		assert_int_equal(free_map_move(a.map, b.map, NULL), 0);
		for (unsigned at = 0; at < SECTORS; at++) {
			a.free[at] |= b.free[at];
			b.free[at] = false;
		}
		expect_equal(&a);
		expect_equal(&b);
		free_map_destroy(a.map);
		free_map_destroy(b.map);
	}
}

/* Each allocation fails in turn: that must be reported, and nothing changed. */
static void memory_runs_out(void **state)
{
	const struct range over = { START, SECTOR };
	struct free_map *none;
	struct model m, b;
	unsigned failed = 0;

	(void)state;
	fail_at = 0;
	assert_int_equal(free_map_create(&over, SECTOR, &none, NULL), -ENOMEM);
	fail_at = UINT64_MAX;
	model_create(&m);
	for (unsigned step = 0; step < 2000; step++) {
		const uint64_t at = pick(SECTORS), n = 1 + pick(run_length(&m, at));
		const struct range r = sectors_of(at, n < 4 ? n : 4);
		const bool add = !m.free[at];
		int ret;

		fail_at = allocations;
		ret = add ? free_map_add(m.map, &r, NULL) : free_map_remove(m.map, &r, NULL);
		fail_at = UINT64_MAX;
		if (ret) {
			assert_int_equal(ret, -ENOMEM);
			failed++;
			if (step % 100 == 0)
				expect_equal(&m);
			ret = add ? free_map_add(m.map, &r, NULL) : free_map_remove(m.map, &r, NULL);
		}
		assert_int_equal(ret, 0);
		for (uint64_t i = at; i < at + r.length / SECTOR; i++)
			m.free[i] = add;
	}
	assert_true(failed > 3);
	expect_equal(&m);
	free_map_destroy(m.map);

	for (unsigned pieces = 10; pieces < 1000; pieces *= 8) {
		model_create(&m);
		model_create(&b);
		change(&m, 4, 1, true);
		fill(&b, pieces, 1);
		fail_at = allocations;
		assert_int_equal(free_map_move(m.map, b.map, NULL), -ENOMEM);
		fail_at = UINT64_MAX;
		expect_equal(&m);
		expect_equal(&b);
		free_map_destroy(m.map);
		free_map_destroy(b.map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_found),
		cmocka_unit_test(random_changes_agree),
		cmocka_unit_test(outside_is_refused),
		cmocka_unit_test(moves_join),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
