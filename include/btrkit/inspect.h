/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_INSPECT_H
#define BTRKIT_INSPECT_H

/**
 * @file
 * Listings of subvolumes, statistics of trees, and differences between trees.
 */

#include <btrkit/device.h>
#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_subvolumes_options. Since: 0.1 */
enum btrkit_subvolumes_flags {
	BTRKIT_SUBVOLUMES_DELETED = 1 << 0,	/**< also those that are being deleted, which have no path */
	BTRKIT_SUBVOLUMES_ONLY_DELETED = 1 << 1,	/**< only those that are being deleted */
	BTRKIT_SUBVOLUMES_READONLY = 1 << 2,	/**< only read-only ones */
	BTRKIT_SUBVOLUMES_SNAPSHOTS = 1 << 3	/**< only snapshots */
};

/** Sort keys of subvolumes. Since: 0.1 */
enum btrkit_subvolumes_key {
	BTRKIT_SUBVOLUMES_BY_ID,
	BTRKIT_SUBVOLUMES_BY_GENERATION,
	BTRKIT_SUBVOLUMES_BY_CREATION,	/**< generation in which it was created */
	BTRKIT_SUBVOLUMES_BY_PATH	/**< byte by byte; those without a path come first */
};

/** A sort key with its direction. Since: 0.1 */
struct btrkit_subvolumes_order {
	enum btrkit_subvolumes_key key;
	bool descending;
};

/** Which subvolumes are listed, and in which order. Initialise with BTRKIT_SUBVOLUMES_OPTIONS_INIT. Since: 0.1 */
struct btrkit_subvolumes_options {
	unsigned flags;		/**< enum btrkit_subvolumes_flags; unknown ones are refused */
	const struct btrkit_subvolumes_order *order;	/**< primary key first; ties are sorted by id */
	size_t num_order;	/**< 0: sort by id, which needs no memory */
	uint64_t parent;	/**< only direct children of this subvolume; 0: all */
	uint64_t min_generation, max_generation;
	uint64_t min_creation, max_creation;
	uint64_t reserved[4];	/**< 0 */
};

/** All subvolumes that are not being deleted, sorted by id. Since: 0.1 */
#define BTRKIT_SUBVOLUMES_OPTIONS_INIT { 0, NULL, 0, 0, 0, UINT64_MAX, 0, UINT64_MAX, { 0 } }

/**
 * Prints subvolumes except the top level: as text in the format of `btrfs subvolume list -pcguqR`, as tab-separated
 * values, or as JSON Lines with all members of root items and the ids of the snapshots of each. Any order other than by
 * id keeps all listed subvolumes in memory.
 *
 * @return 0; -EINVAL: unknown flag, key or format; -EUCLEAN, -EIO, -ENXIO, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_subvolumes_print(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
			    enum btrkit_format format, btrkit_write_fn write, void *ctx,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints statistics of trees: levels, blocks and bytes per level, items and bytes per type. As text or JSON Lines. A
 * tree that cannot be read completely is printed with the reason, and the others follow.
 *
 * @param trees	@p n objectids
 * @param n	number of trees; 0: the root tree, the chunk tree and all trees in the root tree
 * @return 0; -EINVAL: unknown format; -ENOENT: no such tree; -ENOMEM; what @p write returned; -EUCLEAN, -EIO, -ENXIO:
 *	   the first failure, after everything was printed
 * Since: 0.1
 */
int btrkit_tree_stats_print(struct btrkit_fs *fs, const uint64_t *trees, size_t n, enum btrkit_format format,
			    btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** One side of a comparison. Never grows. Since: 0.1 */
struct btrkit_diff_side {
	struct btrkit_fs *fs;
	uint64_t tree;	/**< objectid; 0: all trees, each compared with that of the same objectid */
};

/** Flags of btrkit_diff_print(). Since: 0.1 */
enum btrkit_diff_flags {
	BTRKIT_DIFF_HIDE_NAMES = 1 << 0,	/**< as BTRKIT_DUMP_HIDE_NAMES */
	BTRKIT_DIFF_BRIEF = 1 << 1		/**< without the contents of items */
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
 * @param flags	enum btrkit_diff_flags
 * @param differ	receives whether there are differences
 * @return 0; -EINVAL: only one side has a tree, or unknown format or flag; -ENOENT: no such tree; -EUCLEAN, -EIO,
 *	   -ENXIO, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_diff_print(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, unsigned flags,
		      enum btrkit_format format, btrkit_write_fn write, void *ctx, bool *differ,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
