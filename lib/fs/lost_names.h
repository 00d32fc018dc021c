/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_LOST_NAMES_H
#define BTRKIT_FS_LOST_NAMES_H

/*
 * Each name is stored three times: as DIR_ITEM and DIR_INDEX of its directory, and as INODE_REF or INODE_EXTREF of its
 * inode. This finds names whose references are in lost blocks by the entries of directories.
 */

#include "lib/tree/cursor.h"

/*
 * Finds the index that name @name of @inode in directory @dir has by its INODE_REF or INODE_EXTREF.
 * @return 0; 1: there is no such reference; <0: it may be in what cannot be read
 */
int inode_name_index(struct btrkit_fs *fs, const struct tree_root *root, uint64_t inode, uint64_t dir,
		     const void *name, size_t len, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A directory entry. The name is valid only during the call. */
struct lost_name {
	uint64_t inode, dir;
	const uint8_t *name;
	size_t len;
};

/* Returns 0, or what stops the search. */
typedef int (*lost_name_fn)(void *ctx, const struct lost_name *name);

/*
 * Reads all of the tree, and calls @fn for each entry whose reference may be lost: those that lead to @inode or, if it
 * is 0, to any directory. A name with several entries comes once.
 * @return 0; what @fn returned; -ENOMEM
 */
int lost_names_each(struct btrkit_fs *fs, const struct tree_root *root, uint64_t inode, lost_name_fn fn, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
