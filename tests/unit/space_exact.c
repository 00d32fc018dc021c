// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which space is allocated when the caller has a say: read-only groups, and ranges with a given address. */
#include "tests/unit/unit.h"

#include <btrkit/mkfs.h>

#include "lib/format/super.h"
#include "lib/space/space_impl.h"
#include "tests/unit/memory.h"

#define SECTOR 4096u
#define MIB (1ull << 20)
#define DEVICES 3u

struct world {
	struct btrkit_fs *fs;
	struct space *space;
	struct space_group *data; /* the first group of data */
};

static void create(struct world *w, enum btrkit_profile data, enum btrkit_profile metadata)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io[DEVICES];

	for (unsigned i = 0; i < DEVICES; i++)
		assert_int_equal(btrkit_io_memory(300 * MIB, &io[i], NULL), 0);
	o.data = data;
	o.metadata = metadata;
	if (btrkit_mkfs(io, DEVICES, &o, NULL, &err) || btrkit_fs_open(io, DEVICES, NULL, &w->fs, &err) ||
	    space_create(w->fs, &w->space, &err))
		fail_msg("%s", err.message);
	assert_int_equal(space_begin(w->space, NULL, NULL), 0);
	w->data = NULL;
	for (size_t i = 0; !w->data; i++)
		if (space_group_at(w->space, i)->item.flags & BG_DATA)
			w->data = space_group_at(w->space, i);
}

static void destroy(struct world *w)
{
	space_destroy(w->space);
	btrkit_fs_close(w->fs);
}

static int alloc(struct world *w, uint64_t type, struct range *r)
{
	return space_alloc(w->space, type, 4 * SECTOR, 4 * SECTOR, 4 * SECTOR, r, NULL);
}

static uint64_t pieces(struct world *w, uint64_t type)
{
	uint64_t n;

	assert_int_equal(space_count(w->space, type, 4 * SECTOR, UINT64_MAX, &n, NULL), 0);
	return n;
}

static void freeze(struct world *w, uint64_t type, bool thaw)
{
	for (size_t i = 0; i < space_num_groups(w->space); i++) {
		struct space_group *g = space_group_at(w->space, i);

		if (!(g->item.flags & type))
			continue;
		if (thaw)
			space_dec_ro(g);
		else
			space_inc_ro(g);
	}
}

/* Nothing is allocated in read-only groups, nothing of them counts, and each call must be taken back. */
static void read_only_groups_are_left_alone(void **state)
{
	static const uint64_t types[] = { BG_DATA, BG_METADATA, BG_SYSTEM };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		const uint64_t type = types[i];
		struct range r, more;
		struct world w;
		uint64_t n;

		create(&w, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_RAID1);
		assert_int_equal(alloc(&w, type, &r), 0);
		n = pieces(&w, type);
		assert_true(n > 3 && space_free_bytes(w.space, type) > n * 4 * SECTOR - 1);
		freeze(&w, type, false);
		freeze(&w, type, false);
		assert_int_equal(alloc(&w, type, &more), -ENOSPC);
		assert_int_equal(pieces(&w, type), 0);
		assert_int_equal(space_free_bytes(w.space, type), 0);
		freeze(&w, type, true);
		assert_int_equal(alloc(&w, type, &more), -ENOSPC);
		/* What is there can still be used and freed, which helps only later. */
		assert_int_equal(space_enter(w.space, &r, NULL), 0);
		assert_int_equal(space_leave(w.space, &r, NULL), 0);
		assert_int_equal(space_pinned(w.space, type), 0);
		space_committed(w.space);
		assert_int_equal(space_begin(w.space, NULL, NULL), 0);
		assert_int_equal(alloc(&w, type, &more), -ENOSPC);
		space_aborted(w.space);
		assert_int_equal(space_begin(w.space, NULL, NULL), 0);
		assert_int_equal(alloc(&w, type, &more), -ENOSPC);
		freeze(&w, type, true);
		assert_int_equal(pieces(&w, type), n + 1);
		assert_int_equal(alloc(&w, type, &more), 0);
		destroy(&w);
	}
}

/* A range is allocated as a whole, at its address, or not at all. */
static void a_given_range_is_allocated(void **state)
{
	struct range r, in;
	struct world w;
	uint64_t before;

	(void)state;
	create(&w, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_RAID1);
	r = (struct range){ w.data->item.start + 100 * SECTOR, 8 * SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	before = free_map_bytes(w.data->free);
	/* Any overlap, at either end or within, fails and changes nothing. */
	for (unsigned i = 92; i < 108; i++) {
		in = (struct range){ w.data->item.start + i * SECTOR, 9 * SECTOR };
		assert_int_equal(space_alloc_exact(w.space, &in, NULL), -EBUSY);
		assert_int_equal(free_map_bytes(w.data->free), before);
	}
	in = (struct range){ w.data->item.start + 91 * SECTOR, 9 * SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &in, NULL), 0);
	in.start = range_end(&r);
	assert_int_equal(space_alloc_exact(w.space, &in, NULL), 0);
	assert_int_equal(free_map_bytes(w.data->free), before - 18 * SECTOR);
	/* Used and pinned space is not free either, but after the commit it is. */
	assert_int_equal(space_enter(w.space, &r, NULL), 0);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EBUSY);
	assert_int_equal(space_leave(w.space, &r, NULL), 0);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EBUSY);
	space_committed(w.space);
	assert_int_equal(space_begin(w.space, NULL, NULL), 0);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	/* To keep a range until the commit, give it back: it is pinned. */
	assert_int_equal(space_unalloc(w.space, &r, NULL), 0);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EBUSY);
	/* An abort makes it free at once. */
	space_aborted(w.space);
	assert_int_equal(space_begin(w.space, NULL, NULL), 0);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	destroy(&w);
}

