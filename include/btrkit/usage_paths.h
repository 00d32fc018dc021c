/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_H
#define BTRKIT_USAGE_PATHS_H

/**
 * @file
 * Where the space of usage.h lies: what the files below each directory come to, and what deleting it would free.
 *
 * The directories of all subvolumes are one forest. The top of a subvolume is below the directory that it lies in, as
 * it is where the filesystem is mounted, so the top level has everything below it; a subvolume that lies in no
 * directory that can be found has a tree of its own. Subvolumes that are being deleted are not there.
 */

#include <btrkit/usage.h>

BTRKIT_BEGIN_DECLS

/** The directories. It may be read by many threads at once. Since: 0.1 */
struct btrkit_usage_paths;

/** Flags of struct btrkit_usage_paths_options. Since: 0.1 */
enum btrkit_usage_paths_flags {
	BTRKIT_USAGE_PATHS_LIMITED = 1 << 0	/**< only directories of at most @c depth */
};

/** How to look. Initialise with BTRKIT_USAGE_PATHS_OPTIONS_INIT. Since: 0.1 */
struct btrkit_usage_paths_options {
	unsigned flags;		/**< enum btrkit_usage_paths_flags */
	/**
	 * With BTRKIT_USAGE_PATHS_LIMITED: 0 is the top of each subvolume. What lies deeper counts above it, and what
	 * lies deeper than 4096 in any case.
	 */
	uint32_t depth;
	unsigned threads;	/**< at most so many; 0: as many as there are CPUs */
	/**
	 * Bytes that places of shared data may take, and their sorting; 0: 128 MiB. When they would take more, all
	 * files are read once more for what there was no room for. They take at least 64 bytes for each directory in
	 * the answer.
	 */
	uint64_t range_memory;
	/**
	 * A share of the work is done; what the total is may change on the way. Called by one thread at a time. A value
	 * other than 0, a negative errno, ends the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	/**
	 * Told of what could not be read or contradicts itself, by one thread at a time: the answer is then without
	 * what lies there. A block of which that was told before, when @c u was loaded too, is passed over in silence.
	 * A value other than 0, a negative errno, ends the work. NULL: the first of them ends it.
	 */
	btrkit_damage_fn damage;
	void *damage_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_USAGE_PATHS_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Reads all files of all subvolumes. @p fs may be used for reading by others meanwhile, and not be changed.
 *
 * Takes 80 bytes and the name for each directory of each subvolume, and 80 more for each in the answer, which keeps
 * these and all names; the places of shared data; and a few MiB a thread. Lists that grow may have as much again of
 * memory that is not touched.
 *
 * @param u	of this filesystem, as it is now; may be read by others meanwhile, but be given to this function by
 *		one thread at a time
 * @param opts	NULL: all defaults
 * @param ret	to be freed by btrkit_usage_paths_free(), in any order with @p u and @p fs
 * @return 0; -EINVAL: unknown flags; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENODATA; -ENOMEM; or what a
 *	   function of @p opts returned
 * Since: 0.1
 */
int btrkit_usage_paths_load(struct btrkit_fs *fs, struct btrkit_usage *u, const struct btrkit_usage_paths_options *opts,
			    struct btrkit_usage_paths **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Frees the directories. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_usage_paths *btrkit_usage_paths_free(struct btrkit_usage_paths *p);

/** A directory, and all that is below it, other subvolumes too. Since: 0.1 */
struct btrkit_usage_path {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	size_t parent;		/**< number of the directory that it is in; SIZE_MAX: none */
	size_t end;		/**< those below it are the numbers between its own and this one */
	uint32_t depth;		/**< steps from the top of its subvolume, which is 0 */
	/**
	 * Name in its parent, of any bytes, not terminated; empty where there is no parent. That of the top of a
	 * subvolume begins with those of the directories between that are not in the answer, each with a slash behind
	 * it. Belongs to the handle.
	 */
	const char *name;
	size_t name_len;
	/**
	 * Bytes of files that have a place on the devices, uncompressed, inline data apart; a file that has several
	 * names counts once, at the first that a walk in the order of readdir meets.
	 */
	uint64_t total;
	uint64_t unshared;	/**< of these, in extents for which FIEMAP does not say SHARED */
	/** What the rest comes to when each byte of the address space that FIEMAP names for it counts once. */
	uint64_t set_shared;
	/**
	 * Bytes on the devices, one copy, of the data extents that nothing refers to but files all names of which are
	 * below the directory: what deleting it, with everything in it, would free of data.
	 */
	uint64_t frees;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * How many directories there are. They are numbered from 0 as a walk in the order of readdir meets them, parents
 * first; the first is the top level, if it can be read.
 *
 * @return their number
 * Since: 0.1
 */
size_t btrkit_usage_paths_num(const struct btrkit_usage_paths *p);

/** Directory number @p i. Since: 0.1 */
void btrkit_usage_paths_get(const struct btrkit_usage_paths *p, size_t i, struct btrkit_usage_path *ret);

/**
 * The number of the top of a subvolume.
 *
 * @param root	its objectid
 * @return 0; -ENOENT: there is no such subvolume, or its top cannot be read
 * Since: 0.1
 */
int btrkit_usage_paths_find(const struct btrkit_usage_paths *p, uint64_t root, size_t *ret) BTRKIT_MUST_CHECK;

/**
 * Each directory with its path.
 *
 * @param paths	of the same answer as the printer
 * @return 0; -ENOMEM; or what the write function returned
 * Since: 0.1
 */
int btrkit_usage_printer_paths(struct btrkit_usage_printer *printer, const struct btrkit_usage_paths *paths,
			       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
