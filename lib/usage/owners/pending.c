// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owners that are still to be added. A leaf shared by a thousand snapshots is reached from hundreds of nodes one after
 * another, and each adds its owners. Adding them one by one would build hundreds of sets, all but one for nothing.
 * Therefore only the first owners are stored at once. Others are noted, and many of them are added together.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/usage/owners/collect.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* What is noted may take this part of the memory for sets, up to a limit. Sorting needs the same amount again. */
#define PENDING_PART 8u
#define PENDING_MAX (16u << 20)
#define DIGIT_BITS 11u

int usage_add_later(struct array *pending, size_t at, atomic_uint *to, uint32_t set, struct btrkit_error *err)
{
	unsigned was = atomic_load_explicit(to, memory_order_relaxed);
	uint64_t *p;

	if (!was)
		atomic_compare_exchange_strong_explicit(to, &was, set, memory_order_relaxed, memory_order_relaxed);
	if (!was || was == set)
		return 0;
	/* A leaf may refer to an extent hundreds of times. */
	p = pending->at;
	if (pending->n && p[pending->n - 1] == ((uint64_t)at << USAGE_PENDING_SET_BITS | set))
		return 0;
	p = array_add(pending, sizeof(*p), err);
	if (!p)
		return -ENOMEM;
	*p = (uint64_t)at << USAGE_PENDING_SET_BITS | set;
	return 0;
}

int usage_add_now(struct usage_work *w, atomic_uint *to, uint32_t set, struct btrkit_error *err)
{
	const uint32_t sets[] = { atomic_load_explicit(to, memory_order_relaxed), set };
	uint32_t both;
	int ret = sets_union(&w->u->sets, sets, 2, &both, err);

	if (!ret)
		atomic_store_explicit(to, both, memory_order_relaxed);
	return ret;
}

static int append(struct array *to, struct array *from, struct btrkit_error *err)
{
	const size_t n = to->n + from->n;

	if (n > to->room) {
		uint64_t *more = reallocarray(to->at, 2 * n, sizeof(*more));

		if (!more)
			return err_nomem(err);
		to->at = more;
		to->room = 2 * n;
	}
	if (from->n)
		memcpy((uint64_t *)to->at + to->n, from->at, from->n * sizeof(uint64_t));
	to->n = n;
	from->n = 0;
	return 0;
}

int usage_pending_gather(struct usage_work *w, struct array *from, struct btrkit_error *err)
{
	int ret;

	pthread_mutex_lock(&w->lock);
	ret = append(&w->pending, from, err);
	pthread_mutex_unlock(&w->lock);
	return ret;
}

bool usage_pending_is_full(struct usage_work *w)
{
	const uint64_t part = w->opts.set_memory / PENDING_PART / sizeof(uint64_t);
	size_t n;

	pthread_mutex_lock(&w->lock);
	n = w->pending.n;
	pthread_mutex_unlock(&w->lock);
	return n >= (part < PENDING_MAX ? part : PENDING_MAX);
}

/* One pass of a stable radix sort, by the digit that starts at bit @shift. */
static void distribute(const uint64_t *from, uint64_t *to, size_t n, unsigned shift)
{
	const size_t mask = (1u << DIGIT_BITS) - 1;
	size_t at[1u << DIGIT_BITS] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i] >> shift & mask]++;
	for (size_t i = 0; i <= mask; i++) {
		const size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i] >> shift & mask]++] = from[i];
}

/* Sorts by the place in a table of @entries entries; equal places stay in the order in which they were noted. */
static int sort_pending(struct array *l, size_t entries, struct btrkit_error *err)
{
	const uint64_t max = (uint64_t)(entries - 1) << USAGE_PENDING_SET_BITS;
	uint64_t *other = reallocarray(NULL, l->n, sizeof(*other));

	if (!other)
		return err_nomem(err);
	for (unsigned shift = USAGE_PENDING_SET_BITS; shift < 64 && max >> shift; shift += DIGIT_BITS) {
		uint64_t *sorted = other;

		distribute(l->at, sorted, l->n, shift);
		other = l->at;
		l->at = sorted;
	}
	l->room = l->n;
	free(other);
	return 0;
}

static int add_number(struct array *sets, uint32_t set, struct btrkit_error *err)
{
	uint32_t *to = array_add(sets, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	*to = set;
	return 0;
}

/* Adds all owners that were noted for one place, from entry @i on. @return 0 with the first entry of the next place */
static int settle_place(struct usage_work *w, size_t *i, atomic_uint *to, struct array *sets, struct btrkit_error *err)
{
	const uint64_t *p = w->pending.at, place = p[*i] >> USAGE_PENDING_SET_BITS;
	uint32_t last = atomic_load_explicit(to, memory_order_relaxed), both;
	int ret;

	sets->n = 0;
	ret = add_number(sets, last, err);
	for (; !ret && *i < w->pending.n && p[*i] >> USAGE_PENDING_SET_BITS == place; ++*i) {
		if (usage_pending_set(p[*i]) == last)
			continue;
		last = usage_pending_set(p[*i]);
		ret = add_number(sets, last, err);
	}
	if (!ret)
		ret = sets_union(&w->u->sets, sets->at, sets->n, &both, err);
	if (!ret)
		atomic_store_explicit(to, both, memory_order_relaxed);
	return ret;
}

static atomic_uint *set_at(struct usage_work *w, bool data, size_t at)
{
	return data ? &usage_extents_at(&w->u->extents, at)->set : &usage_blocks_at(&w->u->blocks, at)->set;
}

static int collect_if_many(struct usage_work *w, struct btrkit_error *err)
{
	return usage_sets_are_many(w) ? usage_collect_sets(w, err) : 0;
}

int usage_pending_settle(struct usage_work *w, bool data, struct btrkit_error *err)
{
	struct array sets = { 0 };
	int ret;

	if (!w->pending.n)
		return collect_if_many(w, err);
	ret = sort_pending(&w->pending, data ? w->u->extents.n : w->u->blocks.n, err);
	for (size_t i = 0; !ret && i < w->pending.n;) {
		const size_t place = ((const uint64_t *)w->pending.at)[i] >> USAGE_PENDING_SET_BITS;

		ret = settle_place(w, &i, set_at(w, data, place), &sets, err);
		if (!ret)
			ret = collect_if_many(w, err);
	}
	free(sets.at);
	w->pending.n = 0;
	return ret;
}
