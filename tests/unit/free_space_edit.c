// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes to the free space tree, compared with a model that has a flag per sector: after random batches both have the
 * same ranges, and each group has the form that Linux would arrive at with the same changes one by one.
 */
#include "tests/unit/unit.h"

#include <btrkit/mkfs.h>

#include "lib/space/free_space_edit.h"
#include "lib/space/free_space_form.h"
#include "lib/space/free_space_tree.h"
#include "tests/unit/memory.h"
#include "tests/random.h"

#define SECTOR 4096u
#define GROUPS 3u
#define SECTORS_MAX (52u << 10)
#define BATCH_MAX 200u
#define BASE (1ull << 40)

/* What Linux would have for a group. */
struct model {
	struct block_group group;
	struct free_space_thresholds limits;
	size_t sectors;
	bool *is_free;
	uint32_t count;
	bool bitmaps;
	bool fewer; /* make fewer ranges, not more */
};

struct world {
	struct btrkit_fs *fs;
	struct failure failure;
	struct overlay *o;
	struct edit_tree *t;
	struct model models[GROUPS];
	struct free_space_stats stats;
	uint64_t next_block;
	uint64_t random;
	uint64_t to_bitmaps, to_extents, between; /* of the models; between: batches that ended between thresholds */
};

static int take_block(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		      struct btrkit_error *err)
{
	struct world *w = ctx;

	(void)level;
	(void)first;
	(void)err;
	assert_int_equal(owner, OID_FREE_SPACE_TREE);
	*bytenr = BASE + w->next_block++ * w->fs->geometry.nodesize;
	return 0;
}

static int change_refs(void *ctx, const struct extent_change *change, struct btrkit_error *err)
{
	(void)ctx;
	(void)change;
	(void)err;
	return 0;
}

static const struct overlay_ops ops = { .alloc = take_block, .change = change_refs };

static uint32_t roll(struct world *w, uint32_t below)
{
	random_step(&w->random);
	return (uint32_t)((w->random >> 33) % below);
}

/*
 * The groups are adjacent. The last bitmap of each is shorter than the others, and in the last group ends within a
 * byte.
 */
static struct world *create(uint32_t nodesize, uint64_t seed)
{
	static const uint64_t lengths[GROUPS] = { 20ull << 20, (203ull << 20) + 65536, (83ull << 20) + 3 * SECTOR };
	struct btrkit_mkfs_options opts = BTRKIT_MKFS_OPTIONS_INIT;
	struct world *w = calloc(1, sizeof(*w));
	uint64_t start = 1ull << 20;
	struct btrkit_io *io;

	assert_non_null(w);
	opts.nodesize = nodesize;
	w->random = seed;
	assert_int_equal(btrkit_io_memory(200ull << 20, &io, NULL), 0);
	assert_int_equal(btrkit_mkfs(&io, 1, &opts, NULL, NULL), 0);
	assert_int_equal(btrkit_fs_open(&io, 1, NULL, &w->fs, NULL), 0);
	failure_init(&w->failure);
	assert_int_equal(overlay_create(w->fs, w->fs->super.generation + 1, &ops, w, &w->failure, &w->o, NULL), 0);
	assert_int_equal(overlay_new_tree(w->o, OID_FREE_SPACE_TREE, &w->t, NULL), 0);
	for (unsigned i = 0; i < GROUPS; i++) {
		struct model *m = &w->models[i];

		*m = (struct model){ .group = { .start = start, .length = lengths[i] }, .count = 1 };
		start += lengths[i];
		m->limits = free_space_thresholds(lengths[i], SECTOR);
		m->sectors = lengths[i] / SECTOR;
		assert_true(m->sectors <= SECTORS_MAX);
		m->is_free = malloc(m->sectors);
		assert_non_null(m->is_free);
		memset(m->is_free, 1, m->sectors);
		assert_int_equal(free_space_add_group(w->t, &m->group, NULL), 0);
	}
	return w;
}

static void destroy(struct world *w)
{
	for (unsigned i = 0; i < GROUPS; i++)
		free(w->models[i].is_free);
	overlay_abort(w->o);
	btrkit_fs_close(w->fs);
	free(w);
}

