/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_BOUND_H
#define BTRKIT_TXN_BOUND_H

/* How many tree blocks changes come to at the most, those of the commit that follows from them besides. */

#include "lib/txn/ticket.h"

struct btrkit_error;
struct btrkit_txn;

/*
 * For changes of items of trees of files that wait, what somebody who is alone does, and what is pending: all blocks
 * that are allocated from now on until the commit is done. With the locks of trees and space. @return 0; <0
 */
int bound_items(struct btrkit_txn *txn, const struct ticket_amount *all, uint64_t *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same for @blocks blocks of other trees, which the caller has counted. */
int bound_blocks(struct btrkit_txn *txn, uint64_t blocks, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
