/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DIFF_TREES_H
#define BTRKIT_REPORT_DIFF_TREES_H

/* Compares two trees key by key. */

#include <btrkit/inspect.h>

#include "lib/tree/filesystem.h"

/* Called for each item that only one side has (the other is NULL), or whose data differs. @return 0; <0 */
typedef int (*diff_fn)(void *ctx, const struct item *a, const struct item *b);

/* What is called. */
struct diff_calls {
	diff_fn item;
	btrkit_diff_lost_fn lost; /* NULL: the first block that cannot be read ends the comparison */
	void *ctx;
};

/*
 * Compares trees @a and @b; NULL is an empty tree. With @shared, blocks are not read if both trees have the same
 * pointer to them. Of what cannot be read on one side, nothing is said about the other.
 * @return 0; result of a callback; <0
 */
int diff_trees(struct btrkit_fs *fs_a, const struct tree_root *a, struct btrkit_fs *fs_b, const struct tree_root *b,
	       bool shared, const struct diff_calls *calls, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
