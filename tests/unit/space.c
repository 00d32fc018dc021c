// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Frees space from the extent tree, the free space tree and the v1 cache, on a synthetic filesystem with one block
 * group: random contents agree, differences are located, and contradictions are reported.
 */
#include "tests/unit/unit.h"

#include <btrkit/space.h>

#include "lib/base/crc32c.h"
#include "lib/format/feature_bits.h"
#include "lib/format/ids.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/free_space.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/space_cache.h"
#include "lib/space/space.h"
#include "tests/unit/memory.h"
#include "tests/unit/synthetic.h"

#define SECTOR 4096u
#define SECTORS (SYN_LENGTH / SECTOR)
#define BITMAP_SECTORS 2048u
#define ITEMS_MAX (SECTORS + 8)
#define INODE 256u
#define PAGES 16u
#define FLAGS (BG_SYSTEM | BG_DUP)

/* A v1 free space entry. */
struct entry {
	le64 offset;
	le64 bytes;
	uint8_t type;
} __attribute__((packed));

/* Everything that the filesystem is made from; tests change it before build(). */
static struct plan {
	bool free[SECTORS];	/* according to the extent tree */
	struct disk_block_group group;
	struct btrkit_key group_key;
	struct disk_extent_item extent;
	struct syn_item extents[ITEMS_MAX];
	size_t num_extents;

	struct disk_free_space_info info;
	struct syn_item tree[ITEMS_MAX];
	size_t num_tree;
	uint8_t bitmaps[SECTORS / 8];

	struct disk_space_cache header;
	struct disk_inode_item inode;
	struct disk_file_extent file;
	uint8_t pages[PAGES][SECTOR];
	bool sums;	/* compute the checksums at the end */
	struct entry entries[ITEMS_MAX];
	size_t num_entries;

	uint64_t compat_ro, cache_generation;
	bool no_tree, empty_cache;
} p;

struct result {
	struct btrkit_space_group group;
	char why[512];
	unsigned groups;
	struct btrkit_space_leftover leftovers[4];
	unsigned num_leftovers;
	struct btrkit_space_summary sum;
	struct btrkit_error err;
	int ret;
	/* Results of loading the group for writing, indexed by enum space_source. */
	int loads[4];
	struct space_load_stats stats[4];
	bool free[4][SECTORS];
};

static uint32_t seed = 1;

/* Number of the allocation that fails while the status is computed. */
static uint64_t fail_at = MEMORY_SUFFICES;

