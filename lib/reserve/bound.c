// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bounds assume the worst case: each change of an item copies a path of its own, and splits its leaf. But no block
 * is copied twice, and a tree has only so many blocks. A leaf with few items left is merged with a neighbour without
 * copying that: see edit_join.c.
 *
 * Each copied block adds an extent and drops another. Both change items of the extent tree and the free space, which
 * copies further blocks. This ends when those trees are completely private, which is what the bound amounts to unless
 * they are large. For large trees, the blocks that follow from other blocks are assumed not to exceed the maximum of
 * Linux's global reserve, as Linux itself assumes.
 *
 * Copying a block that a snapshot shares also changes references to all that the block refers to: those of the copy,
 * and those that replace the references of the old block.
 */
#include "lib/reserve/bound.h"

#include <errno.h>

#include "lib/commit/refs.h"
#include "lib/commit/txn.h"
#include "lib/delayed/delayed.h"

/* Changes that every commit makes itself: quotas, a chunk. */
#define CHANGES_OF_A_COMMIT 8u

#define FOLLOWING_MAX (512ull << 20)

/* Maximum size of data extents that Linux makes, including preallocated ones. */
#define EXTENT_MAX (256ull << 20)

/* Sizes in bytes, including the header if it is an item of its own. */
#define EXTENT_BYTES 80u       /* a new extent or reference */
#define DEV_EXTENT_BYTES 73u
#define ROOT_ITEM_GROWS 200u   /* from the format before Linux 3.6 */
#define BITMAP_BYTES 281u      /* of a block group, for BITMAP_SECTORS sectors */
#define BITMAP_SECTORS 2048u
#define FILE_EXTENT_BYTES 78u

/* Minimum average of children assumed for inner nodes. No program makes trees with fewer. */
#define CHILDREN_MIN 16u

/* Changes in a tree. */
struct tree_load {
	uint64_t touched;  /* items or positions, in the worst case each in a leaf of its own */
	uint64_t inserted; /* of these, items that are inserted or grow */
	uint64_t bytes;	   /* of the inserted items */
	unsigned batches;  /* new leaves for each leaf's worth of inserted items */
};

/*
 * Leaves for items inserted one by one. An item that does not fit leaves at least one of two adjacent leaves full, so
 * there are at most two leaves for each leaf's worth of items.
 */
#define ONE_BY_ONE 2u
/*
 * Leaves for batches of delayed items. Two consecutive batches exceed a leaf, and so do two adjacent leaves that they
 * make; each of both may also be split by existing items.
 */
#define BY_BATCHES 5u

/* The resulting cost. */
struct tree_cost {
	uint64_t blocks;  /* copied or new blocks */
	uint64_t changes; /* changes of references to blocks */
};

/* What a commit has to enter into its trees. */
struct commit_load {
	uint64_t changes; /* changes of references */
	uint64_t data;	  /* of these, for data that may be freed */
	uint64_t items;	  /* items of files, some of which may bring checksums */
	uint64_t bytes;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Upper bound of the number of inner nodes. In trees with few levels, the root tells it. */
static int count_inner(struct btrkit_txn *txn, const struct tree_root *root, uint64_t blocks, uint64_t *ret,
		       struct btrkit_error *err)
{
	const struct node_ref ref = { root->bytenr, root->generation, root->id, root->level, NULL };
	struct node *n;
	int r;

	*ret = root->level > 0;
	if (root->level < 2)
		return 0;
	r = node_get(txn->fs, &ref, &n, err);
	if (r)
		return r;
	*ret = root->level == 2 ? n->nritems + 1 : blocks / CHILDREN_MIN + root->level + 1u;
	node_put(txn->fs, n);
	return 0;
}

/* @blocks: number of blocks by the root item. It is ignored for trees with one level, which have one block */
static int shape_of(struct btrkit_txn *txn, const struct tree_root *root, const struct edit_tree *e, uint64_t blocks,
		    struct tree_shape *ret, struct btrkit_error *err)
{
	const uint64_t more = e && e->blocks > 0 ? (uint64_t)e->blocks : 0, private = e ? e->private : 0;
	struct tree_shape s = { .blocks = root->level ? blocks + more + 1 : 1, .levels = root->level + 1u,
				.trees = 1 };
	uint64_t inner;
	int r = count_inner(txn, root, s.blocks, &inner, err);

