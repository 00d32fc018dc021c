/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_H
#define BTRKIT_SPACE_H

/**
 * @file
 * Free space, and the two caches of it: the old one in files (v1, space_cache) and the free space tree (v2,
 * free-space-tree). What they say is held against the extent tree, which is the truth.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** Which cache Linux would use when it mounts. Since: 0.1 */
enum btrkit_space_cache_kind { BTRKIT_SPACE_CACHE_NONE, BTRKIT_SPACE_CACHE_V1, BTRKIT_SPACE_CACHE_V2 };

/** What became of the comparison of a block group in a cache with the extent tree. Since: 0.1 */
enum btrkit_space_verdict {
	BTRKIT_SPACE_ABSENT,	/**< the cache does not have the block group */
	BTRKIT_SPACE_EQUAL,	/**< every free range is the same */
	BTRKIT_SPACE_DIFFERENT, /**< it says something else: see at and free */
	BTRKIT_SPACE_IGNORED,	/**< v1: it is not whole, so Linux does not load it: see why */
	BTRKIT_SPACE_DAMAGED	/**< v2: it contradicts itself: see why */
};

/** What a cache says of a block group. Since: 0.1 */
struct btrkit_space_copy {
	enum btrkit_space_verdict verdict;
	/* Of EQUAL and DIFFERENT: */
	uint64_t free_bytes;
	uint64_t free_ranges;	/**< those that touch counted as one */
	uint64_t at;		/**< DIFFERENT: the first address about which it says something else */
	bool free;		/**< DIFFERENT: it says that the address is free, and the extent tree that it is used */
	/* Of IGNORED and DAMAGED: */
	const char *why;	/**< one line, valid during the call only; NULL for others */
	/* Of v2: */
	bool bitmaps;		/**< in bitmaps and not in extents */
	/* Of v1, as its header says: */
	uint64_t inode;		/**< of its file */
	uint64_t generation;
	uint64_t num_entries;	/**< extents and bitmaps */
	uint64_t num_bitmaps;
	uint64_t file_bytes;	/**< allocated for its file */
	uint64_t reserved[4];	/**< 0 */
};

/** A block group. Since: 0.1 */
struct btrkit_space_group {
	uint64_t logical, length;
	uint64_t flags;		/**< as on disk: type and profile */
	uint64_t used;		/**< bytes of extents */
	uint64_t free_bytes;	/**< the rest, by the extent tree */
	uint64_t free_ranges;
	uint64_t super_bytes;	/**< of those the bytes of superblock copies, which v1 does not count as free */
	struct btrkit_space_copy v1, v2;
};

/** Something of a cache that belongs to no block group. Since: 0.1 */
struct btrkit_space_leftover {
	enum btrkit_space_cache_kind kind;
	uint64_t logical;
	uint64_t length;	/**< v2: of the range it is about */
	uint64_t inode;		/**< v1: of its file */
};

/** How many block groups got which verdict. Since: 0.1 */
struct btrkit_space_count {
	uint64_t groups[8];	/**< by enum btrkit_space_verdict */
	uint64_t leftovers;	/**< ranges (v2) or headers (v1) of no block group */
	uint64_t bytes;		/**< size of the cache: of tree blocks (v2), allocated for files (v1) */
};

