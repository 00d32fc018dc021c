/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_SETS_H
#define BTRKIT_USAGE_SETS_H

/*
 * Sets of owners. Each set is stored once, so equal sets have the same number. A set is a list of runs of consecutive
 * owners. Owners are therefore numbered such that those that share much are neighbours. Set 0 is empty.
 */

#include <pthread.h>

#include <btrkit/error.h>

/* Numbers of sets are less than this. */
#define SETS_MAX (1u << 30)

struct set_run {
	uint32_t first, last;
};

struct set {
	const struct set_run *runs; /* ascending, not adjacent; never moves */
	uint32_t num_runs;
	uint32_t hash;
	uint32_t weight; /* number of owners that count: see sets_init() */
};

struct sets {
	pthread_mutex_t lock;
	struct set *at;
	uint32_t n, room;
	uint32_t *table; /* hash table of set numbers; 0: free */
	uint32_t table_size;
	struct set_piece *pieces; /* memory for runs */
	size_t piece_used;
	uint64_t bytes, budget;
	uint64_t *bits; /* for building a union: its members, and then its runs */
	struct set_run *scratch;
	uint32_t *last; /* the sets whose union was computed last; last_n 0: none */
	size_t last_n, last_room;
	uint32_t last_union;
	const uint32_t *counting; /* number of counting owners below each number */
};

/*
 * @counting[i]: number of owners below i that count for the weight of a set, for i up to @owners. The array must stay
 * valid. Call sets_release() even after a failure.
 */
int sets_init(struct sets *s, uint32_t owners, const uint32_t *counting, uint64_t budget,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void sets_release(struct sets *s);

/* These may be called by many threads in parallel. @return 0; -ENOMEM: out of memory, or the budget is exceeded */
int sets_single(struct sets *s, uint32_t owner, uint32_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the union of @n sets, at least one of which is not empty. */
int sets_union(struct sets *s, const uint32_t *sets, size_t n, uint32_t *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct set sets_get(struct sets *s, uint32_t number);
/* Returns the part of the budget that is used, in bytes. */
uint64_t sets_bytes(struct sets *s);

/*
 * Drops the sets for which @numbers is 0, and renumbers the others. @numbers receives the new numbers. No other thread
 * may use the sets meanwhile. @return 0; -ENOMEM: nothing has changed
 */
int sets_keep(struct sets *s, uint32_t *numbers, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Compares two sets by their members. */
int set_compare(const struct set *a, const struct set *b);

#endif