	if (r)
		return r;
	s.old = s.blocks > private ? s.blocks - private : 0;
	s.inner = inner;
	s.old_inner = inner - least(inner, e ? e->private_inner : 0);
	*ret = s;
	return 0;
}

static int find_shape(struct btrkit_txn *txn, uint64_t id, struct tree_shape *ret, struct btrkit_error *err)
{
	const struct edit_tree *e = overlay_open_tree(txn->overlay, id);
	struct tree_root root;
	struct root_item item;
	int r = fs_try_root(txn->fs, id, &root, &item, err);

	*ret = (struct tree_shape){ 0 };
	if (r)
		return r < 0 ? r : 0;
	return shape_of(txn, &root, e, item.bytes_used / txn->fs->geometry.nodesize, ret, err);
}

/* The size of the root tree is not stored anywhere, so derive it from the tree's root. */
static int root_tree_shape(struct btrkit_txn *txn, struct tree_shape *ret, struct btrkit_error *err)
{
	const struct tree_root *root = &txn->fs->root_tree;
	const struct node_ref ref = { root->bytenr, root->generation, root->id, root->level, NULL };
	const struct edit_tree *e = overlay_open_tree(txn->overlay, OID_ROOT_TREE);
	const uint64_t capacity = leaf_room(txn->fs->geometry.nodesize) / sizeof(struct disk_key_ptr);
	uint64_t blocks;
	struct node *n;
	int r = node_get(txn->fs, &ref, &n, err);

	if (r)
		return r;
	blocks = root->level ? n->nritems : 1;
	node_put(txn->fs, n);
	for (unsigned level = 1; level < root->level; level++)
		blocks = least(blocks * capacity, UINT32_MAX);
	return shape_of(txn, root, e, blocks, ret, err);
}

/* Each changed leaf is copied, but not the neighbour that it is merged with. */
static uint64_t leaf_copies(const struct tree_shape *s, uint64_t leaves)
{
	return least(leaves, s->old);
}

/* Like leaf_copies(), for the nodes above the leaves. */
static uint64_t inner_copies(const struct tree_shape *s, uint64_t leaves)
{
	return least(leaves * (s->levels - 1u), s->old_inner);
}

/* Cost if the changes are known to be in at most @leaves leaves. */
static struct tree_cost cost_in(const struct bound *b, const struct tree_shape *s, const struct tree_load *l,
				uint64_t leaves)
{
	const uint64_t capacity = b->room / sizeof(struct disk_key_ptr);
	uint64_t splits = 0, nodes = 0, lowered;
	struct tree_cost c = { 0 };

	if (!s->levels || !l->touched)
		return c;
	if (l->inserted) {
		splits = least(l->inserted, s->blocks) + l->batches * l->bytes / b->room + 2;
		nodes = least(s->blocks / capacity, splits * s->levels) + 4 * splits / capacity + s->levels + 1;
	}
	/* The only child of a root is copied before it becomes the root; an emptied tree gets a new root. */
	lowered = least(l->touched, s->trees) * s->levels;
	c.blocks = leaf_copies(s, leaves) + inner_copies(s, leaves) + lowered + splits + nodes;
	/*
	 * Each block adds and drops a reference; on each level, one node may be freed because it is empty or was
	 * merged.
	 */
	c.changes = 2 * c.blocks + least(l->touched, s->blocks) + least(l->touched * (s->levels - 1u), s->inner);
	return c;
}

static struct tree_cost cost_of(const struct bound *b, const struct tree_shape *s, const struct tree_load *l)
{
	return cost_in(b, s, l, l->touched);
}

static void add_cost(struct tree_cost *to, struct tree_cost c)
{
	to->blocks += c.blocks;
	to->changes += c.changes;
}

static int find_shapes(struct btrkit_txn *txn, struct bound *b, struct btrkit_error *err)
{
	const struct { uint64_t id; struct tree_shape *to; } trees[] = {
		{ OID_EXTENT_TREE, &b->extents },	{ OID_CSUM_TREE, &b->csums },
		{ OID_FREE_SPACE_TREE, &b->free_space }, { OID_BLOCK_GROUP_TREE, &b->block_groups },
		{ OID_DEV_TREE, &b->devices },
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(trees) / sizeof(trees[0]); i++)
		ret = find_shape(txn, trees[i].id, trees[i].to, err);
	return ret ? ret : root_tree_shape(txn, &b->root_tree, err);
}

/* Cost of the changes in the trees that a commit changes. */
static struct tree_cost commit_trees(const struct bound *b, const struct commit_load *c)
{
	const uint64_t groups = least(c->changes, b->groups), roots = b->roots + CHANGES_OF_A_COMMIT;
	const uint64_t stripes = b->num_devices + CHANGES_OF_A_COMMIT;
	const uint64_t sums = 2 * c->data + c->items;
	/* An extent item, and a keyed reference if it does not fit into that. */
	const struct tree_load extents = { 2 * c->changes, c->changes, c->changes * EXTENT_BYTES, ONE_BY_ONE };
	const uint64_t bitmaps = least(groups * b->bitmaps_most, b->bitmaps);
	/* Free space before and after each extent, and the info items of the groups. */
	const struct tree_load free_space = { 2 * c->changes + groups, c->changes + groups,
					      c->changes * sizeof(struct disk_item) + bitmaps, ONE_BY_ONE };
	const struct tree_load csums = { sums, sums, 2 * c->data * sizeof(struct disk_item) + c->bytes,
					ONE_BY_ONE };
	const struct tree_load block_groups = { groups + CHANGES_OF_A_COMMIT, CHANGES_OF_A_COMMIT, 1024,
						ONE_BY_ONE };
	const struct tree_load root_tree = { roots, roots, roots * ROOT_ITEM_GROWS, ONE_BY_ONE };
	const struct tree_load devices = { stripes, stripes, stripes * DEV_EXTENT_BYTES, ONE_BY_ONE };

