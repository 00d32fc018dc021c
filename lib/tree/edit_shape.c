// SPDX-License-Identifier: LGPL-2.1-or-later
/* Layout of blocks that are edited: moves of items, splits, new levels. */
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/edit_path.h"

void node_set_nritems(struct node *n, uint32_t nritems)
{
	n->nritems = nritems;
	((struct disk_header *)n->data)->nritems = le32_put(nritems);
}

/* End of the data of the items from @slot on. */
static uint32_t data_above(const struct node *leaf, uint32_t slot)
{
	return slot ? le32_get(leaf_items(leaf)[slot - 1].offset) : leaf_room(leaf->size);
}

static void shift_offsets(struct node *leaf, uint32_t from, uint32_t end, int64_t by)
{
	struct disk_item *items = items_of(leaf);

	for (uint32_t i = from; i < end; i++)
		items[i].offset = le32_put((uint32_t)(le32_get(items[i].offset) + by));
}

void leaf_open(struct node *leaf, uint32_t slot, uint32_t n, uint32_t bytes)
{
	struct disk_item *items = items_of(leaf);
	uint32_t end = leaf_end(leaf), above = data_above(leaf, slot);

	memmove(data_of(leaf) + end - bytes, data_of(leaf) + end, above - end);
	shift_offsets(leaf, slot, leaf->nritems, -(int64_t)bytes);
	memmove(items + slot + n, items + slot, (leaf->nritems - slot) * sizeof(*items));
	node_set_nritems(leaf, leaf->nritems + n);
}

void leaf_close(struct node *leaf, uint32_t slot, uint32_t n)
{
	struct disk_item *items = items_of(leaf);
	uint32_t end = leaf_end(leaf), above = data_above(leaf, slot), below = data_above(leaf, slot + n);

	memmove(data_of(leaf) + end + (above - below), data_of(leaf) + end, below - end);
	shift_offsets(leaf, slot + n, leaf->nritems, above - below);
	memmove(items + slot, items + slot + n, (leaf->nritems - slot - n) * sizeof(*items));
	node_set_nritems(leaf, leaf->nritems - n);
}

/* Inserts @n items (at least one) of a leaf at slot @at of another one. */
static void copy_items(const struct node *from, uint32_t slot, uint32_t n, struct node *to, uint32_t at)
{
	const uint32_t above = data_above(from, slot), bytes = above - data_above(from, slot + n);
	const uint32_t end = data_above(to, at);

	leaf_open(to, at, n, bytes);
	memcpy(items_of(to) + at, leaf_items(from) + slot, n * sizeof(struct disk_item));
	shift_offsets(to, at, at + n, (int64_t)end - above);
	memcpy(data_of(to) + end - bytes, leaf_item(from, slot + n - 1).data, bytes);
}

void leaf_copy_tail(const struct node *from, uint32_t slot, struct node *to)
{
	const uint32_t n = from->nritems - slot;
	struct btrkit_key first, there;
	uint32_t at = 0;

	if (!n)
		return;
	if (to->nritems) {
		first = node_key(from, slot);
		there = node_key(to, 0);
		at = key_cmp(&first, &there) > 0 ? to->nritems : 0;
	}
	copy_items(from, slot, n, to, at);
}

void leaf_move_tail(struct node *from, uint32_t slot, struct node *to)
{
	leaf_copy_tail(from, slot, to);
	node_set_nritems(from, slot);
}

/* Moves the first items of a leaf to the end of the one on its left. */
static void move_head(struct node *from, uint32_t n, struct node *to)
{
	copy_items(from, 0, n, to, to->nritems);
	leaf_close(from, 0, n);
}

void leaf_resize(struct node *leaf, uint32_t slot, uint32_t size)
{
	struct disk_item *d = items_of(leaf) + slot;
	const uint32_t old = le32_get(d->size), offset = le32_get(d->offset), end = leaf_end(leaf);
	const uint32_t keep = old < size ? old : size;
	const int64_t by = (int64_t)old - size;

	/*
	 * The kept part of the data moves together with the items after it, which are at lower addresses; its tail is
	 * dropped.
	 */
	memmove(data_of(leaf) + end + by, data_of(leaf) + end, offset - end + keep);
	shift_offsets(leaf, slot, leaf->nritems, by);
	d->size = le32_put(size);
}

void edit_fix_first_key(struct edit_tree *t, unsigned level)
{
	struct cursor *c = &t->c;
	struct btrkit_key first;

	if (!c->nodes[level]->nritems)
		return;
	first = node_key(c->nodes[level], 0);
	for (unsigned l = level + 1; l <= c->root.level; l++) {
		ptrs_of(c->nodes[l])[c->slots[l]].key = key_put(&first);
		if (c->slots[l])
			return;
	}
}

static void insert_pointer(struct node *parent, uint32_t slot, const struct btrkit_key *first, const struct node *child)
{
	struct disk_key_ptr *p = ptrs_of(parent);

	memmove(p + slot + 1, p + slot, (parent->nritems - slot) * sizeof(*p));
	p[slot] = (struct disk_key_ptr){ key_put(first), le64_put(child->bytenr), le64_put(child->generation) };
	node_set_nritems(parent, parent->nritems + 1);
}

