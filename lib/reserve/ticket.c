// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/reserve/ticket.h"

#include <errno.h>

#include "lib/base/err.h"
#include "lib/commit/clock.h"
#include "lib/commit/refs.h"
#include "lib/commit/settle.h"
#include "lib/commit/txn.h"
#include "lib/delayed/delayed.h"
#include "lib/reserve/continue.h"
#include "lib/reserve/reserve.h"

/* Less credit than this is used up soon. */
#define LITTLE_CREDIT 64

/*
 * Reserves space for one operation, and for as much credit as possible. @leaves: leaves of that credit. No locks may be
 * held, because an exclusive thread may be committing.
 */
static int grant_with(struct btrkit_txn *txn, const struct ticket_need *need, enum txn_chunks chunks, int64_t *leaves,
		      struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	const struct delayed_amount a = ticket_amount_of(need);
	struct delayed_amount credit = t->credit, all;
	int ret;

	sync_enter(&txn->sync);
	sync_lock_trees(&txn->sync);
	pthread_mutex_lock(&t->lock);
	all = t->held;
	delayed_amount_add(&all, &a);
	ret = failure_check(txn->failure, err);
	if (!ret)
		ret = txn_reserve_items(txn, &all, need, &credit, chunks, err);
	if (!ret) {
		delayed_amount_add(&all, &credit);
		t->held = all;
		delayed_amount_add(&t->outside, &a);
		ticket_give(need->removes ? &t->removals : &t->common, &credit);
		*leaves = credit.leaves;
	}
	pthread_mutex_unlock(&t->lock);
	sync_unlock_trees(&txn->sync);
	sync_leave(&txn->sync);
	return ret;
}

static int grant(struct btrkit_txn *txn, const struct ticket_need *need, enum txn_chunks chunks,
		 struct btrkit_error *err)
{
	int64_t credit;

	return grant_with(txn, need, chunks, &credit, err);
}

/*
 * Waits until all operations that were granted something are in the gate, so that their changes can be run. No others
 * are granted anything outside of it meanwhile, since the caller is the first in the queue.
 */
