// SPDX-License-Identifier: LGPL-2.1-or-later
/* When delayed items are run: which are taken over, and by which thread. */
#include "lib/commit/txn.h"
#include "lib/delayed/impl.h"

/* What remains delayed: see keep.c. */
enum keep { KEEP_NOTHING, KEEP_NEWEST, KEEP_DIRECTORIES };

/*
 * Takes over the delayed items. From now on, new changes are collected separately. The gate must be closed. Threads
 * before the gate may open further trees meanwhile, which have no delayed items. @return memory used by the items
 */
static size_t take_over(struct delayed *d, enum keep keep, struct delayed_tree **list)
{
	struct delayed_amount kept = { 0 };
	size_t bytes = 0;

	sync_rdlock_trees(&d->txn->sync);
	*list = d->list;
	sync_rdunlock_trees(&d->txn->sync);
	for (struct delayed_tree *t = *list; t; t = t->next) {
		for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
			t->shards[i].running = t->shards[i].now;
			t->shards[i].now = delayed_table(d);
			bytes += t->shards[i].bytes;
			t->shards[i].bytes = t->shards[i].uncounted = 0;
			if (keep == KEEP_NEWEST)
				delayed_keep_newest(t, &t->shards[i], &kept);
			else if (keep == KEEP_DIRECTORIES)
				delayed_keep_directories(&t->shards[i], &kept);
		}
		delayed_forget_leaves(t);
	}
	atomic_store(&d->waiting, 0);
	d->watch.taken(d->watch.ctx, &kept);
	return bytes;
}

void delayed_forget_tree(struct delayed *d, uint64_t id)
{
	for (struct delayed_tree *t = d->list; t; t = t->next)
		if (t->id == id)
			t->deleted = true;
}

void delayed_set_read_only(struct delayed *d, uint64_t id, bool read_only)
{
	for (struct delayed_tree *t = d->list; t; t = t->next)
		if (t->id == id)
			t->read_only = read_only;
}

bool delayed_waits(struct delayed *d)
{
	struct delayed_tree *t;
	bool waits = false;

	/* Threads that hold a shard may wait for the lock of trees, so never hold both. */
	sync_rdlock_trees(&d->txn->sync);
	t = d->list;
	sync_rdunlock_trees(&d->txn->sync);
	for (; t; t = t->next) {
		for (unsigned i = 0; !waits && i < DELAYED_SHARDS; i++) {
			pthread_mutex_lock(&t->shards[i].lock);
			waits = t->shards[i].bytes;
			pthread_mutex_unlock(&t->shards[i].lock);
		}
	}
	return waits;
}

/* Requires the lock of runs, and releases it. */
static int run_locked(struct delayed *d, enum keep keep, struct btrkit_error *err)
{
	struct delayed_tree *t;
	size_t bytes;
	int ret;

	sync_close_gate(&d->txn->sync);
	ret = failure_check(d->txn->failure, err);
	if (ret) {
		sync_end_exclusive(&d->txn->sync);
		return ret;
	}
	bytes = take_over(d, keep, &t);
	atomic_store(&d->running, keep == KEEP_DIRECTORIES);
	sync_open_gate(&d->txn->sync);
	ret = delayed_run_taken(d, t, bytes, err);
	atomic_store(&d->running, false);
	sync_unlock_runs(&d->txn->sync);
	return ret;
}

static int run(struct delayed *d, enum keep keep, struct btrkit_error *err)
{
	sync_lock_runs(&d->txn->sync);
	return run_locked(d, keep, err);
}

int delayed_run(struct delayed *d, struct btrkit_error *err)
{
	return run(d, KEEP_NOTHING, err);
}

int delayed_run_older(struct delayed *d, struct btrkit_error *err)
{
	return run(d, KEEP_NEWEST, err);
}

void delayed_run_much(struct delayed *d)
{
	const size_t waiting = atomic_load_explicit(&d->waiting, memory_order_relaxed);
	const size_t patience = d->waiting_max / PERCPU_SLOTS * (percpu_slot() + 1);
	const bool running = atomic_load_explicit(&d->running, memory_order_relaxed);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (waiting < d->waiting_max && (waiting < patience || !running))
		return;
	/* The more is delayed, the fewer threads continue, so that the one that runs it gets a processor. */
	sync_lock_runs(&d->txn->sync);
	if (atomic_load(&d->waiting) < d->waiting_max)
		sync_unlock_runs(&d->txn->sync);
	else if (run_locked(d, KEEP_DIRECTORIES, &err))
		return; /* the next operation reports it */
}

int delayed_run_exclusive(struct delayed *d, struct btrkit_error *err)
{
	int ret = failure_check(d->txn->failure, err);
	struct delayed_tree *t;
	size_t bytes;

	/* After a failure, what was not run is still there, but its trees may not be. */
	if (ret)
		return ret;
	bytes = take_over(d, KEEP_NOTHING, &t);
	return delayed_run_taken(d, t, bytes, err);
}