/* Adds a root above the root. */
static int raise_root(struct edit_tree *t, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	const unsigned level = c->root.level + 1u;
	struct node *root;
	struct btrkit_key first;
	int ret;

	if (level == LEVELS_MAX)
		return err_set(err, BTRKIT_NO_SPACE, "the tree would have more than %u levels", LEVELS_MAX);
	first = node_key(c->nodes[level - 1], 0);
	ret = overlay_new_node(t, level, &first, &root, err);
	if (ret)
		return ret;
	insert_pointer(root, 0, &first, c->nodes[level - 1]);
	c->nodes[level] = root;
	c->slots[level] = 0;
	edit_set_root(t, root);
	return 0;
}

/* Splits the path's node at @level, whose parent has room. The path stays at the same child. */
static int split_node(struct edit_tree *t, unsigned level, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	struct node *left = c->nodes[level], *right;
	/* When appending, leave full nodes behind. */
	const bool append = c->slots[level] + 1 == left->nritems;
	const uint32_t at = append ? left->nritems - 1 : left->nritems / 2;
	struct btrkit_key first = node_key(left, at);
	int ret;

	ret = overlay_new_node(t, level, &first, &right, err);
	if (ret)
		return ret;
	memcpy(ptrs_of(right), ptrs_of(left) + at, (left->nritems - at) * sizeof(struct disk_key_ptr));
	node_set_nritems(right, left->nritems - at);
	node_set_nritems(left, at);
	insert_pointer(c->nodes[level + 1], c->slots[level + 1] + 1, &first, right);
	if (c->slots[level] >= at) {
		c->slots[level] -= at;
		c->nodes[level] = right;
		c->slots[level + 1]++;
	}
	return 0;
}

/* Makes room for one more pointer above the path's block at @level. */
static int make_room_above(struct edit_tree *t, unsigned level, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	unsigned top = level;
	int ret = 0;

	/* Find the first node with room, or add a root. Then split the full nodes below it, from the top down. */
	do {
		if (top == c->root.level)
			ret = raise_root(t, err);
		top++;
	} while (!ret && c->nodes[top]->nritems == node_capacity(c->nodes[top]));
	while (!ret && --top > level)
		ret = split_node(t, top, err);
	return ret;
}

/* The leaf next to the path's, with the same parent, if it is private and not shared. */
static struct node *neighbour(const struct edit_tree *t, bool left)
{
	const struct cursor *c = &t->c;
	const uint32_t slot = c->slots[1];
	struct btrkit_key key;
	struct node_ref ref;
	struct node *n;

	if (left ? !slot : slot + 1 == c->nodes[1]->nritems)
		return NULL;
	ref = node_child(c->nodes[1], left ? slot - 1 : slot + 1, c->root.id, &key);
	n = overlay_find(t->overlay, ref.bytenr);
	/* Leaves that were put away are full. */
	if (!n || !n->data || edit_may_share_private(t, n))
		return NULL;
	/* If it is inconsistent, those who read it report that. */
	return node_verify_ref(&ref, n->data, NULL) ? NULL : n;
}

bool edit_push(struct edit_tree *t, uint32_t bytes)
{
	struct cursor *c = &t->c;
	struct node *leaf = c->nodes[0], *other;
	const uint32_t slot = c->slots[0], need = bytes - leaf_free(leaf);
	uint32_t n = 0, sum = 0;
	struct btrkit_key first;

	if (!c->root.level || bytes <= leaf_free(leaf))
		return false;
	other = neighbour(t, true);
	/* One item stays before the slot, so that the new item belongs into this leaf. */
	while (other && n + 1 < slot && sum + leaf_item_bytes(leaf, n) <= leaf_free(other))
		sum += leaf_item_bytes(leaf, n++);
	if (n && sum >= need) {
		move_head(leaf, n, other);
		c->slots[0] -= n;
		edit_fix_first_key(t, 0);
		return true;
	}
	other = neighbour(t, false);
	n = sum = 0;
	while (other && n < leaf->nritems - slot &&
	       sum + leaf_item_bytes(leaf, leaf->nritems - n - 1) <= leaf_free(other))
		sum += leaf_item_bytes(leaf, leaf->nritems - ++n);
	if (!n || n == leaf->nritems || sum < need)
		return false;
	leaf_move_tail(leaf, leaf->nritems - n, other);
	first = node_key(other, 0);
	ptrs_of(c->nodes[1])[c->slots[1] + 1].key = key_put(&first);
	return true;
}

int edit_split_leaf(struct edit_tree *t, uint32_t slot, bool go_right, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	const struct btrkit_key first = node_key(c->nodes[0], slot);
	struct node *right;
	int ret;

	ret = make_room_above(t, 0, err);
	if (!ret)
		ret = overlay_new_node(t, 0, &first, &right, err);
	if (ret)
		return ret;
	leaf_move_tail(c->nodes[0], slot, right);
	insert_pointer(c->nodes[1], c->slots[1] + 1, &first, right);
	if (go_right) {
		c->slots[1]++;
		c->nodes[0] = right;
		c->slots[0] = 0;
	}
	return 0;
}

int edit_append_leaf(struct edit_tree *t, const struct btrkit_key *first, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	struct node *right;
	int ret;

	ret = make_room_above(t, 0, err);
	if (!ret)
		ret = overlay_new_node(t, 0, first, &right, err);
	if (ret)
		return ret;
	insert_pointer(c->nodes[1], c->slots[1] + 1, first, right);
	c->slots[1]++;
	c->nodes[0] = right;
	c->slots[0] = 0;
	return 0;
}
