// SPDX-License-Identifier: LGPL-2.1-or-later
/* Granted space: the credit, its distribution to threads, and its release when items are inserted into the trees. */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/reserve/ticket.h"

/* Granted in addition to a request while there is plenty of space, so that operations seldom have to queue. */
#define CREDIT_ITEMS 65536
#define CREDIT_BYTES (8 << 20)
/* Part of that which a stripe takes at a time. */
#define STRIPE_ITEMS 256u
#define STRIPE_BYTES (32u << 10)

int tickets_create(struct tickets **ret, struct btrkit_error *err)
{
	struct tickets *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(err);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->entered, NULL);
	t->credit = (struct delayed_amount){ CREDIT_ITEMS, CREDIT_BYTES, CREDIT_ITEMS };
	*ret = t;
	return 0;
}

struct tickets *tickets_destroy(struct tickets *t)
{
	if (!t)
		return NULL;
	pthread_cond_destroy(&t->entered);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return NULL;
}

void tickets_count_latency(struct tickets *t, uint64_t ns)
{
	unsigned log2 = 0;

	while (log2 + 1 < BTRKIT_RESERVE_BUCKETS && ns >> (log2 + 1))
		log2++;
	atomic_fetch_add_explicit(&t->stripes[percpu_slot()].latency_log2[log2], 1, memory_order_relaxed);
}

struct delayed_amount ticket_amount_of(const struct ticket_need *need)
{
	return (struct delayed_amount){ need->items, need->bytes, need->items };
}

void ticket_give(struct ticket_credit *c, const struct delayed_amount *a)
{
	atomic_fetch_add(&c->items, a->items);
	atomic_fetch_add(&c->bytes, a->bytes);
	atomic_fetch_add(&c->leaves, a->leaves);
}

/* Adds what there is of a credit. */
static void sum_up(struct delayed_amount *to, const struct ticket_credit *c)
{
	to->items += atomic_load(&c->items);
	to->bytes += atomic_load(&c->bytes);
	to->leaves += atomic_load(&c->leaves);
}

/* Takes all of a credit. A thread that is taking some right now gives back what it could not get. */
static void take_all(struct delayed_amount *to, struct ticket_credit *c)
{
	to->items += atomic_exchange(&c->items, 0);
	to->bytes += atomic_exchange(&c->bytes, 0);
	to->leaves += atomic_exchange(&c->leaves, 0);
}

static bool take_some(atomic_int_fast64_t *of, int64_t n)
{
	if (atomic_fetch_sub(of, n) >= n)
		return true;
	atomic_fetch_add(of, n);
	return false;
}

static bool take_of(struct ticket_credit *c, const struct delayed_amount *a)
{
	if (take_some(&c->items, a->items)) {
		if (take_some(&c->leaves, a->leaves)) {
			if (take_some(&c->bytes, a->bytes))
				return true;
			atomic_fetch_add(&c->leaves, a->leaves);
		}
		atomic_fetch_add(&c->items, a->items);
	}
	return false;
}

bool tickets_take(struct tickets *t, const struct ticket_need *need)
{
	static const struct delayed_amount more = { STRIPE_ITEMS, STRIPE_BYTES, STRIPE_ITEMS };
	struct ticket_credit *own = &t->stripes[percpu_slot()].credit;
	const struct delayed_amount a = ticket_amount_of(need);
	struct delayed_amount both = a;

	if (take_of(own, &a))
		return true;
	if (need->removes && atomic_load(&t->removals.items) > 0 && take_of(&t->removals, &a))
		return true;
	delayed_amount_add(&both, &more);
	if (!take_of(&t->common, &both))
		return take_of(&t->common, &a);
	ticket_give(own, &more);
	return true;
}

void tickets_gather(struct tickets *t)
{
	struct delayed_amount all = { 0 };

	for (unsigned i = 0; i < PERCPU_SLOTS; i++)
		take_all(&all, &t->stripes[i].credit);
	ticket_give(&t->common, &all);
}

void ticket_spare(struct btrkit_txn *txn, const struct delayed_amount *spare, bool removes)
{
	struct tickets *t = txn->tickets;

	ticket_give(removes ? &t->removals : &t->stripes[percpu_slot()].credit, spare);
}

/* Another tree has other blocks that changes may copy. */
static void tree_opened(void *ctx)
{
	tickets_recall(ctx);
}

static void taken(void *ctx, const struct delayed_amount *kept)
{
	struct tickets *t = ctx;
	struct delayed_amount credit = { 0 };

	sum_up(&credit, &t->common);
	sum_up(&credit, &t->removals);
	for (unsigned i = 0; i < PERCPU_SLOTS; i++)
		sum_up(&credit, &t->stripes[i].credit);
	pthread_mutex_lock(&t->lock);
	t->running = t->held;
	delayed_amount_subtract(&t->running, &t->outside);
	delayed_amount_subtract(&t->running, &credit);
	delayed_amount_subtract(&t->running, kept);
	pthread_mutex_unlock(&t->lock);
}

static void ran(void *ctx)
{
	struct tickets *t = ctx;

	pthread_mutex_lock(&t->lock);
	delayed_amount_subtract(&t->held, &t->running);
	t->running = (struct delayed_amount){ 0 };
	pthread_mutex_unlock(&t->lock);
}

struct delayed_watch tickets_watch(struct tickets *t)
{
	return (struct delayed_watch){ tree_opened, taken, ran, t };
}

void tickets_set_device_full(struct tickets *t, bool full)
{
	atomic_store(&t->device_full, full);
}

bool tickets_device_full(const struct tickets *t)
{
	return atomic_load(&t->device_full);
}

void tickets_recall(struct tickets *t)
{
	struct delayed_amount all = { 0 };

	pthread_mutex_lock(&t->lock);
	take_all(&all, &t->common);
	take_all(&all, &t->removals);
	for (unsigned i = 0; i < PERCPU_SLOTS; i++)
		take_all(&all, &t->stripes[i].credit);
	delayed_amount_subtract(&t->held, &all);
	pthread_mutex_unlock(&t->lock);
}

void btrkit_txn_set_may_commit(struct btrkit_txn *txn, bool may)
{
	txn->tickets->may_commit = may;
}

void btrkit_txn_get_reserve_stats(struct btrkit_txn *txn, struct btrkit_reserve_stats *stats)
{
	struct tickets *t = txn->tickets;

	pthread_mutex_lock(&t->lock);
	*stats = t->stats;
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < PERCPU_SLOTS; i++) {
		for (unsigned log2 = 0; log2 < BTRKIT_RESERVE_BUCKETS; log2++) {
			const uint64_t count = atomic_load(&t->stripes[i].latency_log2[log2]);

			stats->latency_log2[log2] += count;
			stats->reservations += count;
		}
	}
}
