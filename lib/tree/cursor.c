// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/cursor.h"

#include "lib/base/err.h"

void cursor_init(struct cursor *c, struct btrkit_fs *fs, const struct tree_root *root)
{
	*c = (struct cursor){ .fs = fs, .root = *root };
}

void cursor_release(struct cursor *c)
{
	for (int level = 0; level < LEVELS_MAX; level++) {
		if (c->nodes[level])
			node_put(c->fs, c->nodes[level]);
		c->nodes[level] = NULL;
	}
}

int cursor_blame(const struct cursor *c, int ret, struct btrkit_error *err)
{
	if (ret < 0 && c->nodes[0]) {
		err_at_tree(err, c->root.id);
		err_at_logical(err, c->nodes[0]->bytenr);
		err_at_item(err, c->slots[0], &c->item.key);
	}
	return ret;
}

/* Puts the block of @ref into c->nodes[level], unless it is there already. */
static int enter(struct cursor *c, unsigned level, const struct node_ref *ref, struct btrkit_error *err)
{
	struct node *node;
	int ret;

	if (c->nodes[level] && c->nodes[level]->bytenr == ref->bytenr)
		return 0;
	ret = node_get(c->fs, ref, &node, err);
	if (ret) {
		err_at_tree(err, c->root.id);
		return ret;
	}
	if (c->nodes[level])
		node_put(c->fs, c->nodes[level]);
	c->nodes[level] = node;
	if (level == 1 && c->scan)
		node_prefetch_children(c->fs, node);
	return 0;
}

/*
 * From the node at @level, whose slot is set, to level @to, by the first child of every level or the one @key
 * leads to.
 */
static int descend(struct cursor *c, unsigned level, unsigned to, const struct btrkit_key *key,
		   struct btrkit_error *err)
{
	while (level > to) {
		const struct node *n = c->nodes[level];
		struct btrkit_key child_key;
		struct node_ref ref;
		bool exact;
		int ret;

		ref = node_child(n, c->slots[level], c->root.id, &child_key);
		level--;
		ret = enter(c, level, &ref, err);
		if (ret)
			return ret;
		c->slots[level] = 0;
		if (!key)
			continue;
		c->slots[level] = node_lower_bound(c->nodes[level], key, &exact);
		if (level && !exact && c->slots[level])
			c->slots[level]--;
	}
	return 0;
}

/* The root's block, with the slot that @key leads to. */
static int enter_root(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct node_ref ref = { c->root.bytenr, c->root.generation, c->root.id, c->root.level, NULL };
	unsigned level = c->root.level;
	bool exact;
	int ret;

	ret = enter(c, level, &ref, err);
	if (ret)
		return ret;
	c->slots[level] = node_lower_bound(c->nodes[level], key, &exact);
	if (level && !exact && c->slots[level])
		c->slots[level]--;
	return 0;
}

int cursor_descend(struct cursor *c, const struct btrkit_key *key, unsigned level, struct btrkit_error *err)
{
	int ret = enter_root(c, key, err);

	return ret ? ret : descend(c, c->root.level, level, key, err);
}

int cursor_next_block(struct cursor *c, unsigned level, struct btrkit_error *err)
{
	unsigned up = level;

	do {
		if (up == c->root.level)
			return 1;
		up++;
	} while (c->slots[up] + 1 >= c->nodes[up]->nritems);
	c->slots[up]++;
	return descend(c, up, level, NULL, err);
}

/* Settles on the current slot of the leaf, or on the first item of the next leaf when the slot is behind the last. */
static int settle(struct cursor *c, struct btrkit_error *err)
{
	if (c->slots[0] >= c->nodes[0]->nritems) {
		int ret = cursor_next_block(c, 0, err);

		if (ret)
			return ret;
	}
	c->item = leaf_item(c->nodes[0], c->slots[0]);
	return 0;
}

/* Whether @key lies between the first and the last key of the leaf where the cursor stands. */
static bool in_leaf(const struct cursor *c, const struct btrkit_key *key)
{
	const struct node *leaf = c->nodes[0];
	struct btrkit_key first, last;

	if (!leaf || !leaf->nritems)
		return false;
	first = node_key(leaf, 0);
	last = node_key(leaf, leaf->nritems - 1);
	return key_cmp(key, &first) >= 0 && key_cmp(key, &last) <= 0;
}

/* Whether the first item not below @key is the one in the current slot: what a search in small steps meets most. */
static bool in_place(const struct cursor *c, const struct btrkit_key *key)
{
	const struct node *leaf = c->nodes[0];
	struct btrkit_key before, here;

	if (!leaf || !c->slots[0] || c->slots[0] >= leaf->nritems)
		return false;
	before = node_key(leaf, c->slots[0] - 1);
	here = node_key(leaf, c->slots[0]);
	return key_cmp(&before, key) < 0 && key_cmp(key, &here) <= 0;
}

int cursor_seek(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret;

	if (in_place(c, key)) {
		c->item = leaf_item(c->nodes[0], c->slots[0]);
		return 0;
	}
	if (in_leaf(c, key)) {
		c->slots[0] = node_lower_bound(c->nodes[0], key, NULL);
	} else {
		ret = cursor_descend(c, key, 0, err);
		if (ret)
			return ret;
	}
	return settle(c, err);
}

int cursor_seek_back(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err)
{
	bool exact;
	int ret;

	ret = cursor_descend(c, key, 0, err);
	if (ret)
		return ret;
	c->slots[0] = node_lower_bound(c->nodes[0], key, &exact);
	if (!exact) {
		/*
		 * The way down took the last child whose first key is not above @key, so the item before lies in this
		 * leaf; if it does not, every key of the tree is above.
		 */
		if (!c->slots[0])
			return 1;
		c->slots[0]--;
	}
	c->item = leaf_item(c->nodes[0], c->slots[0]);
	return 0;
}

int cursor_find(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = cursor_seek(c, key, err);

	return ret ? ret : key_cmp(&c->item.key, key) != 0;
}

int cursor_next(struct cursor *c, struct btrkit_error *err)
{
	c->slots[0]++;
	return settle(c, err);
}
