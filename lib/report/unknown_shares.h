/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNKNOWN_SHARES_H
#define UNKNOWN_SHARES_H

#include <btrkit/error.h>
#include <btrkit/fiemap.h>

/*
 * Extents of which it is not known whether they are shared. A root of the extent tree that cannot be read is a reason
 * for all files, so a reason is told once for all files in a row that it concerns. Starts zeroed but for @sink.
 */
struct unknown_shares {
	const struct btrkit_fiemap_sink *sink;
	struct btrkit_error why;
	uint64_t extents, files;	/* that wait to be told for this reason */
	struct btrkit_fiemap_file file; /* the first of them, without its path */
	char *path;
	bool stopped; /* by the sink */
};

/* Adds @extents of @file. If the reason is another one than before, that one is told first. @return 0; <0 */
int unknown_shares_add(struct unknown_shares *u, const struct btrkit_fiemap_file *file, uint64_t extents,
		       const struct btrkit_error *why, struct btrkit_error *err);
/*
 * Tells what waits, if @ret says that the listing went well, and releases all: one file is told with its path, several
 * with their number. @return @ret; <0: the sink's
 */
int unknown_shares_end(struct unknown_shares *u, int ret, struct btrkit_error *err);

#endif
