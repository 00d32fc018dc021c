/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_H
#define BTRKIT_USAGE_H

/**
 * @file
 * Space usage by subvolume: for each tree block and data extent, the set of subvolumes that reach it. One pass over the
 * filesystem, which reads each tree block once, tells what each subvolume refers to, what only it refers to, and what
 * deleting any of them would free.
 *
 * This is about sharing between subvolumes. An extent that one file uses twice belongs to one subvolume and is
 * exclusive to it, while FIEMAP calls it shared. What FIEMAP says is kept separately.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** The result. Any number of threads may read it at once. Since: 0.1 */
struct btrkit_usage;

/** Options of btrkit_usage_load(). Initialise with BTRKIT_USAGE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_usage_options {
	unsigned flags;		/**< must be 0 */
	unsigned threads;	/**< maximum number; 0: one per CPU */
	/**
	 * Maximum memory for sets of owners, in bytes; 0: 128 MiB. Sets that are no longer needed are reused. If that
	 * is not enough, the work fails with -ENOMEM, and the error says so. Computing them needs up to a third of it
	 * in addition.
	 */
	uint64_t set_memory;
	/**
	 * Reports progress, from one thread at a time; the total may change. A value other than 0, a negative errno,
	 * stops the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * Called for what cannot be read or is inconsistent, once per block or item, by one thread at a time; the
	 * message names the trees. The result then lacks what is there. A value other than 0, a negative errno, stops
	 * the work. NULL: the first such failure stops it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_USAGE_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Determines the usage of all space. Other threads may read @p fs meanwhile, but must not change it.
 *
 * Memory: at most 24 bytes for each data extent and 16 for each tree block, the sets of owners, and a few MiB per
 * thread.
 *
 * @param ret	receives the result; free it with btrkit_usage_free() before @p fs is closed
 * @return 0; -EINVAL: unknown flags; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENXIO; -ENOMEM; or what a
 *	   callback in @p opts returned
 * Since: 0.1
 */
