// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Space by owner, in a filesystem whose results can be computed by hand, and the results after damage. Whole
 * filesystems are compared with the quotas of Linux by the kernel tests.
 */
#include "tests/unit/unit.h"

#include "tests/unit/usage_rig.h"

static struct rig rig;

static struct btrkit_usage_owner owner(const struct btrkit_usage *u, uint64_t id)
{
	struct btrkit_usage_owner ret;
	size_t i = 0;

	if (id)
		assert_int_equal(btrkit_usage_find(u, id, &i), 0);
	else
		i = btrkit_usage_num_owners(u) - 1;
	btrkit_usage_get_owner(u, i, &ret);
	return ret;
}

static struct btrkit_usage_space freed(const struct btrkit_usage *u, size_t n, const uint64_t *ids)
{
	struct btrkit_usage_space ret;
	uint32_t numbers[8];

	for (size_t i = 0; i < n; i++) {
		size_t number;

		assert_int_equal(btrkit_usage_find(u, ids[i], &number), 0);
		numbers[i] = (uint32_t)number;
	}
	assert_int_equal(btrkit_usage_freed(u, numbers, n, &ret, NULL), 0);
	return ret;
}

#define FREED(u, ...) freed(u, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8, (const uint64_t[]){ __VA_ARGS__ })

static void load(const struct btrkit_usage_options *opts, struct told *told, struct btrkit_usage **u)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	rig_finish(&rig);
	if (rig_load(&rig, opts, told, u, &err))
		fail_msg("%s", err.message);
}

/* The complete result for the undamaged filesystem. */
static void check_whole(const struct btrkit_usage *u)
{
	const uint64_t all = RIG_EXTENTS * RIG_LENGTH;
	struct btrkit_usage_total total;
	struct btrkit_usage_types types;

	btrkit_usage_get_total(u, &total);
	assert_int_equal(btrkit_usage_num_owners(u), 4);
	assert_int_equal(owner(u, 5).referenced.data, all);
	assert_int_equal(owner(u, 5).referenced.extents, RIG_EXTENTS);
	assert_int_equal(owner(u, 5).referenced.blocks, rig.blocks_5);
	assert_int_equal(owner(u, 5).referenced.metadata, rig.blocks_5 * SYN_NODESIZE);
	assert_int_equal(owner(u, 5).exclusive.data, 0);
	assert_int_equal(owner(u, 5).exclusive.blocks, 0);
	assert_int_equal(owner(u, 256).referenced.data, all);
	assert_int_equal(owner(u, 257).referenced.data, RIG_LENGTH);
	assert_int_equal(owner(u, 257).exclusive.data, 0);
	assert_int_equal(owner(u, 257).exclusive.blocks, rig.blocks_257);
	assert_int_equal(FREED(u, 5).data, 0);
	assert_int_equal(FREED(u, 5, 256).data, all - RIG_LENGTH);
	assert_int_equal(FREED(u, 256, 5, 256).blocks, rig.blocks_5);
	assert_int_equal(FREED(u, 257).blocks, rig.blocks_257);
	assert_int_equal(FREED(u, 5, 256, 257).data, all);
	assert_int_equal(total.space.data, all);
	assert_int_equal(total.space.blocks, rig.blocks_5 + rig.blocks_257 + owner(u, 0).referenced.blocks);
	assert_int_equal(total.unowned.blocks + total.unowned.extents, 0);
	/* The sets {5, 256}, {5, 256, 257} and {257}. */
	assert_int_equal(total.sets, 3 + !!owner(u, 0).referenced.blocks);
	btrkit_usage_get_types(u, &types);
	assert_int_equal(types.extents[BTRKIT_USAGE_PLAIN].disk, all);
	assert_int_equal(types.extents[BTRKIT_USAGE_PLAIN].referenced, 2 * all + RIG_LENGTH);
	assert_int_equal(types.inlined[BTRKIT_USAGE_PLAIN].disk, 100);
	assert_int_equal(types.inlined[BTRKIT_USAGE_PLAIN].referenced, 200);
}

static void sums_are_right(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads <= 8; threads++) {
		struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
		struct btrkit_usage *u;

		opts.threads = threads;
		/* With this little, owners are added after every few blocks. */
		opts.set_memory = threads % 2 ? 2048 : 0;
		rig_begin(&rig);
		load(&opts, NULL, &u);
		check_whole(u);
		btrkit_usage_free(u);
	}
}