static uint32_t drawn(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static uint64_t address(size_t sector)
{
	return SYN_LOGICAL + sector * SECTOR;
}

/* The end of the run of equal sectors that starts at @from. */
static size_t run_end(size_t from)
{
	size_t to = from;

	while (to < SECTORS && p.free[to] == p.free[from])
		to++;
	return to;
}

static void plan_extents(void)
{
	uint64_t used = 0;

	p.extent = (struct disk_extent_item){ le64_put(1), le64_put(1), le64_put(EXTENT_FLAG_DATA) };
	p.group_key = KEY(SYN_LOGICAL, KEY_BLOCK_GROUP_ITEM, SYN_LENGTH);
	for (size_t from = 0, to; from < SECTORS; from = to) {
		to = run_end(from);
		if (!p.free[from]) {
			/* A run may consist of several extents. */
			if (to - from > 1 && drawn(2))
				to = from + 1 + drawn((uint32_t)(to - from - 1));
			used += (to - from) * SECTOR;
			p.extents[p.num_extents++] = (struct syn_item){
				KEY(address(from), KEY_EXTENT_ITEM, (to - from) * SECTOR), &p.extent, sizeof(p.extent)
			};
		}
	}
	p.group = (struct disk_block_group){ le64_put(used), le64_put(OID_FIRST_CHUNK_TREE), le64_put(FLAGS) };
}

static void plan_tree(bool bitmaps)
{
	uint32_t count = 0;

	p.num_tree = 1;
	memset(p.bitmaps, 0, sizeof(p.bitmaps));
	for (size_t from = 0, to; from < SECTORS; from = to) {
		to = run_end(from);
		if (!p.free[from])
			continue;
		count++;
		for (size_t i = from; i < to; i++)
			p.bitmaps[i / 8] |= (uint8_t)(1u << i % 8);
		if (!bitmaps)
			p.tree[p.num_tree++] = (struct syn_item){
				KEY(address(from), KEY_FREE_SPACE_EXTENT, (to - from) * SECTOR), "", 0
			};
	}
	for (size_t i = 0; bitmaps && i < SECTORS; i += BITMAP_SECTORS)
		p.tree[p.num_tree++] = (struct syn_item){
			KEY(address(i), KEY_FREE_SPACE_BITMAP, BITMAP_SECTORS * SECTOR), p.bitmaps + i / 8,
			BITMAP_SECTORS / 8
		};
	p.info = (struct disk_free_space_info){ le32_put(count), le32_put(bitmaps ? FREE_SPACE_USING_BITMAPS : 0) };
	p.tree[0] = (struct syn_item){ KEY(SYN_LOGICAL, KEY_FREE_SPACE_INFO, SYN_LENGTH), &p.info, sizeof(p.info) };
}

/* Stores the free ranges as entries; with @bitmap, those of one sector as bits of a single bitmap. */
static void plan_cache(bool bitmap)
{
	uint8_t bits[SECTOR] = { 0 };
	uint64_t in_bitmap = 0;

	p.num_entries = 0;
	for (size_t from = 0, to; from < SECTORS; from = to) {
		to = run_end(from);
		if (!p.free[from])
			continue;
		if (bitmap && to - from == 1) {
			bits[from / 8] |= (uint8_t)(1u << from % 8);
			in_bitmap += SECTOR;
		} else {
			p.entries[p.num_entries++] = (struct entry){ le64_put(address(from)),
								     le64_put((to - from) * SECTOR), 1 };
		}
	}
	p.header.num_bitmaps = le64_put(in_bitmap != 0);
	if (in_bitmap)
		p.entries[p.num_entries++] = (struct entry){ le64_put(SYN_LOGICAL), le64_put(in_bitmap), 2 };
	p.header.num_entries = le64_put(p.num_entries);
	memcpy(p.pages[PAGES - 1], bits, sizeof(bits));
}

static void plan_file(void)
{
	p.header.location = key_put(&KEY(INODE, KEY_INODE_ITEM, 0));
	p.header.generation = le64_put(3);
	p.inode = (struct disk_inode_item){ .generation = le64_put(3), .transid = le64_put(3) };
	p.inode.size = le64_put(PAGES * SECTOR);
	p.inode.nlink = le32_put(1);
	p.inode.mode = le32_put(0100600);
	p.file = (struct disk_file_extent){ .generation = le64_put(3), .ram_bytes = le64_put(PAGES * SECTOR),
					    .type = FILE_EXTENT_REG };
	p.file.disk_num_bytes = p.file.num_bytes = le64_put(PAGES * SECTOR);
}

/* Makes a plan in which everything agrees. The first and the last sector are random too. */
static void plan(unsigned density, bool bitmaps)
{
	p = (struct plan){ .sums = true, .compat_ro = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID };
	for (size_t from = 0, to; from < SECTORS; from = to) {
		bool free = drawn(100) < density;

		to = from + 1 + drawn(drawn(32) ? 2 : 100);
		for (size_t i = from; i < to && i < SECTORS; i++)
			p.free[i] = free;
	}
	plan_extents();
	plan_tree(bitmaps);
	plan_file();
	plan_cache(bitmaps);
}

/* Writes the entries into pages, followed by the bitmap. The file has its maximum size. */
static void put_pages(struct synthetic *s)
{
	size_t at = PAGES * sizeof(le32) + sizeof(le64), page = 0;
	uint8_t bitmap[SECTOR];

	memcpy(bitmap, p.pages[PAGES - 1], SECTOR);
	memset(p.pages[PAGES - 1], 0, SECTOR);
	memcpy(p.pages[0] + PAGES * sizeof(le32), &p.header.generation, sizeof(le64));
	for (size_t i = 0; i < p.num_entries; i++) {
		if (SECTOR - at < sizeof(struct entry)) {
			page++;
			at = 0;
			assert_true(page < PAGES - 1);
		}
		memcpy(p.pages[page] + at, &p.entries[i], sizeof(struct entry));
		at += sizeof(struct entry);
	}
	memcpy(p.pages[page + 1], bitmap, SECTOR);
	for (size_t i = 0; p.sums && i < PAGES; i++) {
		const size_t skip = i ? 0 : PAGES * sizeof(le32);
		le32 sum = le32_put(~crc32c(~0u, p.pages[i] + skip, SECTOR - skip));

		memcpy(p.pages[0] + i * sizeof(sum), &sum, sizeof(sum));
	}
	if (le64_get(p.file.disk_bytenr))
		return;
	p.file.disk_bytenr = le64_put(s->next);
	for (size_t i = 0; i < PAGES; i++, s->next += SECTOR)
		for (unsigned copy = 0; copy < 2; copy++)
			syn_put(s, s->next, copy, p.pages[i], 0);
}

static int take_group(void *ctx, const struct btrkit_space_group *group)
{
	struct result *r = ctx;
	const char *why = group->v2.why ? group->v2.why : group->v1.why;

	r->group = *group;
	snprintf(r->why, sizeof(r->why), "%s", why ? why : "");
	r->groups++;
	return 0;
}

static int take_leftover(void *ctx, const struct btrkit_space_leftover *leftover)
{
	struct result *r = ctx;

	assert_true(r->num_leftovers < ARRAY_SIZE(r->leftovers));
	r->leftovers[r->num_leftovers++] = *leftover;
	return 0;
}

static int cmp_items(const void *a, const void *b)
{
	const struct syn_item *x = a, *y = b;

	return key_cmp(&x->key, &y->key);
}

/* The source that the group was loaded from. */
static enum space_source source_of(const struct space_load_stats *n)
{
	assert_true(n->by_tree + n->by_cache + n->by_extents <= 1);
	return (enum space_source)(n->by_tree * SPACE_FROM_TREE + n->by_cache * SPACE_FROM_CACHE +
				   n->by_extents * SPACE_FROM_EXTENTS);
}

/* Loads the group from each source, as if the superblock declared it valid. */
static void load_all(struct btrkit_fs *fs, struct result *r)
{
	const struct super super = fs->super;

	for (enum space_source from = SPACE_FROM_ANY; from <= SPACE_FROM_EXTENTS; from++, fs->super = super) {
		struct space_group *g;
		struct space *s;

		if (from != SPACE_FROM_ANY)
			fs->super.compat_ro = from == SPACE_FROM_TREE ? 3 : 0;
		if (from == SPACE_FROM_CACHE)
			fs->super.cache_generation = fs->super.generation;
		r->loads[from] = space_create(fs, &s, NULL);
		if (r->loads[from])
			continue;
		g = space_group_at(s, 0);
		r->loads[from] = space_load(s, g, from, NULL);
		r->stats[from] = space_load_stats(s);
		for (size_t i = 0; i < SECTORS && g->free; i++)
			r->free[from][i] = free_map_touches(g->free, &(struct range){ address(i), SECTOR });
		space_destroy(s);
	}
}

static const struct result *build(void)
{
	static struct result r;
	const struct btrkit_space_sink sink = { take_group, take_leftover, &r };
	struct btrkit_fs *fs = NULL;
	struct synthetic s;

	r = (struct result){ .err = BTRKIT_ERROR_INIT };
	syn_begin(&s);
	s.compat_ro = p.compat_ro;
	s.cache_generation = p.cache_generation;
	syn_put_fs_tree(&s, NULL, 0);
	qsort(p.tree, p.num_tree, sizeof(p.tree[0]), cmp_items);
	if (!p.no_tree)
		syn_put_tree(&s, OID_FREE_SPACE_TREE, p.tree, p.num_tree);
	if (le64_get(p.header.num_entries) || p.empty_cache) {
		put_pages(&s);
		syn_add_root_item(&s, &(struct syn_item){ KEY(INODE, KEY_INODE_ITEM, 0), &p.inode, sizeof(p.inode) });
		syn_add_root_item(&s, &(struct syn_item){ KEY(INODE, KEY_EXTENT_DATA, 0), &p.file, sizeof(p.file) });
		syn_add_root_item(&s, &(struct syn_item){ KEY(OID_FREE_SPACE, 0, 4096), &p.header, sizeof(p.header) });
		syn_add_root_item(&s, &(struct syn_item){ KEY(OID_FREE_SPACE, 0, SYN_LOGICAL), &p.header,
							  sizeof(p.header) });
	}
	if (p.group_key.type)
		p.extents[p.num_extents++] = (struct syn_item){ p.group_key, &p.group, sizeof(p.group) };
	qsort(p.extents, p.num_extents, sizeof(p.extents[0]), cmp_items);
	syn_finish(&s, 0, p.extents, p.num_extents);
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	memory_count(fail_at, false);
	r.ret = btrkit_space_status(fs, &sink, &r.sum, &r.err);
	memory_end();
	load_all(fs, &r);
	btrkit_fs_close(fs);
	return &r;
}

static void what_is_drawn_agrees(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 16; round++) {
		const unsigned density = round < 4 ? 0 : round < 8 ? 100 : 5 + drawn(90);
		uint64_t free = 0, ranges = 0;
		const struct result *r;

		plan(density, round % 2);
		for (size_t i = 0; i < SECTORS; i++) {
			free += p.free[i] * SECTOR;
			ranges += p.free[i] && !(i && p.free[i - 1]);
		}
		r = build();
		if (r->ret)
			fail_msg("%s", r->err.message);
		assert_int_equal(r->groups, 1);
		assert_int_equal(r->group.free_bytes, free);
		assert_int_equal(r->group.free_ranges, ranges);
		assert_int_equal(r->group.v2.verdict, BTRKIT_SPACE_EQUAL);
		assert_int_equal(r->group.v2.free_bytes, free);
		assert_int_equal(r->group.v2.free_ranges, ranges);
		assert_int_equal(r->group.v2.bitmaps, round % 2);
		assert_int_equal(r->group.v1.verdict, ranges ? BTRKIT_SPACE_EQUAL : BTRKIT_SPACE_ABSENT);
		assert_int_equal(r->group.v1.free_bytes, free);
		assert_int_equal(r->sum.v1.leftovers, ranges != 0);
		assert_int_equal(r->sum.in_use, BTRKIT_SPACE_CACHE_V2);
		assert_true(r->sum.valid && !r->sum.contradictions);
		for (enum space_source from = SPACE_FROM_ANY; from <= SPACE_FROM_EXTENTS; from++) {
			if (from == SPACE_FROM_CACHE && !ranges)
				continue;
			assert_int_equal(r->loads[from], 0);
			assert_memory_equal(r->free[from], p.free, sizeof(p.free));
		}
	}
}