static void wait_for_others(struct tickets *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->outside.items > 0)
		pthread_cond_wait(&t->entered, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static int apply_refs(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret;

	sync_close_gate(&txn->sync);
	sync_lock_trees(&txn->sync);
	/* A commit by an exclusive thread may have failed. */
	ret = failure_check(txn->failure, err);
	if (!ret)
		ret = txn_run_refs(txn, err);
	sync_unlock_trees(&txn->sync);
	sync_open_gate(&txn->sync);
	return ret;
}

void tickets_count_step(struct tickets *t, uint64_t *step)
{
	pthread_mutex_lock(&t->lock);
	++*step;
	pthread_mutex_unlock(&t->lock);
}

static int commit(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	int ret;

	tickets_count_step(t, &t->stats.commits);
	ret = txn_commit_and_go_on(txn, err);
	return ret ? ret : grant(txn, need, TXN_CHUNKS, err);
}

/* Whether a commit frees more than is free now: then it is cheaper than reclaiming little again and again. */
static bool commit_frees_much(struct btrkit_txn *txn)
{
	bool much;

	sync_lock_trees(&txn->sync);
	much = txn->overlay &&
	       txn->overlay->freed * txn->fs->geometry.nodesize > space_free_bytes(txn->space, BG_METADATA);
	sync_unlock_trees(&txn->sync);
	return much;
}

/* Takes back what was granted to the caller, who continues without it. */
static void take_back(struct tickets *t, const struct ticket_need *need)
{
	const struct delayed_amount a = ticket_amount_of(need);

	pthread_mutex_lock(&t->lock);
	delayed_amount_subtract(&t->held, &a);
	delayed_amount_subtract(&t->outside, &a);
	pthread_mutex_unlock(&t->lock);
}

/* Takes one step after the other, until one of them has made space. */
static int reclaim(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	int64_t credit;
	int ret;

	tickets_recall(t);
	wait_for_others(t);
	tickets_count_step(t, &t->stats.item_runs);
	ret = delayed_run_older(txn->delayed, err);
	/* Threads that were moving credit to their stripes have finished by now. */
	tickets_recall(t);
	if (!ret)
		ret = grant_with(txn, need, TXN_NO_CHUNKS, &credit, err);
	if (ret == -ENOSPC) {
		ret = delayed_run(txn->delayed, err);
		if (!ret)
			ret = grant_with(txn, need, TXN_NO_CHUNKS, &credit, err);
	}
	if (!ret && credit < LITTLE_CREDIT && t->may_commit && commit_frees_much(txn)) {
		take_back(t, need);
		tickets_recall(t);
		wait_for_others(t);
		return commit(txn, need, err);
	}
	if (ret != -ENOSPC)
		return ret;
	tickets_count_step(t, &t->stats.ref_runs);
	ret = apply_refs(txn, err);
	if (!ret)
		ret = grant(txn, need, TXN_NO_CHUNKS, err);
	if (ret != -ENOSPC)
		return ret;
	tickets_count_step(t, &t->stats.chunks);
	ret = grant(txn, need, TXN_CHUNKS, err);
	return ret == -ENOSPC && t->may_commit ? commit(txn, need, err) : ret;
}

static void wait_for_turn(struct tickets *t, struct ticket_waiter *w)
{
	w->next = NULL;
	pthread_mutex_lock(&t->lock);
	if (t->first) {
		pthread_cond_init(&w->turn, NULL);
		t->last->next = w;
		t->last = w;
		while (t->first != w)
			pthread_cond_wait(&w->turn, &t->lock);
		pthread_cond_destroy(&w->turn);
	} else {
		t->first = t->last = w;
	}
	pthread_mutex_unlock(&t->lock);
}

static void end_turn(struct tickets *t, bool refused)
{
	pthread_mutex_lock(&t->lock);
	t->stats.refused += refused;
	t->first = t->first->next;
	if (t->first)
		pthread_cond_signal(&t->first->turn);
	pthread_mutex_unlock(&t->lock);
}

/* An operation that was granted something has entered the gate. */
static void entered(struct tickets *t, const struct ticket_need *need)
{
	const struct delayed_amount a = ticket_amount_of(need);

	pthread_mutex_lock(&t->lock);
	delayed_amount_subtract(&t->outside, &a);
	if (t->outside.items <= 0)
		pthread_cond_signal(&t->entered);
	pthread_mutex_unlock(&t->lock);
}

/* Waits for the turn, and enters the gate with what was granted. */
static int queue(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct ticket_waiter w;
	int ret;

	tickets_count_step(t, &t->stats.tickets);
	wait_for_turn(t, &w);
	/* Those before may have left enough. */
	sync_enter(&txn->sync);
	tickets_gather(t);
	if (tickets_take(t, need)) {
		end_turn(t, false);
		return 0;
	}
	sync_leave(&txn->sync);
	/* The error of one step is not reported if a later one succeeds. */
	ret = grant(txn, need, TXN_CHUNKS_OF_PLENTY, &own);
	if (ret == -ENOSPC)
		ret = reclaim(txn, need, &own);
	end_turn(t, ret == -ENOSPC);
	if (ret)
		return err_pass(err, &own, ret);
	sync_enter(&txn->sync);
	entered(t, need);
	return 0;
}

int ticket_commit(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct tickets *t = txn->tickets;
	struct ticket_waiter w;
	bool waits = false;
	int ret = -ENOSPC;

	if (!t->may_commit || failure_is_set(txn->failure))
		return -ENOSPC;
	tickets_count_step(t, &t->stats.tickets);
	wait_for_turn(t, &w);
	/* Whoever had the turn before may have committed already. */
	sync_enter(&txn->sync);
	if (!failure_is_set(txn->failure)) {
		waits = delayed_waits(txn->delayed);
		sync_lock_trees(&txn->sync);
		waits |= refs_pending_data(txn->refs) || refs_unused_data(txn->refs) ||
			 space_pinned(txn->space, BG_DATA);
		sync_unlock_trees(&txn->sync);
	}
	sync_leave(&txn->sync);
	if (waits) {
		tickets_recall(t);
		wait_for_others(t);
		tickets_count_step(t, &t->stats.commits);
		ret = err_pass(err, &own, txn_commit_and_go_on(txn, &own));
	}
	end_turn(t, false);
	return ret;
}

int ticket_commit_now(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct tickets *t = txn->tickets;
	struct ticket_waiter w;
	int ret;

	wait_for_turn(t, &w);
	tickets_recall(t);
	wait_for_others(t);
	ret = err_pass(err, &own, txn_commit_and_go_on(txn, &own));
	end_turn(t, false);
	return ret;
}

void ticket_close(struct btrkit_txn *txn)
{
	struct tickets *t = txn->tickets;
	struct ticket_waiter w;

	wait_for_turn(t, &w);
	wait_for_others(t);
	sync_begin_exclusive(&txn->sync);
	end_turn(t, false);
}

int ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	const uint64_t start = now_ns();
	int ret;

	sync_enter(&txn->sync);
	ret = failure_check(txn->failure, err);
	if (ret) {
		sync_leave(&txn->sync);
		return ret;
	}
	if (!tickets_take(t, need)) {
		sync_leave(&txn->sync);
		ret = queue(txn, need, err);
		if (ret)
			return ret;
	}
	tickets_count_latency(t, now_ns() - start);
	return 0;
}
