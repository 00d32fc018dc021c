/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_DROP_H
#define BTRKIT_SWEEP_DROP_H

/*
 * Subvolumes that are being dropped. Linux does so in key order, and notes the first key that is left in the root item.
 * Until it is done, nodes at the drop level and above still point to what is lost before that key. An example: of a
 * subvolume with files 257 to 900, whose drop progress is 500 in level 1, the nodes of level 1 and above on the path to
 * key 500 have children that the subvolume does not own any more. All others are whole.
 */

#include "lib/format/items/root.h"
#include "lib/tree/node.h"

struct sweep_drop {
	struct btrkit_key key; /* what is before it is lost, in nodes of the level and above */
	uint8_t level;
	bool begun; /* otherwise, everything is there */
};

struct sweep_drop sweep_drop_of(const struct root_item *root);

/* Returns whether the tree's root block, at @level, has lost some of its children. */
static inline bool sweep_drop_cuts_root(const struct sweep_drop *d, uint8_t level)
{
	return d->begun && level && level >= d->level;
}

/*
 * Finds the first child that is left of a node that has lost some. *cut (may be NULL): whether it has lost something,
 * too.
 */
uint32_t sweep_drop_first(const struct sweep_drop *d, const struct node *n, bool *cut);

/* Returns whether blocks of a tree may be shared with other trees: subvolumes and relocation trees. */
static inline bool sweep_has_files(uint64_t tree)
{
	return oid_is_file_tree(tree) || tree == OID_DATA_RELOC_TREE || tree == OID_TREE_RELOC;
}

#endif
