/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LEAVES_H
#define BTRKIT_CHECK_LEAVES_H

/* What leaves.c, which goes up from the leaves, has leaf.c read. */

#include "lib/check/span.h"
#include "lib/check/walk.h"

/* What is known of all that lies below a block, itself included. */
struct below {
	struct btrkit_key first, last;
	bool lost, empty;
	struct span span; /* in trees of files */
};

struct leaves {
	struct check *c;
	struct check_table below; /* struct below, in the order of the numbers that blocks have */
	size_t *work;		  /* numbers of blocks in the table */
	size_t num_work, at_a_time;
	pthread_mutex_t lock;
	struct reader *idle; /* under the lock */
};

static inline struct below *leaves_below(const struct leaves *l, const struct check_block *b)
{
	return (struct below *)l->below.at + (b->below - 1);
}

/* A leaf that is to be read, and where what is in it goes. */
struct wanted {
	struct check_block *block;
	struct below *to;
};

/* One thread's, for a while. */
struct reader {
	struct leaves *l;
	struct reader *next;
	struct check_hints hints;
	size_t block_hint;
	struct check_run run;
	uint8_t *node;
	struct below *children; /* of the node */
	struct wanted *wanted;	/* of these, or of shared leaves */
};

/* The tree that a block's findings are told of: in trees of files the one that it was made for. */
static inline uint64_t leaves_tree(const struct check *c, const struct check_block *b)
{
	return check_reached_by(c, b)->root.id;
}

static inline bool leaves_are_files(const struct check_block *b)
{
	return atomic_load(&b->state) & CHECK_FILES;
}

/* leaf.c: the first @n that a reader wants, in the order of addresses. */
void leaves_read(struct reader *r, size_t n);
/* One that nobody has, until leaves_put_reader(); no more of them than threads. NULL: check_fail() was told. */
struct reader *leaves_take_reader(struct leaves *l);
void leaves_put_reader(struct leaves *l, struct reader *r);
void leaves_free_readers(struct leaves *l);
/*
 * circles.c: directories of a whole tree that lie in each other; its names come out even. @top: the tree's first block;
 * @dirs: see struct span. By one thread.
 */
void check_circles(const struct leaves *l, const struct check_root *root, const struct check_block *top,
		   uint64_t dirs);

#endif
