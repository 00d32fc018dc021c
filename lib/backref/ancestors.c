// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/backref/ancestors.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/backref/shared.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

int extent_for_each_ref(struct cursor *c, uint64_t bytenr, ref_visit_fn visit, void *ctx, struct btrkit_error *err)
{
	/* The extent's own item has either of two types, both of which sort before those of its keyed references. */
	struct btrkit_key key = KEY(bytenr, KEY_EXTENT_ITEM, 0);
	struct extent_item extent;
	struct extent_ref ref;
	int ret, r;

	ret = cursor_seek(c, &key, err);
	if (ret)
		return ret < 0 ? ret : 0;
	if (c->item.key.objectid != bytenr ||
	    (c->item.key.type != KEY_EXTENT_ITEM && c->item.key.type != KEY_METADATA_ITEM))
		return 0;
	ret = extent_item_decode(&c->fs->items, &c->item, &extent, err);
	while (!ret && !(ret = extent_item_next_ref(&extent, &ref, err))) {
		r = visit(ctx, &extent, &ref);
		if (r)
			return r;
	}
	if (ret < 0)
		return cursor_blame(c, ret, err);
	while (!(ret = cursor_next(c, err)) && c->item.key.objectid == bytenr &&
	       c->item.key.type <= KEY_SHARED_DATA_REF) {
		if (c->item.key.type < KEY_TREE_BLOCK_REF || c->item.key.type == KEY_EXTENT_REF_V0)
			continue;
		ret = cursor_blame(c, extent_keyed_ref_decode(&c->item, &ref, err), err);
		if (ret)
			return ret;
		r = visit(ctx, &extent, &ref);
		if (r)
			return r;
	}
	return ret < 0 ? ret : 0;
}

/* A block visited on the way to the roots. */
struct block {
	uint64_t bytenr;
	UT_hash_handle hh;
	struct block *next; /* in the queue */
};

struct walk {
	struct cursor *extents;
	const struct tree_root *root;
	struct block *seen;  /* all blocks, to visit each only once */
	struct block *queue; /* blocks whose references have not been read yet */
	bool own;	     /* a reference to the current block names the tree itself */
	struct btrkit_error *err;
};

static int enqueue(struct walk *w, uint64_t bytenr)
{
	struct block *b;

	HASH_FIND(hh, w->seen, &bytenr, sizeof(bytenr), b);
	if (b)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(w->err);
	b->bytenr = bytenr;
	HASH_ADD(hh, w->seen, bytenr, sizeof(b->bytenr), b);
	if (!b->hh.tbl) {
		free(b);
		return err_nomem(w->err);
	}
	LL_PREPEND(w->queue, b);
	return 0;
}

/* @return 1: reached from another tree */
static int visit_block_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct walk *w = ctx;

	(void)extent;
	if (ref->type == KEY_TREE_BLOCK_REF) {
		if (shared_block_ref_is_others(ref, w->root->id))
			return 1;
		w->own |= ref->root == w->root->id;
	} else if (ref->type == KEY_SHARED_BLOCK_REF) {
		return enqueue(w, ref->parent);
	}
	return 0;
}

/* Adds the parent of @bytenr in the tree itself, found by the first key of the block. */
static int enqueue_own_parent(struct walk *w, uint64_t bytenr)
{
	struct node_ref ref = { bytenr, NODE_ANY, 0, LEVELS_MAX, NULL };
	struct btrkit_fs *fs = w->extents->fs;
	struct btrkit_key key;
	struct node *node;
	struct cursor c;
	unsigned level;
	int ret;

	ret = node_get(fs, &ref, &node, w->err);
	if (ret)
		return ret;
	level = node->level;
	key = node->nritems ? node_key(node, 0) : KEY(0, 0, 0);
	node_put(fs, node);
	if (level >= w->root->level)
		return 0;
	cursor_init(&c, fs, w->root);
	ret = cursor_descend(&c, &key, level + 1, w->err);
	if (!ret)
		ret = enqueue(w, c.nodes[level + 1]->bytenr);
	cursor_release(&c);
	return ret;
}

int block_reached_from_elsewhere(struct cursor *extents, const struct tree_root *root, uint64_t bytenr, bool *yes,
				 struct btrkit_error *err)
{
	struct walk w = { .extents = extents, .root = root, .err = err };
	struct block *b, *next;
	int ret;

	ret = enqueue(&w, bytenr);
	while (!ret && w.queue) {
		b = w.queue;
		LL_DELETE(w.queue, b);
		w.own = false;
		ret = extent_for_each_ref(extents, b->bytenr, visit_block_ref, &w, err);
		if (!ret && w.own)
			ret = enqueue_own_parent(&w, b->bytenr);
	}
	HASH_ITER(hh, w.seen, b, next)
	{
		HASH_DEL(w.seen, b);
		free(b);
	}
	if (ret >= 0)
		*yes = ret == 1;
	return ret < 0 ? ret : 0;
}
