/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_DROP_H
#define BTRKIT_TREE_DROP_H

/*
 * A tree that may share blocks with others goes, some of it at a time. What only it reaches is freed. A block that
 * others reach too loses the reference that this tree makes; but blocks below, and itself, that were made by this tree
 * make their references in its name: they get full back references instead, before the name is gone. These are Linux's
 * rules.
 */

#include "lib/tree/overlay.h"

/* How far it has come. What lies before is gone, and may be reused when that is committed. */
struct tree_drop {
	uint64_t id;
	struct btrkit_key progress; /* objectid 0: nothing has gone yet; as a ROOT_ITEM has it */
	uint8_t level;
	/* In the shared block at that place: before this all is done. Not to be kept, but for speed. */
	struct btrkit_key converted;
	bool converting;
};

/*
 * Drops until about @refs references have changed, or all is done: see tree_drop_excess(). The tree must not be edited
 * any more. @return 0: there is more; 1: all of it is gone; <0
 */
int tree_drop_some(struct overlay *o, struct tree_drop *d, uint64_t refs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* How many references more than it was told to change it may have changed: of a block's contents. */
uint64_t tree_drop_excess(uint32_t nodesize);

#endif
