/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_H
#define BTRKIT_USAGE_H

/**
 * @file
 * Who owns which space: every tree block and every data extent of a filesystem with the set of subvolumes that reach
 * it, found in one pass that reads each tree block once. From it come what each subvolume refers to, what only it has,
 * and what deleting any of them would free.
 *
 * Sharing between subvolumes is meant: an extent that one file has twice belongs to one subvolume, and is exclusive to
 * it, while FIEMAP calls it shared. What FIEMAP says is kept beside it and is not derived from it.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** The answer. It may be read by many threads at once. Since: 0.1 */
struct btrkit_usage;

/** How to look. Initialise with BTRKIT_USAGE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_usage_options {
	unsigned flags;		/**< none are known */
	unsigned threads;	/**< at most so many; 0: as many as there are CPUs */
	/**
	 * Bytes that the sets of owners may take; 0: 128 MiB. Sets that nothing has any more make room for others. When
	 * that does not do, the work ends with -ENOMEM and an error that says so.
	 */
	uint64_t set_memory;
	/**
	 * A share of the work is done; what the total is may change on the way. Called by one thread at a time. A value
	 * other than 0, a negative errno, ends the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * Told of what could not be read or contradicts itself, and in which trees, by one thread at a time: the answer
	 * is then without what lies there. A value other than 0, a negative errno, ends the work. NULL: the first of
	 * them ends it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_USAGE_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Looks at everything. @p fs may be used for reading by others meanwhile, and not be changed.
 *
 * Takes at most 24 bytes for each data extent, 16 for each tree block, the sets of owners, and a few MiB a thread.
 *
 * @param opts	NULL: all defaults
 * @param ret	to be freed by btrkit_usage_free(), before @p fs is closed
 * @return 0; -EINVAL: unknown flags; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENODATA; -ENOMEM; or what a
 *	   function of @p opts returned
 * Since: 0.1
 */
