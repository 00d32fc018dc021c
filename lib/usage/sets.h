/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_SETS_H
#define BTRKIT_USAGE_SETS_H

/*
 * Sets of owners, each kept once: who has equal sets has the same number. A set is a list of runs of neighbouring
 * owners, so numbers that owners have for this are such that those who share much are neighbours. Set 0 is empty.
 */

#include <pthread.h>

#include <btrkit/error.h>

struct set_run {
	uint32_t first, last;
};

struct set {
	const struct set_run *runs; /* ascending, with gaps between; stay where they are */
	uint32_t num_runs;
	uint32_t hash;
	uint32_t weight; /* how many of its owners count: see sets_init() */
};

struct sets {
	pthread_mutex_t lock;
	struct set *at;
	uint32_t n, room;
	uint32_t *table; /* numbers of sets by their hash; 0: free */
	uint32_t table_size;
	struct set_piece *pieces; /* of memory for runs */
	size_t piece_used;
	uint64_t bytes, budget;
	struct set_run *scratch;  /* a union in the making */
	const uint32_t *counting; /* how many owners before each number count */
};

/* What a thread remembers of unions. */
#define SET_MEMO 1024
struct set_memo {
	struct {
		uint32_t a, b, both;
	} slots[SET_MEMO];
};

/*
 * @counting[i]: how many of the owners before number i count for a set's weight, i up to @owners; it must live as long.
 * Free with sets_release(), on failure too.
 */
int sets_init(struct sets *s, uint32_t owners, const uint32_t *counting, uint64_t budget,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void sets_release(struct sets *s);

/* By many threads at once. @return 0; -ENOMEM: without memory, or the budget is used up */
int sets_single(struct sets *s, uint32_t owner, uint32_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int sets_union(struct sets *s, struct set_memo *memo, uint32_t a, uint32_t b, uint32_t *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct set sets_get(struct sets *s, uint32_t number);
/* Bytes that they take of the budget. */
uint64_t sets_bytes(struct sets *s);

/*
 * While nobody else uses them: forgets those for which @numbers has 0; the others get new numbers, which @numbers gets.
 * What memos remember is void then. @return 0; -ENOMEM, and nothing has changed
 */
int sets_keep(struct sets *s, uint32_t *numbers, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* By the members. */
int set_compare(const struct set *a, const struct set *b);

#endif