/* One sector differs between the caches and the extent tree. */
static void differences_are_found(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 16; round++) {
		const size_t sector = round < 2 ? 0 : round < 4 ? SECTORS - 1 : drawn(SECTORS);
		const struct result *r;

		plan(50, round % 2);
		p.free[sector] = !p.free[sector];
		plan_tree(round % 2);
		plan_cache(round % 2);
		r = build();
		assert_int_equal(r->ret, 0);
		assert_int_equal(r->group.v2.verdict, BTRKIT_SPACE_DIFFERENT);
		assert_int_equal(r->group.v2.at, address(sector));
		assert_int_equal(r->group.v2.free, p.free[sector]);
		assert_int_equal(r->group.v1.verdict, BTRKIT_SPACE_DIFFERENT);
		assert_int_equal(r->group.v1.at, address(sector));
		assert_int_equal(r->group.v1.free, p.free[sector]);
		assert_int_equal(r->sum.contradictions, 1);
		assert_int_equal(r->sum.first_contradiction, SYN_LOGICAL);
		/* A v1 cache that contradicts the counter of the group is ignored; for a tree this is an error. */
		assert_int_equal(r->loads[SPACE_FROM_ANY], -EUCLEAN);
		assert_int_equal(r->loads[SPACE_FROM_TREE], -EUCLEAN);
		assert_int_equal(r->loads[SPACE_FROM_CACHE], -ENOENT);
		assert_int_equal(r->loads[SPACE_FROM_EXTENTS], 0);
		p.free[sector] = !p.free[sector];
		assert_memory_equal(r->free[SPACE_FROM_EXTENTS], p.free, sizeof(p.free));
	}
}

