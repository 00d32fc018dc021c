// SPDX-License-Identifier: LGPL-2.1-or-later
/* Locks of inodes, taken in an order that prevents deadlocks. */
#include <string.h>

#include "lib/delayed/impl.h"

static struct delayed_amount count_places(const struct delayed_locks *l)
{
	struct delayed_amount sum = { 0 };

	for (unsigned i = 0; i < l->n; i++) {
		sum.items += l->held[i]->places;
		sum.leaves += l->held[i]->leaves;
	}
	return sum;
}

static uint64_t count_changes(const struct delayed_locks *l)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < l->n; i++)
		sum += l->held[i]->changes;
	return sum;
}

bool delayed_changed(const struct delayed_locks *l)
{
	return l->n && count_changes(l) != l->changes;
}

uint64_t delayed_num_changes(const struct delayed *d)
{
	uint64_t sum = 0;

	for (const struct delayed_tree *t = d->list; t; t = t->next)
		for (unsigned i = 0; i < DELAYED_SHARDS; i++)
			sum += t->shards[i].changes;
	return sum;
}

struct delayed_amount delayed_places(const struct delayed_locks *l)
{
	const struct delayed_amount now = count_places(l);

	return (struct delayed_amount){ .items = now.items - l->places.items, .leaves = now.leaves - l->places.leaves };
}

void delayed_lock(struct delayed_tree *t, const uint64_t *inodes, unsigned n, struct delayed_locks *ret)
{
	ret->n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct delayed_shard *s = delayed_shard_of(t, inodes[i]);
		unsigned at = ret->n;

		while (at && ret->held[at - 1] > s)
			at--;
		if (at && ret->held[at - 1] == s)
			continue;
		memmove(ret->held + at + 1, ret->held + at, (ret->n - at) * sizeof(struct delayed_shard *));
		ret->held[at] = s;
		ret->n++;
	}
	for (unsigned i = 0; i < ret->n; i++)
		pthread_mutex_lock(&ret->held[i]->lock);
	ret->places = count_places(ret);
	ret->changes = count_changes(ret);
}

void delayed_lock_two(struct delayed_tree *a, uint64_t inode, struct delayed_tree *b, uint64_t other,
		      struct delayed_locks *ret)
{
	const uint64_t both[] = { inode, other };

	if (a == b) {
		delayed_lock(a, both, 2, ret);
		return;
	}
	/* Locks are taken in the order of tree IDs. */
	ret->held[0] = a->id < b->id ? delayed_shard_of(a, inode) : delayed_shard_of(b, other);
	ret->held[1] = a->id < b->id ? delayed_shard_of(b, other) : delayed_shard_of(a, inode);
	ret->n = 2;
	pthread_mutex_lock(&ret->held[0]->lock);
	pthread_mutex_lock(&ret->held[1]->lock);
	ret->places = count_places(ret);
	ret->changes = count_changes(ret);
}

void delayed_lock_orphans(struct delayed_tree *t, struct delayed_locks *l)
{
	struct delayed_shard *last = delayed_shard_of(t, OID_ORPHAN);

	if (l->n && l->held[l->n - 1] == last)
		return;
	pthread_mutex_lock(&last->lock);
	l->held[l->n++] = last;
	l->places.items += last->places;
	l->places.leaves += last->leaves;
	l->changes += last->changes;
}

void delayed_unlock(struct delayed_locks *l)
{
	while (l->n)
		pthread_mutex_unlock(&l->held[--l->n]->lock);
}
