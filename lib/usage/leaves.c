// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads trees level by level with the cache: for small trees, and for the nodes of large ones. */
#include "lib/usage/leaves.h"

#include "lib/base/err.h"
#include "lib/sweep/leaves.h"
#include "lib/tree/node.h"
#include "lib/usage/damage.h"
#include "lib/usage/state.h"

static int get(void *ctx, const struct node_ref *ref, struct node **ret, struct btrkit_error *err)
{
	const struct usage_blocks *b = ctx;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const int r = node_get(b->w->fs, ref, ret, &what);

	if (!r) {
		b->w->u->total.blocks_read += !b->reported;
		return 0;
	}
	*ret = NULL;
	err_at_tree(&what, ref->owner);
	return b->reported && r != -ENOMEM ? 0 : usage_damage(b->w, r, &what, err);
}

static void put(void *ctx, struct node *n)
{
	const struct usage_blocks *b = ctx;

	node_put(b->w->fs, n);
}

static int pointer(void *ctx, const struct node *parent, uint32_t slot, const struct node_ref *ref, bool ordered,
		   bool *follow, struct btrkit_error *err)
{
	const struct usage_blocks *b = ctx;
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	(void)follow;
	if (ordered || b->reported)
		return 0;
	err_corrupt(&what, "key", "keys are out of order");
	err_at_tree(&what, ref->owner);
	err_at_logical(&what, parent->bytenr);
	err_at_item(&what, slot, ref->first_key);
	return usage_damage(b->w, -EUCLEAN, &what, err);
}

struct sweep_blocks usage_from_cache(struct usage_blocks *b)
{
	return (struct sweep_blocks){ .get = get, .put = put, .pointer = pointer, .ctx = b };
}

int usage_leaves_find(struct usage_work *w, const struct tree_root *root, struct sweep_leaves *ret,
		      struct btrkit_error *err)
{
	const struct sweep_blocks from = usage_from_cache(&(struct usage_blocks){ .w = w });

	return sweep_leaves_find(&from, root, ret, err);
}

int usage_each_leaf(struct usage_work *w, const struct tree_root *root, sweep_leaf_fn visit, void *ctx,
		    struct btrkit_error *err)
{
	const struct sweep_blocks from = usage_from_cache(&(struct usage_blocks){ .w = w });

	return sweep_each_leaf(&from, root, visit, ctx, err);
}