int btrkit_usage_load(struct btrkit_fs *fs, const struct btrkit_usage_options *opts, struct btrkit_usage **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Frees the answer. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_usage *btrkit_usage_free(struct btrkit_usage *u);

/** An amount of space. Never grows. Since: 0.1 */
struct btrkit_usage_space {
	uint64_t data;		/**< bytes of data extents, as they lie on the devices, copies and parity not counted */
	uint64_t uncompressed;	/**< bytes that the same extents hold when they are uncompressed */
	uint64_t metadata;	/**< bytes of tree blocks, copies not counted */
	uint64_t extents;	/**< number of data extents */
	uint64_t blocks;	/**< number of tree blocks */
};

/** What an owner is. Since: 0.1 */
enum btrkit_usage_kind {
	BTRKIT_USAGE_SUBVOLUME,
	BTRKIT_USAGE_DYING,		/**< a subvolume that is being deleted: what is left of it */
	BTRKIT_USAGE_RELOCATION,	/**< the tree of a relocation (balance) of subvolume @id that was interrupted */
	BTRKIT_USAGE_DATA_RELOCATION,	/**< the tree of files that relocations copy data into */
	BTRKIT_USAGE_FILESYSTEM		/**< the filesystem itself: its other trees, and the files of the v1 cache */
};

/** Something that reaches tree blocks and data. Since: 0.1 */
struct btrkit_usage_owner {
	enum btrkit_usage_kind kind;
	uint64_t id;		/**< objectid of the subvolume; 0 for the filesystem itself */
	struct btrkit_usage_space referenced;	/**< all that it reaches */
	struct btrkit_usage_space exclusive;	/**< what nothing else reaches */
	/** What its log tree has besides, which no other number counts: Linux replays or drops it when it mounts. */
	struct btrkit_usage_space log;
	uint64_t orphans;	/**< files without a name that are to be deleted, whose data is counted above */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * How many owners there are. They are numbered from 0: subvolumes by their ids, then the others.
 *
 * @return their number
 * Since: 0.1
 */
size_t btrkit_usage_num_owners(const struct btrkit_usage *u);

/** Owner number @p i. Since: 0.1 */
void btrkit_usage_get_owner(const struct btrkit_usage *u, size_t i, struct btrkit_usage_owner *ret);

/** The number of the subvolume @p id, dying or not. @return 0; -ENOENT. Since: 0.1 */
int btrkit_usage_find(const struct btrkit_usage *u, uint64_t id, size_t *ret) BTRKIT_MUST_CHECK;

/** The whole filesystem. Since: 0.1 */
struct btrkit_usage_total {
	struct btrkit_usage_space space;	/**< each extent and block once, those of no owner included */
	struct btrkit_usage_space unowned;	/**< in the extent tree, but reached by nothing */
	uint64_t sets;				/**< of owners that occur */
	uint64_t set_bytes;			/**< memory that they took, which may differ from time to time */
	uint64_t blocks_read;			/**< tree blocks, each once */
	uint64_t damaged;			/**< how often @c damage was called */
	uint64_t reserved[4];	/**< 0 */
};

/** @see struct btrkit_usage_total. Since: 0.1 */
void btrkit_usage_get_total(const struct btrkit_usage *u, struct btrkit_usage_total *ret);

/** A set of owners that have something in common which nobody else has. Since: 0.1 */
struct btrkit_usage_set {
	struct btrkit_usage_space space;	/**< what exactly these have */
	size_t num_owners;
	uint64_t reserved[2];	/**< 0 */
};

/**
 * How many sets there are. They are numbered from 0 in an order that depends on the filesystem alone.
 *
 * @return their number
 * Since: 0.1
 */
size_t btrkit_usage_num_sets(const struct btrkit_usage *u);

/**
 * Set number @p i.
 *
 * @param owners	gets the numbers of the first @p max of its owners, ascending; may be NULL with @p max 0
 * Since: 0.1
 */
void btrkit_usage_get_set(const struct btrkit_usage *u, size_t i, struct btrkit_usage_set *ret, uint32_t *owners,
			  size_t max);

/**
 * What becomes free when exactly these owners go: what no other one reaches.
 *
 * @param owners	@p n numbers in any order, each once or more often
 * @return 0; -EINVAL: no owner has such a number; -ENOMEM
 * Since: 0.1
 */
int btrkit_usage_freed(const struct btrkit_usage *u, const uint32_t *owners, size_t n, struct btrkit_usage_space *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * What each pair of owners has in common, other owners or not.
 *
 * @param ret	gets the rows of a square matrix one after the other; [i * number of owners + i] is what i refers to
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
	BTRKIT_USAGE_PREALLOC,	/**< nothing was written there yet, as far as all that name it say */
	BTRKIT_USAGE_NUM_TYPES
};

/** A data extent. Since: 0.1 */
struct btrkit_usage_extent {
	uint64_t bytenr;	/**< logical address */
	uint64_t bytes;		/**< on the devices, one copy */
	uint64_t uncompressed;
	enum btrkit_usage_type type;
	size_t set;		/**< number of the set of its owners; SIZE_MAX: nothing reaches it */
	bool linux_shared;	/**< FIEMAP would say SHARED wherever it is named */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * How many data extents there are. They are numbered from 0 in the order of their addresses.
 *
 * @return their number
 * Since: 0.1
 */
size_t btrkit_usage_num_extents(const struct btrkit_usage *u);
/** Data extent number @p i. Since: 0.1 */
void btrkit_usage_get_extent(const struct btrkit_usage *u, size_t i, struct btrkit_usage_extent *ret);

/** A tree block. Since: 0.1 */
struct btrkit_usage_block {
	uint64_t bytenr;	/**< logical address */
	uint8_t level;
	size_t set;		/**< number of the set of its owners; SIZE_MAX: nothing reaches it */
	uint64_t reserved[1];	/**< 0 */
};

/**
 * How many tree blocks there are. They are numbered from 0 in the order of their addresses.
 *
 * @return their number
 * Since: 0.1
 */
size_t btrkit_usage_num_blocks(const struct btrkit_usage *u);
/** Tree block number @p i. Since: 0.1 */
void btrkit_usage_get_block(const struct btrkit_usage *u, size_t i, struct btrkit_usage_block *ret);

/** What is stored in one way. Since: 0.1 */
struct btrkit_usage_stored {
	uint64_t extents;
	uint64_t disk;		/**< bytes on the devices, one copy */
	uint64_t uncompressed;	/**< bytes of what is stored there, whole extents */
	uint64_t referenced;	/**< bytes of files, once for each subvolume that has them */
};

/** The data of subvolumes, dying ones too, by how they are stored. Since: 0.1 */
struct btrkit_usage_types {
	struct btrkit_usage_stored extents[8];	/**< by enum btrkit_usage_type */
	/** Data inside tree blocks, each block's once, symbolic links too: [PLAIN], [ZLIB], [LZO], [ZSTD]. */
	struct btrkit_usage_stored inlined[8];
	uint64_t reserved[4];	/**< 0 */
};

/** @see struct btrkit_usage_types. Since: 0.1 */
void btrkit_usage_get_types(const struct btrkit_usage *u, struct btrkit_usage_types *ret);

/** Flags of struct btrkit_usage_print_options. Since: 0.1 */
enum btrkit_usage_print_flags {
	BTRKIT_USAGE_BYTES = 1 << 0	/**< text has sizes in bytes, as the other forms always have */
};

/** How to print. Initialise with BTRKIT_USAGE_PRINT_OPTIONS_INIT. Since: 0.1 */
struct btrkit_usage_print_options {
	unsigned flags;				/**< BTRKIT_USAGE_BYTES */
	enum btrkit_format format;
	/**
	 * Told why the path of a subvolume, or what holds it, cannot be told: it is left out. A value other than 0, a
	 * negative errno, ends the work. NULL: the first such failure ends it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_USAGE_PRINT_OPTIONS_INIT BTRKIT_ZEROS

/** Turns the answer into bytes. One thread at a time. Since: 0.1 */
struct btrkit_usage_printer;

/**
 * Makes a printer. @p fs and @p u, which belongs to it, must stay while it is used.
 *
 * @param opts	NULL: all defaults
 * @param ret	to be freed by btrkit_usage_printer_finish()
 * @return 0; -EINVAL: unknown flags or format; -ENOMEM
 * Since: 0.1
 */
int btrkit_usage_printer_create(struct btrkit_fs *fs, const struct btrkit_usage *u,
				const struct btrkit_usage_print_options *opts, btrkit_write_fn write, void *ctx,
				struct btrkit_usage_printer **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Each owner, and the totals.
 *
 * @return 0; -ENOMEM; what the function of the options returned; without one -EUCLEAN, -EIO, -ENODATA; or what the
 *	   write function returned
 * Since: 0.1
 */
int btrkit_usage_printer_owners(struct btrkit_usage_printer *printer, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * What deleting exactly these owners frees, and which of them Linux would not delete.
 *
 * @param owners	@p n numbers, ascending, each once
 * @return as btrkit_usage_freed(), or as btrkit_usage_printer_owners()
 * Since: 0.1
 */
int btrkit_usage_printer_freed(struct btrkit_usage_printer *printer, const uint32_t *owners, size_t n,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What each pair has in common. @return 0; -ENOMEM; or what the write function returned. Since: 0.1 */
int btrkit_usage_printer_matrix(struct btrkit_usage_printer *printer, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** The data by how they are stored. @return 0, or what the write function returned. Since: 0.1 */
int btrkit_usage_printer_types(struct btrkit_usage_printer *printer) BTRKIT_MUST_CHECK;

/** Each data extent with its owners. @return 0, or what the write function returned. Since: 0.1 */
int btrkit_usage_printer_extents(struct btrkit_usage_printer *printer) BTRKIT_MUST_CHECK;

/**
 * Hands out the rest and frees the printer. NULL is allowed.
 *
 * @return 0, or what the write function returned
 * Since: 0.1
 */
int btrkit_usage_printer_finish(struct btrkit_usage_printer *printer);

struct btrkit_usage_paths;

/**
 * A page of HTML to look at, the whole of it: a map of where exclusive and shared space lies, what each subvolume has,
 * and a selection of subvolumes for which it tells, as btrkit_usage_freed() does and to the byte, what deleting them
 * would free. It stands alone: a browser shows it without a network, and it loads nothing. Equal filesystems give equal
 * pages.
 *
 * @param paths	of usage_paths.h: the map can then show directories, of which it has the 20,000 whose deletion frees
 *		most; NULL: it has none
 * @param opts	flags and format must be 0; NULL: all defaults
 * @param write	gets the page piece by piece; when another value than 0 is returned, what it got is no page
 * @return 0; -EINVAL: flags or a format; -ENOMEM; or as btrkit_usage_printer_owners()
 * Since: 0.1
 */
int btrkit_usage_html_print(struct btrkit_fs *fs, const struct btrkit_usage *u, const struct btrkit_usage_paths *paths,
			    const struct btrkit_usage_print_options *opts, btrkit_write_fn write, void *ctx,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
