/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CONVERT_V1_FILES_H
#define BTRKIT_CONVERT_V1_FILES_H

/*
 * The files of the v1 cache, which are inodes in the root tree. The root tree has no other regular files, so a file
 * that no header names is one of them too: Linux leaves such behind when it dies between two commits.
 */

#include "lib/tree/cursor.h"

struct v1_files {
	uint64_t foreign; /* an inode in the root tree that is no regular file, or 0 */
};

/* Whether the cursor's item is of such a file; the items of an inode must be asked about in their order. */
bool v1_files_has(struct v1_files *v, const struct cursor *c);

/* What there is of the v1 cache. */
struct v1_count {
	uint64_t headers;
	uint64_t files;
	uint64_t extents, bytes; /* allocated for the files */
	uint64_t blocks;	 /* leaves of the root tree that all this lies in */
};
int v1_count(struct btrkit_fs *fs, struct v1_count *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