int btrkit_usage_load(struct btrkit_fs *fs, const struct btrkit_usage_options *opts, struct btrkit_usage **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Frees a result. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_usage *btrkit_usage_free(struct btrkit_usage *u);

/** An amount of space. Never grows. Since: 0.1 */
struct btrkit_usage_space {
	uint64_t data;		/**< bytes of data extents on disk, without further copies and parity */
	uint64_t uncompressed;	/**< bytes of the same extents, uncompressed */
	uint64_t metadata;	/**< bytes of tree blocks, without further copies */
	uint64_t extents;	/**< number of data extents */
	uint64_t blocks;	/**< number of tree blocks */
};

/** Kinds of owners. Since: 0.1 */
enum btrkit_usage_kind {
	BTRKIT_USAGE_SUBVOLUME,
	BTRKIT_USAGE_DROPPED,		/**< what is left of a subvolume that is being deleted */
	BTRKIT_USAGE_RELOCATION,	/**< tree of an interrupted relocation (balance) of subvolume @c id */
	BTRKIT_USAGE_DATA_RELOCATION,	/**< tree of the files that relocation copies data into */
	BTRKIT_USAGE_FILESYSTEM		/**< the filesystem itself: all other trees, and v1 cache files */
};

/** Something that reaches tree blocks and data. Since: 0.1 */
struct btrkit_usage_owner {
	enum btrkit_usage_kind kind;
	uint64_t id;		/**< objectid of the subvolume; 0: the filesystem itself */
	struct btrkit_usage_space referenced;	/**< everything that it reaches */
	struct btrkit_usage_space exclusive;	/**< what nothing else reaches */
	/** Space of its log tree, which no other number includes. Linux replays or drops it at the next mount. */
	struct btrkit_usage_space log;
	uint64_t orphans;	/**< unlinked files that await deletion; the other numbers include their data */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Returns the number of owners. They are numbered from 0: subvolumes in the order of their ids, then the others.
 *
 * @return number of owners
 * Since: 0.1
 */
size_t btrkit_usage_num_owners(const struct btrkit_usage *u);

/** Returns owner number @p i in @p ret. Since: 0.1 */
void btrkit_usage_get_owner(const struct btrkit_usage *u, size_t i, struct btrkit_usage_owner *ret);

/**
 * Returns the number of the owner that is subvolume @p id, even if it is being deleted, in @p ret. @return 0; -ENOENT.
 *
 * Since: 0.1
 */
int btrkit_usage_find(const struct btrkit_usage *u, uint64_t id, size_t *ret) BTRKIT_MUST_CHECK;

/** Totals of the filesystem. Since: 0.1 */
struct btrkit_usage_total {
	struct btrkit_usage_space space;	/**< each extent and block once, including unowned */
	struct btrkit_usage_space unowned;	/**< in the extent tree, but not reached by anything */
	uint64_t sets;				/**< different sets of owners */
	uint64_t set_bytes;			/**< memory that the sets took, which may vary */
	uint64_t blocks_read;			/**< tree blocks read, each once */
	uint64_t damaged;			/**< number of calls of @c damage */
	uint64_t reserved[4];	/**< 0 */
};

/** Returns the totals in @p ret, a struct btrkit_usage_total. Since: 0.1 */
void btrkit_usage_get_total(const struct btrkit_usage *u, struct btrkit_usage_total *ret);

/** A set of owners that share something which nothing else reaches. Since: 0.1 */
struct btrkit_usage_set {
	struct btrkit_usage_space space;	/**< what exactly these owners reach */
	size_t num_owners;
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Returns the number of sets. They are numbered from 0 in an order that depends only on the filesystem.
 *
 * @return number of sets
 * Since: 0.1
 */
size_t btrkit_usage_num_sets(const struct btrkit_usage *u);

/**
 * Returns set number @p i in @p ret.
 *
 * @param owners	receives the numbers of its first @p max owners, ascending; may be NULL if @p max is 0
 * @param max	size of @p owners
 * Since: 0.1
 */
void btrkit_usage_get_set(const struct btrkit_usage *u, size_t i, struct btrkit_usage_set *ret, uint32_t *owners,
			  size_t max);

/**
 * Returns owner number @p i in the order in which owners that share much are neighbours, so that sets are few runs of
 * it.
 *
 * @param i	place in that order, less than the number of owners
 * @return the number of an owner
 * Since: 0.2
 */
size_t btrkit_usage_in_order(const struct btrkit_usage *u, size_t i);

/** Owners that follow each other in the order of btrkit_usage_in_order(). Never grows. Since: 0.2 */
struct btrkit_usage_run {
	uint32_t first, last; /**< places in that order */
};

/**
 * Returns set number @p set as runs of owners, which take far less than the owners one by one.
 *
 * @param set	number of the set
 * @param runs	receives its first @p max runs, ascending and apart; may be NULL if @p max is 0
 * @param max	size of @p runs
 * @return the number of runs that it has
 * Since: 0.2
 */
size_t btrkit_usage_get_runs(const struct btrkit_usage *u, size_t set, struct btrkit_usage_run *runs, size_t max);

/**
 * Returns whether btrkit_usage_load() reported damage in the block or item where @p what happened, so that it need not
 * be reported again.
 *
 * @param what	what failed
 * @return whether it is known
 * Since: 0.2
 */
bool btrkit_usage_was_reported(const struct btrkit_usage *u, const struct btrkit_error *what);

/**
 * Returns what deleting exactly these owners would free: what nothing else reaches.
 *
 * @param owners	@p n numbers in any order; duplicates are allowed
 * @param n	number of elements
 * @return 0; -EINVAL: no owner has such a number; -ENOMEM
 * Since: 0.1
 */
int btrkit_usage_freed(const struct btrkit_usage *u, const uint32_t *owners, size_t n, struct btrkit_usage_space *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Returns what each pair of owners shares, possibly with other owners too.
 *
 * @param ret	square matrix of as many rows as there are owners: element [i * owners + j] is for owners i and j, and
 *		[i * owners + i] is what i refers to
 * @return 0; -ENOMEM
 * Since: 0.1
 */
int btrkit_usage_matrix(const struct btrkit_usage *u, struct btrkit_usage_space *ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How the data of an extent is stored. Since: 0.1 */
enum btrkit_usage_type {
	BTRKIT_USAGE_PLAIN,
	BTRKIT_USAGE_ZLIB,
	BTRKIT_USAGE_LZO,
	BTRKIT_USAGE_ZSTD,
	BTRKIT_USAGE_PREALLOC,	/**< all file extent items that refer to it say that it was never written */
	BTRKIT_USAGE_NUM_TYPES
};

/** A data extent. Since: 0.1 */
struct btrkit_usage_extent {
	uint64_t bytenr;	/**< logical address */
	uint64_t bytes;		/**< on disk, one copy */
	uint64_t uncompressed;
	enum btrkit_usage_type type;
	size_t set;		/**< number of the set of its owners; SIZE_MAX: unowned */
	bool linux_shared;	/**< FIEMAP would call it shared in any file */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Returns the number of data extents. They are numbered from 0, ordered by address.
 *
 * @return number of data extents
 * Since: 0.1
 */
size_t btrkit_usage_num_extents(const struct btrkit_usage *u);
/** Returns data extent number @p i in @p ret. Since: 0.1 */
void btrkit_usage_get_extent(const struct btrkit_usage *u, size_t i, struct btrkit_usage_extent *ret);

/** A tree block. Since: 0.1 */
struct btrkit_usage_block {
	uint64_t bytenr;	/**< logical address */
	uint8_t level;
	size_t set;		/**< number of the set of its owners; SIZE_MAX: unowned */
	uint64_t reserved[1];	/**< 0 */
};

/**
 * Returns the number of tree blocks. They are numbered from 0, ordered by address.
 *
 * @return number of tree blocks
 * Since: 0.1
 */
size_t btrkit_usage_num_blocks(const struct btrkit_usage *u);
/** Returns tree block number @p i in @p ret. Since: 0.1 */
void btrkit_usage_get_block(const struct btrkit_usage *u, size_t i, struct btrkit_usage_block *ret);

/** Data that is stored in one way. Since: 0.1 */
struct btrkit_usage_stored {
	uint64_t extents;
	uint64_t disk;		/**< bytes on disk, one copy */
	uint64_t uncompressed;	/**< bytes of whole extents, uncompressed */
	uint64_t referenced;	/**< bytes of files, counted for each subvolume that has them */
};

/** Data of all subvolumes, including those being deleted, by storage type. Since: 0.1 */
struct btrkit_usage_types {
	struct btrkit_usage_stored extents[8];	/**< [i]: by enum btrkit_usage_type */
	/** Inline data, including symbolic links, once for each tree block: [PLAIN], [ZLIB], [LZO], [ZSTD]. */
	struct btrkit_usage_stored inlined[8];
	uint64_t reserved[4];	/**< 0 */
};

/** Returns data by storage type in @p ret, a struct btrkit_usage_types. Since: 0.1 */
void btrkit_usage_get_types(const struct btrkit_usage *u, struct btrkit_usage_types *ret);

BTRKIT_END_DECLS

#endif
