// SPDX-License-Identifier: LGPL-2.1-or-later
/* Commits in the middle of a transaction, which operations cause that find no space. */
#include "lib/reserve/continue.h"

#include "lib/commit/clock.h"
#include "lib/commit/commit.h"
#include "lib/delayed/delayed.h"
#include "lib/reserve/ticket.h"

/* Continues as the next transaction. */
static int go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const int ret = txn_begin(txn, err);

	tickets_set_device_full(txn->tickets, false);
	return ret ? ret : delayed_go_on(txn->delayed, err);
}

int txn_commit_exclusive(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t start = now_ns();
	enum btrkit_commit_state reached;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int ret;

	/* The error is reported again later. */
	err = err ? err : &own;
	/* Unused credit was granted for this transaction. */
	tickets_recall(txn->tickets);
	ret = delayed_run_exclusive(txn->delayed, err);
	/* Threads before the gate may open trees or reserve space, but not while one transaction replaces the other. */
	sync_lock_trees(&txn->sync);
	ret = commit_txn(txn, start, ret, &reached, err);
	if (!ret)
		ret = failure_note_any(txn->failure, go_on(txn, err), err);
	sync_unlock_trees(&txn->sync);
	return ret;
}

int txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret;

	sync_begin_exclusive(&txn->sync);
	ret = txn_commit_exclusive(txn, err);
	sync_end_exclusive(&txn->sync);
	return ret;
}
