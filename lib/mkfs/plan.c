// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/plan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/mkfs/filled/fill.h"
#include "lib/mkfs/streams.h"

/* Trees that describe other trees grow with them, by less each round. Needing more rounds than this is a bug. */
#define ROUNDS_MAX 32

/* Maximum number of trees that are not subvolumes. */
#define OTHER_TREES 10

uint64_t mkfs_tree_num_blocks(const struct mkfs_tree *t)
{
	uint64_t n = 0;

	for (unsigned level = 0; level < LEVELS_MAX; level++)
		n += t->blocks[level];
	return n;
}

uint8_t mkfs_tree_level(const struct mkfs_tree *t)
{
	uint8_t level = 0;

	while (level + 1 < LEVELS_MAX && t->blocks[level + 1])
		level++;
	return level;
}

uint64_t mkfs_tree_slot(const struct mkfs_tree *t, unsigned level, uint64_t index)
{
	uint64_t slot = t->first_slot + index;

	while (level--)
		slot += t->blocks[level];
	return slot;
}

uint64_t mkfs_slot_address(const struct mkfs_plan *p, enum mkfs_role role, uint64_t slot,
			   const struct mkfs_group **group)
{
	const struct mkfs_group *g = mkfs_layout_slot(&p->layout, role, slot);

	if (group)
		*group = g;
	return mkfs_group_block(g, p->opts.nodesize, slot - g->first_slot);
}

uint64_t mkfs_tree_root(const struct mkfs_plan *p, const struct mkfs_tree *t)
{
	return mkfs_slot_address(p, t->role, mkfs_tree_slot(t, mkfs_tree_level(t), 0), NULL);
}

const struct mkfs_tree *mkfs_plan_tree(const struct mkfs_plan *p, uint64_t owner)
{
	for (unsigned i = 0; i < p->num_trees; i++)
		if (p->trees[i].owner == owner)
			return &p->trees[i];
	return NULL;
}

uint64_t mkfs_slots_used(const struct mkfs_plan *p, enum mkfs_role role)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < p->num_trees; i++)
		if (p->trees[i].role == role)
			n += mkfs_tree_num_blocks(&p->trees[i]);
	return n;
}

/* Returns the number of used blocks in a group for trees. */
static uint64_t blocks_in(const struct mkfs_plan *p, const struct mkfs_group *g)
{
	const uint64_t all = g->role == MKFS_DATA ? 0 : mkfs_slots_used(p, g->role);
	const uint64_t here = all > g->first_slot ? all - g->first_slot : 0;

	return here < g->slots ? here : g->slots;
}

uint64_t mkfs_group_used(const struct mkfs_plan *p, const struct mkfs_group *g)
{
	return g->role == MKFS_DATA ? g->used : blocks_in(p, g) * p->opts.nodesize;
}

uint64_t mkfs_group_end(const struct mkfs_plan *p, const struct mkfs_group *g)
{
	return g->role == MKFS_DATA ? g->end : mkfs_group_blocks_end(g, p->opts.nodesize, blocks_in(p, g));
}

uint64_t mkfs_group_extent_taken(const struct mkfs_plan *p, const struct mkfs_group *g)
{
	return mkfs_group_extent_used(g, mkfs_group_blocks_end(g, p->opts.nodesize, blocks_in(p, g)));
}

uint64_t mkfs_plan_bytes_used(const struct mkfs_plan *p)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < p->layout.num_groups; i++)
		n += mkfs_group_used(p, &p->layout.groups[i]);
	return n;
}

static struct mkfs_tree *add_tree(struct mkfs_plan *p, uint64_t owner, mkfs_stream_fn stream)
{
	struct mkfs_tree *t = &p->trees[p->num_trees++];

	*t = (struct mkfs_tree){ .owner = owner,
				 .stream = stream,
				 .role = owner == OID_CHUNK_TREE ? MKFS_CHUNK_TREE : MKFS_TREES };
	return t;
}

/* Adds the trees of all subvolumes, the top level first. */
static void add_subvolumes(struct mkfs_plan *p)
{
	for (uint32_t i = 0; i < mkfs_fill_subvolumes(p->fill); i++)
		add_tree(p, mkfs_fill_subvolume_id(i), p->fill ? mkfs_stream_files : mkfs_stream_top_level)->settled =
			true;
}

static int choose_trees(struct mkfs_plan *p, struct btrkit_error *err)
{
	p->trees = calloc(OTHER_TREES + (size_t)mkfs_fill_subvolumes(p->fill), sizeof(*p->trees));
	if (!p->trees)
		return err_nomem(err);
	add_tree(p, OID_CHUNK_TREE, mkfs_stream_chunks);
	add_subvolumes(p);
	add_tree(p, OID_CSUM_TREE, p->fill ? mkfs_stream_csums : mkfs_stream_nothing)->settled = true;
	add_tree(p, OID_UUID_TREE, mkfs_stream_uuids)->settled = true;
	add_tree(p, OID_DATA_RELOC_TREE, mkfs_stream_data_reloc)->settled = true;
	add_tree(p, OID_DEV_TREE, mkfs_stream_devices);
	if (p->opts.compat_ro & COMPAT_RO_FREE_SPACE_TREE)
		add_tree(p, OID_FREE_SPACE_TREE, mkfs_stream_free_space);
	if (p->opts.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE)
		add_tree(p, OID_BLOCK_GROUP_TREE, mkfs_stream_block_groups);
	if (p->opts.flags & BTRKIT_MKFS_QUOTA)
		add_tree(p, OID_QUOTA_TREE, mkfs_stream_quota);
	add_tree(p, OID_EXTENT_TREE, mkfs_stream_extents);
	add_tree(p, OID_ROOT_TREE, mkfs_stream_roots);
	return 0;
}

