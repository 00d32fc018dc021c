/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_PATH_H
#define BTRKIT_FS_PATH_H

/* Names to inodes and back. */

#include "lib/tree/filesystem.h"

struct cursor;

/* An inode of a subvolume. */
struct inode_place {
	struct tree_root root;
	uint64_t inode;
};

/*
 * Follows @path from the root directory of @root, into other subvolumes where it leads there. Empty components, "." and
 * a leading slash are allowed; ".." and symbolic links are not followed. What a slash follows must be a directory.
 * @return 0; -ENOENT; -ENOTDIR; <0
 */
int path_resolve(struct btrkit_fs *fs, const struct tree_root *root, const char *path, struct inode_place *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Steps from @at to its child @name. @return 0; 1: there is none; <0 */
int path_step(struct btrkit_fs *fs, struct inode_place *at, const char *name, size_t len,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Makes paths of the inodes of one subvolume; keeps the paths of directories, up to a bound. */
struct path_namer;

int path_namer_create(struct btrkit_fs *fs, const struct tree_root *root, struct path_namer **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct path_namer *path_namer_destroy(struct path_namer *n);

/*
 * The path of what is called @name in directory @parent, relative to the subvolume. The string belongs to the namer and
 * holds until the next call.
 * @return 0; -EUCLEAN: a directory without a way to the root; <0
 */
int path_namer_path(struct path_namer *n, uint64_t parent, const void *name, size_t name_len, const char **path,
		    size_t *path_len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
