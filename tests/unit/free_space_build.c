// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Builds the free space tree from the extent tree of a synthetic filesystem with one block group, and compares it item
 * by item.
 */
#include "tests/unit/unit.h"

#include <btrkit/filesystem.h>

#include "lib/format/ids.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/free_space.h"
#include "lib/space/free_space_edit.h"
#include "lib/space/free_space_form.h"
#include "tests/unit/memory.h"
#include "tests/unit/synthetic.h"

#define SECTOR 4096u
#define SECTORS (SYN_LENGTH / SECTOR)
#define HIGH 22u /* most ranges that are stored as extents; with more, bitmaps are used */
#define ITEMS_MAX (SECTORS + 8)
#define DATA_MAX 256u

/* An item of the tree, expected or written. */
struct told {
	struct btrkit_key key;
	uint32_t size;
	uint8_t data[DATA_MAX];
};

struct told_tree {
	struct told items[ITEMS_MAX];
	size_t n;
	uint64_t leaves;
};

static bool is_free[SECTORS];
static struct told_tree expected, written;
static uint32_t seed = 1;

static uint32_t drawn(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static uint64_t address(size_t sector)
{
	return SYN_LOGICAL + sector * SECTOR;
}

static size_t run_end(size_t from)
{
	size_t to = from;

	while (to < SECTORS && is_free[to] == is_free[from])
		to++;
	return to;
}

/* Chooses @n free ranges at random; the first and the last sector may be free too. */
static void draw_ranges(unsigned n)
{
	const size_t step = n ? SECTORS / n : SECTORS;
	const bool last = drawn(2);

	memset(is_free, 0, sizeof(is_free));
	for (unsigned i = 0; i < n; i++) {
		const size_t from = i * step + (last && i == n - 1 ? step - 1 : i && step > 2 ? 1 + drawn(2) : 0);
		const size_t room = step - 1 - from % step;

		is_free[from] = true;
		for (size_t k = 1; k < room && drawn(8); k++)
			is_free[from + k] = true;
	}
}

static struct told *expect(struct btrkit_key key, const void *data, uint32_t size)
{
	struct told *t = &expected.items[expected.n++];

	*t = (struct told){ key, size, { 0 } };
	memcpy(t->data, data, size);
	return t;
}

static void expect_tree(void)
{
	uint8_t bits[SECTORS / 8] = { 0 };
	struct disk_free_space_info info = { 0 };
	struct told *head;
	uint32_t count = 0;

	expected.n = 0;
	head = expect(KEY(SYN_LOGICAL, KEY_FREE_SPACE_INFO, SYN_LENGTH), &info, sizeof(info));
	for (size_t from = 0, to; from < SECTORS; from = to) {
		to = run_end(from);
		if (!is_free[from])
			continue;
		count++;
		expect(KEY(address(from), KEY_FREE_SPACE_EXTENT, (to - from) * SECTOR), "", 0);
		for (size_t i = from; i < to; i++)
			bits[i / 8] |= (uint8_t)(1u << i % 8);
	}
	info = (struct disk_free_space_info){ le32_put(count), le32_put(count > HIGH) };
	memcpy(head->data, &info, sizeof(info));
	if (count <= HIGH)
		return;
	expected.n = 1;
	for (size_t i = 0; i < sizeof(bits); i += DATA_MAX)
		expect(KEY(address(8 * i), KEY_FREE_SPACE_BITMAP, 8 * DATA_MAX * SECTOR), bits + i, DATA_MAX);
}

static int place(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	(void)ctx;
	(void)err;
	*bytenr = address(level ? SECTORS - level : index);
	return 0;
}

static int keep_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	const bool counted = memory_pause();
	struct node *n = calloc(1, sizeof(*n) + SYN_NODESIZE);

	memory_resume(counted);
	(void)ctx;
	(void)bytenr;
	(void)err;
	assert_non_null(n);
	n->data = (uint8_t *)(n + 1);
	memcpy(n->data, block, SYN_NODESIZE);
	n->nritems = le32_get(node_header(n)->nritems);
	for (uint32_t i = 0; !node_header(n)->level && i < n->nritems; i++) {
		const struct item item = leaf_item(n, i);
		struct told *t = &written.items[written.n++];

		*t = (struct told){ item.key, item.size, { 0 } };
		memcpy(t->data, item.data, item.size);
	}
	written.leaves += !node_header(n)->level;
	free(n);
	return 0;
}

