/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_RESERVE_CONTINUE_H
#define BTRKIT_RESERVE_CONTINUE_H

/* Commits in the middle of a transaction. */

#include "lib/commit/txn.h"

/*
 * Commit, and continue as the next transaction. Not by a thread inside the gate.
 * @return 0; <0: as after a failed commit, the transaction can only be aborted
 */
int txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like txn_commit_and_go_on(), for a thread with exclusive use: see sync.h. */
int txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
