/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_LISTING_H
#define BTRKIT_LISTING_H

/**
 * @file
 * Listings of directories and inodes, as by ls(1) and stat(1).
 *
 * In text, the bytes of names below 0x20 and above 0x7e, and backslashes, are escaped as in C, and times are local.
 * Paths in JSON Lines are relative to the subvolume, without a leading slash.
 */

#include <btrkit/device.h>

BTRKIT_BEGIN_DECLS

/**
 * Reports something that could not be read or was left out. @p path has @p len bytes, is not terminated, and is valid
 * only during the call, as is @p what. Returns 0 to continue, or a negative errno that stops the work.
 *
 * Since: 0.1
 */
typedef int (*btrkit_problem_fn)(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

/** Flags of struct btrkit_ls_options. Since: 0.1 */
enum btrkit_ls_flags {
	BTRKIT_LS_LONG = 1 << 0,	/**< also type, mode, links, owner, group, size and time */
	BTRKIT_LS_RECURSIVE = 1 << 1,	/**< also the contents of directories and subvolumes below */
	BTRKIT_LS_DIRECTORY = 1 << 2,	/**< directories themselves instead of their contents */
	BTRKIT_LS_INODE = 1 << 3	/**< also inode numbers, which JSON always has */
};

/** Options of btrkit_ls_print(). Initialise with BTRKIT_LS_OPTIONS_INIT. Since: 0.1 */
struct btrkit_ls_options {
	unsigned flags;			/**< enum btrkit_ls_flags; unknown ones are refused */
	enum btrkit_format format;
	/** Called for each path that cannot be listed; the rest is listed. NULL: the first one stops the listing. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_LS_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Lists files and directories, files first. The contents of a directory are sorted by the bytes of their names.
 *
 * @param root	objectid of the subvolume in which the paths start
 * @param paths	@p n paths, terminated
 * @param n	number of paths; 0: the root directory of the subvolume
 * @return 0; -EINVAL: unknown flag or format; -ENOENT: no such subvolume, or without a problem callback no such path;
 *	   what @p write or the problem callback returned; -ENOMEM; -EUCLEAN, -EIO, -ENXIO: the root directory of the
 *	   subvolume cannot be read, or without a problem callback something else
 * Since: 0.1
 */
int btrkit_ls_print(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		    const struct btrkit_ls_options *opts, btrkit_write_fn write, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Options of btrkit_stat_print(). Initialise with BTRKIT_STAT_OPTIONS_INIT. Since: 0.1 */
struct btrkit_stat_options {
	unsigned flags;			/**< must be 0 */
	enum btrkit_format format;
	/** Called for whatever cannot be read; the rest is printed. NULL: the first such failure stops the work. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_STAT_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Prints everything known about files: the inode, its extended attributes, the types of its extents, and how many of
 * its bytes are shared.
 *
 * @param root	objectid of the subvolume in which the paths start
 * @param paths	@p n paths, terminated
 * @param n	number of paths
 * @return as btrkit_ls_print(); -EBUSY: a transaction is open
 * Since: 0.1
 */
int btrkit_stat_print(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		      const struct btrkit_stat_options *opts, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
