// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/diff_trees.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/node.h"

/*
 * Position of a side: a slot of a block, with references to all blocks from the root down to it. What a pointer refers
 * to has not been read yet. Keys of leaves must increase, so the walk ends whatever the pointers are.
 */
struct side {
	struct btrkit_fs *fs;
	uint64_t owner;
	struct node *nodes[LEVELS_MAX];
	uint32_t slots[LEVELS_MAX];
	uint8_t top, at;
	bool ended, begun;
	struct btrkit_key last;	/* last key of the previous leaves */
	/* Keys of the last block that could not be read. The other side is never behind them when the next is met. */
	struct btrkit_key lost_from, lost_to;
	bool lost, lost_rest;	/* there is such a block; it was the last of its tree */
};

struct pair {
	struct side a, b;
	bool shared;
	const struct diff_calls *calls;
};

static struct btrkit_key side_key(const struct side *s)
{
	return node_key(s->nodes[s->at], s->slots[s->at]);
}

static int check_order(struct side *s, struct btrkit_error *err)
{
	const struct node *n = s->nodes[s->at];
	const struct btrkit_key first = node_key(n, 0);

	if (s->begun && key_cmp(&first, &s->last) <= 0) {
		err_corrupt(err, "key", "first key is not after the last key of the previous block");
		err_at_tree(err, s->owner);
		err_at_logical(err, n->bytenr);
		return -EUCLEAN;
	}
	if (!n->level) {
		s->begun = true;
		s->last = node_key(n, n->nritems - 1);
	}
	return 0;
}

static int side_begin(struct side *s, struct btrkit_fs *fs, const struct tree_root *root, struct btrkit_error *err)
{
	struct node_ref ref;
	int r;

	*s = (struct side){ .fs = fs, .ended = true };
	if (!root)
		return 0;
	s->owner = root->id;
	s->top = root->level;
	s->at = root->level;
	ref = (struct node_ref){ root->bytenr, root->generation, root->id, root->level, NULL };
	r = node_get(fs, &ref, &s->nodes[s->at], err);
	if (r) {
		err_at_tree(err, root->id);
		return r;
	}
	s->ended = !s->nodes[s->at]->nritems;
	return s->ended ? 0 : check_order(s, err);
}

static void side_end(struct side *s)
{
	for (unsigned i = 0; i < LEVELS_MAX; i++)
		if (s->nodes[i])
			node_put(s->fs, s->nodes[i]);
}

/* Advances to the next slot, in a parent if this block has no more. */
static void step_over(struct side *s)
{
	while (++s->slots[s->at] >= s->nodes[s->at]->nritems) {
		if (s->at == s->top) {
			s->ended = true;
			return;
		}
		node_pass(s->fs, s->nodes[s->at]);
		s->nodes[s->at++] = NULL;
	}
}

/* Gets the block that the current slot points to. */
static int enter(struct side *s, struct btrkit_error *err)
{
	struct btrkit_key key;
	const struct node_ref ref = node_child(s->nodes[s->at], s->slots[s->at], s->owner, &key);
	struct node *child;
	int r;

	r = node_get(s->fs, &ref, &child, err);
	if (r) {
		err_at_tree(err, s->owner);
		return r;
	}
	s->at--;
	s->nodes[s->at] = child;
	s->slots[s->at] = 0;
	/* Not empty: node_get() rejects empty blocks below a pointer. */
	r = child->nritems ? check_order(s, err) : err_corrupt(err, "nritems", "empty block below a node");
	if (r) {
		node_put(s->fs, child);
		s->nodes[s->at++] = NULL;
	}
	return r;
}

/* Notes the keys below the current slot, whose block cannot be read, and goes on behind it. */
static void go_around(struct side *s)
{
	s->lost = true;
	s->lost_from = side_key(s);
	s->lost_rest = true;
	for (unsigned level = s->at; s->lost_rest && level <= s->top; level++) {
		if (s->slots[level] + 1 >= s->nodes[level]->nritems)
			continue;
		s->lost_to = node_key(s->nodes[level], s->slots[level] + 1);
		s->lost_rest = false;
	}
	step_over(s);
}

/* Whether the side may have had an item of this key in a block that cannot be read. */
static bool may_have_had(const struct side *s, const struct btrkit_key *key)
{
	return s->lost && key_cmp(key, &s->lost_from) >= 0 && (s->lost_rest || key_cmp(key, &s->lost_to) < 0);
}

