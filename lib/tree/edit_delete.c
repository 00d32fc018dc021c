// SPDX-License-Identifier: LGPL-2.1-or-later
/* Deletes items of a tree. */
#include "lib/tree/edit_path.h"

/* Deletes items of the path's leaf, which is private. */
static int take_out(struct edit_tree *t, uint32_t n, struct btrkit_error *err)
{
	struct node *leaf = t->c.nodes[0];

	leaf_close(leaf, t->c.slots[0], n);
	if (!t->c.slots[0])
		edit_fix_first_key(t, 0);
	return t->c.root.level && leaf_used(leaf) < leaf_room(leaf->size) / 3 ? edit_shrink(t, err) : 0;
}

int edit_delete(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = edit_find_item(t, key, err);

	return edit_ended(t, ret ? ret : take_out(t, 1, err), err);
}

/* Deletes items of the path's leaf, from the path's slot up to @last. */
static int take_out_run(struct edit_tree *t, const struct btrkit_key *last, uint64_t *taken, struct btrkit_error *err)
{
	const struct node *leaf = t->c.nodes[0];
	bool exact;
	uint32_t end = node_lower_bound(leaf, last, &exact), n;
	int ret;

	n = end + exact - t->c.slots[0];
	*taken += n;
	if (!n)
		return 0;
	/* Blocks that cannot be shared need not be copied to be dropped. */
	if (n == leaf->nritems && t->c.root.level && !t->shareable) {
		ret = edit_cow_path(t, 1, err);
		return ret ? ret : edit_drop_leaf(t, err);
	}
	ret = edit_cow_path(t, 0, err);
	return ret ? ret : take_out(t, n, err);
}

int edit_delete_range(struct edit_tree *t, const struct btrkit_key *first, const struct btrkit_key *last,
		      uint64_t *count, struct btrkit_error *err)
{
	struct btrkit_key at = *first;
	uint64_t taken = 0;
	int ret = 0;

	while (!ret && key_cmp(&at, last) <= 0) {
		struct btrkit_key next;
		bool exact, more;

		ret = edit_find_leaf(t, &at, &exact, err);
		if (ret)
			break;
		more = edit_separator(t, &next);
		if (t->c.slots[0] < t->c.nodes[0]->nritems)
			ret = take_out_run(t, last, &taken, err);
		if (!more)
			break;
		at = next;
	}
	if (!ret && count)
		*count = taken;
	return edit_ended(t, ret, err);
}

/* Number of keys that match the items from the path's slot on. */
static uint32_t count_run(const struct edit_tree *t, const struct btrkit_key *keys, size_t n)
{
	const struct node *leaf = t->c.nodes[0];
	const uint32_t slot = t->c.slots[0];
	uint32_t run = 1;

	while (run < n && slot + run < leaf->nritems) {
		const struct btrkit_key at = node_key(leaf, slot + run);

		if (key_cmp(&at, &keys[run]) != 0)
			break;
		run++;
	}
	return run;
}

static int tell_gone(const struct edit_tree *t, uint32_t n, edit_gone_fn gone, void *ctx, struct btrkit_error *err)
{
	const struct cursor *c = &t->c;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < n; i++) {
		const struct item item = leaf_item(c->nodes[0], c->slots[0] + i);

		ret = gone(ctx, &item, err);
	}
	return ret;
}

int edit_delete_many(struct edit_tree *t, const struct btrkit_key *keys, size_t n, edit_gone_fn gone, void *ctx,
		     size_t *taken, struct btrkit_error *err)
{
	uint32_t run;
	bool exact, whole;
	int ret = edit_find_leaf(t, keys, &exact, err);

	*taken = 0;
	if (!ret && !exact)
		ret = edit_no_such_item(t->c.root.id, keys, err);
	if (ret)
		return edit_ended(t, ret, err);
	run = count_run(t, keys, n);
	/* A leaf that is deleted completely need not be copied for it. */
	whole = run == t->c.nodes[0]->nritems && t->c.root.level;
	ret = edit_cow_path(t, whole ? 1 : 0, err);
	if (!ret)
		ret = tell_gone(t, run, gone, ctx, err);
	if (!ret)
		ret = whole ? edit_drop_leaf(t, err) : take_out(t, run, err);
	*taken = run;
	return edit_ended(t, ret, err);
}
