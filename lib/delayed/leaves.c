// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counts the leaves that must be copied for delayed changes of items in a tree: each leaf once, no matter how many
 * changes it has, and none that is private already. An item that was in a leaf when it was looked up will be there when
 * it is run, or in another private leaf: only edits move items to other leaves, and these make both leaves private.
 * What was seen is therefore valid from one run to the next, and all items are run before a commit or snapshot. The
 * count may be too high, but never too low.
 */
#include "lib/commit/txn.h"
#include "lib/delayed/impl.h"

static struct delayed_seen *seen_of(struct delayed_tree *t, const struct btrkit_key *key)
{
	struct delayed_shard *s = delayed_shard_of(t, key->objectid);

	/* Directories have their index items and DIR_ITEMs in different leaves. */
	return &s->seen[key->type == KEY_DIR_INDEX ? 2 : key->type == KEY_DIR_ITEM];
}

void delayed_see_leaf(struct delayed_tree *t, const struct btrkit_key *key, const struct cursor *c)
{
	const struct node *leaf = c->nodes[0];
	struct delayed_seen *seen = seen_of(t, key);

	if (seen->bytenr == leaf->bytenr || !leaf->nritems)
		return;
	*seen = (struct delayed_seen){ leaf->bytenr, edit_is_own(t->edit, leaf), node_key(leaf, 0),
				       node_key(leaf, leaf->nritems - 1) };
}

static bool covers(const struct delayed_seen *seen, const struct btrkit_key *key)
{
	return seen->bytenr && key_cmp(&seen->first, key) <= 0 && key_cmp(key, &seen->last) <= 0;
}

/* Looks up the leaf. Errors are ignored here, because they will occur again later. */
static void look(struct delayed_tree *t, const struct btrkit_key *key)
{
	struct cursor c;

	sync_rdlock_trees(&t->delayed->txn->sync);
	cursor_init(&c, t->edit->c.fs, &t->edit->c.root);
	if (!cursor_descend(&c, key, 0, NULL))
		delayed_see_leaf(t, key, &c);
	cursor_release(&c);
	sync_rdunlock_trees(&t->delayed->txn->sync);
}

bool delayed_count_leaf(struct delayed_tree *t, const struct btrkit_key *key)
{
	const struct delayed_seen *seen = seen_of(t, key);
	atomic_uint_fast64_t *slot;

	if (!covers(seen, key))
		look(t, key);
	if (!covers(seen, key))
		return true;
	if (seen->own)
		return false;
	slot = &t->leaves[(seen->bytenr / t->edit->c.fs->geometry.nodesize) % DELAYED_LEAVES];
	/* If two leaves share a slot, the second is counted again. */
	return atomic_exchange(slot, seen->bytenr) != seen->bytenr;
}

void delayed_forget_leaves(struct delayed_tree *t)
{
	for (unsigned i = 0; i < DELAYED_LEAVES; i++)
		atomic_store_explicit(&t->leaves[i], 0, memory_order_relaxed);
	for (unsigned i = 0; i < DELAYED_SHARDS; i++)
		for (unsigned k = 0; k < DELAYED_SEEN; k++)
			t->shards[i].seen[k].bytenr = 0;
}