static int run(struct btrkit_fs *fs, const struct block_groups *groups, bool count_only, struct free_space_built *ret,
	       uint64_t *leaves, struct btrkit_error *err)
{
	const struct bulk_config config = { .rules = &fs->rules,
					    .items = &fs->items,
					    .owner = OID_FREE_SPACE_TREE,
					    .chunk_tree_uuid = (const uint8_t *)"a chunk tree....",
					    .generation = SYN_GENERATION,
					    .place = place,
					    .write = count_only ? NULL : keep_block };
	struct extent_ranges ranges;
	struct tree_root root;
	struct bulk *b = NULL;
	int r;

	written.n = 0;
	written.leaves = 0;
	r = extent_ranges_begin(&ranges, fs, groups, err);
	if (!r)
		r = bulk_create(&config, &b, err);
	if (!r)
		r = free_space_build(&ranges, SECTOR, b, ret, err);
	if (!r)
		r = bulk_finish(b, &root, err);
	if (!r)
		*leaves = bulk_blocks(b, 0);
	bulk_destroy(b);
	extent_ranges_release(&ranges);
	return r;
}

/* Makes an extent tree of everything that is not free. */
static struct btrkit_fs *make(struct block_groups *groups, size_t *num_extents)
{
	static const struct disk_extent_item extent = { { { 1 } }, { { 1 } }, { { EXTENT_FLAG_DATA } } };
	static struct syn_item extents[ITEMS_MAX];
	static struct disk_block_group group;
	struct btrkit_fs *fs = NULL;
	struct synthetic s;
	uint64_t used = 0;
	size_t n = 0;

	for (size_t from = 0, to; from < SECTORS; from = to) {
		to = run_end(from);
		if (is_free[from])
			continue;
		extents[n++] = (struct syn_item){ KEY(address(from), KEY_EXTENT_ITEM, (to - from) * SECTOR), &extent,
						  sizeof(extent) };
		used += (to - from) * SECTOR;
	}
	*num_extents = n;
	/* The block group item sorts after the item of an extent at the start of the group. */
	for (size_t i = n++; ; i--) {
		if (!i || extents[i - 1].key.objectid == SYN_LOGICAL) {
			extents[i] = (struct syn_item){ KEY(SYN_LOGICAL, KEY_BLOCK_GROUP_ITEM, SYN_LENGTH), &group,
							sizeof(group) };
			break;
		}
		extents[i] = extents[i - 1];
	}
	group = (struct disk_block_group){ le64_put(used), le64_put(OID_FIRST_CHUNK_TREE),
					   le64_put(BG_SYSTEM | BG_DUP) };
	syn_begin(&s);
	syn_put_fs_tree(&s, NULL, 0);
	syn_finish(&s, 0, extents, n);
	assert_int_equal(syn_open(&s, NULL, &fs, NULL), 0);
	assert_int_equal(block_groups_load(fs, groups, NULL), 0);
	return fs;
}

static void compare(const struct free_space_built *built, size_t num_extents)
{
	const struct disk_free_space_info *info = (const void *)expected.items[0].data;
	const bool bitmaps = le32_get(info->flags);

	assert_int_equal(written.n, expected.n);
	for (size_t i = 0; i < expected.n; i++) {
		assert_int_equal(key_cmp(&written.items[i].key, &expected.items[i].key), 0);
		assert_int_equal(written.items[i].size, expected.items[i].size);
		assert_memory_equal(written.items[i].data, expected.items[i].data, expected.items[i].size);
	}
	assert_int_equal(built->groups, 1);
	assert_int_equal(built->ranges, le32_get(info->extent_count));
	assert_int_equal(built->extents, bitmaps ? 0 : expected.n - 1);
	assert_int_equal(built->bitmaps, bitmaps ? expected.n - 1 : 0);
	assert_int_equal(built->bitmap_groups, bitmaps);
	assert_int_equal(built->extents_read, num_extents);
}