static void matrix_and_sets(void **state)
{
	struct btrkit_usage_space m[16];
	struct btrkit_usage_set set;
	struct btrkit_usage *u;
	uint32_t owners[4];

	(void)state;
	rig_begin(&rig);
	load(NULL, NULL, &u);
	assert_int_equal(btrkit_usage_matrix(u, m, NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		struct btrkit_usage_owner o;

		btrkit_usage_get_owner(u, i, &o);
		assert_memory_equal(&m[5 * i], &o.referenced, sizeof(o.referenced));
		for (size_t j = 0; j < 4; j++)
			assert_memory_equal(&m[4 * i + j], &m[4 * j + i], sizeof(m[0]));
	}
	assert_int_equal(m[1].data, RIG_EXTENTS * RIG_LENGTH);
	assert_int_equal(m[2].data, RIG_LENGTH);
	assert_int_equal(m[2].blocks, 0);
	for (size_t i = 0; i < btrkit_usage_num_sets(u); i++) {
		uint32_t one;

		btrkit_usage_get_set(u, i, &set, owners, 4);
		for (size_t j = 1; j < set.num_owners; j++)
			assert_true(owners[j - 1] < owners[j]);
		btrkit_usage_get_set(u, i, &set, &one, 1);
		assert_int_equal(one, owners[0]);
		btrkit_usage_get_set(u, i, &set, NULL, 0);
	}
	btrkit_usage_free(u);
}

static void each_extent_and_block(void **state)
{
	struct btrkit_usage_extent e, before = { 0 };
	struct btrkit_usage_block b;
	struct btrkit_usage_set set;
	struct btrkit_usage *u;
	size_t levels = 0;

	(void)state;
	rig_begin(&rig);
	load(NULL, NULL, &u);
	assert_int_equal(btrkit_usage_num_extents(u), RIG_EXTENTS);
	for (size_t i = 0; i < RIG_EXTENTS; i++) {
		btrkit_usage_get_extent(u, i, &e);
		assert_int_equal(e.bytenr, rig_data(i));
		assert_int_equal(e.bytes, RIG_LENGTH);
		assert_int_equal(e.type, BTRKIT_USAGE_PLAIN);
		btrkit_usage_get_set(u, e.set, &set, NULL, 0);
		assert_int_equal(set.num_owners, i ? 2 : 3);
		/* All are in leaves of two trees; subvolume 257 has the first extent in a leaf of its own besides. */
		assert_true(e.linux_shared);
		assert_true(i < 2 || e.set == before.set);
		before = e;
	}
	assert_int_equal(btrkit_usage_num_blocks(u), rig.blocks_5 + rig.blocks_257);
	for (size_t i = 0; i < btrkit_usage_num_blocks(u); i++) {
		btrkit_usage_get_block(u, i, &b);
		levels += b.level;
		assert_true(b.set != SIZE_MAX);
	}
	assert_true(levels > 0);
	btrkit_usage_free(u);
}

/* What was reported is known by its location, and nothing else is. */
static void expect_reported(const struct btrkit_usage *u, const struct told *told)
{
	struct btrkit_error what = told->first;

	assert_true(btrkit_usage_was_reported(u, &told->first) && btrkit_usage_was_reported(u, &told->last));
	what.message[0] = '\0';
	assert_true(btrkit_usage_was_reported(u, &what));
	what.logical += SYN_NODESIZE / 2;
	assert_false(btrkit_usage_was_reported(u, &what));
	what = told->first;
	what.places ^= BTRKIT_AT_SLOT;
	what.slot = 77;
	assert_false(btrkit_usage_was_reported(u, &what));
	what.places = 0;
	assert_false(btrkit_usage_was_reported(u, &what));
}

/* Extents and blocks that only the trees know are reported, and included in the result. */
static void missing_items_are_taken_in(void **state)
{
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	rig_begin(&rig);
	rig_drop(&rig, rig_find(&rig, rig_data(7)));
	rig_drop(&rig, rig_find(&rig, rig.s.fs_root));
	rig_drop(&rig, rig_find(&rig, rig.s.fs_root - SYN_NODESIZE));
	load(NULL, &told, &u);
	check_whole(u);
	assert_int_equal(told.n, 3);
	expect_reported(u, &told);
	btrkit_usage_free(u);
}

/* The address of the leaf of the extent tree that has an item, or of the root node. */
static uint64_t extent_leaf(uint64_t below)
{
	uint8_t block[SYN_NODESIZE];
	const struct disk_header *h = (const struct disk_header *)block;
	uint64_t at = rig.s.extent_root;

	for (;;) {
		const struct disk_key_ptr *ptrs = (const struct disk_key_ptr *)(h + 1);
		uint32_t i = 1;

		syn_get(&rig.s, at, 0, block);
		if (!h->level)
			return at;
		while (i < le32_get(h->nritems) && le64_get(ptrs[i].key.objectid) <= below)
			i++;
		at = le64_get(ptrs[i - 1].blockptr);
	}
}

static void spoil(uint64_t bytenr)
{
	for (unsigned copy = 0; copy < 2; copy++) {
		uint8_t block[SYN_NODESIZE];

		syn_get(&rig.s, bytenr, copy, block);
		block[SYN_NODESIZE - 1] ^= 1;
		block[200] ^= 1;
		syn_put(&rig.s, bytenr, copy, block, 0);
	}
}

/* Unreadable leaves of the extent tree, each in turn, and an unreadable root node. */
static void extent_tree_is_damaged(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct btrkit_usage *u;
		struct told told;

		rig_begin(&rig);
		rig_finish(&rig);
		spoil(i ? extent_leaf(rig.items[(i - 1) * rig.num_items / 19].key.objectid) : rig.s.extent_root);
		assert_int_equal(rig_load(&rig, NULL, &told, &u, &err), 0);
		/*
		 * The trees provide the same information, and more: the rig has no items for trees other than file
		 * trees.
		 */
		check_whole(u);
		assert_true(owner(u, 0).referenced.blocks >= 3);
		assert_true(told.n == 1 || (i && told.n <= 1 + owner(u, 0).referenced.blocks));
		assert_int_equal(told.first.tree, OID_EXTENT_TREE);
		btrkit_usage_free(u);
	}
}

