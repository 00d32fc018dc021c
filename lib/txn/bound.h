/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_BOUND_H
#define BTRKIT_TXN_BOUND_H

/* How many tree blocks changes come to at the most, those of the commit that follows from them besides. */

#include "lib/txn/ticket.h"

struct btrkit_error;
struct btrkit_txn;

/* A tree as it is, or some as one. */
struct tree_shape {
	uint64_t blocks; /* all of them */
	uint64_t old;	 /* of these, not private yet */
	uint64_t inner, old_inner; /* of these and those, not leaves: at the most */
	unsigned levels; /* of the highest; 0: there is no such tree */
	unsigned trees;
};

/* All that the bound goes by. */
struct bound {
	uint32_t room;	      /* of a leaf */
	uint64_t sums_leaves; /* that the checksums of an extent fill */
	uint64_t bitmaps, bitmaps_most; /* bytes of all groups' and of one's */
	uint64_t groups, roots, num_devices, following_max;
	uint64_t pending, pending_data; /* changes of references, those of who is alone besides */
	uint64_t alone;			/* blocks that somebody takes who is alone */
	struct tree_shape extents, csums, free_space, block_groups, root_tree, devices;
	/* The trees of files that are open, taken as one: changes may be in any of them. */
	struct tree_shape files;
	struct tree_shape shared; /* of these, what snapshots may share; a root is nobody else's */
};

/* As it is now: with the locks of trees and space, as long as these are held. @return 0; <0 */
int bound_begin(struct btrkit_txn *txn, struct bound *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * For changes of items of trees of files that wait, what somebody who is alone does, and what is pending: all blocks
 * that are allocated from now on until the commit is done.
 */
uint64_t bound_items(const struct bound *b, const struct ticket_amount *all);

/* Of that, blocks of the trees of files. */
uint64_t bound_own(const struct bound *b, const struct ticket_amount *all);

/* And the changes of references that the items lead to. */
uint64_t bound_refs(const struct bound *b, const struct ticket_amount *all);

/* The same as bound_items() in the next transaction, when no block is private. */
uint64_t bound_next(const struct bound *b, const struct ticket_amount *all);

/* And for @blocks blocks of other trees in this one, which the caller has counted. */
uint64_t bound_blocks(const struct bound *b, uint64_t blocks);

#endif
