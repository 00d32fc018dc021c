/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_WALK_H
#define BTRKIT_CHECK_WALK_H

/* The structure of the trees, as found by walk.c and used by later passes. */

#include "lib/check/state.h"
#include "lib/check/trees/table.h"

/* Whether a root item has a possible root block. */
static inline bool check_root_valid(const struct check *c, const struct check_root *root)
{
	return root->root.bytenr && !(root->root.bytenr & ~CHECK_ADDRESS) &&
	       !(root->root.bytenr & (c->items.sectorsize - 1)) && root->root.level < LEVELS_MAX;
}

/* The root that reached a block first. */
static inline const struct check_root *check_reached_by(const struct check *c, const struct check_block *b)
{
	return (const struct check_root *)c->roots.at + (atomic_load(&b->state) >> CHECK_STATE_BITS);
}

/*
 * The first slot of a node whose child still exists; only non-zero if a subvolume being dropped has lost those before.
 * *on (may be NULL): whether the child in that slot has lost something too.
 */
uint32_t check_first_slot(const struct check *c, const struct check_block *b, const struct node *n, bool *on);

/* The reference from a root to its block, in the form of the extent tree. */
struct extent_ref check_root_ref(const struct tree_root *root);
/* The reference from a node to its children. */
struct extent_ref check_child_ref(const struct node *n, bool full_backref);

/* Checks that a block made by relocation has references of the form that relocation makes. */
void check_relocated(struct check *c, const struct check_block *b, const struct node *n);

/* What is needed to read and verify a block that was reached. */
struct node_ref check_block_ref(const struct check *c, const struct check_block *b);

/* Walks every tree from the root to the level above the leaves, and subtracts the references it meets. */
int check_walk(struct check *c);

#endif