	struct tree_cost sum = { CHANGES_OF_A_COMMIT, 2 * CHANGES_OF_A_COMMIT };

	add_cost(&sum, cost_of(b, &b->extents, &extents));
	add_cost(&sum, cost_of(b, &b->free_space, &free_space));
	add_cost(&sum, cost_of(b, &b->csums, &csums));
	/* Leaves of checksums that are freed as a whole. */
	sum.changes += least(c->data * b->sums_leaves, b->csums.blocks);
	add_cost(&sum, cost_of(b, &b->block_groups, &block_groups));
	add_cost(&sum, cost_of(b, &b->root_tree, &root_tree));
	add_cost(&sum, cost_of(b, &b->devices, &devices));
	return sum;
}

/* Cost of a commit, including what follows from changes of its own blocks. */
static uint64_t blocks_of_commit(const struct bound *b, const struct commit_load *load)
{
	struct tree_cost cost = commit_trees(b, load);
	const uint64_t most = cost.blocks + b->following_max;
	struct commit_load c = *load;
	uint64_t before;

	do {
		before = cost.blocks;
		c.changes = load->changes + cost.changes;
		cost = commit_trees(b, &c);
	} while (cost.blocks > before && cost.blocks < most);
	return least(cost.blocks, most);
}

/* What is pending, and what an exclusive thread may change. */
static struct commit_load load_now(const struct bound *b)
{
	return (struct commit_load){ .changes = b->pending + CHANGES_OF_A_COMMIT, .data = b->pending_data };
}

static void add_shape(struct tree_shape *to, const struct tree_shape *s)
{
	to->blocks += s->blocks;
	to->old += s->old;
	to->inner += s->inner;
	to->old_inner += s->old_inner;
	to->levels = s->levels > to->levels ? s->levels : to->levels;
	to->trees++;
}

static int find_file_trees(struct btrkit_txn *txn, struct bound *b, struct btrkit_error *err)
{
	int ret = 0;

	for (const struct delayed_tree *t = txn->delayed->list; !ret && t; t = t->next) {
		const struct edit_tree *e = t->edit;
		struct tree_shape s;

		/* The blocks of a deleted subvolume have been freed by a commit. */
		if (t->deleted)
			continue;
		ret = shape_of(txn, &e->c.root, e, t->blocks, &s, err);
		if (ret)
			break;
		add_shape(&b->files, &s);
		if ((e->last_snapshot || e->era) && s.levels > 1)
			add_shape(&b->shared, &s);
	}
	return ret;
}

/* Sizes of the bitmaps of all groups, and of the largest group. */
static void count_bitmaps(struct btrkit_txn *txn, struct bound *b)
{
	const uint64_t part = (uint64_t)BITMAP_SECTORS * txn->fs->geometry.sectorsize;

	for (size_t i = 0; i < b->groups; i++) {
		const uint64_t n = space_group_at(txn->space, i)->item.length / part + 1, bytes = n * BITMAP_BYTES;

		b->bitmaps += bytes;
		b->bitmaps_most = bytes > b->bitmaps_most ? bytes : b->bitmaps_most;
	}
}

int bound_begin(struct btrkit_txn *txn, struct bound *ret, struct btrkit_error *err)
{
	const struct ticket_exclusive *exclusive = &txn->tickets->exclusive;
	int r;

	*ret = (struct bound){
		.room = leaf_room(txn->fs->geometry.nodesize),
		.sums_leaves = EXTENT_MAX / txn->fs->geometry.sectorsize * txn->fs->geometry.csum->size /
				       leaf_room(txn->fs->geometry.nodesize) +
			       2,
		.groups = space_num_groups(txn->space),
		.num_devices = le64_get(txn->super.num_devices),
		.following_max = FOLLOWING_MAX / txn->fs->geometry.nodesize,
		.pending = refs_pending(txn->refs) + refs_queued(txn->refs) + exclusive->refs,
		.pending_data = refs_pending_data(txn->refs) + exclusive->data,
		.exclusive = exclusive->blocks,
	};
	for (const struct edit_tree *t = txn->overlay->trees; t; t = t->next)
		ret->roots++;
	count_bitmaps(txn, ret);
	r = find_shapes(txn, ret, err);
	return r ? r : find_file_trees(txn, ret, err);
}

/*
 * Changes of references to what shared blocks refer to: from the copy and from the old block. A block and the one that
 * it is merged with have no more references together than fit into one block, except for those deleted before. Roots
 * are not shared.
 */
static uint64_t shared_refs(const struct bound *b, const struct tree_load *l)
{
	const struct tree_shape *s = &b->shared;
	const uint64_t in_leaf = b->room / FILE_EXTENT_BYTES, in_node = b->room / sizeof(struct disk_key_ptr);

	if (s->levels < 2)
		return 0;
	return 2 * (least(l->touched * (in_leaf + 1), s->old * in_leaf) +
		    least(l->touched * (s->levels - 2u) * (in_node + 1), s->blocks));
}

static struct tree_load load_of(const struct delayed_amount *all)
{
	const uint64_t items = (uint64_t)all->items, bytes = (uint64_t)all->bytes;

