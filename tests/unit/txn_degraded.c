// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transactions without some of the devices, for every profile that tolerates it. What was committed is whole on the
 * other devices, those that are missing or stale are not touched, and what Linux would not write either is refused.
 */
#include "tests/unit/unit.h"

#include "lib/commit/data.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "lib/space/space_device.h"
#include "lib/volume/volume.h"
#include "tests/unit/txn_rig.h"

#define ITEMS 60u
#define TYPE 99u
#define SECTOR 4096u
#define DEGRADED (BTRKIT_OPEN_WRITE | BTRKIT_OPEN_DEGRADED)

static const struct rig_kind kinds[] = {
	{ "raid1 of two", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, false, 16384, 1, 2, { 300, 300 } },
	{ "raid1", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, false, 4096, 1, 3, { 300, 300, 300 } },
	{ "raid1c3", BTRKIT_PROFILE_RAID1C3, BTRKIT_PROFILE_RAID1C3, false, 16384, 2, 3, { 300, 300, 300 } },
	{ "raid1c4", BTRKIT_PROFILE_RAID1C4, BTRKIT_PROFILE_RAID1C4, false, 4096, 3, 4, { 300, 300, 300, 300 } },
	{ "raid10", BTRKIT_PROFILE_RAID10, BTRKIT_PROFILE_RAID10, false, 4096, 1, 4, { 300, 300, 300, 300 } },
	{ "mixed raid1", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, true, 4096, 1, 3, { 300, 300, 300 } },
#ifdef HAVE_ISAL
	{ "raid5", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 4096, 1, 3, { 300, 300, 300 } },
	{ "raid6", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 16384, 2, 4, { 300, 300, 300, 300 } },
	{ "raid6 and raid1c3",
	  BTRKIT_PROFILE_RAID6,
	  BTRKIT_PROFILE_RAID1C3,
	  false,
	  65536,
	  2,
	  4,
	  { 300, 300, 300, 300 } },
#endif
};

/* Adds items with contents of this round, a chunk in some rounds, and data that nothing refers to. */
static void edit(struct btrkit_fs *fs, unsigned round)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL;
	struct btrkit_txn *txn = NULL;
	uint8_t bytes[40 * SECTOR];
	struct chunk_plan plan;
	struct space_group *g;
	struct range r;

	memset(bytes, (int)round, sizeof(bytes));
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	rig_check(txn_reserve(txn, 4 * ITEMS, &err), &err);
	if (round % 2) {
		rig_check(chunk_plan(txn->space, BG_DATA, &plan, &err), &err);
		rig_check(chunk_create(txn->space, &plan, &txn->super, &g, &err), &err);
	}
	rig_check(txn_tree(txn, OID_FS_TREE, &t, &err), &err);
	for (unsigned i = 0; i < ITEMS; i++)
		rig_check(edit_insert(t, &KEY(1000 + i, TYPE, round), bytes, 500, &err), &err);
	rig_check(txn_alloc_data(txn, SECTOR, sizeof(bytes), &r, &err), &err);
	rig_check(txn_write_data(txn, r.start, bytes, r.length, &err), &err);
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

/* All items of rounds 1 to @rounds must be there, with their contents. */
static void expect_rounds(struct rig *r, unsigned lost, unsigned rounds)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = rig_open(r, 0, lost);
	struct tree_root root;
	struct cursor c;
	unsigned n = 0;
	int ret;

	rig_check(fs_find_root(fs, OID_FS_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(1000, 0, 0), &err); !ret; ret = cursor_next(&c, &err), n++) {
		assert_int_equal(c.item.data[0], c.item.key.offset);
		assert_int_equal(c.item.data[c.item.size - 1], c.item.key.offset);
	}
	cursor_release(&c);
	rig_check(ret < 0 ? ret : 0, &err);
	assert_int_equal(n, ITEMS * rounds);
	btrkit_fs_close(fs);
}

