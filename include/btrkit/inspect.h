/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_INSPECT_H
#define BTRKIT_INSPECT_H

/**
 * @file
 * What subvolumes there are, how large trees are, and what differs between two of them.
 */

#include <btrkit/device.h>
#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_subvolumes_options. Since: 0.1 */
enum btrkit_subvolumes_flags {
	BTRKIT_SUBVOLUMES_DELETED = 1 << 0,	/**< those too that are being deleted, which lie nowhere */
	BTRKIT_SUBVOLUMES_ONLY_DELETED = 1 << 1,	/**< these alone */
	BTRKIT_SUBVOLUMES_READONLY = 1 << 2,	/**< only those that are read-only */
	BTRKIT_SUBVOLUMES_SNAPSHOTS = 1 << 3	/**< only those that were made as snapshots */
};

/** What subvolumes are sorted by. Since: 0.1 */
enum btrkit_subvolumes_key {
	BTRKIT_SUBVOLUMES_BY_ID,
	BTRKIT_SUBVOLUMES_BY_GENERATION,
	BTRKIT_SUBVOLUMES_BY_CREATION,	/**< the generation in which one was created */
	BTRKIT_SUBVOLUMES_BY_PATH	/**< byte by byte; what lies nowhere comes first */
};

/** One of the keys of an order. Since: 0.1 */
struct btrkit_subvolumes_order {
	enum btrkit_subvolumes_key key;
	bool descending;
};

/** Which subvolumes are listed, and in which order. Since: 0.1 */
struct btrkit_subvolumes_options {
	unsigned flags;		/**< BTRKIT_SUBVOLUMES_*; unknown ones are refused */
	const struct btrkit_subvolumes_order *order;	/**< by one, then the next, then the number */
	size_t num_order;	/**< 0: by the number, for which nothing is kept in memory */
	uint64_t parent;	/**< only those that lie in this one, not deeper; 0: all */
	uint64_t min_generation, max_generation;
	uint64_t min_creation, max_creation;
	uint64_t reserved[4];	/**< 0 */
};

/** Everything that is not being deleted, by numbers. Since: 0.1 */
#define BTRKIT_SUBVOLUMES_OPTIONS_INIT { 0, NULL, 0, 0, 0, UINT64_MAX, 0, UINT64_MAX, { 0 } }

/**
 * Prints subvolumes but for the top level: as text in the words of `btrfs subvolume list -pcguqR`, as tab-separated
 * values, or as JSON Lines with all that root items say and the numbers of the snapshots that were made of each. For
 * another order than that of their numbers all that are listed are in memory.
 *
 * @param opts	NULL: all that are not being deleted, in the order of their numbers
 * @return 0; -EINVAL: unknown flag, key or format; -EUCLEAN, -EIO, -ENODATA, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_subvolumes_print(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
			    enum btrkit_format format, btrkit_write_fn write, void *ctx,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints how large trees are: levels, blocks and bytes of each level, items and bytes of each type. As text or JSON
 * Lines. A tree that cannot be read to its end is told with what is wrong, and the others come all the same.
 *
 * @param trees	@p n objectids; none: the root tree, the chunk tree and all that the root tree names
 * @return 0; -EINVAL: unknown format; -ENOENT: no such tree; -ENOMEM; what @p write returned; -EUCLEAN, -EIO, -ENODATA:
 *	   the first that was wrong, after everything was written
 * Since: 0.1
 */
int btrkit_tree_stats_print(struct btrkit_fs *fs, const uint64_t *trees, size_t n, enum btrkit_format format,
			    btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** One side of a comparison. Never grows. Since: 0.1 */
struct btrkit_diff_side {
	struct btrkit_fs *fs;
	uint64_t tree;	/**< objectid of the tree; 0: each, beside the one of the same number on the other side */
};

/** Flags of btrkit_diff_print(). Since: 0.1 */
enum btrkit_diff_flags {
	BTRKIT_DIFF_HIDE_NAMES = 1 << 0,	/**< as BTRKIT_DUMP_HIDE_NAMES */
	BTRKIT_DIFF_BRIEF = 1 << 1		/**< without what items say */
};

/**
 * Prints which items are on one side only, or have other bytes there, in the order of their keys. Blocks that both
 * sides share, as snapshots do, are not read; that takes one handle for both, since blocks of two filesystems with
 * equal places and generations may still differ. As text, `-` and `+` before the items of either side, or as JSON
 * Lines.
 *
 * @param a	one side
 * @param b	the other; both may be of one filesystem
 * @param flags	BTRKIT_DIFF_*
 * @param differ	whether anything does
 * @return 0; -EINVAL: one side has a tree and the other none, or an unknown format or flag; -ENOENT: no such tree;
 *	   -EUCLEAN, -EIO, -ENODATA, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_diff_print(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, unsigned flags,
		      enum btrkit_format format, btrkit_write_fn write, void *ctx, bool *differ,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