static void wrong_ranges_are_refused(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const struct space_group *system;
	struct range r;
	struct world w;

	(void)state;
	create(&w, BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_RAID1);
	r = (struct range){ w.data->item.start + 1, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EINVAL);
	r = (struct range){ w.data->item.start, SECTOR + 1 };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EINVAL);
	r.length = 0;
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EINVAL);
	r.length = w.data->item.length + SECTOR;
	assert_int_equal(space_alloc_exact(w.space, &r, &err), -EUCLEAN);
	assert_true(err.places & BTRKIT_AT_LOGICAL && err.logical == r.start);
	r = (struct range){ 1ull << 50, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EUCLEAN);
	space_inc_ro(w.data);
	r = (struct range){ w.data->item.start, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, &err), -EBUSY);
	assert_non_null(strstr(err.message, "read-only"));
	space_dec_ro(w.data);
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	/* What the last commit uses: the superblock says where the chunk tree is. */
	r = (struct range){ w.fs->chunk_tree.bytenr, w.fs->geometry.nodesize };
	system = space_group_of(w.space, r.start);
	assert_int_equal(space_alloc_exact(w.space, &r, &err), -EBUSY);
	/* If the map is wrong, the extent tree of the last commit still says so. */
	assert_int_equal(free_map_add(system->free, &r, NULL), 0);
	if (!system->by_extents)
		assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EUCLEAN);
	destroy(&w);
}

/*
 * With parity, a range may be anywhere, because nothing is written there. What is left of its full stripes is not
 * allocated before the commit, and it cannot be in a full stripe that the transaction has begun to fill.
 */
static void exact_ranges_in_full_stripes(void **state)
{
	struct range r, first;
	struct world w;
	uint64_t full_stripe, base;

	(void)state;
	UNIT_NEEDS(UNIT_PARITY);
	create(&w, BTRKIT_PROFILE_RAID5, BTRKIT_PROFILE_RAID1);
	full_stripe = w.data->full_stripe;
	base = w.data->item.start;
	assert_int_equal(full_stripe, 2 * 65536);
	/* From the end of the second full stripe into the third: both are closed. */
	r = (struct range){ base + 2 * full_stripe - SECTOR, 2 * SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	assert_true(free_map_touches(w.data->free, &(struct range){ base, full_stripe }));
	assert_false(free_map_touches(w.data->free, &(struct range){ base + full_stripe, 2 * full_stripe }));
	assert_true(free_map_touches(w.data->free, &(struct range){ base + 3 * full_stripe, full_stripe }));
	/* The rest of those can still be had by its address, also across the border to a free one. */
	r = (struct range){ base + 3 * full_stripe - SECTOR, 2 * SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	assert_false(free_map_touches(w.data->free, &(struct range){ base + full_stripe, 3 * full_stripe }));
	/* This transaction fills a full stripe: its writes would destroy what is there. */
	assert_int_equal(space_alloc(w.space, BG_DATA, SECTOR, SECTOR, SECTOR, &first, NULL), 0);
	assert_int_equal(first.start, base);
	r = (struct range){ base + 4 * SECTOR, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EBUSY);
	r = (struct range){ base + 4 * full_stripe, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), 0);
	/* That is still so when another range has been allocated. */
	r = (struct range){ base + 4 * SECTOR, SECTOR };
	assert_int_equal(space_alloc_exact(w.space, &r, NULL), -EBUSY);
	assert_int_equal(space_alloc(w.space, BG_DATA, SECTOR, SECTOR, SECTOR, &first, NULL), 0);
	assert_int_equal(first.start, base + SECTOR);
	destroy(&w);
}

/* Each allocation of memory fails in turn. After an abort, all is free as before. */
static void memory_runs_out(void **state)
{
	const enum btrkit_profile data = UNIT_PARITY ? BTRKIT_PROFILE_RAID5 : BTRKIT_PROFILE_SINGLE;
	unsigned failed = 0;
	uint64_t before = 0;
	struct range r;
	struct world w;
	int ret = -1;

	(void)state;
	create(&w, data, BTRKIT_PROFILE_RAID1);
	while (ret) {
		r = (struct range){ w.data->item.start + MIB + SECTOR, MIB };
		memory_count(failed, false);
		ret = space_alloc_exact(w.space, &r, NULL);
		memory_end();
		assert_true(!ret || ret == -ENOMEM);
		failed += ret != 0;
		space_aborted(w.space);
		assert_int_equal(space_begin(w.space, NULL, NULL), 0);
		assert_int_equal(space_load(w.space, w.data, SPACE_FROM_ANY, NULL), 0);
		before = before ? before : space_group_free(w.data);
		assert_int_equal(space_group_free(w.data), before);
		/* The next attempt loads the map, too. */
		space_touch(w.space, w.data);
		space_aborted(w.space);
		assert_int_equal(space_begin(w.space, NULL, NULL), 0);
	}
	printf("%u allocations failed in turn\n", failed);
	assert_true(failed > 1);
	destroy(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_only_groups_are_left_alone), cmocka_unit_test(a_given_range_is_allocated),
		cmocka_unit_test(wrong_ranges_are_refused),	   cmocka_unit_test(exact_ranges_in_full_stripes),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
