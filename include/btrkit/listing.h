/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_LISTING_H
#define BTRKIT_LISTING_H

/**
 * @file
 * What is in directories, and what inodes are, printed as ls(1) and stat(1) do.
 *
 * Text is for people: in names bytes below 0x20, from 0x7f up and the backslash are escaped as in C; times are local.
 * JSON Lines have paths relative to the subvolume, without a slash at the start.
 */

#include <btrkit/device.h>

BTRKIT_BEGIN_DECLS

/**
 * Told of something at a path that could not be read, or that is left out: @p path has @p len bytes, which are valid
 * during the call only and not terminated. Returns 0 to go on with what comes next, or a negative errno that ends the
 * work.
 *
 * Since: 0.1
 */
typedef int (*btrkit_problem_fn)(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

/** Flags of struct btrkit_ls_options. Since: 0.1 */
enum btrkit_ls_flags {
	BTRKIT_LS_LONG = 1 << 0,	/**< type, mode, links, owners, size and time too */
	BTRKIT_LS_RECURSIVE = 1 << 1,	/**< directories below, and subvolumes */
	BTRKIT_LS_DIRECTORY = 1 << 2,	/**< directories themselves, and not what is in them */
	BTRKIT_LS_INODE = 1 << 3	/**< numbers of inodes too; JSON has them always */
};

/** What to print. Initialise with BTRKIT_LS_OPTIONS_INIT. Since: 0.1 */
struct btrkit_ls_options {
	unsigned flags;			/**< enum btrkit_ls_flags; unknown ones are refused */
	enum btrkit_format format;
	/** Told of what cannot be listed; the rest is. NULL: the first of it ends the list. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_LS_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Lists files and directories by their paths, files first, and what is in a directory in the order of the bytes of
 * the names.
 *
 * @param root	objectid of the subvolume that paths start from
 * @param paths	@p n of them; none is the subvolume's root directory
 * @return 0; -EINVAL: unknown flag or format; -ENOENT: no such subvolume; -ENOMEM; what @p write or a problem function
 *	   returned; -EUCLEAN, -EIO, -ENODATA: the subvolume's root directory cannot be read, or without such a function
 *	   anything; without one also -ENOENT: no such path
 * Since: 0.1
 */
int btrkit_ls_print(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		    const struct btrkit_ls_options *opts, btrkit_write_fn write, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What to print. Initialise with BTRKIT_STAT_OPTIONS_INIT. Since: 0.1 */
struct btrkit_stat_options {
	unsigned flags;			/**< 0: none are known */
	enum btrkit_format format;
	/** Told of what cannot be read; the rest is. NULL: the first of it ends the work. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_STAT_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Prints all that is known of files: what the inode says, extended attributes, of what kinds a regular file's extents
 * are, and how many bytes others have as well.
 *
 * @param root	objectid of the subvolume that paths start from
 * @param paths	@p n of them
 * @param opts	NULL: all defaults
 * @return as btrkit_ls_print()
 * Since: 0.1
 */
int btrkit_stat_print(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		      const struct btrkit_stat_options *opts, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
