// SPDX-License-Identifier: LGPL-2.1-or-later
/* Delayed references, compared with a model: the contents of the extent tree after each batch, in whatever form. */
#include "tests/unit/unit.h"

#include "tests/unit/refs_bench.h"

#define REFS 40u

struct counted {
	struct extent_ref ref;
	uint32_t count;
};

/* The extent must have each reference of the model, once and with its count, and no others. */
static void compare(struct bench *b, uint64_t bytenr, const struct counted *model, size_t n)
{
	static struct found f;
	uint64_t sum = 0;
	size_t kinds = 0;

	read_extent(b, bytenr, &f);
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		sum += model[i].count;
		kinds += model[i].count > 0;
		while (at < f.n && !ref_equal(&f.refs[at], &model[i].ref))
			at++;
		assert_int_equal(at<f.n, model[i].count> 0);
		if (at < f.n)
			assert_int_equal(f.refs[at].count, model[i].count);
	}
	assert_int_equal(f.n, kinds);
	assert_int_equal(f.exists, sum > 0);
	if (sum)
		assert_int_equal(f.count, sum);
}

static void data_references_are_as_counted(void **state)
{
	static struct counted model[REFS];
	struct bench b;
	size_t most = 0;

	(void)state;
	begin(&b, 4096);
	for (unsigned trial = 0; trial < 60; trial++) {
		const struct range r = alloc(&b);
		static struct found f;

		seed = trial;
		for (unsigned i = 0; i < REFS; i++) {
			model[i].ref = i % 3 ? data_ref(OID_FIRST_FREE + i % 5, 257 + i, SECTOR * i) :
					       shared_ref(SECTOR * (1000ull + i));
			model[i].count = 0;
		}
		/* Add the first reference before any batch, or the extent would be freed. */
		must_change(&b, &r, &model[0].ref, 1);
		model[0].count = 1;
		for (unsigned step = 0; step < 300; step++) {
			struct counted *m = &model[rnd(trial % 2 ? REFS : 6)];
			int add = (int)rnd(3) - (trial % 3 ? 0 : 1);

			if (add < 0)
				add = -(int)m->count;
			/* Always keep one, until the end. */
			if (add < 0 && m == model)
				add++;
			must_change(&b, &r, &m->ref, add);
			m->count += (uint32_t)add;
			if (!rnd(20)) {
				run(&b);
				compare(&b, r.start, model, REFS);
				read_extent(&b, r.start, &f);
				most = f.keyed > most ? f.keyed : most;
			}
		}
		for (unsigned i = 0; i < REFS; i++) {
			if (model[i].count)
				must_change(&b, &r, &model[i].ref, -(int)model[i].count);
			model[i].count = 0;
			if (!rnd(8)) {
				run(&b);
				compare(&b, r.start, model, REFS);
			}
		}
		run(&b);
		compare(&b, r.start, model, REFS);
	}
	assert_true(most > 10);
	end(&b);
}

/* Finds two references with the same hash; among this many there are some. */
static void find_collision(struct extent_ref *a, struct extent_ref *b)
{
	enum {
		TRIES = 1 << 19,
		SLOTS = 1 << 20
	};
	static struct extent_ref refs[TRIES];
	uint32_t *slots = calloc(SLOTS, sizeof(*slots));

	assert_non_null(slots);
	seed = 1;
	for (uint32_t i = 1; i < TRIES; i++) {
		uint64_t hash;
		uint32_t at;

		refs[i] = data_ref(5, 256 + rnd(UINT32_MAX), (uint64_t)SECTOR * rnd(UINT32_MAX));
		hash = extent_ref_sequence(&refs[i]);
		for (at = (uint32_t)hash % SLOTS; slots[at]; at = (at + 1) % SLOTS) {
			if (extent_ref_sequence(&refs[slots[at]]) == hash) {
				*a = refs[slots[at]];
				*b = refs[i];
				free(slots);
				return;
			}
		}
		slots[at] = i;
	}
	fail();
}

static void references_of_one_hash(void **state)
{
	struct counted model[10];
	struct bench b;
	struct range r;
	struct extent_ref x, y;

	(void)state;
	find_collision(&x, &y);
	for (unsigned keyed = 0; keyed < 2; keyed++) {
		begin(&b, 4096);
		r = alloc(&b);
		for (unsigned i = 0; i < ARRAY_SIZE(model); i++)
			model[i] = (struct counted){ data_ref(5, 300000 + i, 0), 0 };
		model[0].ref = x;
		model[1].ref = y;
		/* Other references fill the item, so that these two get keyed items. */
		for (unsigned i = 2; i < ARRAY_SIZE(model); i++) {
			must_change(&b, &r, &model[i].ref, 1);
			model[i].count = 1;
			if (!keyed)
				break;
		}
		run(&b);
		for (unsigned step = 0; step < 64; step++) {
			struct counted *m = &model[step >> (step % 3) & 1];
			const int add = m->count ? -1 : 1;

			must_change(&b, &r, &m->ref, add);
			m->count += (uint32_t)add;
			run(&b);
			compare(&b, r.start, model, ARRAY_SIZE(model));
		}
		end(&b);
	}
}

