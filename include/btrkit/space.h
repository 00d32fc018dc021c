/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_H
#define BTRKIT_SPACE_H

/**
 * @file
 * Free space, and its caches: the old cache in files (v1, space_cache) and the free space tree (v2). Both are compared
 * with the extent tree, which is authoritative.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** The cache that Linux would use at the next mount. Since: 0.1 */
enum btrkit_space_cache_kind { BTRKIT_SPACE_CACHE_NONE, BTRKIT_SPACE_CACHE_V1, BTRKIT_SPACE_CACHE_V2 };

/** Result of comparing a block group in a cache with the extent tree. Since: 0.1 */
enum btrkit_space_verdict {
	BTRKIT_SPACE_ABSENT,	/**< the cache does not have the block group */
	BTRKIT_SPACE_EQUAL,	/**< all free ranges are equal */
	BTRKIT_SPACE_DIFFERENT, /**< they differ: see at and free */
	BTRKIT_SPACE_IGNORED,	/**< v1: incomplete, so Linux does not load it: see why */
	BTRKIT_SPACE_DAMAGED	/**< v2: inconsistent: see why */
};

/** A block group in a cache. Since: 0.1 */
struct btrkit_space_copy {
	enum btrkit_space_verdict verdict;
	/* With EQUAL and DIFFERENT: */
	uint64_t free_bytes;
	uint64_t free_ranges;	/**< adjacent ranges count as one */
	uint64_t at;		/**< DIFFERENT: the first address that differs */
	bool free;		/**< DIFFERENT: that address is free in the cache, and used in the extent tree */
	/* With IGNORED and DAMAGED: */
	const char *why;	/**< one line, valid only during the call; otherwise NULL */
	/* Of v2: */
	bool bitmaps;		/**< stored as bitmaps, not as extents */
	/* Of v1, from its header: */
	uint64_t inode;		/**< of the cache file */
	uint64_t generation;
	uint64_t num_entries;	/**< extents and bitmaps */
	uint64_t num_bitmaps;
	uint64_t file_bytes;	/**< allocated for the cache file */
	uint64_t reserved[4];	/**< 0 */
};

/** A block group. Since: 0.1 */
struct btrkit_space_group {
	uint64_t logical, length;
	uint64_t flags;		/**< type and profile, as on disk */
	uint64_t used;		/**< bytes of extents */
	uint64_t free_bytes;	/**< bytes that the extent tree leaves free */
	uint64_t free_ranges;
	uint64_t super_bytes;	/**< of these, bytes of superblocks, which v1 does not count as free */
	struct btrkit_space_copy v1, v2;
};

/** A part of a cache that belongs to no block group. Since: 0.1 */
struct btrkit_space_leftover {
	enum btrkit_space_cache_kind kind;
	uint64_t logical;
	uint64_t length;	/**< v2: bytes of its range */
	uint64_t inode;		/**< v1: of the cache file */
};

/** Number of block groups with each verdict. Since: 0.1 */
struct btrkit_space_count {
	uint64_t groups[8];	/**< [i]: by enum btrkit_space_verdict */
	uint64_t leftovers;	/**< ranges (v2) or headers (v1) without a block group */
	uint64_t bytes;		/**< size of the cache: its tree blocks (v2) or files (v1) */
};

