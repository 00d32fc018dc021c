// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/txn/ticket.h"

#include <errno.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/txn/delayed.h"
#include "lib/txn/refs.h"
#include "lib/txn/txn.h"

/* What is granted besides what is asked for, as long as there is plenty: the queue is for when there is not. */
#define CREDIT_ITEMS 65536
#define CREDIT_BYTES (8 << 20)
/* Of that a stripe takes so much at a time. */
#define STRIPE_ITEMS 256u
#define STRIPE_BYTES (32u << 10)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tickets_init(struct tickets *t)
{
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->turn, NULL);
	t->credit = (struct ticket_amount){ CREDIT_ITEMS, CREDIT_BYTES };
}

void tickets_destroy(struct tickets *t)
{
	pthread_cond_destroy(&t->turn);
	pthread_mutex_destroy(&t->lock);
}

static void count_latency(struct tickets *t, uint64_t ns)
{
	unsigned log2 = 0;

	while (log2 + 1 < BTRKIT_RESERVE_BUCKETS && ns >> (log2 + 1))
		log2++;
	atomic_fetch_add_explicit(&t->stripes[stripe_of_thread()].latency_log2[log2], 1, memory_order_relaxed);
}

/* Takes from a credit. */
static bool take_of(atomic_int_fast64_t *items, atomic_int_fast64_t *bytes, const struct ticket_need *need)
{
	if (atomic_fetch_sub(items, need->items) >= need->items) {
		if (atomic_fetch_sub(bytes, need->bytes) >= need->bytes)
			return true;
		atomic_fetch_add(bytes, need->bytes);
	}
	atomic_fetch_add(items, need->items);
	return false;
}

static bool take(struct tickets *t, const struct ticket_need *need)
{
	const struct ticket_need more = { .items = need->items + STRIPE_ITEMS, .bytes = need->bytes + STRIPE_BYTES };
	struct ticket_stripe *s = &t->stripes[stripe_of_thread()];

	if (take_of(&s->items, &s->bytes, need))
		return true;
	if (!take_of(&t->items, &t->bytes, &more))
		return take_of(&t->items, &t->bytes, need);
	atomic_fetch_add(&s->items, STRIPE_ITEMS);
	atomic_fetch_add(&s->bytes, STRIPE_BYTES);
	return true;
}

/* Reserves for one, and for the credit if that can be had too. With no lock held. */
static int grant(struct btrkit_txn *txn, const struct ticket_need *need, enum txn_chunks chunks,
		 struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	struct ticket_amount credit = t->credit;
	int ret;

	delayed_lock_trees(txn->delayed);
	pthread_mutex_lock(&t->lock);
	for (;;) {
		const struct ticket_amount all = { t->held.items + need->items + credit.items,
						   t->held.bytes + need->bytes + credit.bytes };

		ret = txn_reserve_items(txn, &all, need->removes, chunks, err);
		if (ret != -ENOSPC || !credit.items || atomic_load(&txn->delayed->failed))
			break;
		credit = (struct ticket_amount){ credit.items / 16, credit.bytes / 16 };
	}
	if (!ret) {
		t->held.items += need->items + credit.items;
		t->held.bytes += need->bytes + credit.bytes;
		t->outside.items += need->items;
		t->outside.bytes += need->bytes;
		atomic_fetch_add(&t->items, credit.items);
		atomic_fetch_add(&t->bytes, credit.bytes);
	}
	pthread_mutex_unlock(&t->lock);
	delayed_unlock_trees(txn->delayed);
	return ret;
}

/*
 * Those who were granted something and are not in the gate yet get there: what they do can then be run. Nobody else is
 * granted anything, since there is no credit and the caller is the first in the queue.
 */
