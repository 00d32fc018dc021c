// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The walk: every block of every tree, once however many trees share it, and the references that blocks make. A block
 * whose extent has FULL_BACKREF makes shared references, which name the block; any other makes references that name the
 * tree in its header.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"
#include "lib/format/items/file_extent.h"

/* The tree that is being walked. */
struct tree_walk {
	struct audit *a;
	struct tree_root root;
	uint64_t last_snapshot;
	/* A subvolume that is being dropped: what lies left of the key is gone, in nodes of this level and above. */
	bool dying;
	struct btrkit_key drop_key;
	uint8_t drop_level;
};

/* Item types that belong into one tree. */
static const struct {
	uint8_t type;
	uint64_t tree;
} homes[] = {
	{ KEY_ROOT_ITEM, OID_ROOT_TREE },
	{ KEY_EXTENT_ITEM, OID_EXTENT_TREE },
	{ KEY_METADATA_ITEM, OID_EXTENT_TREE },
	{ KEY_TREE_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_DATA_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_DATA_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_CSUM, OID_CSUM_TREE },
	{ KEY_FREE_SPACE_INFO, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_EXTENT, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_BITMAP, OID_FREE_SPACE_TREE },
	{ KEY_DEV_EXTENT, OID_DEV_TREE },
	{ KEY_DEV_ITEM, OID_CHUNK_TREE },
	{ KEY_CHUNK_ITEM, OID_CHUNK_TREE },
};

static int judge_home(const struct tree_walk *w, const struct item *item, struct btrkit_error *err)
{
	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		if (homes[i].type == item->key.type && homes[i].tree != w->root.id)
			return err_corrupt(err, "key.type", "item of type %u, of which tree %" PRIu64 " has all",
					   item->key.type, homes[i].tree);
	return 0;
}

static int add_made(struct audit *a, const struct audit_ref *ref, struct btrkit_error *err)
{
	struct audit_ref *to = audit_list_add(&a->made, sizeof(*to));

	if (!to)
		return err_nomem(err);
	*to = *ref;
	return 0;
}

static int take_root(struct audit *a, const struct item *item, struct btrkit_error *err)
{
	struct audit_root root = { 0 }, *to;
	int ret = root_item_decode(&a->fs->items, item, &root.item, err);

	if (ret)
		return ret;
	if (item->size != ROOT_ITEM_SHORT && root.item.generation_v2 != root.item.generation)
		return err_corrupt(err, "generation_v2", "root of generation %" PRIu64 ", by another field %" PRIu64,
				   root.item.generation, root.item.generation_v2);
	root.root = tree_root_of(&item->key, &root.item);
	to = audit_list_add(&a->roots, sizeof(*to));
	if (!to)
		return err_nomem(err);
	*to = root;
	return 0;
}

static int take_file_extent(struct audit *a, const struct node *leaf, const struct audit_extent *self,
			    const struct item *item, struct btrkit_error *err)
{
	const bool full = self->flags & EXTENT_FLAG_FULL_BACKREF;
	struct audit_ref ref = { .count = 1 };
	const struct audit_extent *e;
	struct file_extent fe;
	int ret = file_extent_decode(&a->fs->items, item, &fe, err);

	if (ret || !fe.disk_bytenr)
		return ret;
	e = audit_extent_of(a, fe.disk_bytenr);
	if (!e || e->bytenr != fe.disk_bytenr || e->num_bytes != fe.disk_num_bytes || !(e->flags & EXTENT_FLAG_DATA))
		return err_corrupt(err, "disk_bytenr",
				   "the extent tree has no data extent of %" PRIu64 " bytes at %" PRIu64,
				   fe.disk_num_bytes, fe.disk_bytenr);
	ref.bytenr = fe.disk_bytenr;
	ref.type = full ? KEY_SHARED_DATA_REF : KEY_EXTENT_DATA_REF;
	ref.root_or_parent = full ? leaf->bytenr : leaf->owner;
	if (!full) {
		ref.objectid = item->key.objectid;
		ref.offset = item->key.offset - fe.offset;
	}
	return add_made(a, &ref, err);
}

/* Every byte that has a checksum is data. */
static int take_csums(struct audit *a, const struct item *item, struct btrkit_error *err)
{
	const uint64_t length = (uint64_t)(item->size / a->fs->items.csum_size) * a->fs->items.sectorsize;
	const uint64_t end = item->key.offset + length;

	if (item->key.offset < a->csum_end)
		return err_corrupt(err, "key.offset", "checksums begin before the end of those before, %" PRIu64,
				   a->csum_end);
	for (uint64_t at = item->key.offset; at < end;) {
		const struct audit_extent *e = audit_extent_of(a, at);

		if (!e || !(e->flags & EXTENT_FLAG_DATA))
			return err_corrupt(err, "key.offset", "checksum of %" PRIu64 ", where there is no data", at);
		at = e->bytenr + e->num_bytes;
	}
	a->csum_end = end;
	return 0;
}