/** The whole filesystem. Since: 0.1 */
struct btrkit_space_summary {
	enum btrkit_space_cache_kind in_use;
	bool valid;		/**< Linux would load it, and not make it anew */
	const char *why;	/**< why it is not valid, a constant of the library; NULL where it is */
	uint64_t generation, cache_generation;	/**< of the superblock */
	uint64_t groups;
	uint64_t length, used;	/**< sums over the block groups */
	uint64_t extents;	/**< in the extent tree */
	struct btrkit_space_count v1, v2;
	uint64_t contradictions;	/**< block groups of which a valid cache in use says something wrong */
	uint64_t first_contradiction;	/**< start of the first of them */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Receives the status: a call for each block group in the order of addresses, and for each leftover. Either returns 0,
 * or a negative errno that ends the work. Either may be NULL.
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
 * Holds both caches of free space against the extent tree, block group by block group, in one pass over each.
 *
 * A cache that says something wrong is no failure of this function. An extent tree that contradicts itself or the
 * chunks is one.
 *
 * @param sink	gets block groups and leftovers; NULL: nobody does
 * @param ret	the whole; may be NULL
 * @return 0; -EUCLEAN, -EIO, -ENODATA, -ENOMEM; or what the sink returned
 * Since: 0.1
 */
int btrkit_space_status(struct btrkit_fs *fs, const struct btrkit_space_sink *sink, struct btrkit_space_summary *ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The same, printed: block groups, leftovers, and last the summary.
 *
 * @param ret	the whole; may be NULL
 * @return as btrkit_space_status(), or what @p write returned; -EINVAL for an unknown format
 * Since: 0.1
 */
int btrkit_space_status_print(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			      struct btrkit_space_summary *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_space_change_options. Since: 0.1 */
enum btrkit_space_change_flags {
	/** Change nothing, but find out what would be changed. The filesystem may be open for reading only. */
	BTRKIT_SPACE_DRY_RUN = 1 << 0
};

/** How to change the caches of free space. Initialise with BTRKIT_SPACE_CHANGE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_space_change_options {
	unsigned flags;		/**< BTRKIT_SPACE_DRY_RUN; unknown ones are refused */
	/**
	 * Told now and then how far the work is; @p total is the same in all calls, and @p done never becomes less. A
	 * value other than 0, a negative errno, ends the work, and leaves a whole filesystem. May be NULL.
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
	bool changed;			/**< something is to be changed; if not, all that follows is 0 */
	uint64_t cache_generation;	/**< of the superblock afterwards; UINT64_MAX: Linux makes v1 anew */
	/* Of v1: what is removed. */
	uint64_t v1_headers;
	uint64_t v1_files;
	uint64_t v1_extents;		/**< of these files */
	uint64_t v1_bytes;		/**< allocated for them */
	/* Of v2: what is removed, and what is made. */
	uint64_t v2_removed_blocks;	/**< tree blocks */
	uint64_t v2_blocks;
	uint64_t v2_groups;		/**< block groups in it; 0: none is made */
	uint64_t v2_bitmap_groups;	/**< of these, in bitmaps and not in extents */
	uint64_t v2_extents, v2_bitmaps;	/**< items */
	uint64_t v2_ranges;		/**< free ones: the sum of what the INFO items say */
	/* The work. */
	uint64_t extents;		/**< in the extent tree before */
	uint64_t needed_bytes;		/**< for tree blocks, at the most, before anything is free again */
	uint64_t available_bytes;	/**< that could be had for them, new chunks included */
	uint64_t estimated_ns;		/**< how long it takes, roughly; only of BTRKIT_SPACE_DRY_RUN */
	uint64_t commits;
	uint64_t bytes_written;		/**< to all devices */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Makes Linux use the cache of free space that @p to names. @p fs must have been opened with BTRKIT_OPEN_WRITE, but for
 * BTRKIT_SPACE_DRY_RUN.
 *
 * BTRKIT_SPACE_CACHE_V2 removes what there is of v1 and builds the free space tree from the extent tree, in one pass
 * and in little memory. Before the superblock says that there is such a tree it is read back and held against the
 * extent tree. A tree that is there and not valid, or contradicts the extent tree, is replaced.
 * BTRKIT_SPACE_CACHE_V1 removes the free space tree and leaves it to Linux to make v1 when it mounts.
 * BTRKIT_SPACE_CACHE_NONE removes both.
 *
 * A filesystem that has the valid cache already is left as it is. What is needed is known before anything is written.
 * At every moment the filesystem is whole, if without cache; who is killed runs it again.
 *
 * @param opts	may be NULL
 * @param ret	may be NULL
 * @return 0; -EOPNOTSUPP: a feature stands against it, named in the message; -ENOSPC: there is not enough space,
 *	   and nothing was written; -EROFS, -EINVAL, -EUCLEAN, -EIO, -ENODATA, -ENOMEM; or what the progress function
 *	   returned
 * Since: 0.1
 */
int btrkit_space_convert(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
			 const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Removes one cache and all that there is of it, and nothing else: as `btrfs rescue clear-space-cache` does it.
 *
 * When BTRKIT_SPACE_CACHE_V1 is gone Linux makes it anew when it mounts, unless the filesystem has the free space tree.
 * When BTRKIT_SPACE_CACHE_V2 is gone the filesystem has the v1 cache if the superblock says so, else none. Where
 * nothing is to be removed nothing is changed.
 *
 * @param kind	the one that is removed
 * @return as btrkit_space_convert(); -EINVAL for BTRKIT_SPACE_CACHE_NONE
 * Since: 0.1
 */
int btrkit_space_clear(struct btrkit_fs *fs, enum btrkit_space_cache_kind kind,
		       const struct btrkit_space_change_options *opts, struct btrkit_space_change *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
