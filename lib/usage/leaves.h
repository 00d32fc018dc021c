/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_LEAVES_H
#define BTRKIT_USAGE_LEAVES_H

#include "lib/sweep/leaves.h"
#include "lib/usage/state.h"

/* Where a walk of lib/sweep reads blocks: from the cache. What is unreadable is reported as damage. */
struct usage_blocks {
	struct usage_work *w;
	bool reported; /* the tree was read before, when its damage was reported and its blocks were counted */
};

/* The result points to @b. */
struct sweep_blocks usage_from_cache(struct usage_blocks *b);

/* Finds all leaves. Unreadable blocks are reported and left out. sweep_leaves_release() must be called. */
int usage_leaves_find(struct usage_work *w, const struct tree_root *root, struct sweep_leaves *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Calls @visit for each leaf of a tree in key order, using the cache. For small trees. */
int usage_each_leaf(struct usage_work *w, const struct tree_root *root, sweep_leaf_fn visit, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