/* Context of a counting run. */
struct count_ctx {
	struct mkfs_tree *tree;
	unsigned level; /* level whose keys are collected */
};

static int take_key(void *ctx, unsigned level, uint64_t index, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct count_ctx *c = ctx;
	struct mkfs_tree *t = c->tree;

	(void)index;
	if (level != c->level)
		return 0;
	if (t->num_keys == t->keys_size) {
		size_t size = t->keys_size ? 2 * t->keys_size : 16;
		struct btrkit_key *more = reallocarray(t->keys, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		t->keys = more;
		t->keys_size = size;
	}
	t->keys[t->num_keys++] = *key;
	return 0;
}

int mkfs_tree_run(const struct mkfs_plan *p, const struct mkfs_tree *t, const struct bulk_config *config,
		  struct tree_root *root, uint64_t *blocks, struct btrkit_error *err)
{
	struct bulk *b;
	int ret;

	ret = bulk_create(config, &b, err);
	if (ret)
		return ret;
	ret = t->stream(p, t, b, err);
	if (!ret)
		ret = bulk_finish(b, root, err);
	for (unsigned level = 0; blocks && level < LEVELS_MAX; level++)
		blocks[level] = bulk_blocks(b, level);
	bulk_destroy(b);
	return ret;
}

/* Passes the items of a tree to a builder that only counts. */
static int run_counting(const struct mkfs_plan *p, struct count_ctx *ctx, bool keys, uint64_t blocks[LEVELS_MAX],
			struct btrkit_error *err)
{
	const struct bulk_config config = {
		.rules = &p->rules,
		.items = &p->items,
		.owner = ctx->tree->owner,
		.generation = p->generation,
		.first_key = keys ? take_key : NULL,
		.ctx = ctx,
	};
	struct tree_root root;

	return mkfs_tree_run(p, ctx->tree, &config, &root, blocks, err);
}

static int count_blocks(const struct mkfs_plan *p, struct mkfs_tree *t, bool *changed, struct btrkit_error *err)
{
	struct count_ctx ctx = { .tree = t };
	uint64_t blocks[LEVELS_MAX];
	const int ret = run_counting(p, &ctx, false, blocks, err);

	if (ret)
		return ret;
	*changed |= memcmp(blocks, t->blocks, sizeof(blocks)) != 0;
	memcpy(t->blocks, blocks, sizeof(blocks));
	return 0;
}

/* Collects the first keys of all blocks level by level, so that they are in slot order. */
static int collect_keys(const struct mkfs_plan *p, struct mkfs_tree *t, struct btrkit_error *err)
{
	struct count_ctx ctx = { .tree = t };
	uint64_t blocks[LEVELS_MAX];
	int ret = 0;

	for (; !ret && ctx.level <= mkfs_tree_level(t); ctx.level++)
		ret = run_counting(p, &ctx, true, blocks, err);
	return ret;
}

static void give_places(struct mkfs_plan *p)
{
	uint64_t next[] = { [MKFS_CHUNK_TREE] = 0, [MKFS_TREES] = 0 };

	for (unsigned i = 0; i < p->num_trees; i++) {
		p->trees[i].first_slot = next[p->trees[i].role];
		next[p->trees[i].role] += mkfs_tree_num_blocks(&p->trees[i]);
	}
}

static int check_room(const struct mkfs_plan *p, struct btrkit_error *err)
{
	for (enum mkfs_role role = MKFS_CHUNK_TREE; role <= MKFS_TREES; role++) {
		const uint64_t used = mkfs_slots_used(p, role);
		const struct mkfs_group *last = mkfs_layout_slot(&p->layout, role, UINT64_MAX);

		if (used > last->first_slot + last->slots)
			return err_set(err, BTRKIT_NO_SPACE, "the trees do not fit into their block group");
	}
	return 0;
}

/* Counts the blocks of all trees once. Sets *changed if another round is needed. */
static int count_trees(struct mkfs_plan *p, unsigned round, bool *changed, struct btrkit_error *err)
{
	int ret = 0;

	*changed = false;
	for (unsigned i = 0; !ret && i < p->num_trees; i++)
		if (!round || !p->trees[i].settled)
			ret = count_blocks(p, &p->trees[i], changed, err);
	if (!ret && p->make_room)
		ret = p->make_room(p, mkfs_slots_used(p, MKFS_TREES), err);
	if (!ret)
		give_places(p);
	return ret;
}

int mkfs_plan_make(struct mkfs_plan *p, struct btrkit_error *err)
{
	bool changed = true;
	int ret;

	ret = choose_trees(p, err);
	for (unsigned round = 0; !ret && changed; round++) {
		if (round == ROUNDS_MAX)
			return err_set(err, BTRKIT_NO_SPACE, "the sizes of the trees do not converge");
		ret = count_trees(p, round, &changed, err);
	}
	if (!(p->opts.incompat & INCOMPAT_SKINNY_METADATA))
		for (unsigned i = 0; !ret && i < p->num_trees; i++)
			ret = collect_keys(p, &p->trees[i], err);
	return ret ? ret : check_room(p, err);
}

void mkfs_plan_release(struct mkfs_plan *p)
{
	for (unsigned i = 0; i < p->num_trees; i++)
		free(p->trees[i].keys);
	free(p->trees);
	p->trees = NULL;
	p->num_trees = 0;
	mkfs_layout_release(&p->layout);
}