/* The superblock decides which cache is in use, and whether it is valid. */
static void superblock_decides(void **state)
{
	static const struct {
		uint64_t compat_ro, cache_generation;
		enum btrkit_space_cache_kind kind;
		bool valid;
		enum space_source source;
	} cases[] = {
		{ 3, 0, BTRKIT_SPACE_CACHE_V2, true, SPACE_FROM_TREE },
		{ 3, SYN_GENERATION, BTRKIT_SPACE_CACHE_V2, true, SPACE_FROM_TREE },
		{ 1, 0, BTRKIT_SPACE_CACHE_V2, false, SPACE_FROM_EXTENTS },
		{ 1, SYN_GENERATION, BTRKIT_SPACE_CACHE_V2, false, SPACE_FROM_EXTENTS },
		{ 0, SYN_GENERATION, BTRKIT_SPACE_CACHE_V1, true, SPACE_FROM_CACHE },
		{ 0, SYN_GENERATION - 1, BTRKIT_SPACE_CACHE_V1, false, SPACE_FROM_EXTENTS },
		{ 0, UINT64_MAX, BTRKIT_SPACE_CACHE_V1, false, SPACE_FROM_EXTENTS },
		{ 0, 0, BTRKIT_SPACE_CACHE_NONE, true, SPACE_FROM_EXTENTS },
	};

	(void)state;
	for (size_t i = 0, k = 0; k < ARRAY_SIZE(cases); k = ++i / 2) {
		const struct result *r;

		plan(50, false);
		p.compat_ro = cases[k].compat_ro;
		p.cache_generation = cases[k].cache_generation;
		if (i % 2) {
			assert_int_equal(source_of(build()->stats), cases[k].source);
			continue;
		}
		p.free[77] = !p.free[77];
		plan_tree(false);
		plan_cache(false);
		r = build();
		assert_int_equal(r->ret, 0);
		assert_int_equal(r->sum.in_use, cases[k].kind);
		assert_int_equal(r->sum.valid, cases[k].valid);
		assert_int_equal(!r->sum.why, cases[k].valid);
		assert_int_equal(r->sum.contradictions, cases[k].valid && cases[k].kind != BTRKIT_SPACE_CACHE_NONE);
	}
}

