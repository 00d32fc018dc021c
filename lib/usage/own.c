// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks the trees of the filesystem itself. Normally that is not needed because the extent tree lists their blocks. It
 * is only done to find blocks that a damaged extent tree lacks.
 */
#include "lib/sweep/leaves.h"
#include "lib/usage/leaves.h"
#include "lib/usage/own.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/state.h"

/* Adds the blocks of the current level in the list. */
static int own_level(struct usage_work *w, const struct sweep_leaves *l, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < l->list.n; i++) {
		const struct sweep_leaf *b = (const struct sweep_leaf *)l->list.at + i;
		const struct usage_pointer p = { b->bytenr, b->generation, l->level, 0 };

		ret = usage_reach_blocks(w, &w->pending, &p, 1, w->filesystem, err);
	}
	return ret;
}

/* @reported: the tree was read before, and unreadable blocks were reported */
static int own_tree(struct usage_work *w, const struct tree_root *root, bool reported, struct btrkit_error *err)
{
	const struct sweep_blocks from = usage_from_cache(&(struct usage_blocks){ .w = w, .reported = reported });
	struct sweep_leaves l;
	int ret = sweep_leaves_begin(root, &l, err);

	if (!ret)
		ret = own_level(w, &l, err);
	while (!ret && l.level) {
		ret = sweep_leaves_descend(&from, &l, err);
		if (!ret)
			ret = own_level(w, &l, err);
	}
	sweep_leaves_release(&l);
	return ret;
}

int usage_own_trees(struct usage_work *w, struct btrkit_error *err)
{
	const struct tree_root *own = w->own.at;
	int ret;

	if (!w->lost.n)
		return 0;
	ret = own_tree(w, &w->fs->root_tree, true, err);
	if (!ret)
		ret = own_tree(w, &w->fs->chunk_tree, true, err);
	for (size_t i = 0; !ret && i < w->own.n; i++) {
		ret = own_tree(w, &own[i], own[i].id == OID_EXTENT_TREE, err);
		if (!ret && usage_pending_is_full(w))
			ret = usage_pending_settle(w, false, err);
	}
	return ret ? ret : usage_pending_settle(w, false, err);
}
