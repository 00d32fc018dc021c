/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CACHE_V1_FILES_H
#define BTRKIT_SPACE_CACHE_V1_FILES_H

/*
 * The files of the v1 cache, which are inodes in the root tree. The root tree has no other regular files, so files
 * without a header also belong to the cache. Linux leaves those behind after a crash between two commits.
 */

#include "lib/tree/cursor.h"

struct v1_files {
	uint64_t foreign; /* the last inode in the root tree that is not a regular file, or 0 */
};

/* Whether the cursor's item belongs to such a file. Must be called for the items of an inode in their order. */
bool v1_files_has(struct v1_files *v, const struct cursor *c);

/* Size of the v1 cache. */
struct v1_count {
	uint64_t headers;
	uint64_t files;
	uint64_t extents, bytes; /* allocated for the files */
	uint64_t blocks;	 /* leaves of the root tree with items of the cache */
};
int v1_count(struct btrkit_fs *fs, struct v1_count *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