/* Like Linux, compare with the thresholds after each change of the extent count. */
static void model_change(struct world *w, struct model *m, size_t first, size_t end, bool free)
{
	const bool before = first && m->is_free[first - 1], behind = end < m->sectors && m->is_free[end];
	const int delta = free ? 1 - before - behind : before + behind - 1;

	for (size_t i = first; i < end; i++) {
		assert_int_equal(m->is_free[i], !free);
		m->is_free[i] = free;
	}
	m->count += (uint32_t)delta;
	if (!delta)
		return;
	if (!m->bitmaps && m->count > m->limits.high) {
		m->bitmaps = true;
		w->to_bitmaps++;
	} else if (m->bitmaps && m->count < m->limits.low) {
		m->bitmaps = false;
		w->to_extents++;
	}
}

static size_t run_end(const struct model *m, size_t from)
{
	size_t to = from;

	while (to < m->sectors && m->is_free[to] == m->is_free[from])
		to++;
	return to;
}

/*
 * Chooses a batch that splits ranges (@how 0), merges ranges by freeing what is between them (1), inverts whole runs
 * (2), or does some of each (3). The model is changed too.
 */
static size_t draw_batch(struct world *w, struct model *m, unsigned how, struct space_change *changes)
{
	const size_t step = 1 + roll(w, (uint32_t)m->sectors / (1 + roll(w, BATCH_MAX)));
	size_t n = 0, at = roll(w, 4) ? roll(w, (uint32_t)step) : 0;

	for (; at < m->sectors && n < BATCH_MAX; at += roll(w, 3) ? 1 + roll(w, (uint32_t)step) : 0) {
		const unsigned kind = how < 3 ? how : roll(w, 3);
		size_t end, first = at;
		bool free;

		if (kind == 1 && m->is_free[first])
			first = run_end(m, first);
		if (first == m->sectors)
			break;
		free = !m->is_free[first];
		end = run_end(m, first);
		if (kind == 0 && end - first > 4)
			end = first + 1 + roll(w, 3);
		else if (kind == 2 && end - first > 4 && roll(w, 2))
			end -= 1 + roll(w, (uint32_t)(end - first) / 2);
		/* Adjacent changes of the same kind are not allowed. */
		if (n && changes[n - 1].free == free &&
		    range_end(&changes[n - 1].range) == m->group.start + first * SECTOR) {
			at = first + 1;
			continue;
		}
		changes[n++] = (struct space_change){ { m->group.start + first * SECTOR, (end - first) * SECTOR },
						      free };
		model_change(w, m, first, end, free);
		at = end;
	}
	return n;
}

static void fail_with(const struct btrkit_error *err)
{
	char line[400];

	fail_msg("%s", btrkit_error_format(err, line, sizeof(line)));
}

static void compare_group(struct free_space_tree *t, const struct model *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range free;
	size_t at = 0;
	int ret = free_space_tree_enter(t, &m->group, &err);

	if (ret)
		fail_with(&err);
	assert_int_equal(t->info.flags, m->bitmaps);
	assert_int_equal(t->info.extent_count, m->count);
	while (!(ret = free_space_tree_next(t, &free, &err))) {
		const size_t first = (free.start - m->group.start) / SECTOR, end = first + free.length / SECTOR;

		for (; at < end; at++)
			assert_int_equal(m->is_free[at], at >= first);
	}
	if (ret < 0)
		fail_with(&err);
	for (; at < m->sectors; at++)
		assert_false(m->is_free[at]);
}

static void compare(struct world *w)
{
	struct free_space_tree t;

	assert_int_equal(free_space_tree_begin(&t, w->fs, NULL, NULL, NULL), 0);
	for (unsigned i = 0; i < GROUPS; i++)
		compare_group(&t, &w->models[i]);
	assert_int_equal(free_space_tree_end(&t, NULL), 0);
	assert_int_equal(t.leftovers + t.outside, 0);
	free_space_tree_release(&t);
	assert_int_equal(w->stats.to_bitmaps, w->to_bitmaps);
	assert_int_equal(w->stats.to_extents, w->to_extents);
}

