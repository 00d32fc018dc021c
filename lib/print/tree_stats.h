/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_TREE_STATS_H
#define BTRKIT_PRINT_TREE_STATS_H

/* Prints the sizes of trees. */

#include <btrkit/inspect.h>

/**
 * Prints statistics of trees: levels, blocks and bytes per level, items and bytes per type. As text or JSON Lines. A
 * tree that cannot be read completely is printed with the first reason, and the others follow.
 *
 * @param trees	@p n objectids
 * @param n	number of trees; 0: the root tree, the chunk tree and all trees in the root tree
 * @param lost	called for all that is missing, as by btrkit_tree_stats_around()
 * @return 0; -EINVAL: unknown format; -ENOENT: no such tree; -ENOMEM; what @p write or @p lost returned
 */
int print_tree_stats(struct btrkit_fs *fs, const uint64_t *trees, size_t n, enum btrkit_format format,
		     btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
