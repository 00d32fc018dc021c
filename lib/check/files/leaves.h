/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LEAVES_H
#define BTRKIT_CHECK_LEAVES_H

/* Shared by leaves.c, which works its way up from the leaves, and leaf.c, which reads them for it. */

#include "lib/check/files/file_refs.h"
#include "lib/check/files/span.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/sweep/copies.h"

/* Summary of a block and everything below it. */
struct below {
	struct btrkit_key first, last;
	bool lost, empty;
	struct span span; /* in file trees */
};

struct leaves {
	struct check *c;
	struct check_table below; /* struct below, indexed by check_block.below - 1 */
	size_t *work;		  /* indexes in the table of blocks */
	size_t num_work, at_a_time;
	pthread_mutex_t lock;
	struct reader *idle; /* protected by the lock */
};

static inline struct below *leaves_below(const struct leaves *l, const struct check_block *b)
{
	return (struct below *)l->below.at + (b->below - 1);
}

/* A leaf to read, and where its summary goes. */
struct wanted {
	struct check_block *block;
	struct below *to;
};

/* Buffers and positions of one thread. */
struct reader {
	struct leaves *l;
	struct reader *next;
	struct check_hints hints;
	size_t block_hint;
	struct sweep_run run;
	uint8_t *node;
	struct below *children; /* of the node */
	struct wanted *wanted;	/* some of the children, or shared leaves */
};

/* The tree to which findings in a block are attributed: the one that reached it first. */
static inline uint64_t leaves_tree(const struct check *c, const struct check_block *b)
{
	return check_reached_by(c, b)->root.id;
}

static inline bool leaves_are_files(const struct check_block *b)
{
	return atomic_load(&b->state) & CHECK_FILES;
}

/* Reads every leaf, and checks what the leaves of a tree form together. */
int check_leaves(struct check *c);

#endif
