/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_H
#define BTRKIT_USAGE_PATHS_H

/**
 * @file
 * Space usage by directory: the size of the files below each directory, and what deleting it would free.
 *
 * The directories of all subvolumes form one forest. As in a mounted filesystem, the root directory of a subvolume is
 * below the directory that contains the subvolume, and so everything is below the top level. A subvolume in no
 * directory that can be found has a tree of its own. Subvolumes that are being deleted are not included.
 */

#include <btrkit/usage.h>

BTRKIT_BEGIN_DECLS

/** The directories. Any number of threads may read them at once. Since: 0.1 */
struct btrkit_usage_paths;

/** Flags of struct btrkit_usage_paths_options. Since: 0.1 */
enum btrkit_usage_paths_flags {
	BTRKIT_USAGE_PATHS_LIMITED = 1 << 0	/**< only directories down to @c depth */
};

/** Options of btrkit_usage_paths_load(). Initialise with BTRKIT_USAGE_PATHS_OPTIONS_INIT. Since: 0.1 */
struct btrkit_usage_paths_options {
	unsigned flags;		/**< enum btrkit_usage_paths_flags; unknown ones are refused */
	/**
	 * With BTRKIT_USAGE_PATHS_LIMITED: steps below the root directory of a subvolume, 0 being that directory
	 * itself. Deeper directories are counted in the last one above them. 4096 is always the limit.
	 */
	uint32_t depth;
	unsigned threads;	/**< maximum number; 0: one per CPU */
	/**
	 * Maximum memory for the locations of shared data and for sorting them, in bytes; 0: 128 MiB. If it is not
	 * enough, all files are read again for the rest. At least 64 bytes are used for each directory in the result.
	 */
	uint64_t range_memory;
	/**
	 * Reports progress, from one thread at a time; the total may change. A value other than 0, a negative errno,
	 * stops the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * Called for what cannot be read or is inconsistent, from one thread at a time. The result then lacks what is
	 * there. Blocks that were reported before, also when @c u was loaded, are skipped silently. A value other than
	 * 0, a negative errno, stops the work. NULL: the first such failure stops it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_USAGE_PATHS_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Determines the usage of all directories, for which it reads the items of all files of all subvolumes. Other threads
 * may read @p fs meanwhile, but must not change it.
 *
 * Memory: 80 bytes and the name for each directory of each subvolume; 80 more for each directory in the result, which
 * keeps these and all names; the locations of shared data; and a few MiB per thread. Growing arrays may reserve as much
 * memory again without touching it.
 *
 * @param u	an up-to-date result for @p fs. Other threads may read it meanwhile, but only one at a time may pass it
 *		to this function
 * @param ret	receives the directories; free them with btrkit_usage_paths_free(), before or after @p u and @p fs
 * @return 0; -EINVAL: unknown flags; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENXIO; -ENOMEM; or what a
 *	   callback in @p opts returned
 * Since: 0.1
 */
int btrkit_usage_paths_load(struct btrkit_fs *fs, struct btrkit_usage *u, const struct btrkit_usage_paths_options *opts,
			    struct btrkit_usage_paths **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Frees the directories. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_usage_paths *btrkit_usage_paths_free(struct btrkit_usage_paths *p);

/** A directory, including everything below it, and nested subvolumes. Since: 0.1 */
struct btrkit_usage_path {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	size_t parent;		/**< number of the directory that contains it; SIZE_MAX: none */
	size_t end;		/**< the directories below it have the numbers between its own and this */
	uint32_t depth;		/**< steps below the root directory of its subvolume, which has 0 */
	/**
	 * Name in its parent, not terminated; empty if it has none. For the root directory of a subvolume, it is
	 * preceded by the names of directories in between that are not in the result, each followed by a slash. Owned
	 * by the handle.
	 */
	const char *name;
	size_t name_len;
	/**
	 * Bytes of files with disk space, uncompressed, without inline data. A file with several names counts once, at
	 * the name that a walk in readdir order meets first.
	 */
	uint64_t total;
	uint64_t unshared;	/**< of these, bytes in extents that FIEMAP does not call shared */
	/** The size of the rest if each byte of the address space that FIEMAP reports for it is counted once. */
	uint64_t set_shared;
	/**
	 * Bytes on disk, one copy, of the data extents that only files refer to whose names are all below this
	 * directory: the data that deleting it with all its contents would free.
	 */
	uint64_t frees;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Returns the number of directories. They are numbered from 0 as a walk in readdir order meets them, parents first. The
 * first one is the top level, if it can be read.
 *
 * @return number of directories
 * Since: 0.1
 */
size_t btrkit_usage_paths_num(const struct btrkit_usage_paths *p);

/** Returns directory number @p i in @p ret. Since: 0.1 */
void btrkit_usage_paths_get(const struct btrkit_usage_paths *p, size_t i, struct btrkit_usage_path *ret);

/**
 * Returns the number of the root directory of a subvolume.
 *
 * @param ret	receives the number
 * @return 0; -ENOENT: no such subvolume, or its root directory cannot be read
 * Since: 0.1
 */
int btrkit_usage_paths_find(const struct btrkit_usage_paths *p, uint64_t root, size_t *ret) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
