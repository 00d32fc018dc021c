// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocates, use and free space of new filesystems, at random and until it is full, compared with an array of all
 * sectors: nothing is allocated twice, nor anything of a superblock or of the last commit.
 */
#include "tests/unit/unit.h"

#include <btrkit/mkfs.h>

#include "lib/format/items/extent.h"
#include "lib/format/super.h"
#include "lib/space/space.h"
#include "lib/tree/cursor.h"
#include "tests/unit/memory.h"
#include "tests/random.h"

#define SECTOR 4096u
#define MIB (1ull << 20)
#define SIZE (260 * MIB) /* past the second superblock, with more groups after it */
#define SECTORS (8 * SIZE / SECTOR)

enum state {
	OUTSIDE, /* in no group */
	FREE,
	KEPT,	   /* reserved for a superblock */
	ALLOCATED, /* but not in the extent tree */
	USED,
	PINNED,
};

struct world {
	struct btrkit_fs *fs;
	struct space *space;
	uint8_t sectors[SECTORS]; /* enum state */
	uint64_t used;
	unsigned kept; /* ranges reserved for superblocks */
};

static uint64_t seed;

static uint64_t pick(uint64_t below)
{
	random_step(&seed);
	return (seed >> 33) % below;
}

static void set(struct world *w, const struct range *r, enum state from, enum state to)
{
	for (uint64_t at = r->start; at < range_end(r); at += SECTOR) {
		if (w->sectors[at / SECTOR] != from)
			fail_msg("%llu: %u, not %u, on the way to %u", (unsigned long long)at, w->sectors[at / SECTOR],
				 from, to);
		w->sectors[at / SECTOR] = (uint8_t)to;
	}
}

static void read_extents(struct world *w)
{
	struct tree_root root;
	struct cursor c;
	int ret;

	assert_int_equal(fs_find_root(w->fs, OID_EXTENT_TREE, &root, NULL, NULL), 0);
	cursor_init(&c, w->fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(&c, NULL)) {
		const bool tree_block = c.item.key.type == KEY_METADATA_ITEM;

		if (!tree_block && c.item.key.type != KEY_EXTENT_ITEM)
			continue;
		set(w,
		    &(struct range){ c.item.key.objectid,
				     tree_block ? w->fs->geometry.nodesize : c.item.key.offset },
		    FREE, USED);
	}
	assert_int_equal(ret, 1);
	cursor_release(&c);
}

static struct world *create(const struct btrkit_mkfs_options *o)
{
	struct world *w = calloc(1, sizeof(*w));
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct block_group_supers supers;
	struct btrkit_io *io;

	assert_non_null(w);
	assert_int_equal(btrkit_io_memory(SIZE, &io, NULL), 0);
	if (btrkit_mkfs(&io, 1, o, NULL, &err) || btrkit_fs_open(&io, 1, NULL, &w->fs, &err) ||
	    space_create(w->fs, &w->space, &err))
		fail_msg("%s", err.message);
	for (size_t i = 0; i < space_num_groups(w->space); i++) {
		const struct block_group *g = &space_group_at(w->space, i)->item;

		assert_int_equal(block_group_supers(w->fs, g, &supers, NULL), 0);
		assert_true(g->start + g->length <= SECTORS * (uint64_t)SECTOR);
		set(w, &(struct range){ g->start, g->length }, OUTSIDE, FREE);
		for (unsigned k = 0; k < supers.n; k++, w->kept++)
			set(w, &supers.at[k], FREE, KEPT);
		block_group_supers_release(&supers);
		w->used += g->used;
	}
	read_extents(w);
	assert_int_equal(space_begin(w->space, NULL, NULL), 0);
	return w;
}

static void destroy(struct world *w)
{
	space_destroy(w->space);
	btrkit_fs_close(w->fs);
	free(w);
}

static uint64_t count(const struct world *w, enum state state)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SECTORS; i++)
		n += w->sectors[i] == state;
	return n;
}

/* Allocates all space of @type in pieces. @return the number of bytes */
static uint64_t alloc_all(struct world *w, uint64_t type, uint64_t min, uint64_t max, uint64_t align)
{
	const bool fresh = !space_next_touched(w->space, NULL);
	uint64_t bytes = 0, joined = 0, n = 0, end = 0;
	struct range r;
	int ret;

	while (!(ret = space_alloc(w->space, type, min, max, align, &r, NULL))) {
		assert_true(r.length >= min && r.length <= max && !(r.start % align));
		assert_true(space_group_of(w->space, r.start)->item.flags & type);
		set(w, &r, FREE, ALLOCATED);
		bytes += r.length;
		joined += end == r.start;
		end = range_end(&r);
		n++;
	}
	assert_int_equal(ret, -ENOSPC);
	/* Consecutive allocations are contiguous, where space allows. */
	assert_true(!fresh || n < 100 || joined > n * 9 / 10);
	return bytes;
}