static int take_item(struct tree_walk *w, const struct node *leaf, const struct audit_extent *self,
		     const struct item *item, struct btrkit_error *err)
{
	struct item_ctx ctx = w->a->fs->items;
	int ret;

	ctx.owner = leaf->owner;
	ret = item_validate(&ctx, item, err);
	if (!ret)
		ret = judge_home(w, item, err);
	if (ret)
		return ret;
	switch (item->key.type) {
	case KEY_ROOT_ITEM:
		return take_root(w->a, item, err);
	case KEY_EXTENT_DATA:
		return take_file_extent(w->a, leaf, self, item, err);
	case KEY_EXTENT_CSUM:
		return take_csums(w->a, item, err);
	case KEY_DEV_ITEM:
	case KEY_CHUNK_ITEM:
	case KEY_DEV_EXTENT:
		return audit_volume_item(w->a, item, err);
	default:
		return 0;
	}
}

static int visit_leaf(struct tree_walk *w, const struct node *leaf, const struct audit_extent *self,
		      struct btrkit_error *err)
{
	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		int ret = take_item(w, leaf, self, &item, err);

		if (ret) {
			err_at_tree(err, w->root.id);
			err_at_logical(err, leaf->bytenr);
			err_at_item(err, i, &item.key);
			return ret;
		}
	}
	w->a->counts.items += leaf->nritems;
	return 0;
}

/* What the extent tree says about a block. */
static int judge_extent(const struct tree_walk *w, const struct node *n, const struct audit_extent *e,
			struct btrkit_error *err)
{
	const uint64_t wanted = w->root.id == OID_CHUNK_TREE ? BG_SYSTEM : BG_METADATA;
	uint64_t flags;

	if (!e || e->bytenr != n->bytenr || !(e->flags & EXTENT_FLAG_TREE_BLOCK))
		return err_corrupt(err, NULL, "the extent tree has no such tree block");
	if (e->level != n->level)
		return audit_blame_extent(e,
					  err_corrupt(err, "level", "extent of level %u is a tree block of level %u",
						      e->level, n->level),
					  err);
	if (e->generation != n->generation)
		return audit_blame_extent(e,
					  err_corrupt(err, "generation",
						      "extent of generation %" PRIu64
						      " is a tree block of generation %" PRIu64,
						      e->generation, n->generation),
					  err);
	flags = audit_group_of(w->a, n->bytenr)->flags;
	return flags & wanted ? 0 :
				err_corrupt(err, "flags", "tree block in a block group with flags 0x%" PRIx64, flags);
}

/* Linux takes a block for unshared that is younger than the last snapshot, unless relocation made it. */
static int judge_shared(const struct tree_walk *w, const struct node *n, const struct audit_extent *e,
			struct btrkit_error *err)
{
	if (e->refs < 2 || n->generation <= w->last_snapshot || n->flags & HEADER_FLAG_RELOC)
		return 0;
	return err_corrupt(err, "last_snapshot",
			   "block of generation %" PRIu64 " has %" PRIu64
			   " references, in a tree whose last snapshot is "
			   "of generation %" PRIu64,
			   n->generation, e->refs, w->last_snapshot);
}

/* The first slot whose child is still there, and whether this is where the drop has come to. */
static uint32_t first_slot(const struct tree_walk *w, const struct node *n, bool *dying)
{
	bool exact;
	uint32_t slot;

	*dying = w->dying && *dying && n->level >= w->drop_level;
	if (!*dying)
		return 0;
	slot = node_lower_bound(n, &w->drop_key, &exact);
	if (n->level > w->drop_level && !exact && slot)
		slot--;
	*dying = n->level > w->drop_level;
	return slot;
}

static int visit(struct tree_walk *w, const struct node_ref *ref, const struct audit_ref *made,
		 const struct btrkit_key *limit, bool dying, struct audit_subtree *below, struct btrkit_error *err);

/* By the levels, which fall from parent to child, the depth is bounded. */
static int visit_children(struct tree_walk *w, const struct node *n, const struct audit_extent *self,
			  const struct btrkit_key *limit, bool dying, struct audit_subtree *below,
			  struct btrkit_error *err)
{
	const bool full = self->flags & EXTENT_FLAG_FULL_BACKREF;
	struct audit_subtree child = { 0 };
	bool first = dying;
	int ret = 0;

