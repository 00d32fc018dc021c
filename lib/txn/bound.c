// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bound is one by the worst that can be: every change of an item copies a path of its own, and the blocks beside it
 * that what is left is joined with; it splits the leaf that it goes into. But no block is copied twice, and of a tree
 * there are only so many.
 *
 * A block that is copied is an extent that comes and one that goes, and each of these changes an item of the extent
 * tree and the free space, which copies blocks again. That ends when these trees are private as a whole, which is what
 * the bound comes to unless they are large: as in Linux what follows from what follows is then taken to be less than
 * what it keeps as its global reserve at the most.
 *
 * A block that a snapshot shares takes along references of all that it refers to when it is copied: its own, and those
 * that the old one gets in its place.
 */
#include "lib/txn/bound.h"

#include <errno.h>

#include "lib/txn/delayed.h"
#include "lib/txn/refs.h"
#include "lib/txn/txn.h"

/* Changes that a commit makes of itself: quotas, a chunk. */
#define CHANGES_OF_A_COMMIT 8u

#define FOLLOWING_MAX (512ull << 20)

/* Bytes, with the header of an item if it gets one of its own. */
#define EXTENT_BYTES 80u       /* a new extent, or a reference */
#define DEV_EXTENT_BYTES 73u
#define ROOT_ITEM_GROWS 200u   /* from the form of before Linux 3.6 */
#define BITMAPS_BYTES 36000u   /* all bitmaps of a block group of 1 GiB with sectors of 4 KiB */
#define FILE_EXTENT_BYTES 78u

/* How many inner nodes there are: trees whose nodes have fewer children than that are none that anybody makes. */
#define CHILDREN_MIN 16u

/* A tree as it is. */
struct tree_shape {
	uint64_t blocks; /* all of them */
	uint64_t old;	 /* of these, not private yet */
	unsigned levels; /* 0: there is no such tree */
};

/* What changes in it. */
struct tree_load {
	uint64_t touched;  /* items, or places among them, each in a leaf of its own at the worst */
	uint64_t inserted; /* of these, items that come or grow */
	uint64_t bytes;	   /* of those */
};

struct bound {
	struct btrkit_txn *txn;
	uint32_t room; /* of a leaf */
	uint64_t groups, roots;
	struct tree_shape extents, csums, free_space, block_groups, root_tree, devices;
};

/* What a commit has to bring its trees up to date with. */
struct commit_load {
	uint64_t changes; /* of references */
	uint64_t data;	  /* of these, of data that may go */
	uint64_t items;	  /* of files: some may be checksums */
	uint64_t bytes;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A tree of one level is one block, whatever its item says. */
static struct tree_shape shape_of(const struct edit_tree *e, uint64_t blocks, unsigned level)
{
	const uint64_t more = e && e->blocks > 0 ? (uint64_t)e->blocks : 0, private = e ? e->private : 0;
	struct tree_shape s = { .blocks = level ? blocks + more + 1 : 1, .levels = level + 1 };

