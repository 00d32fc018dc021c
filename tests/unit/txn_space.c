// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a transaction asks of space: data at a given address, and groups that become read-only. */
#include "tests/unit/unit.h"

#include "lib/format/items/extent.h"
#include "lib/reserve/reserve.h"
#include "tests/unit/written.h"

#define MIB (1ull << 20)
#define SECTOR 4096u

struct world {
	struct written bytes;
	struct btrkit_fs *fs;
	struct btrkit_txn *txn;
};

static void create(struct world *w, uint64_t size)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;

	o.metadata = BTRKIT_PROFILE_SINGLE;
	written_make(&w->bytes, &o, size);
	w->fs = written_open(&w->bytes, BTRKIT_OPEN_WRITE);
	w->txn = written_start(w->fs);
}

static void destroy(struct world *w)
{
	btrkit_fs_close(w->fs);
	written_destroy(&w->bytes);
}

static struct space_group *group_of(struct world *w, uint64_t type)
{
	for (size_t i = 0; i < space_num_groups(w->txn->space); i++) {
		struct space_group *g = space_group_at(w->txn->space, i);

		if (g->item.flags & type && !g->read_only)
			return g;
	}
	return NULL;
}

static void change(struct btrkit_txn *txn, const struct range *r, int32_t add)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct extent_change c = {
		.bytenr = r->start,
		.num_bytes = r->length,
		.data = true,
		.ref = { .type = KEY_EXTENT_DATA_REF, .root = OID_FS_TREE, .objectid = 257, .offset = r->start },
		.add = add,
	};

	written_check(txn_change_data_ref(txn, &c, &err), &err);
}

/* Both the extent tree and the free space tree on the device must say that a range is in use. */
static void expect_used(struct written *bytes, const struct range *r)
{
	static const enum space_source from[] = { SPACE_FROM_TREE, SPACE_FROM_EXTENTS };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = written_open(bytes, 0);
	struct space_group *g;
	struct space *s;

	for (unsigned i = 0; i < ARRAY_SIZE(from); i++) {
		written_check(space_create(fs, &s, &err), &err);
		g = space_group_of(s, r->start);
		written_check(space_load(s, g, from[i], &err), &err);
		assert_false(space_group_touches(g, r));
		space_destroy(s);
	}
	btrkit_fs_close(fs);
}

/* Such an extent is in the extent tree after the commit, is not allocated again, and can be freed. */
static void data_gets_the_given_address(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range r, other;
	struct world w;

	(void)state;
	create(&w, 400 * MIB);
	r = (struct range){ group_of(&w, BG_DATA)->item.start + MIB, 64 * SECTOR };
	written_check(txn_alloc_data_exact(w.txn, &r, &err), &err);
	change(w.txn, &r, 1);
	written_commit(w.txn);
	expect_used(&w.bytes, &r);

	w.txn = written_start(w.fs);
	assert_int_equal(txn_alloc_data_exact(w.txn, &r, &err), -EBUSY);
	assert_true(err.places & BTRKIT_AT_LOGICAL && err.logical == r.start);
	/* One without a reference is free again after the commit. */
	other = (struct range){ range_end(&r) + MIB, SECTOR };
	written_check(txn_alloc_data_exact(w.txn, &other, &err), &err);
	change(w.txn, &r, -1);
	assert_int_equal(txn_alloc_data_exact(w.txn, &r, &err), -EBUSY);
	written_commit(w.txn);
	written_verify(&w.bytes);

	w.txn = written_start(w.fs);
	written_check(txn_alloc_data_exact(w.txn, &r, &err), &err);
	written_check(txn_alloc_data_exact(w.txn, &other, &err), &err);
	other.start = group_of(&w, BG_METADATA)->item.start + MIB;
	assert_int_equal(txn_alloc_data_exact(w.txn, &other, &err), -EUCLEAN);
	btrkit_txn_abort(w.txn);
	destroy(&w);
}

/* A commit finds its blocks elsewhere, in chunks that are made for it as long as there is space. */
static void blocks_go_elsewhere(void **state)
{
	static const uint64_t types[] = { BG_METADATA, BG_SYSTEM };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		struct space_group *old, *g;
		uint64_t n, used;
		struct world w;

		create(&w, 400 * MIB);
		old = group_of(&w, types[i]);
		used = old->item.used;
		written_check(txn_inc_ro(w.txn, old, &err), &err);
		g = group_of(&w, types[i]);
		assert_non_null(g);
		assert_int_equal(space_count(w.txn->space, types[i], w.fs->geometry.nodesize, 8, &n, NULL), 0);
		assert_int_equal(n, 8);
		written_commit(w.txn);
		written_verify(&w.bytes);
		/* Everything that the commit wrote is in the new one. */
		assert_true(old->item.used < used && g->item.used);
		/* Until no device has room: then the group stays writable, and the transaction goes on. */
		w.txn = written_start(w.fs);
		while ((g = group_of(&w, types[i])) && !txn_inc_ro(w.txn, g, &err))
			;
		assert_int_equal(err.err, -ENOSPC);
		assert_int_equal(g->read_only, 0);
		assert_int_equal(space_count(w.txn->space, types[i], w.fs->geometry.nodesize, 4, &n, NULL), 0);
		assert_int_equal(n, 4);
		written_commit(w.txn);
		written_verify(&w.bytes);
		destroy(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_gets_the_given_address),
		cmocka_unit_test(blocks_go_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
