// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The space of a handle over many transactions: extents and chunks are created and removed at random, and some
 * transactions are aborted. After each, and in the middle, the free space of every group must be what a new handle
 * loads.
 */
#include "tests/unit/unit.h"

#include "lib/commit/settle.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/extent.h"
#include "lib/space/chunk.h"
#include "tests/unit/written.h"
#include "tests/random.h"

#define SIZE (400ull << 20)
#define SECTOR 4096u
#define EXTENTS 200u /* unused if their length is 0 */

static uint64_t seed;

static uint64_t pick(uint64_t below)
{
	random_step(&seed);
	return (seed >> 33) % below;
}

static void expect_equal_maps(const struct space_group *a, const struct space_group *b)
{
	const uint64_t end = a->item.start + a->item.length;
	struct range x, y;

	assert_int_equal(free_map_bytes(a->free), free_map_bytes(b->free));
	for (uint64_t at = a->item.start; at < end && free_map_next(a->free, at, &x); at = range_end(&x)) {
		assert_true(free_map_next(b->free, at, &y));
		assert_int_equal(x.start, y.start);
		assert_int_equal(x.length, y.length);
	}
}

/* What another handle loads must be consistent, and equal to that of a handle between transactions. */
static void expect_committed(struct written *w, struct space *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);
	struct space *a, *b;

	written_check(space_create(fs, &a, &err), &err);
	written_check(space_create(fs, &b, &err), &err);
	for (size_t i = 0; i < space_num_groups(a); i++) {
		struct space_group *x = space_group_at(a, i), *y = space_group_at(b, i);

		written_check(space_load(a, x, SPACE_FROM_EXTENTS, &err), &err);
		written_check(space_load(b, y, SPACE_FROM_ANY, &err), &err);
		expect_equal_maps(x, y);
		y = space_group_at(s, i);
		assert_int_equal(y->item.start, x->item.start);
		assert_int_equal(y->item.used, x->item.used);
		assert_int_equal(y->committed_used, x->item.used);
		assert_false(y->fresh || y->removed || y->changed || y->touched);
		assert_null(y->pinned);
		if (y->loaded)
			expect_equal_maps(x, y);
	}
	assert_int_equal(space_num_groups(s), space_num_groups(a));
	assert_int_equal(space_bytes_used(s), fs->super.bytes_used);
	space_destroy(a);
	space_destroy(b);
	btrkit_fs_close(fs);
}

/* Loading a group in the middle of a transaction gives its committed state, without the changes made since. */
static void load_meanwhile(struct written *w, struct space *s)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(w, 0);
	struct space *committed;

	written_check(space_create(fs, &committed, &err), &err);
	for (size_t i = 0; i < space_num_groups(s); i++) {
		struct space_group *g = space_group_at(s, i), *c = space_group_of(committed, g->item.start);

		if (g->loaded || g->removed || g->fresh)
			continue;
		written_check(space_load(s, g, SPACE_FROM_ANY, &err), &err);
		written_check(space_load(committed, c, SPACE_FROM_EXTENTS, &err), &err);
		expect_equal_maps(g, c);
	}
	space_destroy(committed);
	btrkit_fs_close(fs);
}

static void change(struct btrkit_txn *txn, struct range *h, int32_t add)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct extent_change c = {
		.bytenr = h->start,
		.num_bytes = h->length,
		.data = true,
		.ref = { .type = KEY_EXTENT_DATA_REF, .root = OID_FS_TREE, .objectid = 257, .offset = h->start },
		.add = add,
	};

	written_check(txn_change_data_ref(txn, &c, &err), &err);
}