static void one_copy_is_enough(void **state)
{
	uint8_t block[SYN_NODESIZE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;

	(void)state;
	rig_begin(&rig);
	rig_finish(&rig);
	for (uint64_t at = SYN_LOGICAL + SYN_NODESIZE; at < rig.s.next; at += SYN_NODESIZE) {
		syn_get(&rig.s, at, 0, block);
		block[300] ^= 1;
		syn_put(&rig.s, at, 0, block, 0);
	}
	assert_int_equal(rig_load(&rig, NULL, NULL, &u, &err), 0);
	check_whole(u);
	btrkit_usage_free(u);
}

/* An unreadable leaf of a subvolume: what only it refers to has no owner, the rest is unchanged. */
static void leaf_is_lost(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage_total total;
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	for (unsigned end_it = 0; end_it < 2; end_it++) {
		uint8_t block[SYN_NODESIZE];
		const struct disk_header *h = (const struct disk_header *)block;
		/* The second leaf of tree 5. */
		const uint64_t leaf = SYN_LOGICAL + 2 * SYN_NODESIZE;
		int ret;

		rig_begin(&rig);
		rig_finish(&rig);
		syn_get(&rig.s, leaf, 0, block);
		assert_int_equal(h->level, 0);
		spoil(leaf);
		ret = rig_load(&rig, NULL, end_it ? NULL : &told, &u, &err);
		if (end_it) {
			assert_int_equal(ret, -EUCLEAN);
			assert_int_equal(err.logical, leaf);
			break;
		}
		assert_int_equal(ret, 0);
		assert_int_equal(told.n, 1);
		assert_int_equal(told.first.logical, leaf);
		btrkit_usage_get_total(u, &total);
		assert_int_equal(total.damaged, 1);
		assert_int_equal(total.unowned.extents, le32_get(h->nritems));
		assert_int_equal(owner(u, 5).referenced.extents, RIG_EXTENTS - le32_get(h->nritems));
		assert_int_equal(owner(u, 256).referenced.blocks, rig.blocks_5);
		btrkit_usage_free(u);
	}
}

/* An old block that was not overwritten is refused by its generation, although it is intact. */
static void stale_block_is_refused(void **state)
{
	const uint64_t leaf = SYN_LOGICAL + 2 * SYN_NODESIZE;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	rig_begin(&rig);
	rig_finish(&rig);
	for (unsigned copy = 0; copy < 2; copy++) {
		uint8_t block[SYN_NODESIZE];

		syn_get(&rig.s, leaf, copy, block);
		((struct disk_header *)block)->generation = le64_put(SYN_GENERATION - 1);
		syn_put(&rig.s, leaf, copy, block, 1);
	}
	assert_int_equal(rig_load(&rig, NULL, &told, &u, &err), 0);
	assert_int_equal(told.n, 1);
	assert_non_null(strstr(told.first.message, "generation"));
	assert_true(owner(u, 5).referenced.extents < RIG_EXTENTS);
	btrkit_usage_free(u);
}

/* An empty leaf, and a leaf whose first key differs from that in the parent. */
static void another_leaf_is_told(void **state)
{
	const uint64_t leaf = SYN_LOGICAL + 2 * SYN_NODESIZE;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	for (unsigned what = 0; what < 2; what++) {
		rig_begin(&rig);
		rig_finish(&rig);
		for (unsigned copy = 0; copy < 2; copy++) {
			uint8_t block[SYN_NODESIZE];
			struct disk_header *h = (struct disk_header *)block;

			syn_get(&rig.s, leaf, copy, block);
			if (what)
				((struct disk_item *)(h + 1))->key.offset = le64_put(4096);
			else
				h->nritems = le32_put(0);
			syn_put(&rig.s, leaf, copy, block, 1);
		}
		assert_int_equal(rig_load(&rig, NULL, &told, &u, &err), 0);
		assert_int_equal(told.n, 1);
		assert_int_equal(told.first.logical, leaf);
		assert_true(owner(u, 5).referenced.extents < RIG_EXTENTS);
		btrkit_usage_free(u);
	}
}

/* If the extent tree is wrong about a block, and the trees agree on it, the trees are right. */
static void trees_are_believed(void **state)
{
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	for (unsigned what = 0; what < 2; what++) {
		size_t i;

		rig_begin(&rig);
		i = rig_find(&rig, SYN_LOGICAL + 2 * SYN_NODESIZE);
		if (what)
			rig.items[i].key.offset = 3;
		else
			((struct disk_extent_item *)rig.bytes[i])->generation = le64_put(SYN_GENERATION - 2);
		load(NULL, &told, &u);
		check_whole(u);
		assert_int_equal(told.n, 1);
		btrkit_usage_free(u);
	}
}

static void impossible_extents_are_told(void **state)
{
	struct btrkit_usage_total total;
	struct btrkit_usage *u;
	struct told told;
	size_t i;

	(void)state;
	/* An extent that reaches into the next one: the next one is dropped, and cannot be added again. */
	rig_begin(&rig);
	i = rig_find(&rig, rig_data(10));
	rig.items[i].key.offset = RIG_LENGTH + 4096;
	load(NULL, &told, &u);
	btrkit_usage_get_total(u, &total);
	assert_int_equal(total.space.extents, RIG_EXTENTS - 1);
	assert_int_equal(total.space.data, RIG_EXTENTS * RIG_LENGTH - 4096);
	/* The overlap, the file extent with a different length, and the missing extent. */
	assert_int_equal(told.n, 3);
	btrkit_usage_free(u);
	/* In no chunk, too long for one, and with length 0. */
	for (unsigned what = 0; what < 3; what++) {
		rig_begin(&rig);
		i = rig.num_items - 1;
		if (what == 0)
			rig.items[i].key.objectid = 1ull << 40;
		else
			rig.items[i].key.offset = what == 1 ? 1ull << 60 : 0;
		load(NULL, &told, &u);
		check_whole(u);
		/* The extent of the file is missing too. */
		assert_int_equal(told.n, 2);
		btrkit_usage_free(u);
	}
}

/* A file extent that names a tree block. */
static void data_that_is_none(void **state)
{
	struct btrkit_usage *u;
	struct told told;

	(void)state;
	rig_begin(&rig);
	rig_drop(&rig, rig_find(&rig, rig_data(5)));
	rig.items[rig_find(&rig, rig_data(4))].key.offset = 3 * 4096;
	load(NULL, &told, &u);
	/* One has a different length, the other an address that is in use. */
	assert_int_equal(told.n, 2);
	assert_int_equal(owner(u, 5).referenced.extents, RIG_EXTENTS - 1);
	btrkit_usage_free(u);
}

/* A subvolume that is being deleted still has what comes after its drop progress. */
static void dropped_subvolume(void **state)
{
	const size_t at = 200;
	struct btrkit_usage_owner o;
	struct btrkit_usage *u;
	size_t leaves, whole;

	(void)state;
	rig_begin(&rig);
	assert_true(rig.s.fs_level >= 2);
	rig.snapshot.refs = le32_put(0);
	load(NULL, NULL, &u);
	o = owner(u, 256);
	assert_int_equal(o.kind, BTRKIT_USAGE_DROPPED);
	whole = (size_t)o.referenced.blocks;
	assert_int_equal(whole, rig.blocks_5);
	btrkit_usage_free(u);

	/* The first remaining leaf is the one after the leaf with the key. */
	rig_begin(&rig);
	rig.snapshot.refs = le32_put(0);
	rig.snapshot.drop_progress = key_put(&KEY(257, KEY_EXTENT_DATA, at * RIG_LENGTH));
	rig.snapshot.drop_level = 1;
	load(NULL, NULL, &u);
	o = owner(u, 256);
	assert_true(o.referenced.extents < RIG_EXTENTS - at && o.referenced.extents > 0);
	assert_true(o.referenced.blocks < whole);
	assert_int_equal(owner(u, 5).referenced.blocks, rig.blocks_5);
	/* A leaf holds about 50 extents. */
	leaves = (size_t)(o.referenced.extents + 49) / 50;
	assert_true(o.referenced.blocks > leaves && o.referenced.blocks <= leaves + 5);
	/* Blocks on the path are shared with tree 5, and those before the key belong to tree 5 alone. */
	assert_int_equal(owner(u, 5).exclusive.blocks, whole - o.referenced.blocks);
	btrkit_usage_free(u);
}

static void orphans_are_counted(void **state)
{
	struct btrkit_usage *u;

	(void)state;
	rig_begin(&rig);
	load(NULL, NULL, &u);
	assert_int_equal(owner(u, 5).orphans, 1);
	assert_int_equal(owner(u, 256).orphans, 1);
	assert_int_equal(owner(u, 257).orphans, 0);
	assert_int_equal(owner(u, 0).orphans, 0);
	btrkit_usage_free(u);
}

static void sets_have_a_budget(void **state)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;

	(void)state;
	opts.set_memory = 300;
	rig_begin(&rig);
	rig_finish(&rig);
	assert_int_equal(rig_load(&rig, &opts, NULL, &u, &err), -ENOMEM);
	assert_non_null(strstr(err.message, "sets of owners"));
}