static int tell(struct pair *p, const struct side *s, int ret, const struct btrkit_error *what,
		struct btrkit_error *err)
{
	if (ret == -ENOMEM || !p->calls->lost)
		return err_pass(err, what, ret);
	return p->calls->lost(p->calls->ctx, s == &p->b, what);
}

/* Descends into the block that the current slot points to, or goes around it. */
static int step_down(struct pair *p, struct side *s, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int r;

	if (s->at == 1 && !s->slots[1])
		node_prefetch_children(s->fs, s->nodes[1], 0, s->nodes[1]->nritems);
	r = enter(s, &what);
	if (!r)
		return 0;
	r = tell(p, s, r, &what, err);
	if (!r)
		go_around(s);
	return r;
}

static struct item item_at(const struct side *s)
{
	return leaf_item(s->nodes[0], s->slots[0]);
}

/* Advances the side that is behind: descend, or reports the item that only this side has. */
static int advance(struct pair *p, struct side *s, struct btrkit_error *err)
{
	struct item item;
	int r = 0;

	if (s->at)
		return step_down(p, s, err);
	item = item_at(s);
	if (!may_have_had(s == &p->a ? &p->b : &p->a, &item.key))
		r = p->calls->item(p->calls->ctx, s == &p->a ? &item : NULL, s == &p->a ? NULL : &item);
	if (!r)
		step_over(s);
	return r;
}

static bool is_shared(const struct pair *p)
{
	const struct disk_key_ptr *x = &node_ptrs(p->a.nodes[p->a.at])[p->a.slots[p->a.at]];
	const struct disk_key_ptr *y = &node_ptrs(p->b.nodes[p->b.at])[p->b.slots[p->b.at]];

	return p->shared && le64_get(x->blockptr) == le64_get(y->blockptr) &&
	       le64_get(x->generation) == le64_get(y->generation);
}

/* Both sides are at the same key. */
static int both(struct pair *p, struct btrkit_error *err)
{
	struct item x, y;
	int r = 0;

	/* Descend on the side with the higher level first. */
	if (p->a.at != p->b.at)
		return step_down(p, p->a.at > p->b.at ? &p->a : &p->b, err);
	if (p->a.at) {
		if (!is_shared(p)) {
			r = step_down(p, &p->a, err);
			return r ? r : step_down(p, &p->b, err);
		}
	} else {
		x = item_at(&p->a);
		y = item_at(&p->b);
		if (x.size != y.size || memcmp(x.data, y.data, x.size) != 0)
			r = p->calls->item(p->calls->ctx, &x, &y);
	}
	if (r)
		return r;
	step_over(&p->a);
	step_over(&p->b);
	return 0;
}

static int step(struct pair *p, struct btrkit_error *err)
{
	struct btrkit_key x, y;
	int order;

	if (p->a.ended || p->b.ended)
		return advance(p, p->a.ended ? &p->b : &p->a, err);
	x = side_key(&p->a);
	y = side_key(&p->b);
	order = key_cmp(&x, &y);
	if (!order)
		return both(p, err);
	/*
	 * A pointer with the smaller key may cover keys up to the position of the other side, so only items are skipped
	 * without reading.
	 */
	return advance(p, order < 0 ? &p->a : &p->b, err);
}

/* @return 0; 1: the root of the side cannot be read, so nothing can be compared; <0 */
static int begin(struct pair *p, struct side *s, struct btrkit_fs *fs, const struct tree_root *root,
		 struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int r = side_begin(s, fs, root, &what);

	if (!r)
		return 0;
	r = tell(p, s, r, &what, err);
	return r ? r : 1;
}

int diff_trees(struct btrkit_fs *fs_a, const struct tree_root *a, struct btrkit_fs *fs_b, const struct tree_root *b,
	       bool shared, const struct diff_calls *calls, struct btrkit_error *err)
{
	struct pair p = { .shared = shared, .calls = calls };
	int r, other;

	if (shared && a && b && a->bytenr == b->bytenr && a->generation == b->generation)
		return 0;
	r = begin(&p, &p.a, fs_a, a, err);
	if (r >= 0) {
		other = begin(&p, &p.b, fs_b, b, err);
		r = other ? other : r;
	}
	while (!r && (!p.a.ended || !p.b.ended))
		r = step(&p, err);
	side_end(&p.a);
	side_end(&p.b);
	return r < 0 ? r : 0;
}
