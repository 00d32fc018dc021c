/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_DROP_H
#define BTRKIT_TREE_DROP_H

/*
 * Deletes a tree that may share blocks with others, part by part. Blocks that only this tree can reach are freed. A
 * block that others can reach, too, only loses the reference from this tree. But if this tree created that block, or
 * blocks below it, their references are made in the name of the tree. These are replaced by full backreferences, before
 * the tree no longer exists. These are Linux's rules.
 */

#include "lib/tree/overlay.h"

/* Progress. What is before it is deleted, and can be reused after a commit. */
struct tree_drop {
	uint64_t id;
	struct btrkit_key progress; /* objectid 0: nothing deleted yet; as in the ROOT_ITEM */
	uint8_t level;
	/*
	 * Progress within the shared block at that place: everything before this is done. Need not be stored, but saves
	 * time.
	 */
	struct btrkit_key converted;
	bool converting;
};

/*
 * Deletes until about @refs references have changed (see tree_drop_excess()), or everything is done. The tree must no
 * longer be edited. @return 0: there is more; 1: all of it is deleted; <0
 */
int tree_drop_some(struct overlay *o, struct tree_drop *d, uint64_t refs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* How many more references than requested may change: those of the contents of a block. */
uint64_t tree_drop_excess(uint32_t nodesize);

#endif
