/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_H
#define BTRKIT_CHECK_SPAN_H

/*
 * What of files lies in a run of neighbouring leaves of a tree of files. Inodes whose items all lie within it were
 * judged; those at its two ends, of which more may lie beside it, are kept as far as they are known. Spans are put
 * together, in the order of keys, to that of a whole tree, in whatever way the tree's blocks are shared with others: a
 * shared block is read once and its span is used by all.
 */

#include "lib/check/state.h"

struct span {
	bool lost; /* something in it could not be read */
};

/* The span of a leaf; what is wrong within it is told. @hints: the caller's thread's. */
void span_leaf(struct check *c, const struct node *leaf, bool full_backref, struct check_hints *hints,
	       struct span *ret);
/* @left becomes @left followed by @right; the inode that was cut between them is judged, and told of as of @tree. */
void span_join(struct check *c, uint64_t tree, struct span *left, const struct span *right);
/* What is there is not known. */
void span_lost(struct span *ret);
/* All of a tree: its first and its last inode are judged, and its names. Not for trees that are partly dropped. */
void span_tree(struct check *c, const struct check_root *root, const struct span *all);

#endif