/* Every free sector is allocated once, as tree blocks and as data, and no others are. */
static void everything_is_allocated_once(void **state)
{
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
		uint64_t blocks, bytes, max = (1 + pick(50)) * SECTOR;
		struct world *w;

		o.mixed = i >= 6;
		o.nodesize = o.mixed ? 4096 : i % 3 == 0 ? 4096 : i % 3 == 1 ? 16384 : 65536;
		o.data = i & 1 ? BTRKIT_PROFILE_DUP : BTRKIT_PROFILE_SINGLE;
		o.metadata = i & 2 && !o.mixed ? BTRKIT_PROFILE_SINGLE : o.mixed ? o.data : BTRKIT_PROFILE_DUP;
		w = create(&o);
		assert_int_equal(space_bytes_used(w->space), w->used);
		for (unsigned type = 0; type < 2; type++) {
			const uint64_t t = type ? BG_METADATA : BG_SYSTEM;

			assert_int_equal(space_count(w->space, t, o.nodesize, UINT64_MAX, &blocks, NULL), 0);
			assert_true(blocks > 10);
			assert_int_equal(space_count(w->space, t, o.nodesize, 7, &bytes, NULL), 0);
			assert_int_equal(bytes, 7);
			bytes = alloc_all(w, t, o.nodesize, o.nodesize, o.nodesize);
			assert_int_equal(bytes, blocks * o.nodesize);
			assert_int_equal(space_count(w->space, t, o.nodesize, 1, &blocks, NULL), 0);
			assert_int_equal(blocks, 0);
		}
		alloc_all(w, BG_DATA, SECTOR, max, SECTOR);
		alloc_all(w, BG_METADATA, SECTOR, max, SECTOR);
		alloc_all(w, BG_SYSTEM, SECTOR, max, SECTOR);
		assert_int_equal(count(w, FREE), 0);
		assert_int_equal(space_bytes_used(w->space), w->used);
		kept += w->kept;
		destroy(w);
	}
	assert_true(kept >= 4);
}

