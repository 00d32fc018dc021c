// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets of owners as runs: two subvolumes with snapshots of each, made in turn, so that the order in which relatives are
 * neighbours is not the order of their ids.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u
#define SNAPSHOTS 3u /* of each subvolume */
#define BYTES 65536u

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static struct btrkit_usage *u;
static uint64_t ids[2][1 + SNAPSHOTS]; /* of the subvolumes, and then of their snapshots */

static void must(int ret)
{
	written_check(ret, &err);
}

static void make_subvolume(unsigned which, const char *name)
{
	struct btrkit_txn *txn = written_start(fs);
	static const uint8_t bytes[BYTES] = { 7 };
	uint64_t file;

	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, 1, NULL, &ids[which][0], &err));
	must(btrkit_txn_create(txn, ids[which][0], TOP, "file", 4, NULL, &file, &err));
	must(btrkit_txn_write(txn, ids[which][0], file, 0, bytes, sizeof(bytes), NULL, &err));
	written_commit(txn);
}

static void make_snapshot(unsigned which, unsigned i)
{
	struct btrkit_txn *txn = written_start(fs);
	char name[8];

	snprintf(name, sizeof(name), "%u-%u", which, i);
	must(btrkit_txn_subvolume_snapshot(txn, ids[which][0], BTRKIT_TOP_LEVEL, TOP, name, 3, NULL, &ids[which][i],
					   &err));
	written_commit(txn);
}

static void change(unsigned which)
{
	struct btrkit_txn *txn = written_start(fs);

	must(btrkit_txn_create(txn, ids[which][0], TOP, "new", 3, NULL, NULL, &err));
	written_commit(txn);
}

static int make(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	make_subvolume(0, "a");
	make_subvolume(1, "b");
	for (unsigned i = 1; i <= SNAPSHOTS; i++)
		for (unsigned which = 0; which < 2; which++)
			make_snapshot(which, i);
	/* Now the subvolumes share most with their latest snapshots. */
	for (unsigned which = 0; which < 2; which++)
		change(which);
	must(btrkit_usage_load(fs, NULL, &u, &err));
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	btrkit_usage_free(u);
	btrkit_fs_close(fs);
	written_destroy(&w);
	return 0;
}

static uint64_t id_in_order(size_t i)
{
	struct btrkit_usage_owner owner;

	btrkit_usage_get_owner(u, btrkit_usage_in_order(u, i), &owner);
	return owner.id;
}

static size_t place_of(uint64_t id)
{
	for (size_t i = 0; i < btrkit_usage_num_owners(u); i++)
		if (id_in_order(i) == id)
			return i;
	fail_msg("no owner %llu", (unsigned long long)id);
	return 0;
}

static void each_owner_has_one_place(void **state)
{
	const size_t n = btrkit_usage_num_owners(u);
	unsigned seen[32] = { 0 };
	(void)state;

	assert_in_range(n, 3 + 2 * SNAPSHOTS, 31);
	for (size_t i = 0; i < n; i++) {
		assert_in_range(btrkit_usage_in_order(u, i), 0, n - 1);
		seen[btrkit_usage_in_order(u, i)]++;
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(seen[i], 1);
}

/* The snapshots of a subvolume follow each other, the oldest first, and the subvolume them, whatever their ids. */
static void relatives_are_neighbours(void **state)
{
	(void)state;
	for (unsigned which = 0; which < 2; which++) {
		const size_t first = place_of(ids[which][1]);

		for (unsigned i = 2; i <= SNAPSHOTS; i++)
			assert_int_equal(place_of(ids[which][i]), first + i - 1);
		assert_int_equal(place_of(ids[which][0]), first + SNAPSHOTS);
	}
	/* The filesystem itself, which has no id, is the last one. */
	assert_int_equal(id_in_order(btrkit_usage_num_owners(u) - 1), 0);
}

/* The runs of a set are its owners: as many, each once, and in separate runs only if others are between them. */
static void runs_are_owners(void **state)
{
	struct btrkit_usage_run runs[16] = { { 0, 0 } };
	(void)state;

	for (size_t i = 0; i < btrkit_usage_num_sets(u); i++) {
		const size_t n = btrkit_usage_get_runs(u, i, runs, 16);
		uint32_t owners[32];
		struct btrkit_usage_set set;
		size_t found = 0;

		btrkit_usage_get_set(u, i, &set, owners, 32);
		assert_in_range(n, 1, 16);
		for (size_t r = 0; r < n; r++) {
			assert_true(runs[r].first <= runs[r].last);
			assert_true(!r || runs[r].first > runs[r - 1].last + 1);
			for (uint32_t at = runs[r].first; at <= runs[r].last; at++)
				for (size_t k = 0; k < set.num_owners; k++)
					found += owners[k] == btrkit_usage_in_order(u, at);
		}
		assert_int_equal(found, set.num_owners);
	}
}

/* The data of each subvolume belongs to it and its snapshots: a single run. */
static void relatives_are_one_run(void **state)
{
	unsigned extents = 0;
	(void)state;

	for (size_t i = 0; i < btrkit_usage_num_extents(u); i++) {
		struct btrkit_usage_run run[2] = { { 1000, 1000 }, { 1000, 1000 } };
		struct btrkit_usage_extent e;

		btrkit_usage_get_extent(u, i, &e);
		if (e.set == SIZE_MAX || e.bytes != BYTES)
			continue;
		/* The number of runs is told whatever the room for them. */
		assert_int_equal(btrkit_usage_get_runs(u, e.set, NULL, 0), 1);
		assert_int_equal(btrkit_usage_get_runs(u, e.set, run, 0), 1);
		assert_int_equal(run[0].first, 1000);
		assert_int_equal(btrkit_usage_get_runs(u, e.set, run, 2), 1);
		assert_int_equal(run[1].first, 1000);
		assert_int_equal(run[0].last - run[0].first, SNAPSHOTS);
		assert_true(id_in_order(run[0].first) == ids[0][1] || id_in_order(run[0].first) == ids[1][1]);
		extents++;
	}
	assert_int_equal(extents, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_owner_has_one_place),
		cmocka_unit_test(relatives_are_neighbours),
		cmocka_unit_test(runs_are_owners),
		cmocka_unit_test(relatives_are_one_run),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
