// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transactions on every profile. No write touches anything of the last commit, nor a full stripe with parity that has
 * any of it; afterwards all devices are consistent, parity is correct, and nothing is lost if devices are missing. A
 * failing device fails the commit, which names the device and the resulting state. A filesystem is filled until nothing
 * more can be reserved, and no commit before that runs out of space.
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "lib/commit/data.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/raid.h"
#include "lib/reserve/reserve.h"
#include "lib/space/chunk.h"
#include "tests/unit/commit_words.h"
#include "tests/unit/txn_rig.h"
#include "tests/random.h"

#define ITEMS 60u
#define TYPE 99u
#define SECTOR 4096u

/* Data, metadata, mixed, nodesize, devices that may be lost, devices and their sizes in MiB. */
static const struct rig_kind kinds[] = {
	{ "raid0", BTRKIT_PROFILE_RAID0, BTRKIT_PROFILE_RAID0, false, 4096, 0, 2, { 160, 200 } },
	{ "raid1", BTRKIT_PROFILE_RAID1, BTRKIT_PROFILE_RAID1, false, 4096, 1, 3, { 160, 200, 160 } },
	{ "raid1c3", BTRKIT_PROFILE_RAID1C3, BTRKIT_PROFILE_RAID1C3, false, 16384, 2, 3, { 160, 200, 160 } },
	{ "raid1c4", BTRKIT_PROFILE_RAID1C4, BTRKIT_PROFILE_RAID1C4, false, 4096, 3, 4, { 160, 200, 160, 160 } },
	{ "raid10", BTRKIT_PROFILE_RAID10, BTRKIT_PROFILE_RAID10, false, 4096, 1, 4, { 160, 200, 160, 180 } },
#ifdef HAVE_ISAL
	{ "raid5 of two", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 4096, 1, 2, { 200, 200 } },
	{ "raid5", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 4096, 1, 4, { 160, 200, 160, 160 } },
	{ "raid6 of three", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 4096, 2, 3, { 200, 200, 240 } },
	{ "raid6", BTRKIT_PROFILE_RAID6, BTRKIT_PROFILE_RAID6, false, 16384, 2, 5, { 160, 200, 160, 160, 160 } },
	{ "raid6 of large nodes",
	  BTRKIT_PROFILE_RAID5,
	  BTRKIT_PROFILE_RAID6,
	  false,
	  65536,
	  1,
	  5,
	  { 200, 200, 200, 200, 200 } },
	{ "mixed raid5", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, true, 4096, 1, 3, { 160, 200, 160 } },
#endif
};

static uint64_t seed;

static unsigned pick(unsigned below)
{
	random_step(&seed);
	return (unsigned)((seed >> 33) % below);
}

/* Writes data that nothing refers to: its space is freed again, but the write must be safe too. */
static int put_data(struct btrkit_txn *txn, struct btrkit_error *err)
{
	uint8_t bytes[40 * SECTOR];
	struct range r;
	int ret = txn_alloc_data(txn, SECTOR, (1 + pick(40)) * SECTOR, &r, err);

	memset(bytes, 1 + (int)pick(255), sizeof(bytes));
	return ret ? ret : txn_write_data(txn, r.start, bytes, r.length, err);
}

/* Adds the items of a round, deletes those of the round @keep before it, and reserves @blocks more blocks. */
static int edit(struct btrkit_txn *txn, unsigned round, unsigned keep, unsigned blocks, struct btrkit_error *err)
{
	uint8_t bytes[500] = { 0 };
	struct edit_tree *t = NULL;
	int ret = txn_reserve(txn, 2 * ITEMS + blocks, err);

	if (!ret)
		ret = txn_tree(txn, OID_FS_TREE, &t, err);
	for (unsigned i = 0; !ret && i < ITEMS; i++) {
		const unsigned to = (i * 37) % ITEMS;

		memset(bytes, (int)(to ^ round), sizeof(bytes));
		ret = edit_insert(t, &KEY(1000 + to, TYPE, round), bytes, sizeof(bytes), err);
		if (!ret && round > keep)
			ret = edit_delete(t, &KEY(1000 + i, TYPE, round - keep), err);
	}
	for (unsigned i = 0; !ret && i < 3; i++)
		ret = put_data(txn, err);
	return ret;
}