/* Every block must be valid for a reader, with all of its items. */
static void seal(struct world *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sort_entry *blocks;
	size_t n;

	assert_int_equal(overlay_blocks(w->o, &blocks, &n, &err), 0);
	for (size_t i = 0; i < n; i++)
		if (overlay_seal(w->o, blocks[i].what, &err))
			fail_with(&err);
	free(blocks);
}

/* Written blocks are no longer private: the next batch must copy them. */
static void commit(struct world *w)
{
	const struct tree_root root = w->t->c.root;
	const uint64_t generation = w->o->generation, blocks = (uint64_t)w->t->blocks;

	seal(w);
	overlay_commit(w->o);
	assert_int_equal(overlay_create(w->fs, generation + 1, &ops, w, &w->failure, &w->o, NULL), 0);
	assert_int_equal(overlay_adopt_tree(w->o, &root, blocks, &w->t, NULL), 0);
}

/* Splits and merges ranges repeatedly, crossing the thresholds back and forth. */
static void run_batches(uint32_t nodesize, uint64_t seed, unsigned batches)
{
	static struct space_change changes[BATCH_MAX];
	struct world *w = create(nodesize, seed);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t applied = 0;

	for (unsigned i = 0; i < batches; i++) {
		struct model *m = &w->models[roll(w, 8) < 6 ? 1 + roll(w, 2) : 0];
		size_t n;

		if (m->fewer ? m->count < m->limits.low / 10 * 9 : m->count > m->limits.high / 10 * 11)
			m->fewer = !m->fewer;
		n = draw_batch(w, m, roll(w, 3) ? m->fewer : 2 + roll(w, 2), changes);
		if (free_space_edit(w->t, &m->group, changes, n, &w->stats, &err))
			fail_with(&err);
		applied += n;
		w->between += m->count >= m->limits.low && m->count <= m->limits.high;
		if (nodesize == 4096 || !(i % 7))
			compare(w);
		if (!(i % 10))
			commit(w);
	}
	compare(w);
	seal(w);
	assert_int_equal(w->stats.ranges, applied);
	printf("nodes of %u: %llu changes in %u batches, %llu times to bitmaps and %llu to extents\n", nodesize,
	       (unsigned long long)applied, batches, (unsigned long long)w->to_bitmaps,
	       (unsigned long long)w->to_extents);
	assert_true(w->to_bitmaps > 8 && w->to_extents > 8 && w->between > 20);
	/* Nothing of a removed group may remain. */
	assert_int_equal(free_space_remove_group(w->t, &w->models[1].group, NULL), 0);
	w->models[1].count = 1;
	w->models[1].bitmaps = false;
	memset(w->models[1].is_free, 1, w->models[1].sectors);
	assert_int_equal(free_space_add_group(w->t, &w->models[1].group, NULL), 0);
	compare(w);
	destroy(w);
}

static void batches_agree_with_the_model(void **state)
{
	(void)state;
	run_batches(4096, 1, 1000);
	run_batches(16384, 2, 1000);
	run_batches(65536, 3, 1000);
}

/* One change to group 0: sectors from @first up to but not including @end become free or used. */
static int change(struct world *w, size_t first, size_t end, bool free, struct btrkit_error *err)
{
	const struct model *m = &w->models[0];
	const struct space_change c = { { m->group.start + first * SECTOR, (end - first) * SECTOR }, free };

	return free_space_edit(w->t, &m->group, &c, 1, &w->stats, err);
}

#define HIGH 33u /* above this number of ranges group 0 uses bitmaps */

/* Marks every second one of 2 * @n sectors as used. */
static void use_every_second(struct world *w, unsigned n)
{
	struct space_change changes[2 * HIGH];

	for (unsigned i = 0; i < n; i++)
		changes[i] = (struct space_change){ { w->models[0].group.start + (2 * i + 1) * SECTOR, SECTOR },
						    false };
	assert_int_equal(free_space_edit(w->t, &w->models[0].group, changes, n, &w->stats, NULL), 0);
}

static struct btrkit_key group_key(const struct world *w, uint8_t type, size_t first, uint64_t length)
{
	return KEY(w->models[0].group.start + first * SECTOR, type, length);
}

