/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_REACH_H
#define BTRKIT_USAGE_REACH_H

#include "lib/usage/state.h"

/* A pointer to a block. */
struct usage_pointer {
	uint64_t bytenr, generation;
	uint8_t level;
	uint32_t digest; /* digest of the block's first key; 0: a root */
};

/*
 * Adds owners to blocks, up to USAGE_FIND_MANY. May be called by many threads in parallel. @pending: see
 * usage_add_later()
 */
int usage_reach_blocks(struct usage_work *w, struct array *pending, const struct usage_pointer *p, size_t n,
		       uint32_t set, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds blocks and extents to the tables that are only known from references. */
int usage_merge_blocks(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_merge_extents(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Adds an entry to a list of strays. When the list is full, it is sorted and duplicates are combined. To be called by
 * one thread at a time.
 */
int usage_strays_add(struct usage_work *w, struct array *l, const struct usage_stray *s,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_strays_tidy(struct usage_work *w, struct array *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds an extent to the strays. May be called by any thread. */
int usage_stray_extent(struct usage_work *w, const struct usage_stray *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