/* The last round with items; its items must all be there, with the right contents. */
static unsigned last_round(struct btrkit_fs *fs, unsigned keep)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned n = 0, last = 0;
	struct tree_root root;
	struct cursor c;
	int ret;

	rig_check(fs_find_root(fs, OID_FS_TREE, &root, NULL, &err), &err);
	cursor_init(&c, fs, &root);
	for (ret = cursor_seek(&c, &KEY(1000, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		const unsigned round = (unsigned)c.item.key.offset, to = (unsigned)c.item.key.objectid - 1000;

		n++;
		last = round > last ? round : last;
		assert_int_equal(c.item.data[0], (to ^ round) & 0xff);
		assert_int_equal(c.item.data[c.item.size - 1], (to ^ round) & 0xff);
	}
	cursor_release(&c);
	rig_check(ret < 0 ? ret : 0, &err);
	assert_int_equal(n, (last < keep ? last : keep) * ITEMS);
	return last;
}

static unsigned round_on_devices(struct rig *r, unsigned lost, unsigned keep)
{
	struct btrkit_fs *fs = rig_open(r, 0, lost);
	const unsigned round = last_round(fs, keep);

	btrkit_fs_close(fs);
	return round;
}

static struct btrkit_txn *start(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = NULL;

	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	return txn;
}

static void commit(struct btrkit_txn *txn)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
}

static void expect_equal_maps(const struct space_group *g, const struct free_map *a, const struct free_map *b)
{
	const uint64_t end = g->item.start + g->item.length;
	struct range x, y;

	assert_int_equal(a ? free_map_bytes(a) : 0, b ? free_map_bytes(b) : 0);
	for (uint64_t at = g->item.start; a && at < end && free_map_next(a, at, &x); at = range_end(&x)) {
		assert_true(free_map_next(b, at, &y));
		assert_int_equal(x.start, y.start);
		assert_int_equal(x.length, y.length);
	}
}

/*
 * The free space, and what of it may be allocated, must equal what a new handle loads, and consist of whole full
 * stripes.
 */
static void expect_space(struct rig *r, struct space *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = rig_open(r, 0, 0);
	struct space *fresh;

	rig_check(space_create(fs, &fresh, &err), &err);
	for (size_t i = 0; i < space_num_groups(fresh); i++) {
		struct space_group *f = space_group_at(fresh, i), *g = space_group_at(s, i);

		rig_check(space_load(fresh, f, SPACE_FROM_EXTENTS, &err), &err);
		assert_int_equal(f->item.start, g->item.start);
		assert_int_equal(f->full_stripe, g->full_stripe);
		if (f->full_stripe)
			assert_int_equal(free_map_bytes(f->free) % f->full_stripe, 0);
		if (!g->loaded)
			continue;
		expect_equal_maps(f, f->free, g->free);
		expect_equal_maps(f, f->closed, g->closed);
	}
	space_destroy(fresh);
	btrkit_fs_close(fs);
}

/* Checks with every set of lost devices that the profile tolerates. @return the number of sets */
static unsigned lose(struct rig *r, unsigned spare, unsigned round)
{
	unsigned n = 0;

	for (unsigned lost = 1; lost < 1u << r->n; lost++) {
		if ((unsigned)__builtin_popcount(lost) > spare)
			continue;
		assert_int_equal(round_on_devices(r, lost, 4), round);
		n++;
	}
	return n;
}

