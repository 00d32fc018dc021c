/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DIFF_TREES_H
#define BTRKIT_REPORT_DIFF_TREES_H

/* Compares two trees key by key. */

#include "lib/tree/filesystem.h"

/* Called for each item that only one side has (the other is NULL), or whose data differs. @return 0; <0 */
typedef int (*diff_fn)(void *ctx, const struct item *a, const struct item *b);

/*
 * Compares trees @a and @b; NULL is an empty tree. With @shared, blocks are not read if both trees have the same
 * pointer to them.
 * @return 0; result of @fn; <0
 */
int diff_trees(struct btrkit_fs *fs_a, const struct tree_root *a, struct btrkit_fs *fs_b, const struct tree_root *b,
	       bool shared, diff_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