static void tree_is_what_is_expected(void **state)
{
	static const unsigned counts[] = { 0, 1, 2, HIGH - 1, HIGH, HIGH + 1, HIGH + 2, 500, SECTORS / 2 };

	(void)state;
	for (unsigned round = 0; round < 4 * ARRAY_SIZE(counts); round++) {
		struct free_space_built counted, built;
		struct block_groups groups;
		uint64_t leaves = 0;
		struct btrkit_fs *fs;
		size_t num_extents;

		draw_ranges(counts[round % ARRAY_SIZE(counts)]);
		if (round == ARRAY_SIZE(counts))
			memset(is_free, 1, sizeof(is_free));
		expect_tree();
		fs = make(&groups, &num_extents);
		assert_int_equal(run(fs, &groups, true, &counted, &leaves, NULL), 0);
		assert_int_equal(written.n, 0);
		compare((run(fs, &groups, false, &built, &written.leaves, NULL), &built), num_extents);
		assert_int_equal(leaves, written.leaves);
		assert_memory_equal(&counted, &built, sizeof(built));
		block_groups_release(&groups);
		btrkit_fs_close(fs);
	}
}

static void failing_allocations_are_told(void **state)
{
	struct free_space_built built;
	struct block_groups groups;
	struct btrkit_fs *fs;
	uint64_t leaves, at = 0, num;
	size_t num_extents;

	(void)state;
	draw_ranges(SECTORS / 2);
	fs = make(&groups, &num_extents);
	do {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		int ret;

		memory_count(at, false);
		ret = run(fs, &groups, false, &built, &leaves, &err);
		num = memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
	} while (num > at++);
	printf("%llu allocations failed in turn\n", (unsigned long long)at - 1);
	assert_true(at > 4);
	block_groups_release(&groups);
	btrkit_fs_close(fs);
}

static void thresholds_are_those_of_linux(void **state)
{
	static const struct {
		uint64_t length;
		uint32_t sectorsize, low, high;
	} cases[] = {
		{ 4ull << 20, 4096, 0, 11 },	       { 8ull << 20, 4096, 0, 11 },
		{ (8ull << 20) + 65536, 4096, 0, 22 }, { 64ull << 20, 4096, 0, 89 },
		{ 80ull << 20, 4096, 12, 112 },	       { 256ull << 20, 4096, 259, 359 },
		{ 1ull << 30, 4096, 1338, 1438 },      { 10ull << 30, 4096, 14287, 14387 },
		{ 1ull << 30, 65536, 0, 89 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct free_space_thresholds t = free_space_thresholds(cases[i].length, cases[i].sectorsize);

		assert_int_equal(t.low, cases[i].low);
		assert_int_equal(t.high, cases[i].high);
	}
}

static void bits_are_put(void **state)
{
	uint8_t map[16], model[16];

	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		const uint32_t from = drawn(129), to = from + drawn(129 - from);
		const bool set = drawn(2);

		for (size_t i = 0; i < sizeof(map); i++)
			map[i] = model[i] = (uint8_t)drawn(256);
		bits_put(map, from, to, set);
		for (uint32_t i = from; i < to; i++)
			model[i / 8] = (uint8_t)((model[i / 8] & ~(1u << i % 8)) | (unsigned)set << i % 8);
		assert_memory_equal(map, model, sizeof(map));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thresholds_are_those_of_linux),
		cmocka_unit_test(bits_are_put),
		cmocka_unit_test(tree_is_what_is_expected),
		cmocka_unit_test(failing_allocations_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