static void commits(const struct rig_kind *kind)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned losses = 0, round = 0;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	seed = 1;
	rig_make(&r, kind);
	rig_verify(&r);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned turn = 0; turn < 14; turn++) {
		const bool chunk = turn % 5 == 2;

		txn = start(fs);
		rig_check(edit(txn, round + 1, 4, chunk ? (48u << 20) / kind->nodesize : 0, &err), &err);
		if (turn % 7 == 3) {
			btrkit_txn_abort(txn);
			assert_int_equal(last_round(fs, 4), round);
			continue;
		}
		commit(txn);
		round++;
		assert_int_equal(last_round(fs, 4), round);
		rig_verify(&r);
		expect_space(&r, ((struct writer *)fs->writer)->space);
		if (turn % 4 == 1)
			losses += lose(&r, kind->spare, round);
	}
	btrkit_fs_close(fs);
	assert_int_equal(round_on_devices(&r, 0, 4), round);
	printf("%s: %u commits, %llu sectors held, %llu full stripes checked, read without devices %u times\n",
	       kind->name, round, (unsigned long long)r.num_held, (unsigned long long)r.rows_checked, losses);
	rig_destroy(&r);
}

static void every_profile_is_committed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		commits(&kinds[i]);
}

/* The last calls of a commit: flush all devices, write all primaries, flush all, write all mirrors, flush all. */
static enum btrkit_commit_state expected_state(const struct rig *r, uint64_t left, uint64_t mirrors)
{
	if (left <= mirrors + r->n)
		return BTRKIT_COMMIT_NEW;
	return left <= mirrors + 3 * r->n ? BTRKIT_COMMIT_UNKNOWN : BTRKIT_COMMIT_OLD;
}

/* Lets call number @call of @calls in a commit fail. */
static void fail_at(const struct rig *base, const struct rig_kind *kind, uint64_t call, uint64_t calls,
		    uint64_t mirrors)
{
	const enum btrkit_commit_state expected = expected_state(base, calls - call, mirrors);
	enum btrkit_commit_state reached = BTRKIT_COMMIT_OLD;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	unsigned round;
	struct rig r;

	seed = 2;
	rig_clone(&r, base);
	rig_hold(&r);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	txn = start(fs);
	rig_check(edit(txn, 2, 4, 0, &err), &err);
	call += r.calls;
	r.fail_at = call;
	assert_int_equal(btrkit_txn_commit(txn, &reached, &err), -EIO);
	assert_int_equal(reached, expected);
	assert_int_equal(err.code, BTRKIT_IO);
	assert_true(err.places & BTRKIT_AT_DEVID);
	assert_int_equal(err.devid, r.failed);
	expect_words(&err, expected);
	assert_int_equal(btrkit_txn_start(fs, &txn, &err), -EROFS);
	btrkit_fs_close(fs);
	assert_int_equal(r.calls, call + 1);
	round = round_on_devices(&r, 0, 4);
	assert_true(expected == BTRKIT_COMMIT_OLD ? round == 1 : expected == BTRKIT_COMMIT_NEW ? round == 2 : round);
	/*
	 * The state is also complete without the device that failed, and incomplete writes did no harm to the others.
	 */
	if (kind->spare) {
		round = round_on_devices(&r, 1u << (r.failed - 1), 4);
		assert_true(expected == BTRKIT_COMMIT_OLD ? round == 1 : expected != BTRKIT_COMMIT_NEW || round == 2);
	}
	rig_destroy(&r);
}

static void failures(const struct rig_kind *kind)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct rig base, all;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	uint64_t calls = 0;

	rig_make(&base, kind);
	for (unsigned round = 1; round < 3; round++) {
		seed = round;
		if (round == 2)
			rig_clone(&all, &base);
		fs = rig_open(round == 2 ? &all : &base, BTRKIT_OPEN_WRITE, 0);
		txn = start(fs);
		rig_check(edit(txn, round, 4, 0, &err), &err);
		calls = all.calls;
		commit(txn);
		btrkit_fs_close(fs);
	}
	calls = all.calls - calls;
	for (uint64_t call = 0; call < calls; call++)
		fail_at(&base, kind, call, calls, all.mirrors);
	printf("%s: %llu writes and flushes failed in turn\n", kind->name, (unsigned long long)calls);
	rig_destroy(&all);
	rig_destroy(&base);
}

static void every_failing_call_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		failures(&kinds[i]);
}