	return (struct tree_load){ items, least(items, bytes / sizeof(struct disk_item)), bytes, BY_BATCHES };
}

uint64_t bound_refs(const struct bound *b, const struct delayed_amount *all)
{
	const struct tree_load l = load_of(all);

	/* An item may drop one reference and add another one. */
	return cost_in(b, &b->files, &l, (uint64_t)all->leaves).changes + 2 * l.touched + shared_refs(b, &l);
}

uint64_t bound_own(const struct bound *b, const struct delayed_amount *all)
{
	const struct tree_load l = load_of(all);

	return cost_in(b, &b->files, &l, (uint64_t)all->leaves).blocks;
}

uint64_t bound_items(const struct bound *b, const struct delayed_amount *all)
{
	const struct tree_load l = load_of(all);
	const uint64_t blocks = bound_own(b, all) + b->exclusive;
	struct commit_load load = load_now(b);

	load.changes += bound_refs(b, all) + 2 * b->exclusive;
	load.data += l.touched;
	load.items = l.touched;
	load.bytes = l.bytes;
	return blocks + blocks_of_commit(b, &load);
}

static void make_old(struct tree_shape *s)
{
	s->old = s->blocks;
	s->old_inner = s->inner;
}

uint64_t bound_next(const struct bound *b, const struct delayed_amount *all)
{
	struct bound next = *b;

	next.pending = next.pending_data = next.exclusive = 0;
	make_old(&next.extents);
	make_old(&next.csums);
	make_old(&next.free_space);
	make_old(&next.block_groups);
	make_old(&next.root_tree);
	make_old(&next.devices);
	make_old(&next.files);
	make_old(&next.shared);
	return bound_items(&next, all);
}

uint64_t bound_blocks(const struct bound *b, uint64_t blocks)
{
	struct commit_load load = load_now(b);

	load.changes += 2 * blocks;
	return blocks + blocks_of_commit(b, &load);
}