/** Status of both caches. Since: 0.1 */
struct btrkit_space_summary {
	enum btrkit_space_cache_kind in_use;
	bool valid;		/**< Linux would load it instead of rebuilding it */
	const char *why;	/**< the reason if it is not valid, a constant string; otherwise NULL */
	uint64_t generation, cache_generation;	/**< of the superblock */
	uint64_t groups;
	uint64_t length, used;	/**< sums over all block groups, in bytes */
	uint64_t extents;	/**< in the extent tree */
	struct btrkit_space_count v1, v2;
	uint64_t contradictions;	/**< block groups that a valid cache in use describes wrongly */
	uint64_t first_contradiction;	/**< logical address of the first of them */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Receives the status: a call for each block group, ordered by address, and for each leftover. Both callbacks return 0,
 * or a negative errno that stops the work. Either may be NULL.
 *
 * Since: 0.1
 */
struct btrkit_space_sink {
	int (*group)(void *ctx, const struct btrkit_space_group *group);
	int (*leftover)(void *ctx, const struct btrkit_space_leftover *leftover);
	void *ctx;
	void (*reserved[4])(void);	/**< NULL */
};

/**
 * Compares both caches with the extent tree, block group by block group, in one pass over each.
 *
 * It is no failure if a cache is wrong. It is one if the extent tree contradicts itself or the chunks.
 *
 * @param sink	receives block groups and leftovers; may be NULL
 * @param ret	receives the summary; may be NULL
 * @return 0; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENXIO, -ENOMEM; or what the sink returned
 * Since: 0.1
 */
int btrkit_space_status(struct btrkit_fs *fs, const struct btrkit_space_sink *sink, struct btrkit_space_summary *ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_space_change_options. Since: 0.1 */
enum btrkit_space_change_flags {
	/**
	 * Change nothing, and report what would be changed: the work is done in memory, so the figures are those of the
	 * run. That takes memory for what would be written, each block of each device once, besides what the run takes.
	 * If the space does not suffice, which needed_bytes and available_bytes tell, the figures are estimates. The
	 * filesystem may have been opened for reading.
	 */
	BTRKIT_SPACE_DRY_RUN = 1 << 0
};

/**
 * Options of btrkit_space_convert() and btrkit_space_clear(). Initialise with BTRKIT_SPACE_CHANGE_OPTIONS_INIT.
 *
 * Since: 0.1
 */
struct btrkit_space_change_options {
	unsigned flags;		/**< enum btrkit_space_change_flags; unknown ones are refused */
	/**
	 * Reports progress. @p total is the same in all calls, and @p done never decreases. A value other than 0, a
	 * negative errno, stops the work, and leaves a consistent filesystem. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_SPACE_CHANGE_OPTIONS_INIT BTRKIT_ZEROS

/** What was changed, or with BTRKIT_SPACE_DRY_RUN would be. Since: 0.1 */
struct btrkit_space_change {
	enum btrkit_space_cache_kind from;	/**< in use before */
	bool was_valid;
	bool changed;			/**< something has to be changed; if false, all members below are 0 */
	uint64_t cache_generation;	/**< of the superblock afterwards; UINT64_MAX: Linux rebuilds v1 */
	/* Removed from v1: */
	uint64_t v1_headers;
	uint64_t v1_files;
	uint64_t v1_extents;		/**< of its files */
	uint64_t v1_bytes;		/**< allocated for its files */
	/* Removed from v2, and created for it: */
	uint64_t v2_removed_blocks;	/**< tree blocks */
	uint64_t v2_blocks;
	uint64_t v2_groups;		/**< block groups in the new tree; 0: no tree is created */
	uint64_t v2_bitmap_groups;	/**< of these, block groups stored as bitmaps */
	uint64_t v2_extents, v2_bitmaps;	/**< items */
	uint64_t v2_ranges;		/**< free ranges: the sum of the extent counts in FREE_SPACE_INFO items */
	/* Effort: */
	uint64_t extents;		/**< in the extent tree before */
	uint64_t needed_bytes;		/**< for tree blocks, at most, before anything can be reused */
	uint64_t available_bytes;	/**< for tree blocks, including chunks that could be allocated */
	uint64_t estimated_ns;		/**< rough estimate; only with BTRKIT_SPACE_DRY_RUN */
	uint64_t commits;
	uint64_t bytes_written;		/**< to all devices */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Makes Linux use the given free space cache.
 *
 * BTRKIT_SPACE_CACHE_V2 removes v1 and builds the free space tree from the extent tree, in one pass and with little
 * memory. Before the superblock marks the tree as valid, it is read back and compared with the extent tree. An existing
 * tree that is not valid, or contradicts the extent tree, is replaced. BTRKIT_SPACE_CACHE_V1 removes the free space
 * tree; Linux builds v1 at the next mount. BTRKIT_SPACE_CACHE_NONE removes both.
 *
 * If the requested cache is valid already, nothing is changed. The space that is needed is determined before anything
 * is written. The filesystem is consistent at any moment, possibly without a cache; after a crash, call the function
 * again. @p fs must have been opened with BTRKIT_OPEN_WRITE, except for BTRKIT_SPACE_DRY_RUN.
 *
 * @param to	the cache
 * @param ret	receives what was changed; may be NULL
 * @return 0; -EOPNOTSUPP: a feature prevents it, named in the message; -ENOSPC: not enough space, and nothing was
 *	   written; -EROFS: opened for reading; -EINVAL: unknown cache or flag; -EBUSY: a transaction is open, or a
 *	   superblock was changed since the filesystem was opened; -EUCLEAN, -EIO, -ENXIO, -ENOMEM; or what the
 *	   progress callback returned
 * Since: 0.1
 */
int btrkit_space_convert(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
			 const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Removes one free space cache completely, and changes nothing else, like `btrfs rescue clear-space-cache`.
 *
 * Without v1, Linux builds it at the next mount, unless the filesystem has the free space tree. Without v2, the
 * filesystem uses v1 if the superblock says so, and otherwise no cache. If the cache does not exist, nothing is
 * changed.
 *
 * @param kind	the cache
 * @param ret	receives what was changed; may be NULL
 * @return as btrkit_space_convert(); -EINVAL: also BTRKIT_SPACE_CACHE_NONE
 * Since: 0.1
 */
int btrkit_space_clear(struct btrkit_fs *fs, enum btrkit_space_cache_kind kind,
		       const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
