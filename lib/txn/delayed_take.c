// SPDX-License-Identifier: LGPL-2.1-or-later
/* When what waits goes into the trees: by whom it is taken over, what of it goes on waiting, and who is alone. */
#include "lib/txn/delayed_impl.h"
#include "lib/txn/txn.h"

void delayed_lock_trees(struct delayed *d)
{
	pthread_rwlock_wrlock(&d->trees);
	pthread_mutex_lock(&d->lock);
}

void delayed_unlock_trees(struct delayed *d)
{
	pthread_mutex_unlock(&d->lock);
	pthread_rwlock_unlock(&d->trees);
}

/* What goes on waiting: see delayed_keep.c. */
enum keep { KEEP_NOTHING, KEEP_NEWEST, KEEP_DIRECTORIES };

/*
 * Takes over what waits: from here on changes are collected anew. With the gate closed. Who is before the gate may open
 * other trees meanwhile, in which nothing waits. @return the bytes of it
 */
static size_t take_over(struct delayed *d, enum keep keep, struct delayed_tree **list)
{
	struct ticket_amount kept = { 0 };
	size_t bytes = 0;

	pthread_rwlock_rdlock(&d->trees);
	*list = d->list;
	pthread_rwlock_unlock(&d->trees);
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
	tickets_run(&d->tickets, &kept);
	return bytes;
}

void delayed_close(struct delayed *d)
{
	pthread_mutex_lock(&d->run);
	gate_close(&d->gate);
}

void delayed_open(struct delayed *d)
{
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->run);
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

	/* Who has a shard may want the trees: not both at once. */
	pthread_rwlock_rdlock(&d->trees);
	t = d->list;
	pthread_rwlock_unlock(&d->trees);
	for (; t; t = t->next) {
		for (unsigned i = 0; !waits && i < DELAYED_SHARDS; i++) {
			pthread_mutex_lock(&t->shards[i].lock);
			waits = t->shards[i].bytes;
			pthread_mutex_unlock(&t->shards[i].lock);
		}
	}
	return waits;
}

/* With the lock of runs, which is given back. */
static int run_locked(struct delayed *d, enum keep keep, struct btrkit_error *err)
{
	struct delayed_tree *t;
	size_t bytes;
	int ret;

	gate_close(&d->gate);
	ret = delayed_judge(d, err);
	if (ret) {
		delayed_open(d);
		return ret;
	}
	bytes = take_over(d, keep, &t);
	atomic_store(&d->running, keep == KEEP_DIRECTORIES);
	gate_open(&d->gate);
	ret = delayed_run_taken(d, t, bytes, err);
	atomic_store(&d->running, false);
	pthread_mutex_unlock(&d->run);
	return ret;
}

static int run(struct delayed *d, enum keep keep, struct btrkit_error *err)
{
	pthread_mutex_lock(&d->run);
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
	const size_t patience = d->waiting_max / STRIPES * (stripe_of_thread() + 1);
	const bool running = atomic_load_explicit(&d->running, memory_order_relaxed);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (waiting < d->waiting_max && (waiting < patience || !running))
		return;
	/* The more comes meanwhile the fewer go on, so that who runs has a processor. */
	pthread_mutex_lock(&d->run);
	if (atomic_load(&d->waiting) < d->waiting_max)
		pthread_mutex_unlock(&d->run);
	else if (run_locked(d, KEEP_DIRECTORIES, &err))
		return; /* who comes next is told */
}

int delayed_run_alone(struct delayed *d, struct btrkit_error *err)
{
	int ret = delayed_judge(d, err);
	struct delayed_tree *t;
	size_t bytes;

	/* What was not done to the end is still there, and its trees may not be. */
	if (ret)
		return ret;
	bytes = take_over(d, KEEP_NOTHING, &t);
	return delayed_run_taken(d, t, bytes, err);
}