/* A cache without entries is valid only if nothing is free. */
static void empty_caches_load_when_full(void **state)
{
	(void)state;
	for (unsigned density = 0; density < 100; density += 50) {
		plan(density, false);
		p.compat_ro = 0;
		p.cache_generation = SYN_GENERATION;
		p.empty_cache = true;
		p.num_entries = 0;
		p.header.num_entries = p.header.num_bitmaps = le64_put(0);
		assert_int_equal(source_of(build()->stats), density ? SPACE_FROM_EXTENTS : SPACE_FROM_CACHE);
	}
}

static void add_tree_item(struct btrkit_key key, const void *data, uint32_t size)
{
	p.tree[p.num_tree++] = (struct syn_item){ key, data, size };
}

static void leftovers_are_told(void **state)
{
	static struct disk_free_space_info info;
	const struct result *r;

	(void)state;
	plan(50, true);
	add_tree_item(KEY(1 << 20, KEY_FREE_SPACE_INFO, 4 << 20), &info, sizeof(info));
	add_tree_item(KEY(1 << 20, KEY_FREE_SPACE_EXTENT, 4 << 20), "", 0);
	add_tree_item(KEY(1ull << 40, KEY_FREE_SPACE_INFO, 8 << 20), &info, sizeof(info));
	r = build();
	assert_int_equal(r->ret, 0);
	assert_int_equal(r->group.v2.verdict, BTRKIT_SPACE_EQUAL);
	assert_int_equal(r->sum.v2.leftovers, 2);
	assert_int_equal(r->sum.v1.leftovers, 1);
	assert_int_equal(r->num_leftovers, 3);
	assert_int_equal(r->leftovers[0].logical, 1 << 20);
	assert_int_equal(r->leftovers[0].length, 4 << 20);
	assert_int_equal(r->leftovers[1].logical, 1ull << 40);
	assert_int_equal(r->leftovers[2].kind, BTRKIT_SPACE_CACHE_V1);
	assert_int_equal(r->leftovers[2].inode, INODE);
}

