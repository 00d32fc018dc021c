// SPDX-License-Identifier: LGPL-2.1-or-later
/* Drops sets that are no longer used: those of blocks and extents that were given more owners since. */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/usage/owners/collect.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* If less than this part of the budget is left, it is exceeded soon, and collecting again and again would not help. */
#define STEPS_MAX 64u

/* Marks a set as used or, if @put, replaces its number by the new one. */
static void take(uint32_t *numbers, uint32_t *set, bool put)
{
	if (put)
		*set = numbers[*set];
	else
		numbers[*set] = *set;
}

static void take_atomic(uint32_t *numbers, atomic_uint *set, bool put)
{
	uint32_t number = atomic_load_explicit(set, memory_order_relaxed);

	take(numbers, &number, put);
	if (put)
		atomic_store_explicit(set, number, memory_order_relaxed);
}

static void take_strays(uint32_t *numbers, struct array *l, bool put)
{
	struct usage_stray *s = l->at;

	for (size_t i = 0; i < l->n; i++)
		take(numbers, &s[i].set, put);
}

static void take_pending(struct usage_work *w, uint32_t *numbers, bool put)
{
	uint64_t *p = w->pending.at;

	for (size_t i = 0; i < w->pending.n; i++) {
		const uint32_t set = usage_pending_set(p[i]);

		if (put)
			p[i] ^= set ^ numbers[set];
		else
			numbers[set] = set;
	}
}

/* Visits all references to sets. */
static void take_all(struct usage_work *w, uint32_t *numbers, bool put)
{
	struct btrkit_usage *u = w->u;

	for (size_t i = 0; i < u->blocks.n; i++)
		take_atomic(numbers, &usage_blocks_at(&u->blocks, i)->set, put);
	for (size_t i = 0; i < u->extents.n; i++)
		take_atomic(numbers, &usage_extents_at(&u->extents, i)->set, put);
	for (unsigned level = 0; level < LEVELS_MAX; level++)
		take_strays(numbers, &w->strays[level], put);
	take_strays(numbers, &w->data_strays, put);
	take_pending(w, numbers, put);
	take(numbers, &w->filesystem, put);
}

bool usage_sets_are_many(struct usage_work *w)
{
	const uint64_t budget = w->opts.set_memory, left = budget - w->bytes_after_collection;
	const uint64_t step = left / 4 > budget / STEPS_MAX ? left / 4 : budget / STEPS_MAX;

	/*
	 * The next collection is due when the sets use a quarter of what was left of the budget after the last one. A
	 * half is no faster, and needs more memory, since a collection copies what it keeps.
	 */
	return sets_bytes(&w->u->sets) - w->bytes_after_collection > step;
}

int usage_collect_sets(struct usage_work *w, struct btrkit_error *err)
{
	uint32_t *numbers = calloc(w->u->sets.n, sizeof(*numbers));
	int ret;

	if (!numbers)
		return err_nomem(err);
	take_all(w, numbers, false);
	ret = sets_keep(&w->u->sets, numbers, err);
	if (!ret)
		take_all(w, numbers, true);
	free(numbers);
	w->bytes_after_collection = w->u->sets.bytes;
	return ret;
}