static struct btrkit_key info_key(const struct world *w)
{
	return group_key(w, KEY_FREE_SPACE_INFO, 0, w->models[0].group.length);
}

static void put_info(struct world *w, uint32_t count, uint32_t flags)
{
	const struct disk_free_space_info info = { le32_put(count), le32_put(flags) };
	const struct btrkit_key key = info_key(w);

	assert_int_equal(edit_replace(w->t, &key, &info, sizeof(info), NULL), 0);
}

static void no_info(struct world *w)
{
	const struct btrkit_key key = info_key(w);

	assert_int_equal(edit_delete(w->t, &key, NULL), 0);
}

static void short_info(struct world *w)
{
	const struct btrkit_key key = info_key(w);

	assert_int_equal(edit_replace(w->t, &key, NULL, 4, NULL), 0);
}

static void unknown_flags(struct world *w)
{
	put_info(w, 1, 2);
}

static void no_ranges(struct world *w)
{
	put_info(w, 0, 0);
}

static void other_form(struct world *w)
{
	put_info(w, 1, FREE_SPACE_USING_BITMAPS);
}

static void extents_of_bitmaps(struct world *w)
{
	use_every_second(w, HIGH + 4);
	put_info(w, HIGH + 4, 0);
}

/* Moves or resizes the only extent of the group. */
static void replace_extent(struct world *w, size_t first, uint64_t length)
{
	const struct btrkit_key from = group_key(w, KEY_FREE_SPACE_EXTENT, 0, w->models[0].group.length),
				to = group_key(w, KEY_FREE_SPACE_EXTENT, first, length);

	assert_int_equal(edit_rekey(w->t, &from, &to, NULL), 0);
}

static void too_long(struct world *w)
{
	replace_extent(w, 0, w->models[0].group.length + SECTOR);
}

static void not_of_sectors(struct world *w)
{
	replace_extent(w, 0, w->models[0].group.length - 1);
}

static void overlap(struct world *w)
{
	const struct btrkit_key key = group_key(w, KEY_FREE_SPACE_EXTENT, 20, SECTOR);

	assert_int_equal(edit_insert(w->t, &key, NULL, 0, NULL), 0);
}

static void without_bitmap(struct world *w)
{
	const struct btrkit_key key = group_key(w, KEY_FREE_SPACE_BITMAP, 0, 2048 * SECTOR);

	use_every_second(w, HIGH + 4);
	assert_int_equal(edit_delete(w->t, &key, NULL), 0);
}

static void short_bitmap(struct world *w)
{
	const struct btrkit_key key = group_key(w, KEY_FREE_SPACE_BITMAP, 0, 2048 * SECTOR);

	use_every_second(w, HIGH + 4);
	assert_int_equal(edit_replace(w->t, &key, NULL, 255, NULL), 0);
}

/* The next change would convert the group to bitmaps. */
static void wrong_count(struct world *w)
{
	use_every_second(w, 10);
	put_info(w, HIGH, 0);
}

static void hole(struct world *w)
{
	assert_int_equal(change(w, 10, 20, false, NULL), 0);
}

static void hole_in_bits(struct world *w)
{
	hole(w);
	for (unsigned i = 0; i < HIGH + 4; i++)
		assert_int_equal(change(w, 100 + 2 * i, 101 + 2 * i, false, NULL), 0);
	assert_int_equal(w->stats.to_bitmaps, 1);
}

static void across_bitmaps(struct world *w)
{
	hole_in_bits(w);
	assert_int_equal(change(w, 2000, 2100, false, NULL), 0);
}

