// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reservations of threads with exclusive use. */
#include <errno.h>

#include "lib/base/err.h"
#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/reserve/continue.h"
#include "lib/reserve/reserve.h"
#include "lib/reserve/ticket.h"

static int grant_exclusive(struct btrkit_txn *txn, const struct ticket_need *need,
			   const struct ticket_exclusive *exclusive, enum txn_chunks chunks, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	struct delayed_amount all = ticket_amount_of(need), credit = { 0 };
	int ret;

	sync_lock_trees(&txn->sync);
	pthread_mutex_lock(&t->lock);
	delayed_amount_add(&all, &t->held);
	t->exclusive = *exclusive;
	ret = txn_reserve_items(txn, &all, need, &credit, chunks, err);
	if (ret)
		t->exclusive = (struct ticket_exclusive){ 0 };
	else
		t->held = all;
	pthread_mutex_unlock(&t->lock);
	sync_unlock_trees(&txn->sync);
	return ret;
}

static int try_exclusive(struct btrkit_txn *txn, const struct ticket_need *need,
			 const struct ticket_exclusive *exclusive, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	int ret;

	tickets_recall(t);
	ret = grant_exclusive(txn, need, exclusive, TXN_CHUNKS_OF_PLENTY, err);
	if (ret != -ENOSPC)
		return ret;
	tickets_count_step(t, &t->stats.ref_runs);
	sync_lock_trees(&txn->sync);
	ret = txn_run_refs(txn, err);
	sync_unlock_trees(&txn->sync);
	if (!ret)
		ret = grant_exclusive(txn, need, exclusive, TXN_NO_CHUNKS, err);
	if (ret != -ENOSPC)
		return ret;
	tickets_count_step(t, &t->stats.chunks);
	ret = grant_exclusive(txn, need, exclusive, TXN_CHUNKS, err);
	if (ret == -ENOSPC && t->may_commit) {
		tickets_count_step(t, &t->stats.commits);
		ret = txn_commit_exclusive(txn, err);
		if (!ret)
			ret = grant_exclusive(txn, need, exclusive, TXN_CHUNKS, err);
	}
	if (ret == -ENOSPC)
		tickets_count_step(t, &t->stats.refused);
	return ret;
}

int ticket_exclusive(struct btrkit_txn *txn, const struct ticket_need *need, const struct ticket_exclusive *exclusive,
		     struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, try_exclusive(txn, need, exclusive, &own));
}

void ticket_exclusive_end(struct btrkit_txn *txn)
{
	struct tickets *t = txn->tickets;

	pthread_mutex_lock(&t->lock);
	t->exclusive = (struct ticket_exclusive){ 0 };
	pthread_mutex_unlock(&t->lock);
}