static void failing_allocations_are_told(void **state)
{
	const struct result *r = NULL;

	(void)state;
	for (fail_at = 0; !r || r->ret; fail_at++) {
		plan(50, true);
		r = build();
		if (r->ret && (r->ret != -ENOMEM || r->err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)fail_at, r->ret, r->err.message);
	}
	printf("%llu allocations failed in turn\n", (unsigned long long)fail_at - 1);
	assert_true(fail_at > 10);
	fail_at = MEMORY_SUFFICES;
}

#include "tests/unit/space_damages.h"

static void wrong_trees_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tree_damages); i++) {
		const struct result *r;

		plan(50, tree_damages[i].bitmaps);
		p.header.num_entries = le64_put(0);
		tree_damages[i].damage();
		r = build();
		if (r->ret || r->group.v2.verdict != tree_damages[i].verdict || !strstr(r->why, tree_damages[i].why))
			fail_msg("%zu: %s, not %s (%s)", i, r->why, tree_damages[i].why, r->err.message);
		assert_int_equal(r->sum.contradictions, 1);
		assert_int_equal(r->loads[SPACE_FROM_ANY], -EUCLEAN);
	}
}

static void wrong_caches_are_ignored(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cache_damages); i++) {
		const struct result *r;

		plan(50, cache_damages[i].bitmaps);
		p.compat_ro = 0;
		p.cache_generation = SYN_GENERATION;
		p.no_tree = true;
		cache_damages[i].damage();
		r = build();
		if (r->ret || r->group.v1.verdict != BTRKIT_SPACE_IGNORED || !strstr(r->why, cache_damages[i].why))
			fail_msg("%zu: %s, not %s (%s)", i, r->why, cache_damages[i].why, r->err.message);
		assert_int_equal(r->sum.contradictions, 0);
		assert_int_equal(r->loads[SPACE_FROM_CACHE], -ENOENT);
		assert_int_equal(r->loads[SPACE_FROM_ANY], 0);
	}
}

static void wrong_extents_fail(void **state)
{
	unsigned elsewhere = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(extent_damages); i++) {
		const struct result *r;

		plan(50, false);
		extent_damages[i].damage();
		r = build();
		if (r->ret != -EUCLEAN || !strstr(r->err.message, extent_damages[i].why))
			fail_msg("%zu: %s, not %s", i, r->err.message, extent_damages[i].why);
		assert_true(r->err.places & BTRKIT_AT_TREE);
		assert_int_equal(r->err.tree, OID_EXTENT_TREE);
		elsewhere += !r->loads[SPACE_FROM_EXTENTS];
	}
	/* Loading one group does not notice items outside of all groups. */
	assert_int_equal(elsewhere, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_drawn_agrees),	    cmocka_unit_test(differences_are_found),
		cmocka_unit_test(superblock_decides),	    cmocka_unit_test(empty_caches_load_when_full),
		cmocka_unit_test(leftovers_are_told),	    cmocka_unit_test(wrong_trees_are_told),
		cmocka_unit_test(wrong_caches_are_ignored), cmocka_unit_test(wrong_extents_fail),
		cmocka_unit_test(failing_allocations_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