static void references_to_tree_blocks(void **state)
{
	struct extent_ref tree = { .type = KEY_TREE_BLOCK_REF, .root = OID_FS_TREE };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct counted model[40];
	struct tree_root root;
	uint64_t count, flags;
	struct bench b;
	static struct found f;

	(void)state;
	begin(&b, 4096);
	written_check(fs_find_root(b.fs, OID_FS_TREE, &root, NULL, &err), &err);
	model[0] = (struct counted){ tree, 1 };
	written_check(refs_lookup(b.txn->refs, root.bytenr, 0, &count, &flags, &err), &err);
	assert_int_equal(count, 1);
	assert_int_equal(flags, EXTENT_FLAG_TREE_BLOCK);
	for (unsigned i = 1; i < ARRAY_SIZE(model); i++) {
		model[i].ref = (struct extent_ref){ .type = i % 2 ? KEY_SHARED_BLOCK_REF : KEY_TREE_BLOCK_REF,
						    .parent = i % 2 ? SECTOR * i : 0,
						    .root = i % 2 ? 0 : 256 + i };
		model[i].count = 1;
		change_block(&b, root.bytenr, &model[i].ref, 1, 0);
		written_check(refs_lookup(b.txn->refs, root.bytenr, 0, &count, &flags, &err), &err);
		assert_int_equal(count, i + 1);
		if (i == 20)
			written_check(refs_set_full_backref(b.txn->refs, root.bytenr, 0, &err), &err);
		assert_int_equal(!!(flags & EXTENT_FLAG_FULL_BACKREF), i > 20);
		if (i % 7 == 0)
			run(&b);
	}
	run(&b);
	compare(&b, root.bytenr, model, ARRAY_SIZE(model));
	read_extent(&b, root.bytenr, &f);
	assert_true(f.keyed > 10 && f.flags & EXTENT_FLAG_FULL_BACKREF);
	for (unsigned i = 0; i < ARRAY_SIZE(model); i++) {
		change_block(&b, root.bytenr, &model[i].ref, -1, 0);
		model[i].count = 0;
		run(&b);
		compare(&b, root.bytenr, model, ARRAY_SIZE(model));
	}
	assert_int_equal(refs_lookup(b.txn->refs, root.bytenr, 0, &count, &flags, &err), -EUCLEAN);
	end(&b);
}

static void a_new_tree_block_may_be_shared_at_once(void **state)
{
	const struct extent_ref tree = { .type = KEY_TREE_BLOCK_REF, .root = OID_FS_TREE };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t count, flags;
	static struct found f;
	struct range r = { 0 };
	struct bench b;

	(void)state;
	begin(&b, 4096);
	written_check(space_alloc(b.txn->space, BG_METADATA, 4096, 4096, 4096, &r, &err), &err);
	written_check(refs_new_extent(b.txn->refs, &r, false, 0, &KEY(1, 2, 3), &err), &err);
	change_block(&b, r.start, &tree, 1, 0);
	written_check(refs_set_full_backref(b.txn->refs, r.start, 0, &err), &err);
	written_check(refs_lookup(b.txn->refs, r.start, 0, &count, &flags, &err), &err);
	assert_int_equal(count, 1);
	assert_int_equal(flags, EXTENT_FLAG_TREE_BLOCK | EXTENT_FLAG_FULL_BACKREF);
	run(&b);
	read_extent(&b, r.start, &f);
	assert_int_equal(f.flags, EXTENT_FLAG_TREE_BLOCK | EXTENT_FLAG_FULL_BACKREF);
	end(&b);
}

/*
 * An extent that is allocated and freed in the same transaction never gets into the extent tree, and is not allocated
 * again before the commit.
 */
static void what_came_and_went_leaves_nothing(void **state)
{
	const struct extent_ref ref = data_ref(5, 257, 0);
	struct btrkit_write_stats before, after;
	struct bench b;
	static struct found f;
	struct range r[3];

	(void)state;
	begin(&b, 16384);
	btrkit_fs_get_write_stats(b.fs, &before);
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		r[i] = alloc(&b);
	must_change(&b, &r[0], &ref, 1);
	must_change(&b, &r[0], &ref, 2);
	must_change(&b, &r[0], &ref, -3);
	must_change(&b, &r[1], &ref, 1);
	assert_int_equal(refs_pending(b.txn->refs), 2);
	run(&b);
	must_change(&b, &r[1], &ref, -1);
	run(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
		read_extent(&b, r[i].start, &f);
		assert_false(f.exists);
	}
	btrkit_fs_get_write_stats(b.fs, &after);
	assert_int_equal(after.refs_netted - before.refs_netted, 3);
	assert_true(after.refs_queued - before.refs_queued > 5);
	assert_true(after.ref_batches - before.ref_batches >= 2);
	for (unsigned i = 0; i < 100; i++) {
		const struct range other = alloc(&b);

		for (unsigned j = 0; j < ARRAY_SIZE(r); j++)
			assert_true(range_end(&other) <= r[j].start || range_end(&r[j]) <= other.start);
	}
	written_commit(b.txn);
	/* The third range was never used, and neither were the other hundred. */
	b.txn = written_start(b.fs);
	assert_true(alloc(&b).length);
	end(&b);
}