static void step(struct btrkit_txn *txn, struct range *held, uint64_t max)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range *h = &held[pick(EXTENTS)];
	struct chunk_plan plan;
	struct space_group *g;
	int ret;

	if (pick(40) == 0) {
		static const uint64_t types[] = { BG_DATA, BG_METADATA, BG_SYSTEM };

		ret = chunk_plan(txn->space, types[pick(3)], &plan, &err);
		if (!ret)
			ret = chunk_create(txn->space, &plan, &txn->super, &g, &err);
	} else if (pick(40) == 0) {
		g = space_group_at(txn->space, pick(space_num_groups(txn->space)));
		ret = chunk_remove(txn->space, g, &txn->super, &err);
	} else if (h->length) {
		change(txn, h, -1);
		h->length = 0;
		ret = 0;
	} else {
		ret = txn_alloc_data(txn, SECTOR, SECTOR * (1 + pick(max)), h, &err);
		if (!ret)
			change(txn, h, 1);
	}
	if (ret != -EBUSY && ret != -ENOSPC)
		written_check(ret, &err);
}

static void handles_agree(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 5; variant++) {
		struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		struct range held[EXTENTS] = { 0 }, before[EXTENTS];
		unsigned commits = 0, aborts = 0;
		struct btrkit_fs *fs;
		struct written w;

		seed = variant;
		if (variant == 1)
			o.compat_ro = 0;
		if (variant == 2)
			o.compat_ro = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;
		o.nodesize = variant == 3 ? 4096 : 16384;
		o.mixed = variant == 4;
		if (o.mixed)
			o.nodesize = o.sectorsize = 4096, o.metadata = BTRKIT_PROFILE_SINGLE;
		written_make(&w, &o, SIZE);
		fs = written_open(&w, BTRKIT_OPEN_WRITE);
		for (unsigned turn = 0; turn < 30; turn++) {
			struct btrkit_txn *txn = written_start(fs);
			struct space *s = txn->space;

			memcpy(before, held, sizeof(held));
			for (uint64_t n = pick(120); n; n--) {
				step(txn, held, o.mixed ? 8 : 300);
				if (pick(100) == 0)
					written_check(txn_run_refs(txn, NULL), NULL);
				if (pick(300) == 0)
					load_meanwhile(&w, s);
			}
			if (pick(3)) {
				written_commit(txn);
				commits++;
			} else {
				btrkit_txn_abort(txn);
				memcpy(held, before, sizeof(held));
				aborts++;
			}
			expect_committed(&w, s);
		}
		btrkit_fs_close(fs);
		printf("%u commits, %u aborts\n", commits, aborts);
		assert_true(commits > 10 && aborts > 5);
		written_destroy(&w);
	}
}

#define PIECES 2000u
#define PIECE (64ull << 10)

/*
 * Allocates all data space in pieces and free some: freed space must be found in the next transaction, and not before.
 */
static void what_is_freed_is_found_later(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const uint64_t large = 4 * PIECE;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range held[PIECES] = { 0 };
	struct btrkit_txn *txn;
	struct btrkit_fs *fs;
	struct written w;
	unsigned n = 0;
	struct range r;

	(void)state;
	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	while (!txn_alloc_data(txn, PIECE, PIECE, &held[n], &err)) {
		change(txn, &held[n], 1);
		assert_true(++n < PIECES);
	}
	assert_true(n > 100);
	for (unsigned i = 0; i < n; i += 2)
		change(txn, &held[i], -1);
	assert_int_equal(txn_alloc_data(txn, PIECE, PIECE, &r, NULL), -ENOSPC);
	written_commit(txn);

	txn = written_start(fs);
	written_check(txn_alloc_data(txn, PIECE, large, &r, &err), &err);
	assert_int_equal(r.length, PIECE);
	change(txn, &r, 1);
	for (unsigned i = 51; i < 59; i += 2)
		change(txn, &held[i], -1);
	assert_int_equal(txn_alloc_data(txn, large, large, &r, NULL), -ENOSPC);
	written_commit(txn);

	for (unsigned again = 0; again < 2; again++) {
		txn = written_start(fs);
		written_check(txn_alloc_data(txn, large, large, &r, &err), &err);
		assert_int_equal(r.start, held[50].start);
		written_check(txn_alloc_data(txn, large, large, &r, &err), &err);
		assert_int_equal(txn_alloc_data(txn, large, large, &r, NULL), -ENOSPC);
		btrkit_txn_abort(txn);
	}
	btrkit_fs_close(fs);
	written_destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_agree),
		cmocka_unit_test(what_is_freed_is_found_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