	if (n->level == 1)
		node_prefetch_children(w->a->fs, n, 0, n->nritems);
	for (uint32_t i = first_slot(w, n, &first); !ret && i < n->nritems; i++, first = false) {
		struct btrkit_key key, next;
		const struct node_ref ref = node_child(n, i, w->root.id, &key);
		const struct audit_ref made = { .bytenr = ref.bytenr,
						.type = full ? KEY_SHARED_BLOCK_REF : KEY_TREE_BLOCK_REF,
						.root_or_parent = full ? n->bytenr : n->owner,
						.count = 1 };

		if (i + 1 < n->nritems)
			next = node_key(n, i + 1);
		ret = visit(w, &ref, &made, i + 1 < n->nritems ? &next : limit, first, &child, err);
		below->last = child.last;
		below->blocks += child.blocks;
	}
	return ret;
}

static int visit_new(struct tree_walk *w, const struct node *n, const struct audit_extent *e,
		     const struct btrkit_key *limit, bool dying, struct audit_subtree *below, struct btrkit_error *err)
{
	struct audit_block *block;
	int ret;

	*below = (struct audit_subtree){ .blocks = 1 };
	if (n->level)
		ret = visit_children(w, n, e, limit, dying, below, err);
	else
		ret = visit_leaf(w, n, e, err);
	if (ret)
		return ret;
	if (!n->level && n->nritems)
		below->last = node_key(n, n->nritems - 1);
	block = malloc(sizeof(*block));
	if (!block)
		return err_nomem(err);
	*block = (struct audit_block){ .bytenr = n->bytenr, .below = *below };
	HASH_ADD(hh, w->a->blocks, bytenr, sizeof(block->bytenr), block);
	if (!block->hh.tbl) {
		free(block);
		return err_nomem(err);
	}
	w->a->counts.blocks++;
	return 0;
}

static int visit_node(struct tree_walk *w, const struct node *n, const struct btrkit_key *limit, bool dying,
		      struct audit_subtree *below, struct btrkit_error *err)
{
	const struct audit_extent *e = audit_extent_of(w->a, n->bytenr);
	struct audit_block *block;
	int ret;

	ret = judge_extent(w, n, e, err);
	if (!ret)
		ret = judge_shared(w, n, e, err);
	if (ret)
		return ret;
	HASH_FIND(hh, w->a->blocks, &n->bytenr, sizeof(n->bytenr), block);
	if (block)
		*below = block->below;
	else
		ret = visit_new(w, n, e, limit, dying, below, err);
	if (!ret && limit && key_cmp(&below->last, limit) >= 0)
		ret = err_corrupt(err, "key", "the highest key in a block is not below that of the next");
	return ret;
}

static int visit(struct tree_walk *w, const struct node_ref *ref, const struct audit_ref *made,
		 const struct btrkit_key *limit, bool dying, struct audit_subtree *below, struct btrkit_error *err)
{
	struct node *n;
	int ret;

	ret = add_made(w->a, made, err);
	if (!ret)
		ret = node_get(w->a->fs, ref, &n, err);
	if (ret) {
		err_at_tree(err, w->root.id);
		return ret;
	}
	ret = visit_node(w, n, limit, dying, below, err);
	if (ret < 0) {
		err_at_tree(err, w->root.id);
		err_at_logical(err, n->bytenr);
	}
	node_put(w->a->fs, n);
	return ret;
}

static int walk_tree(struct audit *a, const struct tree_root *root, const struct root_item *item,
		     struct btrkit_error *err)
{
	const struct node_ref ref = { root->bytenr, root->generation, root->id, root->level, NULL };
	struct tree_walk w = { .a = a, .root = *root };
	struct audit_ref made = {
		.bytenr = root->bytenr, .type = KEY_TREE_BLOCK_REF, .root_or_parent = root->id, .count = 1
	};
	struct audit_subtree below = { 0 };
	int ret;

	/* The root of a relocation tree has nothing above that could refer to it. */
	if (root->id == OID_TREE_RELOC) {
		made.type = KEY_SHARED_BLOCK_REF;
		made.root_or_parent = root->bytenr;
	}
	if (item) {
		w.last_snapshot = item->last_snapshot;
		w.dying = !item->refs && item->drop_progress.objectid;
		w.drop_key = item->drop_progress;
		w.drop_level = item->drop_level;
	}
	a->counts.trees++;
	ret = visit(&w, &ref, &made, NULL, w.dying, &below, err);
	if (!ret && item && !w.dying && item->bytes_used != below.blocks * a->fs->items.nodesize)
		a->counts.inexact_trees++;
	return ret;
}

int audit_walk_trees(struct audit *a, struct btrkit_error *err)
{
	int ret = walk_tree(a, &a->fs->root_tree, NULL, err);

	if (!ret)
		ret = walk_tree(a, &a->fs->chunk_tree, NULL, err);
	for (size_t i = 0; !ret && i < a->roots.n; i++) {
		const struct audit_root root = ((struct audit_root *)a->roots.at)[i];

		ret = walk_tree(a, &root.root, &root.item, err);
	}
	return ret;
}