/* Without some devices, the others must hold everything, also if those are given again, and stale. */
static void write_without(const struct rig_kind *kind, unsigned lost)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	struct rig r, was;
	uint64_t calls;

	rig_make(&was, kind);
	fs = rig_open(&was, BTRKIT_OPEN_WRITE, 0);
	edit(fs, 1);
	btrkit_fs_close(fs);
	rig_clone(&r, &was);
	assert_int_equal(rig_try_open(&r, BTRKIT_OPEN_WRITE, lost, &fs, &err), -EOPNOTSUPP);
	assert_int_equal(err.cause, BTRKIT_CAUSE_DEVICE_MISSING);
	for (unsigned round = 2; round < 6; round++) {
		/* The stale devices are given, too, once they are known to be stale. */
		fs = rig_open(&r, DEGRADED, round < 4 ? lost : 0);
		rig_hold(&r);
		edit(fs, round);
		btrkit_fs_close(fs);
		expect_rounds(&r, lost, round);
		expect_rounds(&r, 0, round);
		if (lost != 1)
			expect_rounds(&r, lost & ~1u, round);
	}
	calls = r.calls;
	assert_int_equal(rig_try_open(&r, BTRKIT_OPEN_WRITE, 0, &fs, &err), -EOPNOTSUPP);
	assert_int_equal(err.cause, BTRKIT_CAUSE_DEVICE_STALE);
	assert_int_equal(r.calls, calls);
	for (unsigned i = 0; i < r.n; i++)
		assert_int_equal(sparse_equal(r.at[i], was.at[i]), lost >> i & 1);
	rig_destroy(&r);
	rig_destroy(&was);
}

static void what_is_tolerated_is_written(void **state)
{
	unsigned sets = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (unsigned lost = 1; lost < 1u << kinds[i].n; lost++) {
			if ((unsigned)__builtin_popcount(lost) > kinds[i].spare)
				continue;
			write_without(&kinds[i], lost);
			sets++;
		}
	printf("%u sets of missing devices\n", sets);
}

static void what_is_not_tolerated_is_refused(void **state)
{
	static const struct rig_kind striped = { "raid0", BTRKIT_PROFILE_RAID0, BTRKIT_PROFILE_RAID1, false, 4096, 0, 2,
						 { 300, 300 } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &striped);
	assert_int_equal(rig_try_open(&r, DEGRADED, 2, &fs, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "too many devices of a RAID0 chunk are missing"));
	assert_true(err.places & BTRKIT_AT_LOGICAL);
	assert_int_equal(r.calls, 0);
	rig_destroy(&r);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const unsigned lost = (2u << kinds[i].spare) - 1;

		/* Each chunk is on all devices, and not all of them are lost. */
		if (kinds[i].data != BTRKIT_PROFILE_RAID10 && kinds[i].metadata != BTRKIT_PROFILE_RAID5 &&
		    kinds[i].metadata != BTRKIT_PROFILE_RAID6)
			continue;
		rig_make(&r, &kinds[i]);
		assert_true(rig_try_open(&r, DEGRADED, lost, &fs, &err) < 0);
		assert_int_equal(err.cause, BTRKIT_CAUSE_DEVICE_MISSING);
		assert_int_equal(r.calls, 0);
		rig_destroy(&r);
	}
}

/* A missing device can neither be resized nor removed. */
static void missing_devices_stay(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[1]);
	fs = rig_open(&r, DEGRADED, 2);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	assert_false(volume_takes_chunks(fs->volume, 2));
	assert_int_equal(space_device_remove(txn->space, 2, &txn->super, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "device 2 is missing"));
	assert_int_equal(space_device_resize(txn->space, 2, 200u << 20, &txn->super, &err), -EOPNOTSUPP);
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_tolerated_is_written),
		cmocka_unit_test(what_is_not_tolerated_is_refused),
		cmocka_unit_test(missing_devices_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
