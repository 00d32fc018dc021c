/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DIFF_H
#define BTRKIT_REPORT_DIFF_H

/* Two trees beside each other, key by key. */

#include "lib/tree/filesystem.h"

/* Told of an item that one side has (the other is NULL), or that both have with other bytes. @return 0; <0 */
typedef int (*diff_fn)(void *ctx, const struct item *a, const struct item *b);

/*
 * @a, @b: either may be NULL for a tree of nothing. With @shared, blocks to which both have the same pointer are not
 * read. @return 0; what @fn returned; <0
 */
int diff_trees(struct btrkit_fs *fs_a, const struct tree_root *a, struct btrkit_fs *fs_b, const struct tree_root *b,
	       bool shared, diff_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
