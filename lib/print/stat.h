/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_STAT_H
#define BTRKIT_PRINT_STAT_H

/* Prints inodes, as stat(1) does; names and paths as in ls.h. */

#include <btrkit/inode.h>

/** Options of print_stat(). Initialise with PRINT_STAT_OPTIONS_INIT. */
struct print_stat_options {
	unsigned flags;			/**< must be 0 */
	enum btrkit_format format;
	/** Called for whatever cannot be read; the rest is printed. NULL: the first such failure stops the work. */
	btrkit_problem_fn problem;
	void *problem_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define PRINT_STAT_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Prints everything known about files: the inode, its extended attributes, the types of its extents, and how many of
 * its bytes are shared.
 *
 * @param root	objectid of the subvolume in which the paths start
 * @param paths	@p n paths, terminated
 * @param n	number of paths
 * @return as print_ls(); -EBUSY: a transaction is open
 */
int print_stat(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n,
		      const struct print_stat_options *opts, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