	s.old = s.blocks > private ? s.blocks - private : 0;
	return s;
}

static int find_shape(struct btrkit_txn *txn, uint64_t id, struct tree_shape *ret, struct btrkit_error *err)
{
	const struct edit_tree *e = overlay_open_tree(txn->overlay, id);
	struct tree_root root;
	struct root_item item;
	int r = fs_find_root(txn->fs, id, &root, &item, err);

	*ret = (struct tree_shape){ 0 };
	if (r)
		return r == -ENOENT ? 0 : r;
	*ret = shape_of(e, item.bytes_used / txn->fs->super.nodesize, root.level);
	return 0;
}

/* Nothing says how large the root tree is but what is in it. */
static int root_tree_shape(struct btrkit_txn *txn, struct tree_shape *ret, struct btrkit_error *err)
{
	const struct tree_root *root = &txn->fs->root_tree;
	const struct node_ref ref = { root->bytenr, root->generation, root->id, root->level, NULL };
	const struct edit_tree *e = overlay_open_tree(txn->overlay, OID_ROOT_TREE);
	const uint64_t capacity = leaf_room(txn->fs->super.nodesize) / sizeof(struct disk_key_ptr);
	uint64_t blocks;
	struct node *n;
	int r = node_get(txn->fs, &ref, &n, err);

	if (r)
		return r;
	blocks = root->level ? n->nritems : 1;
	node_put(txn->fs, n);
	for (unsigned level = 1; level < root->level; level++)
		blocks = least(blocks * capacity, UINT32_MAX);
	*ret = shape_of(NULL, blocks, root->level);
	if (e)
		ret->old -= least(ret->old, e->private);
	return 0;
}

static uint64_t leaf_copies(const struct tree_shape *s, const struct tree_load *l)
{
	return least(s->levels > 1 ? 2 * l->touched : l->touched, s->old);
}

static uint64_t inner_copies(const struct tree_shape *s, const struct tree_load *l)
{
	const uint64_t paths = s->levels > 1 ? l->touched * (2 * (s->levels - 1u) - 1) : 0;

	return least(least(paths, s->blocks / CHILDREN_MIN + s->levels), s->old);
}

/* The blocks that are copied or come. */
static uint64_t blocks_of(const struct bound *b, const struct tree_shape *s, const struct tree_load *l)
{
	const uint64_t capacity = b->room / sizeof(struct disk_key_ptr);
	uint64_t splits = 0, nodes = 0;

	if (!s->levels || !l->touched)
		return 0;
	if (l->inserted) {
		/* What is in the way of an item is in a leaf that there was, or in one that was filled since. */
		splits = least(l->inserted, s->blocks) + 2 * l->bytes / b->room + 2;
		nodes = least(s->blocks / capacity, splits * s->levels) + 4 * splits / capacity + s->levels + 1;
	}
	return leaf_copies(s, l) + inner_copies(s, l) + splits + nodes;
}

static int begin(struct bound *b, struct btrkit_txn *txn, struct btrkit_error *err)
{
	const struct { uint64_t id; struct tree_shape *to; } trees[] = {
		{ OID_EXTENT_TREE, &b->extents },	{ OID_CSUM_TREE, &b->csums },
		{ OID_FREE_SPACE_TREE, &b->free_space }, { OID_BLOCK_GROUP_TREE, &b->block_groups },
		{ OID_DEV_TREE, &b->devices },
	};
	int ret = 0;

	*b = (struct bound){ .txn = txn, .room = leaf_room(txn->fs->super.nodesize) };
	b->groups = space_num_groups(txn->space);
	for (const struct edit_tree *t = txn->overlay->trees; t; t = t->next)
		b->roots++;
	for (size_t i = 0; !ret && i < sizeof(trees) / sizeof(trees[0]); i++)
		ret = find_shape(txn, trees[i].id, trees[i].to, err);
	return ret ? ret : root_tree_shape(txn, &b->root_tree, err);
}

/* The trees that a commit changes. */
static uint64_t commit_trees(const struct bound *b, const struct commit_load *c)
{
	const uint64_t groups = least(c->changes, b->groups), roots = b->roots + CHANGES_OF_A_COMMIT;
	const uint64_t stripes = le64_get(b->txn->super.num_devices) + CHANGES_OF_A_COMMIT;
	const uint64_t sums = 2 * c->data + c->items;
	/* An item of an extent, and one of a reference that has not its place there. */
	const struct tree_load extents = { 2 * c->changes, c->changes, c->changes * EXTENT_BYTES };
	/* What is free before, behind, and what the group says of itself. */
	const struct tree_load free_space = { 2 * c->changes + groups, c->changes + groups,
					      c->changes * sizeof(struct disk_item) + groups * BITMAPS_BYTES };
	const struct tree_load csums = { sums, sums, 2 * c->data * sizeof(struct disk_item) + c->bytes };
	const struct tree_load block_groups = { groups + CHANGES_OF_A_COMMIT, CHANGES_OF_A_COMMIT, 1024 };
	const struct tree_load root_tree = { roots, roots, roots * ROOT_ITEM_GROWS };
	const struct tree_load devices = { stripes, stripes, stripes * DEV_EXTENT_BYTES };

	return blocks_of(b, &b->extents, &extents) + blocks_of(b, &b->free_space, &free_space) +
	       blocks_of(b, &b->csums, &csums) + blocks_of(b, &b->block_groups, &block_groups) +
	       blocks_of(b, &b->root_tree, &root_tree) + blocks_of(b, &b->devices, &devices) + CHANGES_OF_A_COMMIT;
}

/* With what follows from the changes of its own blocks. */
static uint64_t blocks_of_commit(const struct bound *b, const struct commit_load *load)
{
	const uint64_t first = commit_trees(b, load), most = first + FOLLOWING_MAX / b->txn->fs->super.nodesize;
	struct commit_load c = *load;
	uint64_t sum = first, before;

	do {
		before = sum;
		c.changes = load->changes + 2 * sum;
		sum = commit_trees(b, &c);
	} while (sum > before && sum < most);
	return least(sum, most);
}

/* What is pending, and what somebody does who is alone. */
static struct commit_load load_now(const struct btrkit_txn *txn)
{
	const struct ticket_alone *alone = &txn->delayed->tickets.alone;

