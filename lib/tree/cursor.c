// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/cursor.h"

#include "lib/base/err.h"

/* How many leaves are prefetched: more and more of them while all of them are used. */
#define AHEAD_MIN 4u
#define AHEAD_MAX 128u

void cursor_init(struct cursor *c, struct btrkit_fs *fs, const struct tree_root *root)
{
	*c = (struct cursor){ .fs = fs, .root = *root };
}

/* Releases the levels below @end. */
static void release_below(struct cursor *c, unsigned end)
{
	for (unsigned level = 0; level < end; level++) {
		if (c->nodes[level])
			node_put(c->fs, c->nodes[level]);
		c->nodes[level] = NULL;
	}
}

void cursor_release(struct cursor *c)
{
	release_below(c, LEVELS_MAX);
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

/*
 * The block of @ref is in c->nodes[level] already. If another pointer led there, its contents would be returned twice,
 * so check this pointer, too. During an edit, a private block may be newer than its pointer.
 */
static int stay(struct cursor *c, unsigned level, const struct node_ref *ref, struct btrkit_error *err)
{
	const struct node *node = c->nodes[level];
	const int ret = node->private ? 0 : node_verify_ref(ref, node->data, err);

	if (ret) {
		err_at_tree(err, c->root.id);
		err_at_logical(err, ref->bytenr);
		/* It was not entered by this pointer. */
		release_below(c, level + 1);
	}
	return ret;
}

/*
 * Gets the block of @ref into c->nodes[level], unless it is there already. After a failure there is nothing there and
 * below, so that the previous position is not mistaken for the new one.
 */
static int enter(struct cursor *c, unsigned level, const struct node_ref *ref, struct btrkit_error *err)
{
	struct node *node;
	int ret;

	if (c->nodes[level] && c->nodes[level]->bytenr == ref->bytenr)
		return stay(c, level, ref, err);
	ret = node_get(c->fs, ref, &node, err);
	if (ret) {
		err_at_tree(err, c->root.id);
		release_below(c, level + 1);
		return ret;
	}
	if (c->nodes[level])
		node_put(c->fs, c->nodes[level]);
	c->nodes[level] = node;
	if (!level)
		c->leaves++;
	if (level == 1)
		c->ahead = 0;
	return 0;
}

/* A slot in nodes[1], which was just entered, was chosen, and a scan will continue to the right: prefetch. */
static void request_children(const struct cursor *c)
{
	const struct node *n = c->nodes[1];
	uint32_t to = n->nritems;
	bool exact;

	if (c->until.objectid) {
		to = node_lower_bound(n, &c->until, &exact);
		to += exact;
	}
	node_prefetch_children(c->fs, n, c->slots[1], to);
}

/* Chooses the child of the node at @level that @key leads to, or without a key the first. */
static void choose(struct cursor *c, unsigned level, const struct btrkit_key *key)
{
	bool exact;

	c->slots[level] = 0;
	if (!key)
		return;
	c->slots[level] = node_lower_bound(c->nodes[level], key, &exact);
	if (level && !exact && c->slots[level])
		c->slots[level]--;
}

/* enter(), and choose(). */
static int enter_and_choose(struct cursor *c, unsigned level, const struct node_ref *ref, const struct btrkit_key *key,
			    struct btrkit_error *err)
{
	const struct node *before = c->nodes[level];
	int ret = enter(c, level, ref, err);

	if (ret)
		return ret;
	choose(c, level, key);
	if (level == 1 && c->scan && c->nodes[level] != before)
		request_children(c);
	return 0;
}

/*
 * Descends from the node at @level, whose slot is set, to level @to: to the child that @key leads to, or without a key
 * to the first.
 */
static int descend(struct cursor *c, unsigned level, unsigned to, const struct btrkit_key *key,
		   struct btrkit_error *err)
{
	while (level > to) {
		const struct node *n = c->nodes[level];
		struct btrkit_key child_key;
		struct node_ref ref;
		int ret;

		ref = node_child(n, c->slots[level], c->root.id, &child_key);
		level--;
		ret = enter_and_choose(c, level, &ref, key, err);
		if (ret)
			return ret;
	}
	return 0;
}

int cursor_descend(struct cursor *c, const struct btrkit_key *key, unsigned level, struct btrkit_error *err)
{
	const struct node_ref ref = { c->root.bytenr, c->root.generation, c->root.id, c->root.level, NULL };
	int ret = enter_and_choose(c, c->root.level, &ref, key, err);

	c->run = 0;
	return ret ? ret : descend(c, c->root.level, level, key, err);
}

/* The next leaf to be entered is the right neighbour of this one. */
static void leave_to_the_right(struct cursor *c)
{
	struct node *leaf = c->nodes[0];

	if (!leaf || !leaf->nritems) {
		c->run = 0;
		return;
	}
	c->before = node_key(leaf, leaf->nritems - 1);
	c->run++;
	if (c->once) {
		node_pass(c->fs, leaf);
		c->nodes[0] = NULL;
	}
}

/* Without an announced scan: after some adjacent leaves were read, prefetch the next ones. */
static void read_on(struct cursor *c)
{
	const uint32_t next = c->slots[1] + 1;
	uint32_t far = c->run < AHEAD_MAX / AHEAD_MIN ? c->run * AHEAD_MIN : AHEAD_MAX, to;

	if (!c->forward || c->run < 2 || next + far / 2 < c->ahead)
		return;
	to = c->nodes[1]->nritems - next < far ? c->nodes[1]->nritems : next + far;
	node_prefetch_children(c->fs, c->nodes[1], c->ahead > next ? c->ahead : next, to);
	c->ahead = to;
}

/* The cursor has no position: it failed, or was never moved to an item. */
static int nowhere(struct btrkit_error *err)
{
	return err_set(err, BTRKIT_INVALID, "the cursor has no position in the tree");
}

int cursor_next_block(struct cursor *c, unsigned level, struct btrkit_error *err)
{
	unsigned up = level;
	int ret;

	do {
		if (up == c->root.level)
			return 1;
		up++;
		if (!c->nodes[up])
			return nowhere(err);
	} while (c->slots[up] + 1 >= c->nodes[up]->nritems);
	c->slots[up]++;
	if (!level)
		leave_to_the_right(c);
	ret = descend(c, up, level, NULL, err);
	if (!ret && !level)
		read_on(c);
	return ret;
}

/* Gets the item in the current slot, or if that is after the last item, the first item of the next leaf. */
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

/* Whether @key is between the first and last key of the current leaf. */
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

/* Whether the first item not less than @key is in the current slot, as is typical of searches in small steps. */
static bool in_place(const struct cursor *c, const struct btrkit_key *key)
{
	const struct node *leaf = c->nodes[0];
	struct btrkit_key before, here;

	if (!leaf || c->slots[0] >= leaf->nritems)
		return false;
	if (c->slots[0])
		before = node_key(leaf, c->slots[0] - 1);
	else if (c->forward && c->run)
		before = c->before;
	else
		return false;
	here = node_key(leaf, c->slots[0]);
	return key_cmp(&before, key) < 0 && key_cmp(key, &here) <= 0;
}

/* Whether the child that @key leads to in nodes[level] is left of @slot. */
static bool left_of(const struct cursor *c, unsigned level, uint32_t slot, const struct btrkit_key *key)
{
	struct btrkit_key at;

	if (slot >= c->nodes[level]->nritems)
		return false;
	at = node_key(c->nodes[level], slot);
	return key_cmp(key, &at) < 0;
}

/* Whether @key is greater than all keys of the current leaf. */
static bool behind_leaf(const struct cursor *c, const struct btrkit_key *key)
{
	const struct node *leaf = c->nodes[0];
	struct btrkit_key last;

	if (!leaf || !leaf->nritems)
		return false;
	last = node_key(leaf, leaf->nritems - 1);
	return key_cmp(key, &last) > 0;
}

/* Goes to a key after this leaf: up no further than necessary, usually to the right neighbour. */
static int go_on(struct cursor *c, const struct btrkit_key *key, struct btrkit_error *err)
{
	const uint32_t next = c->slots[1] + 1;
	unsigned up = 1;
	int ret;

	while (up <= c->root.level && !left_of(c, up, c->slots[up] + 1, key))
		up++;
	if (up == 1 || !c->root.level) {
		/* The key is between this leaf and the next one. */
		c->slots[0] = c->nodes[0]->nritems;
		return 0;
	}
	if (next < c->nodes[1]->nritems && left_of(c, 1, next + 1, key)) {
		c->slots[1] = next;
		leave_to_the_right(c);
		ret = descend(c, 1, 0, key, err);
		if (!ret)
			read_on(c);
		return ret;
	}
	up = up > c->root.level ? c->root.level : up - 1;
	c->run = 0;
	choose(c, up, key);
	return descend(c, up, 0, key, err);
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
	} else if (c->forward && behind_leaf(c, key)) {
		ret = go_on(c, key, err);
		if (ret)
			return ret;
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
		 * The path leads through the last child whose first key is not greater than @key. So the item before is
		 * in this leaf; otherwise all keys of the tree are greater.
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
	if (!c->nodes[0])
		return nowhere(err);
	c->slots[0]++;
	return settle(c, err);
}
