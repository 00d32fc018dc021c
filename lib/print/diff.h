/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_DIFF_H
#define BTRKIT_PRINT_DIFF_H

/* Prints differences. */

#include <btrkit/inspect.h>

/** Flags of print_diff(). */
enum print_diff_flags {
	PRINT_DIFF_HIDE_NAMES = 1 << 0,	/**< as BTRKIT_DUMP_HIDE_NAMES */
	PRINT_DIFF_BRIEF = 1 << 1		/**< without the contents of items */
};

/**
 * Prints the items that exist on one side only or differ, in key order. As text, with `-` and `+` before the items of
 * the first and the second side, or as JSON Lines.
 *
 * Blocks that both sides share, as snapshots do, are not read. That needs the same handle on both sides, because blocks
 * of different filesystems may differ even if their addresses and generations are equal.
 *
 * @param a	the first side
 * @param b	the second side; both may have the same handle
 * @param flags	enum print_diff_flags
 * @param lost	called for what cannot be read, as by btrkit_diff_around()
 * @param differ	receives whether there are differences
 * @return 0; -EINVAL: only one side has a tree, or unknown format or flag; -ENOENT: no such tree; -EUCLEAN, -EIO,
 *	   -ENXIO, -ENOMEM; or what @p write or @p lost returned
 */
int print_diff(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, unsigned flags,
	       enum btrkit_format format, btrkit_diff_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
	       bool *differ, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
