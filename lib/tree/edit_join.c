// SPDX-License-Identifier: LGPL-2.1-or-later
/* Merging and removal of blocks, and of levels, when items are deleted. */
#include <string.h>

#include "lib/tree/edit_path.h"

/* While the root has only one child, make that the root. The path is lost. */
static int lower_root(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;

	while (c->root.level && c->nodes[c->root.level]->nritems == 1) {
		struct node *root = c->nodes[c->root.level], *child, *copy;
		struct btrkit_key key;
		struct node_ref ref = node_child(root, 0, c->root.id, &key);
		int ret;

		ret = node_get(c->fs, &ref, &child, err);
		if (ret)
			return ret;
		/* A root is never shared, so the child is copied before it becomes one. */
		ret = edit_cow(t, child, &copy, err);
		node_put(c->fs, child);
		if (!ret)
			ret = overlay_free_node(t, root->bytenr, root->level, false, err);
		if (ret)
			return ret;
		t->blocks--;
		cursor_release(c);
		c->nodes[copy->level] = copy;
		edit_set_root(t, copy);
	}
	return 0;
}

/* Removes the pointer to the leaf from the node above, and any nodes that become empty by that. */
static int remove_pointer(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;

	for (unsigned level = 1;; level++) {
		struct node *n = c->nodes[level];
		struct disk_key_ptr *p = ptrs_of(n);
		const uint32_t slot = c->slots[level];
		int ret;

		memmove(p + slot, p + slot + 1, (n->nritems - slot - 1) * sizeof(*p));
		node_set_nritems(n, n->nritems - 1);
		if (n->nritems) {
			if (!slot)
				edit_fix_first_key(t, level);
			return 0;
		}
		/* This happens only if a tree loses all its items: its root becomes an empty leaf. */
		if (level == c->root.level) {
			struct node *leaf;

			ret = overlay_new_node(t, 0, NULL, &leaf, err);
			if (!ret)
				ret = overlay_free_node(t, n->bytenr, n->level, false, err);
			if (ret)
				return ret;
			t->blocks--;
			cursor_release(c);
			edit_set_root(t, leaf);
			return 0;
		}
		ret = overlay_free_node(t, n->bytenr, n->level, false, err);
		if (ret)
			return ret;
		t->blocks--;
		c->nodes[level] = NULL;
	}
}

/* Size of a block's contents, without its header. */
static uint32_t used(const struct node *n)
{
	return n->level ? n->nritems * (uint32_t)sizeof(struct disk_key_ptr) : leaf_used(n);
}

/* Copies all of @from, which is not changed. */
static void copy_all(const struct node *from, struct node *to, bool to_left)
{
	if (!from->level) {
		leaf_copy_tail(from, 0, to);
		return;
	}
	if (!to_left)
		memmove(ptrs_of(to) + from->nritems, ptrs_of(to), to->nritems * sizeof(struct disk_key_ptr));
	memcpy(ptrs_of(to) + (to_left ? to->nritems : 0), node_ptrs(from), from->nritems * sizeof(struct disk_key_ptr));
	node_set_nritems(to, to->nritems + from->nritems);
}

/*
 * Merges the path's block at @level with the neighbour on one side, if both fit into one block. The neighbour's
 * contents are copied to the path's block, so no block is allocated.
 */
static int join(struct edit_tree *t, unsigned level, bool with_left, bool *joined, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	struct node *parent = c->nodes[level + 1], *n = c->nodes[level], *other;
	const uint32_t slot = c->slots[level + 1], at = with_left ? slot - 1 : slot + 1;
	struct btrkit_key key;
	struct node_ref ref;
	int ret;

	if (with_left ? !slot : slot + 1 == parent->nritems)
		return 0;
	ref = node_child(parent, at, c->root.id, &key);
	ret = node_get(c->fs, &ref, &other, err);
	if (ret)
		return ret;
	if (used(n) + used(other) > leaf_room(n->size)) {
		node_put(c->fs, other);
		return 0;
	}
	copy_all(other, n, !with_left);
	ret = edit_let_go(t, other, err);
	node_put(c->fs, other);
	if (ret)
		return ret;
	t->blocks--;
	/* Remove the pointer to the neighbour. If that was the left one, the first key is now its first key. */
	memmove(ptrs_of(parent) + at, ptrs_of(parent) + at + 1,
		(parent->nritems - at - 1) * sizeof(struct disk_key_ptr));
	node_set_nritems(parent, parent->nritems - 1);
	if (with_left)
		c->slots[level + 1]--;
	edit_fix_first_key(t, level);
	*joined = true;
	return 0;
}

/* Merges a block that is less than a third full with a neighbour, on each level. */
static int join_sparse(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	int ret = 0;

	for (unsigned level = 0; !ret && level < c->root.level; level++) {
		bool joined = false;

		if (!c->nodes[level] || used(c->nodes[level]) >= leaf_room(c->nodes[level]->size) / 3)
			continue;
		ret = join(t, level, true, &joined, err);
		if (!ret && !joined)
			ret = join(t, level, false, &joined, err);
	}
	return ret;
}

int edit_drop_leaf(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	int ret = edit_let_go(t, c->nodes[0], err);

	node_put(c->fs, c->nodes[0]);
	c->nodes[0] = NULL;
	t->blocks--;
	if (!ret)
		ret = remove_pointer(t, err);
	if (!ret && c->nodes[c->root.level])
		ret = join_sparse(t, err);
	if (!ret && c->nodes[c->root.level])
		ret = lower_root(t, err);
	cursor_release(c);
	return ret;
}

int edit_shrink(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	int ret;

	if (!c->nodes[0]->nritems && c->root.level)
		return edit_drop_leaf(t, err);
	ret = join_sparse(t, err);
	if (!ret)
		ret = lower_root(t, err);
	cursor_release(c);
	return ret;
}