/* A request for one large piece must find it after many small ones. */
static void large_pieces_are_looked_for(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct range r, hole = { 0 };
	struct space_group *g;
	struct world *w;

	(void)state;
	w = create(&o);
	assert_int_equal(space_alloc(w->space, BG_DATA, SECTOR, SECTOR, SECTOR, &r, NULL), 0);
	g = space_group_of(w->space, r.start);
	assert_true(g->loaded);
	/* Now one sector, eight sectors and five sectors are free, in this order. */
	while (free_map_next(g->free, g->item.start, &hole))
		assert_int_equal(free_map_remove(g->free, &hole, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t lengths[] = { 1, 8, 5 };

		hole = (struct range){ g->item.start + 100ull * SECTOR * i, lengths[i] * SECTOR };
		assert_int_equal(free_map_add(g->free, &hole, NULL), 0);
	}
	assert_int_equal(space_alloc(w->space, BG_DATA, SECTOR, 6 * SECTOR, SECTOR, &r, NULL), 0);
	assert_int_equal(r.start, g->item.start + 100 * SECTOR);
	assert_int_equal(r.length, 6 * SECTOR);
	assert_int_equal(space_alloc(w->space, BG_DATA, SECTOR, 6 * SECTOR, SECTOR, &r, NULL), 0);
	assert_int_equal(r.start, g->item.start + 200 * SECTOR);
	assert_int_equal(r.length, 5 * SECTOR);
	assert_int_equal(space_alloc(w->space, BG_DATA, 3 * SECTOR, 6 * SECTOR, SECTOR, &r, NULL), -ENOSPC);
	assert_int_equal(space_alloc(w->space, BG_DATA, 2 * SECTOR, 6 * SECTOR, SECTOR, &r, NULL), 0);
	assert_int_equal(r.start, g->item.start + 106 * SECTOR);
	destroy(w);
}

#define EXTENTS 300u

struct held {
	struct range range;
	enum state state;
};

/* Compares the recorded changes, by sector: 1: freed; -1: used. */
static void expect_changes(struct world *w, int8_t *changes)
{
	for (size_t i = 0; i < space_num_groups(w->space); i++) {
		struct space_group *g = space_group_at(w->space, i);
		struct space_change *c;
		uint64_t end = 0;
		size_t n;

		assert_int_equal(space_take_changes(g, &c, &n, NULL), 0);
		for (size_t k = 0; k < n; k++) {
			const struct range *r = &c[k].range;

			assert_true(r->start >= end && r->length);
			assert_true(!k || r->start > end || c[k].free != c[k - 1].free);
			end = range_end(r);
			for (uint64_t at = r->start; at < end; at += SECTOR) {
				assert_int_equal(changes[at / SECTOR], c[k].free ? 1 : -1);
				changes[at / SECTOR] = 0;
			}
		}
		free(c);
	}
	for (size_t i = 0; i < SECTORS; i++)
		assert_int_equal(changes[i], 0);
}

static void expect_used(struct world *w)
{
	uint64_t sum = 0, touched = 0;

	for (size_t i = 0; i < space_num_groups(w->space); i++) {
		const struct space_group *g = space_group_at(w->space, i);
		uint64_t used = 0;

		for (uint64_t at = g->item.start; at < g->item.start + g->item.length; at += SECTOR)
			used += w->sectors[at / SECTOR] == USED ? SECTOR : 0;
		assert_int_equal(g->item.used, used);
		sum += used;
		touched += g->touched;
	}
	assert_int_equal(space_bytes_used(w->space), sum);
	for (const struct space_group *g = space_next_touched(w->space, NULL); g; g = space_next_touched(w->space, g))
		touched--;
	assert_int_equal(touched, 0);
}

/* One step in the life cycle of an extent. */
static void step(struct world *w, struct held *h, int8_t *changes)
{
	int add = 0;

	if (!h->state) {
		const bool data = pick(2);
		const uint64_t size = data ? (1 + pick(40)) * SECTOR : w->fs->geometry.nodesize;

		if (space_alloc(w->space, data ? BG_DATA : BG_METADATA, size, size, data ? SECTOR : size, &h->range,
				NULL))
			return;
		set(w, &h->range, FREE, ALLOCATED);
		h->state = ALLOCATED;
	} else if (h->state == ALLOCATED && pick(4) == 0) {
		assert_int_equal(space_unalloc(w->space, &h->range, NULL), 0);
		set(w, &h->range, ALLOCATED, PINNED);
		h->state = 0;
	} else if (h->state == ALLOCATED) {
		assert_int_equal(space_enter(w->space, &h->range, NULL), 0);
		set(w, &h->range, ALLOCATED, USED);
		h->state = USED;
		add = -1;
	} else {
		assert_int_equal(space_leave(w->space, &h->range, NULL), 0);
		set(w, &h->range, USED, PINNED);
		h->state = 0;
		add = 1;
	}
	for (uint64_t at = h->range.start; at < range_end(&h->range); at += SECTOR)
		changes[at / SECTOR] = (int8_t)(changes[at / SECTOR] + add);
}

static void commit(struct world *w)
{
	space_committed(w->space);
	for (size_t i = 0; i < SECTORS; i++)
		if (w->sectors[i] == PINNED)
			w->sectors[i] = FREE;
	assert_null(space_next_touched(w->space, NULL));
	assert_int_equal(space_begin(w->space, NULL, NULL), 0);
}

static void transactions_agree(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	int8_t *changes = calloc(SECTORS, 1);
	struct held held[EXTENTS] = { 0 };
	struct world *w = create(&o);

	(void)state;
	assert_non_null(changes);
	for (unsigned i = 0; i < 30000; i++) {
		step(w, &held[pick(EXTENTS)], changes);
		if (pick(1000) == 0)
			expect_changes(w, changes);
		if (pick(3000) == 0) {
			expect_used(w);
			expect_changes(w, changes);
			commit(w);
		}
	}
	/* At the end the maps must have exactly what is free. */
	commit(w);
	alloc_all(w, BG_DATA, SECTOR, MIB, SECTOR);
	alloc_all(w, BG_METADATA, SECTOR, MIB, SECTOR);
	alloc_all(w, BG_SYSTEM, SECTOR, MIB, SECTOR);
	assert_int_equal(count(w, FREE), 0);
	destroy(w);
	free(changes);
}

static void an_abort_undoes(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	int8_t *changes = calloc(SECTORS, 1);
	struct held held[EXTENTS] = { 0 };
	struct world *w = create(&o);
	uint8_t *before = malloc(SECTORS);

	(void)state;
	assert_true(before && changes);
	memcpy(before, w->sectors, SECTORS);
	for (unsigned i = 0; i < 2000; i++)
		step(w, &held[pick(EXTENTS)], changes);
	space_aborted(w->space);
	memcpy(w->sectors, before, SECTORS);
	memset(changes, 0, SECTORS);
	expect_used(w);
	expect_changes(w, changes);
	alloc_all(w, BG_DATA, SECTOR, MIB, SECTOR);
	alloc_all(w, BG_METADATA, SECTOR, MIB, SECTOR);
	alloc_all(w, BG_SYSTEM, SECTOR, MIB, SECTOR);
	assert_int_equal(count(w, FREE), 0);
	destroy(w);
	free(before);
	free(changes);
}

/* Errors of callers are reported before anything is changed. */
static void mistakes_are_told(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct range nowhere = { 1ull << 50, SECTOR };
	struct world *w = create(&o);
	struct space_group *g;
	struct range r, more;

	(void)state;
	assert_int_equal(space_begin(w->space, NULL, NULL), 0);
	assert_int_equal(space_enter(w->space, &nowhere, NULL), -EUCLEAN);
	assert_int_equal(space_leave(w->space, &nowhere, NULL), -EUCLEAN);
	assert_int_equal(space_unalloc(w->space, &nowhere, NULL), -EUCLEAN);
	assert_int_equal(space_alloc(w->space, BG_DATA, 8 * SECTOR, 8 * SECTOR, SECTOR, &r, NULL), 0);
	g = space_group_of(w->space, r.start);
	more = (struct range){ r.start, r.length + SECTOR };
	assert_int_equal(space_enter(w->space, &more, NULL), -EUCLEAN);
	more = (struct range){ r.start, g->item.length + SECTOR };
	assert_int_equal(space_enter(w->space, &more, NULL), -EUCLEAN);
	/* The group has no used space yet. */
	assert_int_equal(g->item.used, 0);
	assert_int_equal(space_leave(w->space, &r, NULL), -EUCLEAN);
	space_aborted(w->space);

	assert_int_equal(space_alloc(w->space, BG_DATA, 8 * SECTOR, 8 * SECTOR, SECTOR, &r, NULL), 0);
	assert_int_equal(space_enter(w->space, &r, NULL), 0);
	assert_int_equal(space_leave(w->space, &r, NULL), 0);
	assert_int_equal(space_leave(w->space, &r, NULL), -EUCLEAN);
	assert_int_equal(space_unalloc(w->space, &r, NULL), -EUCLEAN);
	destroy(w);
}

static int use(struct btrkit_fs *fs)
{
	const uint32_t size = fs->geometry.nodesize;
	struct space_change *changes;
	struct space *s;
	struct range r;
	size_t n;
	int ret = space_create(fs, &s, NULL);

	if (ret)
		return ret;
	ret = space_begin(s, NULL, NULL);
	for (unsigned i = 0; i < 20 && !ret; i++) {
		ret = space_alloc(s, BG_METADATA, size, size, size, &r, NULL);
		if (!ret)
			ret = space_enter(s, &r, NULL);
		if (!ret && i % 2)
			ret = space_leave(s, &r, NULL);
	}
	if (!ret)
		ret = space_take_changes(space_group_of(s, r.start), &changes, &n, NULL);
	if (!ret)
		free(changes);
	/* If memory runs out here, the map of the group is dropped and loaded again. */
	if (!ret)
		space_committed(s);
	if (!ret)
		ret = space_alloc(s, BG_DATA, SECTOR, SECTOR, SECTOR, &r, NULL);
	space_destroy(s);
	return ret;
}

static void memory_runs_out(void **state)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct world *w = create(&o);
	unsigned failed = 0;
	int ret = -1;

	(void)state;
	while (ret) {
		memory_count(failed, true);
		ret = use(w->fs);
		memory_end();
		assert_true(!ret || ret == -ENOMEM);
		failed += ret != 0;
	}
	printf("%u allocations failed in turn\n", failed);
	assert_true(failed > 15);
	destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_allocated_once), cmocka_unit_test(large_pieces_are_looked_for),
		cmocka_unit_test(transactions_agree),		cmocka_unit_test(an_abort_undoes),
		cmocka_unit_test(mistakes_are_told),		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
