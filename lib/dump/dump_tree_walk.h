/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_WALK_H
#define BTRKIT_DUMP_DUMP_TREE_WALK_H

/* Walks a tree, or a part of it, for a dump. */

#include "lib/dump/dump_tree_run.h"

enum dump_order {
	DUMP_ONE_BLOCK,		/* only this block */
	DUMP_BREADTH_FIRST,	/* also all blocks below, level by level */
	DUMP_DEPTH_FIRST,
	DUMP_LEAVES,		/* only leaves, in the order of keys */
};

/* Which parts of a tree to show. */
struct dump_what {
	enum dump_order order;
	const struct dump_blocks *blocks;	/* which blocks; NULL: all */
	const struct dump_pick *pick;		/* which items of leaves; NULL: all */
	/* For a subvolume being deleted: blocks before this key, and below this level, were freed. */
	bool dropping;
	struct btrkit_key drop_key;
	uint8_t drop_level;
};

/*
 * Dumps the block at @ref and everything below it. Unreadable blocks are reported in their place.
 * @return 0, -ENOMEM, or an error of the output
 */
int dump_tree_walk(struct dump_run *run, const struct node_ref *ref, const struct dump_what *what,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