/* Every reservation that was granted can be used, until the filesystem is full. */
static void fill(const struct rig_kind *kind)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = NULL;
	unsigned round = 0;
	struct btrkit_fs *fs;
	struct rig r;
	uint64_t calls;
	int ret = 0;

	seed = 3;
	rig_make(&r, kind);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (;;) {
		uint64_t pieces = 0;

		txn = start(fs);
		calls = r.calls;
		/* Also reserve half of the free blocks, most of which the round does not use. */
		rig_check(space_count(txn->space, BG_METADATA, kind->nodesize, UINT64_MAX, &pieces, &err), &err);
		ret = edit(txn, round + 1, UINT_MAX, (unsigned)pieces / 2, &err);
		if (ret)
			break;
		rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
		round++;
		rig_hold(&r);
	}
	assert_int_equal(ret, -ENOSPC);
	assert_int_equal(r.calls, calls);
	btrkit_txn_abort(txn);
	assert_int_equal(last_round(fs, UINT_MAX), round);
	btrkit_fs_close(fs);
	rig_verify(&r);
	printf("%s: full after %u commits\n", kind->name, round);
	assert_true(round > 10);
	rig_destroy(&r);
}

static void what_is_reserved_can_be_had(void **state)
{
	static const struct rig_kind small[] = {
		{ "raid5", BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID5, false, 4096, 1, 3, { 140, 130, 130 } },
		{ "raid6",
		  BTRKIT_PROFILE_RAID6,
		  BTRKIT_PROFILE_RAID6,
		  false,
		  4096,
		  2,
		  6,
		  { 140, 130, 130, 130, 130, 130 } },
	};

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		fill(&small[i]);
}

#define EXTENTS 14000u
#define EXTENT (256u << 10)

/* Allocates space for data, and creates a chunk if there is none. */
static struct range place(struct btrkit_txn *txn)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct chunk_plan plan;
	struct space_group *g;
	struct range r;
	int ret = txn_alloc_data(txn, EXTENT, EXTENT, &r, &err);

	if (ret == -ENOSPC) {
		rig_check(chunk_plan(txn->space, BG_DATA, &plan, &err), &err);
		rig_check(chunk_create(txn->space, &plan, &txn->super, &g, &err), &err);
		ret = txn_alloc_data(txn, EXTENT, EXTENT, &r, &err);
	}
	rig_check(ret, &err);
	return r;
}

#define INODE 5000u

/* Makes a file without checksums that is an orphan. */
static void put_inode(struct btrkit_txn *txn, struct edit_tree *t)
{
	const struct disk_inode_item d = { .generation = le64_put(txn->generation),
					   .transid = le64_put(txn->generation),
					   .mode = le32_put(S_IFREG | 0600),
					   .flags = le64_put(INODE_NODATASUM) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_check(edit_insert(t, &KEY(INODE, KEY_INODE_ITEM, 0), &d, sizeof(d), &err), &err);
	rig_check(edit_insert(t, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, INODE), "", 0, &err), &err);
}

/* Adds the extents of that file, or removes every second one, which leaves as many free ranges. */
static void scatter(struct btrkit_txn *txn, struct range *at, bool add)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL;

	rig_check(txn_tree(txn, OID_FS_TREE, &t, &err), &err);
	if (add)
		put_inode(txn, t);
	for (unsigned i = 0; i < EXTENTS; i += add ? 1 : 2) {
		struct disk_file_extent d = { .type = FILE_EXTENT_REG };
		struct extent_change change = { .num_bytes = EXTENT, .data = true, .add = add ? 1 : -1 };
		const struct btrkit_key key = KEY(INODE, KEY_EXTENT_DATA, (uint64_t)i * EXTENT);

		if (add)
			at[i] = place(txn);
		d.generation = le64_put(txn->generation);
		d.disk_bytenr = le64_put(at[i].start);
		d.ram_bytes = d.disk_num_bytes = d.num_bytes = le64_put(EXTENT);
		change.bytenr = at[i].start;
		change.ref = (struct extent_ref){ .type = KEY_EXTENT_DATA_REF, .root = OID_FS_TREE,
						  .objectid = INODE, .offset = key.offset };
		rig_check(add ? edit_insert(t, &key, &d, sizeof(d), &err) : edit_delete(t, &key, &err), &err);
		rig_check(txn_change_data_ref(txn, &change, &err), &err);
	}
}