static int stop(void *ctx, uint64_t done, uint64_t total)
{
	unsigned *calls = ctx;

	assert_true(done <= total);
	return ++*calls == 2 ? -ECANCELED : 0;
}

static void caller_may_end_it(void **state)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage *u;
	unsigned calls = 0;

	(void)state;
	opts.progress = stop;
	opts.progress_ctx = &calls;
	rig_begin(&rig);
	rig_finish(&rig);
	assert_int_equal(rig_load(&rig, &opts, NULL, &u, &err), -ECANCELED);
	assert_int_equal(calls, 2);
	opts.flags = 1;
	rig_begin(&rig);
	rig_finish(&rig);
	assert_int_equal(rig_load(&rig, &opts, NULL, &u, &err), -EINVAL);
}

static void wrong_arguments(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage_space space;
	const uint32_t none = 4;
	struct btrkit_usage *u;
	size_t i;

	(void)state;
	rig_begin(&rig);
	load(NULL, NULL, &u);
	assert_int_equal(btrkit_usage_freed(u, &none, 1, &space, &err), -EINVAL);
	assert_int_equal(btrkit_usage_find(u, 300, &i), -ENOENT);
	assert_int_equal(btrkit_usage_freed(u, NULL, 0, &space, &err), 0);
	assert_int_equal(space.data + space.metadata, 0);
	btrkit_usage_free(u);
	btrkit_usage_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_right),
		cmocka_unit_test(matrix_and_sets),
		cmocka_unit_test(each_extent_and_block),
		cmocka_unit_test(missing_items_are_taken_in),
		cmocka_unit_test(extent_tree_is_damaged),
		cmocka_unit_test(one_copy_is_enough),
		cmocka_unit_test(leaf_is_lost),
		cmocka_unit_test(stale_block_is_refused),
		cmocka_unit_test(another_leaf_is_told),
		cmocka_unit_test(trees_are_believed),
		cmocka_unit_test(impossible_extents_are_told),
		cmocka_unit_test(data_that_is_none),
		cmocka_unit_test(dropped_subvolume),
		cmocka_unit_test(orphans_are_counted),
		cmocka_unit_test(sets_have_a_budget),
		cmocka_unit_test(caller_may_end_it),
		cmocka_unit_test(wrong_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