static const struct contradiction {
	const char *name;
	void (*prepare)(struct world *w);
	size_t first, end;
	bool free;
} contradictions[] = {
	{ "free already", hole, 30, 31, true },
	{ "its beginning is free", hole, 9, 12, true },
	{ "its end is free", hole, 12, 21, true },
	{ "free around", hole, 8, 22, true },
	{ "used already", hole, 12, 13, false },
	{ "its beginning is used", hole, 19, 25, false },
	{ "its end is used", hole, 5, 11, false },
	{ "used inside", hole, 5, 25, false },
	{ "bits are free already", hole_in_bits, 30, 31, true },
	{ "bits at the beginning are free", hole_in_bits, 9, 12, true },
	{ "bits at the end are free", hole_in_bits, 12, 21, true },
	{ "bits are used already", hole_in_bits, 12, 13, false },
	{ "bits at the beginning are used", hole_in_bits, 19, 25, false },
	{ "bits at the end are used", hole_in_bits, 5, 11, false },
	{ "a bit of the second bitmap is used", across_bitmaps, 1990, 2001, false },
	{ "a bit of the second bitmap is free", across_bitmaps, 2040, 2101, true },
	{ "no INFO", no_info, 10, 20, false },
	{ "a short INFO", short_info, 10, 20, false },
	{ "unknown flags", unknown_flags, 10, 20, false },
	{ "no ranges", no_ranges, 0, 5120, false },
	{ "an extent in a group of bitmaps", other_form, 10, 20, false },
	{ "a bitmap in a group of extents", extents_of_bitmaps, 1, 2, true },
	{ "an extent that is too long", too_long, 10, 20, false },
	{ "an extent that is not of sectors", not_of_sectors, 10, 20, false },
	{ "extents that overlap", overlap, 10, 15, false },
	{ "no bitmap", without_bitmap, 10, 11, false },
	{ "a short bitmap", short_bitmap, 10, 11, false },
	{ "a wrong count", wrong_count, 100, 101, false },
};

static void contradictions_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(contradictions); i++) {
		const struct contradiction *c = &contradictions[i];
		struct world *w = create(4096, 1);
		struct btrkit_error err = BTRKIT_ERROR_INIT;

		c->prepare(w);
		if (change(w, c->first, c->end, c->free, &err) != -EUCLEAN || err.code != BTRKIT_CORRUPT)
			fail_msg("%s: %d %s", c->name, err.err, err.message);
		if (!(err.places & BTRKIT_AT_TREE) || !(err.places & BTRKIT_AT_KEY) || err.tree != OID_FREE_SPACE_TREE)
			fail_msg("%s: the message lacks the place: %s", c->name, err.message);
		destroy(w);
	}
}

static void a_new_group_has_no_items(void **state)
{
	struct world *w = create(4096, 1);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct block_group g = { .start = w->models[0].group.start + (4 << 20), .length = 8 << 20 };

	(void)state;
	assert_int_equal(free_space_add_group(w->t, &w->models[0].group, &err), -EUCLEAN);
	assert_int_equal(err.tree, OID_FREE_SPACE_TREE);
	/* Nor can a group be added where another item lies. */
	use_every_second(w, 4);
	g.start = w->models[0].group.start;
	g.length = SECTOR;
	assert_int_equal(free_space_add_group(w->t, &g, NULL), -EUCLEAN);
	destroy(w);
}

/* A batch that converts to bitmaps, and one that converts back: each allocation fails in turn. */
static void failing_allocations_are_told(void **state)
{
	uint64_t failures = 0, at = 0, num;

	(void)state;
	do {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct world *w = create(4096, 1);
		struct model *m = &w->models[1];
		struct space_change changes[300];
		int ret = 0;

		memory_count(at, false);
		for (unsigned round = 0; !ret && round < 2; round++) {
			for (unsigned i = 0; i < ARRAY_SIZE(changes); i++)
				changes[i] = (struct space_change){ { m->group.start + (100 * i + 1) * SECTOR, SECTOR },
								    round };
			ret = free_space_edit(w->t, &m->group, changes, ARRAY_SIZE(changes), &w->stats, &err);
		}
		num = memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
		failures += ret != 0;
		if (!ret)
			assert_true(w->stats.to_bitmaps == 1 && w->stats.to_extents == 1);
		destroy(w);
	} while (num > at++);
	printf("%llu of %llu failing allocations were reported\n", (unsigned long long)failures,
	       (unsigned long long)at - 1);
	assert_true(failures > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_agree_with_the_model),
		cmocka_unit_test(contradictions_are_told),
		cmocka_unit_test(a_new_group_has_no_items),
		cmocka_unit_test(failing_allocations_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
