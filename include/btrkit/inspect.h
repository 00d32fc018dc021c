/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_INSPECT_H
#define BTRKIT_INSPECT_H

/**
 * @file
 * Listings of subvolumes, statistics of trees, and differences between trees.
 */

#include <btrkit/device.h>
#include <btrkit/error.h>
#include <btrkit/filesystem.h>
#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_subvolumes_options. Since: 0.1 */
enum btrkit_subvolumes_flags {
	BTRKIT_SUBVOLUMES_DELETED = 1 << 0,	/**< also those that are being deleted, which have no path */
	BTRKIT_SUBVOLUMES_ONLY_DELETED = 1 << 1,	/**< only those that are being deleted */
	BTRKIT_SUBVOLUMES_READONLY = 1 << 2,	/**< only read-only ones */
	BTRKIT_SUBVOLUMES_SNAPSHOTS = 1 << 3,	/**< only snapshots */
	/** Also find out which is the default subvolume and which snapshots each has. Since: 0.2 */
	BTRKIT_SUBVOLUMES_RELATIONS = 1 << 4
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

/** Bits of @c flags of struct btrkit_subvolume_item. Since: 0.2 */
#define BTRKIT_SUBVOLUME_FLAG_READ_ONLY (1ull << 0)
#define BTRKIT_SUBVOLUME_FLAG_DEAD (1ull << 48) /**< Linux is deleting it */

/** Everything that is known about a subvolume. Generations are those of transactions. Since: 0.2 */
struct btrkit_subvolume_item {
	uint64_t id;		/**< objectid of its tree */
	uint64_t parent;	/**< subvolume that contains it; 0: none */
	uint64_t generation;	/**< of the last change */
	uint64_t otransid, ctransid;	/**< generations in which it was created, and its inodes last changed */
	uint64_t stransid, rtransid;	/**< generations of the sent source, and in which it was received */
	struct btrkit_time otime, ctime, stime, rtime;	/**< when that was */
	uint64_t last_snapshot;	/**< generation of the latest snapshot of it */
	uint64_t bytenr;	/**< logical address of its root */
	uint64_t bytes_used;	/**< bytes of its tree blocks */
	uint64_t flags;		/**< BTRKIT_SUBVOLUME_FLAG_*, and unknown ones as on disk */
	uint8_t level;		/**< of its root */
	bool read_only;
	bool deleted;		/**< it is being deleted */
	bool is_default;	/**< it is the default subvolume; only with #BTRKIT_SUBVOLUMES_RELATIONS */
	uint8_t uuid[16];
	uint8_t parent_uuid[16];	/**< of the subvolume that it is a snapshot of; otherwise zeros */
	uint8_t received_uuid[16];
	/** Path from the top level, without a leading slash and not terminated; NULL: it has none. */
	const char *path;
	size_t path_len;
	/** Objectids of the snapshots of it, ascending; only with #BTRKIT_SUBVOLUMES_RELATIONS. */
	const uint64_t *snapshots;
	size_t num_snapshots;
	uint64_t reserved[4];	/**< 0 */
};

/** Receives a subvolume, valid only during the call. Returns 0, or a negative errno that stops the work. Since: 0.2 */
typedef int (*btrkit_subvolume_fn)(void *ctx, const struct btrkit_subvolume_item *subvolume);

/**
 * Calls a function for each subvolume except the top level. Any order other than by id keeps all of them in memory. The
 * first damage ends the listing, after the subvolumes before it if it is sorted by id.
 *
 * @param opts	NULL: all that are not being deleted, sorted by id
 * @return 0; -EINVAL: unknown flag or key; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.2
 */
int btrkit_subvolumes(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts, btrkit_subvolume_fn fn,
		      void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each subvolume whose root item can be read, as btrkit_subvolumes() does, and goes on behind what
 * cannot. A subvolume whose path cannot be found has a path of NULL and, if that cannot be found either, a parent of 0.
 *
 * @param lost	called for each part that is missing; the message says which subvolumes, or whose path. NULL: as
 *		btrkit_subvolumes()
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_subvolumes(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_subvolumes_around(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
			     btrkit_subvolume_fn fn, btrkit_lost_fn lost, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Returns what is known about one subvolume, without its path and #BTRKIT_SUBVOLUMES_RELATIONS.
 *
 * @param id	its objectid
 * @return 0; -ENOENT: no such subvolume, or it is being deleted; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.2
 */
int btrkit_subvolume_get(struct btrkit_fs *fs, uint64_t id, struct btrkit_subvolume_item *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Number of levels that a tree may have. Since: 0.2 */
#define BTRKIT_TREE_LEVELS 8

/** The blocks of one level of a tree. Never grows. Since: 0.2 */
struct btrkit_tree_level {
	uint64_t blocks;
	uint64_t items;		/**< of leaves, level 0; above it, pointers to other blocks */
	uint64_t used;		/**< bytes, headers included */
};

/** The items of one type. Never grows. Since: 0.2 */
struct btrkit_tree_items {
	uint64_t count;
	uint64_t bytes;		/**< of their contents */
	uint64_t objectid;	/**< of one of them: some types have another meaning with special objectids */
};

/** The size of a tree. Since: 0.2 */
struct btrkit_tree_stats {
	uint64_t tree;		/**< objectid */
	uint64_t key_offset;	/**< of the key of its root item; 0: there is none */
	uint64_t bytenr;	/**< logical address of its root */
	uint64_t generation;
	uint32_t nodesize;	/**< bytes of each block */
	unsigned num_levels;
	struct btrkit_tree_level levels[BTRKIT_TREE_LEVELS];
	struct btrkit_tree_items types[256];	/**< by the type of the key */
	uint64_t inline_bytes;	/**< of files, as stored in the tree */
	const struct btrkit_error *damage;	/**< the first damage that it has; NULL: all was counted */
	uint64_t lost_blocks;	/**< that could not be read; what was below them is not counted */
	uint64_t reserved[3];	/**< 0 */
};

/**
 * Receives the size of a tree, valid only during the call. Returns 0, or a negative errno that stops the work.
 *
 * Since: 0.2
 */
typedef int (*btrkit_tree_stats_fn)(void *ctx, const struct btrkit_tree_stats *stats);

/**
 * Counts the blocks and items of trees. Of a tree that cannot be read completely, what could be read is counted.
 *
 * @param trees	@p n objectids
 * @param n	number of trees; 0: the root tree, the chunk tree and all trees in the root tree
 * @return 0, even if a tree is damaged; -ENOENT: no such tree; -ENOMEM; what @p fn returned; -EUCLEAN, -EIO, -ENXIO: of
 *	   the root tree, from which the others are known
 * Since: 0.2
 */
int btrkit_tree_stats(struct btrkit_fs *fs, const uint64_t *trees, size_t n, btrkit_tree_stats_fn fn, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Counts the blocks and items of trees as btrkit_tree_stats() does, and says what is missing.
 *
 * @param lost	called for each block that cannot be read, and for each part of the root tree because of which trees are
 *		missing; the error of a tree comes before the tree. NULL: as btrkit_tree_stats()
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_tree_stats(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_tree_stats_around(struct btrkit_fs *fs, const uint64_t *trees, size_t n, btrkit_tree_stats_fn fn,
			     btrkit_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** One side of a comparison. Never grows. Since: 0.1 */
struct btrkit_diff_side {
	struct btrkit_fs *fs;
	uint64_t tree;	/**< objectid; 0: all trees, each compared with that of the same objectid */
};

/** An item that only one side has, or that differs. Since: 0.2 */
struct btrkit_diff_item {
	uint64_t tree;		/**< objectid; that of the first side if both have the tree */
	uint64_t key_offset;	/**< of the root item of the tree, see struct btrkit_tree_stats */
	struct btrkit_key key;
	const void *a, *b;	/**< contents on either side; NULL: that side has no such item */
	uint32_t a_size, b_size;
	uint64_t reserved[2];	/**< 0 */
};

/** Receives a difference, valid only during the call. Returns 0, or a negative errno that stops the work. Since: 0.2 */
typedef int (*btrkit_diff_fn)(void *ctx, const struct btrkit_diff_item *item);

/**
 * Calls a function for each item that exists on one side only or differs, tree by tree, in key order. What the contents
 * mean, btrkit_dump_item() prints.
 *
 * Blocks that both sides share, as snapshots do, are not read. That needs the same handle on both sides, because blocks
 * of different filesystems may differ even if their addresses and generations are equal.
 *
 * @param a	the first side
 * @param b	the second side; both may have the same handle
 * @return 0; -EINVAL: only one side has a tree; -ENOENT: no such tree; what @p fn returned; -EUCLEAN, -EIO, -ENXIO,
 *	   -ENOMEM
 * Since: 0.2
 */
int btrkit_diff(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, btrkit_diff_fn fn, void *ctx,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Receives what cannot be read on a side, 0 or 1, valid only during the call. Returns 0 to go on behind it, or a
 * negative errno that stops the work.
 *
 * Since: 0.2
 */
typedef int (*btrkit_diff_lost_fn)(void *ctx, unsigned side, const struct btrkit_error *what);

/**
 * Compares as btrkit_diff() does, and goes on behind what cannot be read. What only one side has is left out if the
 * other side may have lost it: its key is below a block of that side that cannot be read.
 *
 * @param lost	called for each block that cannot be read, and each invalid root item. NULL: as btrkit_diff()
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_diff(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_diff_around(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, btrkit_diff_fn fn,
		       btrkit_diff_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
