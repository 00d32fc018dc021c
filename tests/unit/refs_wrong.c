// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes of references that contradict the extent tree: each is reported with its location before anything is written.
 */
#include "tests/unit/unit.h"

#include "tests/unit/refs_bench.h"

/* Changes that contradict the extent tree. */
static void contradictions_are_told(void **state)
{
	const struct {
		struct extent_ref ref;
		uint64_t length; /* 0: the length of the extent */
		int add;
		const char *word;
	} rows[] = {
		{ data_ref(5, 257, 0), 0, -2, "dropped more often than its count" },
		{ data_ref(5, 258, 0), 0, -1, "to be dropped does not exist" },
		{ data_ref(6, 257, 0), 0, -1, "to be dropped does not exist" },
		{ shared_ref(SECTOR), 0, -1, "to be dropped does not exist" },
		{ data_ref(5, 257, 0), 0, INT32_MAX, NULL },
		{ data_ref(5, 257, 0), 2 * SECTOR, -1, "extent item of data" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		const struct extent_ref first = data_ref(5, 257, 0);
		struct bench b;
		struct range r;
		int ret;

		begin(&b, 16384);
		r = alloc(&b);
		must_change(&b, &r, &first, 1);
		run(&b);
		if (rows[i].length)
			r.length = rows[i].length;
		must_change(&b, &r, &rows[i].ref, rows[i].add);
		ret = txn_run_refs(b.txn, &err);
		assert_int_equal(ret, rows[i].word ? -EUCLEAN : 0);
		if (ret) {
			assert_non_null(strstr(err.message, rows[i].word));
			assert_int_equal(err.tree, OID_EXTENT_TREE);
			assert_int_equal(err.key.objectid, r.start);
			assert_int_equal(btrkit_txn_commit(b.txn, NULL, &err), -EUCLEAN);
			assert_non_null(strstr(err.message, rows[i].word));
		}
		end(&b);
	}
}

static void unknown_extents_are_told(void **state)
{
	const struct extent_ref tree = { .type = KEY_TREE_BLOCK_REF, .root = OID_CSUM_TREE };
	const struct extent_ref ref = data_ref(5, 257, 0);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct range r;
	struct bench b;

	(void)state;
	begin(&b, 16384);
	r = alloc(&b);
	must_change(&b, &r, &ref, 1);
	/* In the same transaction, the extent is already known with another length. */
	r.length += SECTOR;
	assert_int_equal(change(&b, &r, &ref, 1, &err), -EUCLEAN);
	change_block(&b, r.start, &tree, 1, -EUCLEAN);
	assert_int_equal(refs_new_extent(b.txn->refs, &r, true, 0, NULL, &err), -EUCLEAN);
	btrkit_txn_abort(b.txn);
	/* The extent tree does not have this extent. */
	b.txn = written_start(b.fs);
	must_change(&b, &r, &ref, -1);
	assert_int_equal(txn_run_refs(b.txn, &err), -EUCLEAN);
	assert_non_null(strstr(err.message, "has no extent item"));
	btrkit_txn_abort(b.txn);
	/* Each tree can refer to a tree block only once. */
	written_check(fs_find_root(b.fs, OID_CSUM_TREE, &root, NULL, &err), &err);
	b.txn = written_start(b.fs);
	change_block(&b, root.bytenr, &tree, 1, 0);
	assert_int_equal(txn_run_refs(b.txn, &err), -EUCLEAN);
	assert_non_null(strstr(err.message, "is too large"));
	end(&b);
}

/*
 * If space was taken for free although it is in use, wherever that came from, the commit must notice before it writes.
 */
static void what_is_in_use_is_not_free(void **state)
{
	const struct extent_ref ref = data_ref(5, 257, 0);
	/*
	 * A new extent, relative to an existing one of four sectors: before it, after it, across its ends, inside,
	 * exactly, around.
	 */
	static const struct {
		int from, sectors;
		bool in_use;
	} rows[] = { { -2, 2, false }, { 4, 2, false }, { -1, 2, true }, { 3, 2, true },
		     { 1, 1, true },   { 0, 4, true },	{ -1, 6, true } };

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const bool keyed = i % 2;
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct bench b;
		struct range r, fresh;
		int ret;

		begin(&b, 4096);
		written_check(space_alloc(b.txn->space, BG_DATA, 8 * SECTOR, 8 * SECTOR, SECTOR, &r, &err), &err);
		r = (struct range){ r.start + 2 * SECTOR, 4 * SECTOR };
		fresh = (struct range){ r.start + (uint64_t)(rows[i / 2].from * (int)SECTOR),
					(uint64_t)rows[i / 2].sectors * SECTOR };
		written_check(refs_new_extent(b.txn->refs, &r, true, 0, NULL, &err), &err);
		for (unsigned j = 0; j < (keyed ? 20 : 1); j++)
			must_change(&b, &r,
				    &(struct extent_ref){ .type = KEY_EXTENT_DATA_REF, .root = 5, .objectid = 300 + j },
				    1);
		run(&b);
		written_check(refs_new_extent(b.txn->refs, &fresh, true, 0, NULL, &err), &err);
		must_change(&b, &fresh, &ref, 1);
		ret = txn_run_refs(b.txn, &err);
		assert_int_equal(ret, rows[i / 2].in_use ? -EUCLEAN : 0);
		if (ret)
			assert_non_null(strstr(err.message, "is in use"));
		end(&b);
	}
}

/* Data is written long before the extent tree is changed, so its space must be verified to be free by then. */
static void what_is_in_use_is_not_given(void **state)
{
	const struct extent_ref ref = data_ref(5, 257, 0);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_key from, to;
	struct edit_tree *t;
	struct range r, got;
	struct bench b;
	uint64_t left;

	(void)state;
	begin(&b, 16384);
	r = alloc(&b);
	must_change(&b, &r, &ref, 1);
	left = space_group_of(b.txn->space, r.start)->item.length - r.length;
	written_commit(b.txn);
	/* Make the free space tree claim the same amount of space elsewhere. */
	b.txn = written_start(b.fs);
	written_check(txn_tree(b.txn, OID_FREE_SPACE_TREE, &t, &err), &err);
	from = KEY(range_end(&r), KEY_FREE_SPACE_EXTENT, left);
	to = KEY(r.start, KEY_FREE_SPACE_EXTENT, left);
	written_check(edit_rekey(t, &from, &to, &err), &err);
	written_commit(b.txn);
	btrkit_fs_close(b.fs);
	b.fs = written_open(&b.w, BTRKIT_OPEN_WRITE);
	b.txn = written_start(b.fs);
	assert_int_equal(txn_alloc_data(b.txn, SECTOR, SECTOR, &got, &err), -EUCLEAN);
	assert_non_null(strstr(err.message, "is in use"));
	assert_int_equal(err.tree, OID_EXTENT_TREE);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contradictions_are_told),
		cmocka_unit_test(unknown_extents_are_told),
		cmocka_unit_test(what_is_in_use_is_not_free),
		cmocka_unit_test(what_is_in_use_is_not_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
