/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_RESERVE_BOUND_H
#define BTRKIT_RESERVE_BOUND_H

/* Upper bounds for the number of tree blocks that changes need, including those of the following commit. */

#include "lib/reserve/ticket.h"

struct btrkit_error;
struct btrkit_txn;

/* Size of a tree, or the total of several. */
struct tree_shape {
	uint64_t blocks; /* all of them */
	uint64_t old;	 /* of these, not private yet */
	uint64_t inner, old_inner; /* upper bounds of the inner nodes among these */
	unsigned levels; /* of the highest tree; 0: there is no such tree */
	unsigned trees;
};

/* What the bounds are computed from. */
struct bound {
	uint32_t room;	      /* size of the items in a leaf */
	uint64_t sums_leaves; /* leaves that the checksums of one extent can fill */
	uint64_t bitmaps, bitmaps_most; /* sizes of all groups' free space bitmaps, and of the largest group's */
	uint64_t groups, roots, num_devices, following_max;
	uint64_t pending, pending_data; /* changes of references, including those of an exclusive thread */
	uint64_t exclusive;		/* blocks that an exclusive thread may take */
	struct tree_shape extents, csums, free_space, block_groups, root_tree, devices;
	/* Total of the open file trees: changes may be in any of them. */
	struct tree_shape files;
	struct tree_shape shared; /* of these, what snapshots may share; roots are never shared */
};

/*
 * Collects the current state. Requires the locks of trees and space, and is valid until they are released.
 * @return 0; <0
 */
int bound_begin(struct btrkit_txn *txn, struct bound *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Maximum number of blocks allocated from now until the commit is done: for @all delayed changes of items in file
 * trees, for an exclusive thread, and for what is pending.
 */
uint64_t bound_items(const struct bound *b, const struct delayed_amount *all);

/* Of these, the blocks of file trees. */
uint64_t bound_own(const struct bound *b, const struct delayed_amount *all);

/* Changes of references caused by the items. */
uint64_t bound_refs(const struct bound *b, const struct delayed_amount *all);

/* Like bound_items(), but for the next transaction, in which no block is private yet. */
uint64_t bound_next(const struct bound *b, const struct delayed_amount *all);

/* Like bound_next(), for @blocks blocks of other trees in this transaction, as counted by the caller. */
uint64_t bound_blocks(const struct bound *b, uint64_t blocks);

#endif
