// SPDX-License-Identifier: LGPL-2.1-or-later
/* Predicts the result of a conversion, with one pass over the extent tree. */
#include "lib/base/err.h"
#include "lib/commit/clock.h"
#include "lib/space/chunk.h"
#include "lib/space/free_space_edit.h"
#include "lib/space_cache/convert.h"

/* Blocks on the paths to the changes in the few other trees. */
#define PATH_BLOCKS (4u * LEVELS_MAX)
/* At most one of this many copied blocks is split because of items for new blocks. */
#define SPLIT_SHARE 8u
/* Estimates: number of commits, and time of each for flushing the devices. */
#define COMMITS 2u
#define FLUSHES_NS 30000000u

struct count {
	struct conversion *cv;
	struct block_groups groups;
	struct extent_ranges ranges;
};

static bool has_trees(const struct block_group *g)
{
	return g->flags & (BG_METADATA | BG_SYSTEM);
}

static int tell(void *ctx, unsigned level, uint64_t index, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct count *n = ctx;

	(void)level, (void)index, (void)key;
	return progress_tell(&n->cv->progress, PROGRESS_COUNT, n->ranges.next, n->groups.n, err);
}

/* Runs the builder of the tree without writing anything. This also validates the extent tree. */
static int count_tree(struct count *n, struct free_space_built *built, uint64_t *blocks, struct btrkit_error *err)
{
	struct conversion *cv = n->cv;
	const struct bulk_config config = { .rules = &cv->fs->rules,
					    .items = &cv->fs->items,
					    .owner = OID_FREE_SPACE_TREE,
					    .first_key = tell,
					    .ctx = n };
	struct tree_root root;
	struct bulk *b;
	int ret;

	ret = bulk_create(&config, &b, err);
	if (ret)
		return ret;
	ret = extent_ranges_begin(&n->ranges, cv->fs, &n->groups, err);
	if (!ret)
		ret = free_space_build(&n->ranges, cv->fs->geometry.sectorsize, b, built, err);
	if (!ret)
		ret = bulk_finish(b, &root, err);
	*blocks = 0;
	for (unsigned level = 0; !ret && level <= root.level; level++)
		*blocks += bulk_blocks(b, level);
	extent_ranges_release(&n->ranges);
	bulk_destroy(b);
	return ret;
}

/* Counts the leaves of the extent tree with items of a block group. */
static int count_leaves(struct cursor *c, const struct block_group *g, uint64_t *blocks, struct btrkit_error *err)
{
	const struct node *leaf = NULL;
	int ret;

	for (ret = cursor_seek(c, &KEY(g->start, 0, 0), err); !ret && c->item.key.objectid - g->start < g->length;
	     ret = cursor_next(c, err)) {
		*blocks += cursor_leaf(c) != leaf;
		leaf = cursor_leaf(c);
	}
	return ret < 0 ? ret : 0;
}

/*
 * Blocks of trees are described in the extent tree and the free space tree, in the parts about metadata block groups.
 * Only these parts change, in the worst case every block of them.
 */
static int count_described(struct count *n, uint64_t *blocks, struct btrkit_error *err)
{
	const uint64_t bitmap = 8ull * FREE_SPACE_BITMAP_BYTES * n->cv->fs->geometry.sectorsize;
	const uint64_t item = FREE_SPACE_BITMAP_BYTES + sizeof(struct disk_item);
	const uint64_t room = leaf_room(n->cv->fs->geometry.nodesize);
	uint64_t extents = 0, tree = 0;
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = fs_find_root(n->cv->fs, OID_EXTENT_TREE, &root, NULL, err);
	if (ret)
		return ret;
	cursor_init(&c, n->cv->fs, &root);
	for (size_t i = 0; !ret && i < n->groups.n; i++) {
		const struct block_group *g = &n->groups.at[i];

		if (!has_trees(g))
			continue;
		ret = count_leaves(&c, g, &extents, err);
		/* No group needs more items than as bitmaps. The block group item may be in another tree. */
		tree += (g->length / bitmap + 2) * item / room + 3;
	}
	cursor_release(&c);
	/* Nodes have far more than two children. */
	*blocks = extents + extents / 2 + tree;
	return ret;
}

