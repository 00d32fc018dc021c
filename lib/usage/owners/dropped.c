// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Subvolumes that are being deleted. Such a subvolume only has a part of what the blocks on the path to drop_progress
 * point to. These blocks therefore do not pass on their owners; instead, the remaining children are reached
 * individually.
 */
#include "lib/base/err.h"
#include "lib/sweep/drop.h"
#include "lib/tree/node.h"
#include "lib/usage/damage.h"
#include "lib/usage/owners/dropped.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* A block on the path to drop_progress. */
struct usage_dropped {
	struct usage_pointer at;
	size_t root; /* index in the list of roots */
};

int usage_add_dropped(struct usage_work *w, const struct usage_pointer *p, size_t root, struct btrkit_error *err)
{
	struct usage_dropped *to = array_add(&w->dropped, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	*to = (struct usage_dropped){ *p, root };
	return 0;
}

/* Adds the owner to the remaining children of a block on the path. */
static int follow_dropped(struct usage_work *w, const struct usage_dropped *p, const struct node *n,
			  struct btrkit_error *err)
{
	const struct usage_root *root = (const struct usage_root *)w->roots.at + p->root;
	uint32_t set;
	bool cut;
	const uint32_t first = sweep_drop_first(&root->drop, n, &cut);
	int ret = sets_single(&w->u->sets, root->owner, &set, err);

	for (uint32_t i = first; !ret && i < n->nritems; i++) {
		struct btrkit_key key;
		const struct node_ref ref = node_child(n, i, 0, &key);
		const struct usage_pointer child = { ref.bytenr, ref.generation, ref.level,
						     usage_digest(&node_ptrs(n)[i].key) };

		if (i == first && cut && ref.level)
			ret = usage_add_dropped(w, &child, p->root, err);
		else
			ret = usage_reach_blocks(w, &w->pending, &child, 1, set, err);
	}
	return ret;
}

static int read_dropped(struct usage_work *w, size_t i, struct btrkit_error *err)
{
	/* Copy the entry, because the list may be reallocated. */
	const struct usage_dropped p = ((const struct usage_dropped *)w->dropped.at)[i];
	const struct node_ref ref = { p.at.bytenr, p.at.generation, 0, p.at.level, NULL };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct node *n;
	int ret = node_get(w->fs, &ref, &n, &what);

	if (ret) {
		err_at_tree(&what, ((const struct usage_root *)w->roots.at)[p.root].root.id);
		return usage_damage(w, ret, &what, err);
	}
	w->u->total.blocks_read++;
	ret = follow_dropped(w, &p, n, err);
	node_put(w->fs, n);
	return ret;
}

int usage_read_dropped(struct usage_work *w, unsigned level, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < w->dropped.n; i++) {
		if (((const struct usage_dropped *)w->dropped.at)[i].at.level != level)
			continue;
		ret = read_dropped(w, i, err);
		if (!ret && usage_pending_is_full(w))
			ret = usage_pending_settle(w, false, err);
	}
	return ret;
}

/* Adds the owners to the blocks on the paths themselves. By now, nothing is passed on to their children. */
int usage_own_dropped(struct usage_work *w, struct btrkit_error *err)
{
	const struct usage_root *roots = w->roots.at;
	int ret = 0;

	for (size_t i = 0; !ret && i < w->dropped.n; i++) {
		const struct usage_dropped *p = (const struct usage_dropped *)w->dropped.at + i;
		uint32_t set;

		ret = sets_single(&w->u->sets, roots[p->root].owner, &set, err);
		if (!ret)
			ret = usage_reach_blocks(w, &w->pending, &p->at, 1, set, err);
	}
	if (!ret)
		ret = usage_pending_settle(w, false, err);
	for (unsigned level = 0; !ret && level < LEVELS_MAX; level++)
		ret = usage_merge_blocks(w, level, err);
	return ret;
}
