/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_LEAVES_H
#define BTRKIT_SWEEP_LEAVES_H

/*
 * Walks down one tree level by level, so that an unreadable block does not prevent finding what lies behind it: its
 * neighbours are found by their own parents. An example: of a tree with the leaves A, B and C, the block of B is
 * damaged. The list then still has all three, sweep_each_leaf() visits A and C, and the objectids from B's first key
 * to C's are lost.
 */

#include "lib/base/array.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

/* How the caller reads blocks, and what it is asked. Each function returns 0, or a result that ends the walk. */
struct sweep_blocks {
	/* Reads a block. *ret is set to it, until put() is called, or to NULL if it cannot be read. */
	int (*get)(void *ctx, const struct node_ref *ref, struct node **ret, struct btrkit_error *err);
	void (*put)(void *ctx, struct node *n);
	/*
	 * A pointer was found in @parent. @ordered: its key is greater than those of all followed so far. *follow is
	 * set on entry to @ordered, without which a damaged tree may lead to a block twice.
	 */
	int (*pointer)(void *ctx, const struct node *parent, uint32_t slot, const struct node_ref *ref, bool ordered,
		       bool *follow, struct btrkit_error *err);
	void *ctx;
};

struct sweep_leaf {
	uint64_t bytenr, generation;
	struct btrkit_key key; /* in its parent */
};

struct sweep_leaves {
	struct tree_root root;
	uint8_t level;	   /* of the blocks in the list */
	struct array list; /* struct sweep_leaf, in key order */
	struct array lost; /* struct sweep_lost: objectids in unreadable blocks above the list */
};

/* Begins with a list of the root only. sweep_leaves_release() must be called, even after a failure. */
int sweep_leaves_begin(const struct tree_root *root, struct sweep_leaves *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Replaces the list, whose level is not 0, by the next lower level. */
int sweep_leaves_descend(const struct sweep_blocks *from, struct sweep_leaves *l,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Begins, and descends to the leaves. */
int sweep_leaves_find(const struct sweep_blocks *from, const struct tree_root *root, struct sweep_leaves *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void sweep_leaves_release(struct sweep_leaves *l);

/* Returns what is needed to read block number @i of the list. It points into the list. */
struct node_ref sweep_leaf_ref(const struct sweep_leaves *l, size_t i);
/* Records that block number @i could not be read. */
int sweep_leaf_lost(struct sweep_leaves *l, size_t i, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Calls @visit for each readable leaf of a tree in key order. It returns 0, or a result that ends the walk. */
typedef int (*sweep_leaf_fn)(void *ctx, const struct node *leaf, struct btrkit_error *err);
int sweep_each_leaf(const struct sweep_blocks *from, const struct tree_root *root, sweep_leaf_fn visit, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
