/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_LS_H
#define BTRKIT_PRINT_LS_H

/*
 * Prints directories, as ls(1) does.
 *
 * In text, the bytes of names below 0x20 and above 0x7e, and backslashes, are escaped as in C, and times are local.
 * Paths in JSON Lines are relative to the subvolume, without a leading slash.
 */

#include <btrkit/inode.h>

/** Flags of struct print_ls_options. */
enum print_ls_flags {
	PRINT_LS_LONG = 1 << 0,	/**< also type, mode, links, owner, group, size and time */
	PRINT_LS_RECURSIVE = 1 << 1,	/**< also the contents of directories and subvolumes below */
	PRINT_LS_DIRECTORY = 1 << 2,	/**< directories themselves instead of their contents */
	PRINT_LS_INODE = 1 << 3	/**< also inode numbers, which JSON always has */
};

/** Options of print_ls(). Initialise with PRINT_LS_OPTIONS_INIT. */
struct print_ls_options {
	unsigned flags;			/**< enum print_ls_flags; unknown ones are refused */
	enum btrkit_format format;
	/** Called for each path that cannot be listed; the rest is listed. NULL: the first one stops the listing. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define PRINT_LS_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Lists files and directories, files first. The contents of a directory are sorted by the bytes of their names.
 *
 * @param root	objectid of the subvolume in which the paths start
 * @param paths	@p n paths, terminated
 * @param n	number of paths; 0: the root directory of the subvolume
 * @return 0; -EINVAL: unknown flag or format; -ENOENT: no such subvolume, or without a problem callback no such path;
 *	   what @p write or the problem callback returned; -ENOMEM; -EUCLEAN, -EIO, -ENXIO: the root directory of the
 *	   subvolume cannot be read, or without a problem callback something else
 */
int print_ls(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		    const struct print_ls_options *opts, btrkit_write_fn write, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
