/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_COMMIT_H
#define BTRKIT_COMMIT_COMMIT_H

/* The commit: see txn.h. */

#include "lib/commit/txn.h"

/*
 * Commit, after all delayed items have been run. @start: when that began; @ret: its result. Afterwards the transaction
 * has nothing left of what txn_begin() creates, whatever is returned. @err must not be NULL, because the error is
 * reported again later.
 */
int commit_txn(struct btrkit_txn *txn, uint64_t start, int ret, enum btrkit_commit_state *state,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
