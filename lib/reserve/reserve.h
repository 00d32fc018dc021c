/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_RESERVE_RESERVE_H
#define BTRKIT_RESERVE_RESERVE_H

/* Space for the blocks of a transaction, reserved in advance. */

#include "lib/commit/txn.h"
#include "lib/reserve/ticket.h"

/*
 * Makes sure that @blocks tree blocks can be allocated in addition to those needed so far, including those of the
 * commit. New metadata chunks are allocated if necessary. Not during an edit.
 * @return 0; -ENOSPC: the transaction can continue, with at most an additional empty chunk; <0
 */
int txn_reserve(struct btrkit_txn *txn, uint64_t blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

enum txn_chunks {
	TXN_NO_CHUNKS,
	TXN_CHUNKS_OF_PLENTY, /* if they take little of the devices, or Linux needs one */
	TXN_CHUNKS
};
/*
 * Like txn_reserve(), for delayed changes of items in file trees: @all of them, including those of @need, which may use
 * the space kept for Linux if it removes things. *@credit is reserved in addition, and reduced to what there is space
 * for.
 */
int txn_reserve_items(struct btrkit_txn *txn, const struct delayed_amount *all, const struct ticket_need *need,
		      struct delayed_amount *credit, enum txn_chunks chunks,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * With mixed block groups: reduce *@max so that the space reserved for tree blocks remains free. Otherwise do nothing.
 * @return 0; -ENOSPC: not even @min; <0
 */
int txn_spare_mixed(struct btrkit_txn *txn, uint64_t min, uint64_t *max, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes sure that another chunk or device can be described: by the items of the chunk tree and others, and by what the
 * commit changes because of them. Not during an edit.
 * @return 0; -ENOSPC: the transaction can continue, with at most an additional empty chunk; <0
 */
int txn_reserve_chunk_tree(struct btrkit_txn *txn, enum txn_chunks chunks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes a group read-only by space_inc_ro(), and makes sure that what was reserved can still be allocated elsewhere,
 * with new chunks if necessary. To be taken back by space_dec_ro(). Not during an edit.
 * @return 0; -ENOSPC: the group is as before, with at most an additional empty chunk; <0
 */
int txn_inc_ro(struct btrkit_txn *txn, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Creates a chunk with a given profile: see chunk_plan_profile(). Space for that is reserved first. Not during an edit.
 * @ret: its group; may be NULL
 */
int txn_add_chunk(struct btrkit_txn *txn, uint64_t type, uint64_t profile, struct space_group **ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Allocates a data chunk. Not during an edit. @return 0; -ENOSPC; <0 */
int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