/*
 * Simple quotas add an inline item with the owner of an extent: it does not count as a reference, and must not get in
 * the way.
 */
static void owners_are_no_references(void **state)
{
	const struct extent_ref owner = { .type = KEY_EXTENT_OWNER_REF, .root = OID_FS_TREE };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct extent_ref refs[3];
	uint8_t bytes[200], *data;
	static struct found f;
	struct edit_tree *t = NULL;
	struct btrkit_key key;
	uint32_t size;
	struct bench b;
	struct range r;

	(void)state;
	begin(&b, 16384);
	r = alloc(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(refs); i++)
		refs[i] = data_ref(OID_FS_TREE, 257 + i, 0);
	must_change(&b, &r, &refs[0], 1);
	run(&b);
	key = KEY(r.start, KEY_EXTENT_ITEM, r.length);
	written_check(txn_tree(b.txn, OID_EXTENT_TREE, &t, &err), &err);
	written_check(edit_bytes(t, &key, &data, &size, &err), &err);
	memcpy(bytes, data, sizeof(struct disk_extent_item));
	extent_inline_ref_put(&owner, bytes + sizeof(struct disk_extent_item));
	memcpy(bytes + sizeof(struct disk_extent_item) + extent_inline_ref_size(owner.type),
	       data + sizeof(struct disk_extent_item), size - sizeof(struct disk_extent_item));
	size += (uint32_t)extent_inline_ref_size(owner.type);
	written_check(edit_replace(t, &key, bytes, size, &err), &err);
	must_change(&b, &r, &refs[1], 1);
	must_change(&b, &r, &refs[2], 3);
	run(&b);
	read_extent(&b, r.start, &f);
	assert_int_equal(f.n, 4);
	assert_int_equal(f.count, 5);
	assert_true(ref_equal(&f.refs[0], &owner));
	must_change(&b, &r, &refs[0], -1);
	must_change(&b, &r, &refs[1], -1);
	must_change(&b, &r, &refs[2], -3);
	run(&b);
	read_extent(&b, r.start, &f);
	assert_false(f.exists);
	end(&b);
}

/* A filesystem on which skinny metadata was enabled later has both forms. */
static void old_items_are_changed_too(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root uuid, fs_tree;
	static struct found f;
	struct edit_tree *t = NULL;
	struct bench b;

	(void)state;
	o.incompat &= ~(uint64_t)INCOMPAT_SKINNY_METADATA;
	written_make(&b.w, &o, SIZE);
	b.fs = written_open(&b.w, BTRKIT_OPEN_WRITE);
	b.txn = written_start(b.fs);
	b.txn->super.incompat_flags = le64_put(le64_get(b.txn->super.incompat_flags) | INCOMPAT_SKINNY_METADATA);
	written_commit(b.txn);
	for (unsigned i = 0; i < 3; i++) {
		b.txn = written_start(b.fs);
		written_check(txn_tree(b.txn, OID_FS_TREE, &t, &err), &err);
		written_check(edit_insert(t, &KEY(1000 + i, 99, 0), "x", 1, &err), &err);
		written_commit(b.txn);
	}
	b.txn = written_start(b.fs);
	written_check(fs_find_root(b.fs, OID_CSUM_TREE, &uuid, NULL, &err), &err);
	written_check(fs_find_root(b.fs, OID_FS_TREE, &fs_tree, NULL, &err), &err);
	read_extent(&b, uuid.bytenr, &f);
	assert_int_equal(f.key_type, KEY_EXTENT_ITEM);
	read_extent(&b, fs_tree.bytenr, &f);
	assert_int_equal(f.key_type, KEY_METADATA_ITEM);
	btrkit_fs_close(b.fs);
	written_verify(&b.w);
	written_destroy(&b.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_references_are_as_counted),
		cmocka_unit_test(references_of_one_hash),
		cmocka_unit_test(references_to_tree_blocks),
		cmocka_unit_test(a_new_tree_block_may_be_shared_at_once),
		cmocka_unit_test(what_came_and_went_leaves_nothing),
		cmocka_unit_test(owners_are_no_references),
		cmocka_unit_test(old_items_are_changed_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
