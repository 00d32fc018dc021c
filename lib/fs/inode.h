/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_INODE_H
#define BTRKIT_FS_INODE_H

#include <btrkit/inode.h>

#include "lib/format/items/files/inode.h"
#include "lib/tree/cursor.h"

/*
 * Initializes a cursor in subvolume @root at the inode item of @inode. Call cursor_release() even after a failure.
 * @return 0; -ENOENT: no such subvolume or inode; <0
 */
int inode_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct cursor *c, struct inode_item *item,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads the inode item of @inode in the tree of @c, and leaves the cursor there. @return 0; -ENOENT; <0 */
int inode_read(struct cursor *c, uint64_t inode, struct inode_item *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Converts an inode item for the caller. */
void inode_describe(uint64_t root, uint64_t number, const struct inode_item *i, struct btrkit_inode *ret);

/* Calls a function for each file extent item of a regular file that begins at @from or later. */
int inode_extents_from(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t from, btrkit_file_extent_fn fn,
		       void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
