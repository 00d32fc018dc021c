/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_WALK_H
#define BTRKIT_CHECK_WALK_H

/* How trees hang together: what walk.c finds on the way down, and who comes after it asks. */

#include "lib/check/state.h"

/* The trees whose blocks snapshots share. */
static inline bool check_is_files(uint64_t tree)
{
	return oid_is_file_tree(tree) || tree == OID_DATA_RELOC_TREE || tree == OID_TREE_RELOC;
}

/* Whether a root item names a block that a tree may begin with. */
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
 * The first slot of a node whose child is still there: not 0 only where a dying subvolume has lost what lies before.
 * *on (may be NULL): what the slot points to has lost something too.
 */
uint32_t check_first_slot(const struct check *c, const struct check_block *b, const struct node *n, bool *on);

/* The pointer of a root to its block, as the extent tree tells it. */
struct extent_ref check_root_ref(const struct tree_root *root);
/* The same of a node to its children. */
struct extent_ref check_child_ref(const struct node *n, bool full_backref);

/* Of a block that relocation made, whether its references are of the form that it makes. */
void check_relocated(struct check *c, const struct check_block *b, const struct node *n);

/* What a block is read by, when it was reached. */
struct node_ref check_block_ref(const struct check *c, const struct check_block *b);

#endif