static void build(const struct rig_kind *kind)
{
	struct btrkit_space_change_options opts = BTRKIT_SPACE_CHANGE_OPTIONS_INIT;
	struct range *at = calloc(EXTENTS, sizeof(*at));
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_change change = { 0 };
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct rig r;

	assert_non_null(at);
	rig_make(&r, kind);
	rig_hold(&r);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	for (unsigned add = 2; add--;) {
		txn = start(fs);
		rig_check(txn_reserve(txn, 4000, &err), &err);
		scatter(txn, at, add);
		commit(txn);
		rig_verify(&r);
	}
	/* The last conversion replaces an invalid tree, whose blocks are freed first. */
	for (unsigned turn = 0; turn < 5; turn++) {
		if (turn == 3) {
			txn = start(fs);
			txn->super.compat_ro_flags = le64_put(COMPAT_RO_FREE_SPACE_TREE);
			txn->free_space_tree = false;
			commit(txn);
			rig_verify(&r);
			continue;
		}
		rig_check(btrkit_space_convert(fs, turn % 2 ? BTRKIT_SPACE_CACHE_NONE : BTRKIT_SPACE_CACHE_V2, &opts,
					       &change, &err), &err);
		if (turn % 2 == 0)
			printf("%s: %llu blocks built\n", kind->name, (unsigned long long)change.v2_blocks);
		assert_true(turn % 2 || change.v2_blocks > CHUNK_STRIPE_LEN / kind->nodesize);
		rig_verify(&r);
	}
	btrkit_fs_close(fs);
	rig_destroy(&r);
	free(at);
}

static void a_tree_is_built_in_rows(void **state)
{
	static const struct rig_kind scattered[] = {
		{ "raid5", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_RAID5, false, 4096, 1, 2, { 3000, 3000 }, true },
		{ "raid6",
		  BTRKIT_PROFILE_SINGLE,
		  BTRKIT_PROFILE_RAID6,
		  false,
		  4096,
		  1,
		  4,
		  { 1500, 2000, 1500, 1500 },
		  true },
	};

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	for (size_t i = 0; i < ARRAY_SIZE(scattered); i++)
		build(&scattered[i]);
}

static void degraded_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_fs *fs;
		struct rig r;

		if (!kinds[i].spare)
			continue;
		rig_make(&r, &kinds[i]);
		assert_int_equal(rig_try_open(&r, BTRKIT_OPEN_WRITE, 1u << i % r.n, &fs, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.message, "all are needed for writing"));
		assert_int_equal(r.calls, 0);
		rig_destroy(&r);
	}
}

/* A device was extended over the superblock mirror of another filesystem, which by chance has the same generation. */
static void mirrors_of_others_are_replaced(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct disk_super before, there;
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct super checked;
	struct rig r;

	(void)state;
	rig_make(&r, &kinds[0]);
	fs = rig_open(&r, BTRKIT_OPEN_WRITE, 0);
	sparse_read(r.at[1], super_offset(1), &before, sizeof(before));
	there = before;
	there.fsid[0] ^= 1;
	there.dev_item.fsid[0] ^= 1;
	fs->geometry.csum->compute(there.fsid, SUPER_SIZE - sizeof(there.csum), there.csum);
	rig_check(super_decode(&there, super_offset(1), &checked, &err), &err);
	sparse_write(r.at[1], super_offset(1), &there, sizeof(there));
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	btrkit_txn_abort(txn);
	sparse_read(r.at[1], super_offset(1), &there, sizeof(there));
	assert_memory_equal(&there, &before, sizeof(there));
	btrkit_fs_close(fs);
	rig_destroy(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_profile_is_committed),
		cmocka_unit_test(every_failing_call_is_told),
		cmocka_unit_test(what_is_reserved_can_be_had),
		cmocka_unit_test(a_tree_is_built_in_rows),
		cmocka_unit_test(degraded_is_refused),
		cmocka_unit_test(mirrors_of_others_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