/* Gets the free space for tree blocks, including pieces that are too small. */
static int free_bytes(const struct count *n, uint64_t *ret, struct btrkit_error *err)
{
	*ret = 0;
	for (size_t i = 0; i < n->groups.n; i++) {
		const struct block_group *g = &n->groups.at[i];
		struct block_group_supers supers;
		uint64_t lost;
		int r;

		if (!(g->flags & BG_METADATA))
			continue;
		r = block_group_supers(n->cv->fs, g, &supers, err);
		if (r)
			return r;
		lost = g->used + block_group_supers_bytes(&supers);
		block_group_supers_release(&supers);
		*ret += lost < g->length ? g->length - lost : 0;
	}
	return 0;
}

void convert_take_built(struct conversion *cv, const struct free_space_built *built)
{
	struct btrkit_space_change *sum = &cv->sum;

	sum->v2_groups = built->groups;
	sum->v2_bitmap_groups = built->bitmap_groups;
	sum->v2_extents = built->extents;
	sum->v2_bitmaps = built->bitmaps;
	sum->v2_ranges = built->ranges;
}

/* Estimate the time: the extent tree is read twice more, and writing takes as long as reading. */
static uint64_t estimate(const struct conversion *cv, uint64_t spent, uint64_t tree_bytes)
{
	const double passes = (cv->build_v2 ? 2 : 0) + (double)cv->sum.needed_bytes / (double)(tree_bytes + 1);

	return spent + (uint64_t)((double)spent * passes) + (uint64_t)COMMITS * FLUSHES_NS;
}

/* Sizes of trees, from their root items. */
struct tree_sizes {
	uint64_t extents, groups, free_space;
};

static int tree_size(struct btrkit_fs *fs, uint64_t id, uint64_t *bytes, struct btrkit_error *err)
{
	struct root_item item = { 0 };
	struct tree_root root;
	int ret = fs_try_root(fs, id, &root, &item, err);

	*bytes = item.bytes_used;
	return ret < 0 ? ret : 0;
}

static int tree_sizes(struct btrkit_fs *fs, struct tree_sizes *ret, struct btrkit_error *err)
{
	int r = tree_size(fs, OID_EXTENT_TREE, &ret->extents, err);

	if (!r)
		r = tree_size(fs, OID_BLOCK_GROUP_TREE, &ret->groups, err);
	return r ? r : tree_size(fs, OID_FREE_SPACE_TREE, &ret->free_space, err);
}

