/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LEAVES_H
#define BTRKIT_CHECK_LEAVES_H

/* Shared by leaves.c, which works its way up from the leaves, and leaf.c, which reads them for it. */

#include "lib/check/files/span.h"
#include "lib/check/trees/walk.h"

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
	struct check_run run;
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

/* leaf.c: reads the first @n leaves of reader.wanted, which are in address order. */
void leaves_read(struct reader *r, size_t n);
/*
 * Takes an idle reader, or creates one, until leaves_put_reader(). There are never more than threads.
 * @return NULL: check_fail() was called
 */
struct reader *leaves_take_reader(struct leaves *l);
void leaves_put_reader(struct leaves *l, struct reader *r);
void leaves_free_readers(struct leaves *l);
/*
 * circles.c: reports cycles of directories in a tree whose sums of names cancel out. @top: the tree's root block;
 * @dirs: see struct span. Not thread-safe.
 */
void check_circles(const struct leaves *l, const struct check_root *root, const struct check_block *top, uint64_t dirs);

#endif
