/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PENDING_H
#define BTRKIT_USAGE_PENDING_H

#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* An entry of a list of owners to be added is a number in a table, and in its lower bits a set. */
#define USAGE_PENDING_SET_BITS 30u

static_assert(SETS_MAX <= 1u << USAGE_PENDING_SET_BITS, "a set does not fit into an entry");
static_assert(USAGE_TABLE_MAX <= 1ull << (64 - USAGE_PENDING_SET_BITS), "a number does not fit into an entry");

static inline uint32_t usage_pending_set(uint64_t entry)
{
	return entry & ((1u << USAGE_PENDING_SET_BITS) - 1);
}

/*
 * Stores @set as the owners of the entry @at of a table, or notes it in @pending if there are others already. @to: the
 * entry's set. May be called by many threads in parallel, each with its own list.
 */
int usage_add_later(struct array *pending, size_t at, atomic_uint *to, uint32_t set,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds @set to the owners at once. To be called while no thread is running. */
int usage_add_now(struct usage_work *w, atomic_uint *to, uint32_t set, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Moves a list to w->pending. May be called by many threads in parallel. */
int usage_pending_gather(struct usage_work *w, struct array *from, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns whether so many are noted that they should be settled before more are. */
bool usage_pending_is_full(struct usage_work *w);
/*
 * Adds what is noted in w->pending to the blocks or, if @data, to the extents, and drops unused sets if there are many.
 * To be called while no thread is running, and before entries are added to the table.
 */
int usage_pending_settle(struct usage_work *w, bool data, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