static void take_v1(struct conversion *cv)
{
	cv->sum.v1_headers = cv->v1.headers;
	cv->sum.v1_files = cv->v1.files;
	cv->sum.v1_extents = cv->v1.extents;
	cv->sum.v1_bytes = cv->v1.bytes;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Maximum number of blocks that one transaction allocates before it can reuse what it frees. @described: see
 * count_described(); @trees: blocks of the trees with items about the files' extents
 */
static uint64_t most_blocks(const struct conversion *cv, uint64_t described, uint64_t trees)
{
	uint64_t removed = 0, most;

	/*
	 * Each file may affect different parts of these trees, but the transaction is committed when it becomes large.
	 */
	if (cv->clear_v1)
		removed = lower(lower(CONVERT_FILE_BLOCKS * cv->v1.extents, trees) + cv->v1.blocks,
				cv->held_bytes / cv->fs->geometry.nodesize);
	most = (removed > cv->sum.v2_blocks ? removed : cv->sum.v2_blocks) + described;
	return most + most / SPLIT_SHARE + PATH_BLOCKS;
}

/* Counts free pieces for tree blocks, as many as needed, from the extent tree, because the caches may be wrong. */
static int count_pieces(const struct conversion *cv, struct space *s, uint64_t *pieces, struct btrkit_error *err)
{
	*pieces = 0;
	for (size_t i = 0; i < space_num_groups(s) && *pieces < cv->blocks; i++) {
		struct space_group *g = space_group_at(s, i);
		int ret;

		if (!(g->item.flags & BG_METADATA))
			continue;
		ret = space_load(s, g, SPACE_FROM_EXTENTS, err);
		if (ret)
			return ret;
		*pieces += free_map_pieces(g->free, cv->fs->geometry.nodesize, cv->blocks - *pieces);
	}
	return 0;
}

/* Calculates the available space: either all of it, or with a new chunk, at least as much as needed. */
static int count_available(struct count *n, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct conversion *cv = n->cv;
	const uint32_t nodesize = cv->fs->geometry.nodesize;
	struct chunk_plan plan;
	struct space *s;
	uint64_t pieces = 0;
	int ret;

	ret = space_create(cv->fs, &s, err);
	if (ret)
		return ret;
	ret = count_pieces(cv, s, &pieces, err);
	cv->sum.available_bytes = pieces * nodesize;
	if (!ret && pieces >= cv->blocks)
		ret = free_bytes(n, &cv->sum.available_bytes, err);
	if (!ret && pieces < cv->blocks) {
		ret = chunk_plan(s, BG_METADATA, &plan, &own);
		cv->sum.available_bytes += ret ? 0 : plan.length;
		ret = ret == -ENOSPC ? 0 : err_pass(err, &own, ret);
	}
	space_destroy(s);
	return ret;
}

/* Blocks lost because the new tree begins and ends with a separate row. */
static uint64_t lost_blocks(const struct count *n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n->groups.n; i++) {
		const struct block_group *g = &n->groups.at[i];
		const uint64_t row = g->flags & BG_METADATA ? block_group_full_stripe(n->cv->fs, g) : 0;

		most = row > most ? row : most;
	}
	return 2 * (most / n->cv->fs->geometry.nodesize);
}

/* Calculates what the transactions need for trees of the given sizes. */
static int count_need(struct count *n, const struct tree_sizes *sizes, struct btrkit_error *err)
{
	struct conversion *cv = n->cv;
	const uint64_t trees = (sizes->extents + sizes->groups + sizes->free_space) / cv->fs->geometry.nodesize;
	uint64_t described = 0;
	int ret = count_described(n, &described, err);

	if (ret)
		return ret;
	cv->blocks = most_blocks(cv, described, trees + 1) + lost_blocks(n);
	cv->sum.needed_bytes = cv->blocks * cv->fs->geometry.nodesize;
	return count_available(n, err);
}

static int count_all(struct count *n, struct btrkit_error *err)
{
	struct conversion *cv = n->cv;
	struct free_space_built built = { 0 };
	const uint64_t start = now_ns();
	struct tree_sizes sizes;
	uint64_t blocks;
	int ret;

	ret = count_tree(n, &built, &blocks, err);
	if (!ret)
		ret = tree_sizes(cv->fs, &sizes, err);
	if (ret)
		return ret;
	cv->sum.extents = built.extents_read;
	if (cv->build_v2) {
		convert_take_built(cv, &built);
		cv->sum.v2_blocks = blocks;
	}
	if (cv->drop_v2)
		cv->sum.v2_removed_blocks = sizes.free_space / cv->fs->geometry.nodesize;
	if (cv->clear_v1)
		take_v1(cv);
	ret = count_need(n, &sizes, err);
	if (!ret && cv->opts->flags & BTRKIT_SPACE_DRY_RUN)
		cv->sum.estimated_ns = estimate(cv, now_ns() - start, sizes.extents);
	return ret;
}

int convert_count(struct conversion *cv, struct btrkit_error *err)
{
	struct count n = { .cv = cv };
	int ret = block_groups_load(cv->fs, &n.groups, err);

	if (ret)
		return ret;
	ret = count_all(&n, err);
	block_groups_release(&n.groups);
	return ret;
}