static void wait_for_others(struct tickets *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->outside.items > 0)
		pthread_cond_wait(&t->turn, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static int apply_refs(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret;

	gate_close(&txn->delayed->gate);
	delayed_lock_trees(txn->delayed);
	ret = txn_run_refs(txn, err);
	delayed_unlock_trees(txn->delayed);
	gate_open(&txn->delayed->gate);
	return ret;
}

static void count_step(struct tickets *t, uint64_t *step)
{
	pthread_mutex_lock(&t->lock);
	++*step;
	pthread_mutex_unlock(&t->lock);
}

/* One step after the other, until one of them has made room. */
static int reclaim(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	int ret;

	tickets_recall(t);
	wait_for_others(t);
	count_step(t, &t->stats.item_runs);
	ret = delayed_run(txn->delayed, err);
	/* Those who were taking some for their stripes have got it by now. */
	tickets_recall(t);
	if (!ret)
		ret = grant(txn, need, TXN_NO_CHUNKS, err);
	if (ret != -ENOSPC)
		return ret;
	count_step(t, &t->stats.ref_runs);
	ret = apply_refs(txn, err);
	if (!ret)
		ret = grant(txn, need, TXN_NO_CHUNKS, err);
	if (ret != -ENOSPC)
		return ret;
	count_step(t, &t->stats.chunks);
	ret = grant(txn, need, TXN_CHUNKS, err);
	if (ret != -ENOSPC || !t->may_commit)
		return ret;
	count_step(t, &t->stats.commits);
	ret = txn_commit_and_go_on(txn, err);
	return ret ? ret : grant(txn, need, TXN_CHUNKS, err);
}

static void wait_for_turn(struct tickets *t)
{
	uint64_t mine;

	pthread_mutex_lock(&t->lock);
	mine = t->next++;
	t->stats.tickets++;
	while (t->serving != mine)
		pthread_cond_wait(&t->turn, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static void end_turn(struct tickets *t, bool refused)
{
	pthread_mutex_lock(&t->lock);
	t->serving++;
	t->stats.refused += refused;
	pthread_cond_broadcast(&t->turn);
	pthread_mutex_unlock(&t->lock);
}

static int queue(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	int ret;

	wait_for_turn(t);
	ret = grant(txn, need, TXN_CHUNKS_OF_PLENTY, err);
	if (ret == -ENOSPC)
		ret = reclaim(txn, need, err);
	end_turn(t, ret == -ENOSPC);
	return ret;
}

int ticket_commit(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct delayed *d = txn->delayed;
	bool waits;
	int ret = -ENOSPC;

	if (!d->tickets.may_commit || atomic_load(&d->failed))
		return -ENOSPC;
	wait_for_turn(&d->tickets);
	/* Whoever had the turn before may have done it. */
	waits = delayed_waits(d);
	delayed_lock_trees(d);
	waits |= refs_pending_data(txn->refs) || space_pinned(txn->space, BG_DATA);
	delayed_unlock_trees(d);
	if (waits) {
		tickets_recall(&d->tickets);
		wait_for_others(&d->tickets);
		count_step(&d->tickets, &d->tickets.stats.commits);
		ret = txn_commit_and_go_on(txn, err);
	}
	end_turn(&d->tickets, false);
	return ret;
}

int ticket_enter(struct btrkit_txn *txn, const struct ticket_need *need, struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	const uint64_t start = now_ns();
	int ret;

	gate_enter(&txn->delayed->gate);
	if (atomic_load(&txn->delayed->failed)) {
		gate_leave(&txn->delayed->gate);
		return err_set(err, BTRKIT_INVALID, "an earlier change failed: the transaction can only be aborted");
	}
	if (!take(t, need)) {
		gate_leave(&txn->delayed->gate);
		ret = queue(txn, need, err);
		if (ret)
			return ret;
		gate_enter(&txn->delayed->gate);
		pthread_mutex_lock(&t->lock);
		t->outside.items -= need->items;
		t->outside.bytes -= need->bytes;
		pthread_cond_broadcast(&t->turn);
		pthread_mutex_unlock(&t->lock);
	}
	count_latency(t, now_ns() - start);
	return 0;
}

static int grant_alone(struct btrkit_txn *txn, const struct ticket_need *need, const struct ticket_alone *alone,
		       enum txn_chunks chunks, struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	struct ticket_amount all;
	int ret;

	delayed_lock_trees(txn->delayed);
	pthread_mutex_lock(&t->lock);
	all = (struct ticket_amount){ t->held.items + need->items, t->held.bytes + need->bytes };
	t->alone = *alone;
	ret = txn_reserve_items(txn, &all, need->removes, chunks, err);
	if (ret)
		t->alone = (struct ticket_alone){ 0 };
	else
		t->held = all;
	pthread_mutex_unlock(&t->lock);
	delayed_unlock_trees(txn->delayed);
	return ret;
}

int ticket_alone(struct btrkit_txn *txn, const struct ticket_need *need, const struct ticket_alone *alone,
		 struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	int ret;

	tickets_recall(t);
	ret = grant_alone(txn, need, alone, TXN_CHUNKS_OF_PLENTY, err);
	if (ret != -ENOSPC)
		return ret;
	count_step(t, &t->stats.ref_runs);
	delayed_lock_trees(txn->delayed);
	ret = txn_run_refs(txn, err);
	delayed_unlock_trees(txn->delayed);
	if (!ret)
		ret = grant_alone(txn, need, alone, TXN_NO_CHUNKS, err);
	if (ret != -ENOSPC)
		return ret;
	count_step(t, &t->stats.chunks);
	ret = grant_alone(txn, need, alone, TXN_CHUNKS, err);
	if (ret == -ENOSPC && t->may_commit) {
		count_step(t, &t->stats.commits);
		ret = txn_commit_alone(txn, err);
		if (!ret)
			ret = grant_alone(txn, need, alone, TXN_CHUNKS, err);
	}
	if (ret == -ENOSPC)
		count_step(t, &t->stats.refused);
	return ret;
}

void ticket_alone_end(struct btrkit_txn *txn)
{
	struct tickets *t = &txn->delayed->tickets;

	pthread_mutex_lock(&t->lock);
	t->alone = (struct ticket_alone){ 0 };
	pthread_mutex_unlock(&t->lock);
}

void tickets_run(struct tickets *t)
{
	struct ticket_amount credit = { atomic_load(&t->items), atomic_load(&t->bytes) };

	for (unsigned i = 0; i < STRIPES; i++) {
		credit.items += atomic_load(&t->stripes[i].items);
		credit.bytes += atomic_load(&t->stripes[i].bytes);
	}
	pthread_mutex_lock(&t->lock);
	t->running.items = t->held.items - t->outside.items - credit.items;
	t->running.bytes = t->held.bytes - t->outside.bytes - credit.bytes;
	pthread_mutex_unlock(&t->lock);
}

void tickets_ran(struct tickets *t)
{
	pthread_mutex_lock(&t->lock);
	t->held.items -= t->running.items;
	t->held.bytes -= t->running.bytes;
	t->running = (struct ticket_amount){ 0 };
	pthread_mutex_unlock(&t->lock);
}

void tickets_recall(struct tickets *t)
{
	int64_t items, bytes;

	pthread_mutex_lock(&t->lock);
	/* Who is taking some just now gives back what he could not have. */
	items = atomic_exchange(&t->items, 0);
	bytes = atomic_exchange(&t->bytes, 0);
	for (unsigned i = 0; i < STRIPES; i++) {
		items += atomic_exchange(&t->stripes[i].items, 0);
		bytes += atomic_exchange(&t->stripes[i].bytes, 0);
	}
	t->held.items -= items;
	t->held.bytes -= bytes;
	pthread_mutex_unlock(&t->lock);
}

void btrkit_txn_set_may_commit(struct btrkit_txn *txn, bool may)
{
	txn->delayed->tickets.may_commit = may;
}

void btrkit_txn_get_reserve_stats(struct btrkit_txn *txn, struct btrkit_reserve_stats *stats)
{
	struct tickets *t = &txn->delayed->tickets;

	pthread_mutex_lock(&t->lock);
	*stats = t->stats;
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < STRIPES; i++) {
		for (unsigned log2 = 0; log2 < BTRKIT_RESERVE_BUCKETS; log2++) {
			const uint64_t count = atomic_load(&t->stripes[i].latency_log2[log2]);

			stats->latency_log2[log2] += count;
			stats->reservations += count;
		}
	}
}