	return (struct commit_load){
		.changes = refs_pending(txn->refs) + refs_queued(txn->refs) + alone->refs + CHANGES_OF_A_COMMIT,
		.data = refs_pending_data(txn->refs) + alone->data,
	};
}

/* The trees of files that are open, taken as one: changes may be in any of them. */
struct file_trees {
	struct tree_shape all;	  /* with the levels of the highest */
	struct tree_shape shared; /* of these, what snapshots may share; a root is nobody else's */
};

static void add_shape(struct tree_shape *to, const struct tree_shape *s)
{
	to->blocks += s->blocks;
	to->old += s->old;
	to->levels = s->levels > to->levels ? s->levels : to->levels;
}

static struct file_trees file_trees(const struct btrkit_txn *txn)
{
	struct file_trees f = { .all = { .levels = 0 } };

	for (const struct delayed_tree *t = txn->delayed->list; t; t = t->next) {
		const struct edit_tree *e = t->edit;
		struct tree_shape s;

		/* What a subvolume had that is deleted a commit has freed. */
		if (t->deleted)
			continue;
		s = shape_of(e, t->blocks, e->c.root.level);
		add_shape(&f.all, &s);
		if ((e->last_snapshot || e->era) && s.levels > 1)
			add_shape(&f.shared, &s);
	}
	return f;
}

/* References of what shared blocks refer to: those of the copy, and those of the old one. */
static uint64_t shared_refs(const struct bound *b, const struct tree_shape *s, const struct tree_load *l)
{
	const uint64_t children = inner_copies(s, l) * (b->room / sizeof(struct disk_key_ptr));

	return s->levels ? 2 * (leaf_copies(s, l) * (b->room / FILE_EXTENT_BYTES) + least(children, s->blocks)) : 0;
}

int bound_items(struct btrkit_txn *txn, const struct ticket_amount *all, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t items = (uint64_t)all->items, bytes = (uint64_t)all->bytes;
	const struct tree_load l = { items, least(items, bytes / sizeof(struct disk_item)), bytes };
	const struct file_trees files = file_trees(txn);
	struct commit_load load = load_now(txn);
	struct bound b;
	uint64_t blocks;
	int r;

	r = begin(&b, txn, err);
	if (r)
		return r;
	blocks = blocks_of(&b, &files.all, &l) + txn->delayed->tickets.alone.blocks;
	/* An item may drop a reference and add one. */
	load.changes += 2 * blocks + 2 * items + shared_refs(&b, &files.shared, &l);
	load.data += items;
	load.items = items;
	load.bytes = bytes;
	*ret = blocks + blocks_of_commit(&b, &load);
	return 0;
}

int bound_blocks(struct btrkit_txn *txn, uint64_t blocks, uint64_t *ret, struct btrkit_error *err)
{
	struct commit_load load;
	struct bound b;
	int r;

	load = load_now(txn);
	r = begin(&b, txn, err);
	if (r)
		return r;
	load.changes += 2 * blocks;
	*ret = blocks + blocks_of_commit(&b, &load);
	return 0;
}
