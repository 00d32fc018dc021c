/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_PATH_H
#define BTRKIT_FS_PATH_H

/* Translates paths to inodes and back. */

#include "lib/tree/filesystem.h"

struct cursor;

/* An inode of a subvolume. */
struct inode_place {
	struct tree_root root;
	uint64_t inode;
};

/*
 * Follows @path from the root directory of @root, also into other subvolumes, and through symbolic links as if the
 * subvolume @root was mounted as the root directory of a system: for example, a link to /etc leads to "etc" in @root,
 * and so does one to ../../etc in a directory there. ".." leads to the directory above: behind a link to the one above
 * its target, from the top of a nested subvolume to the directory that it lies in, and from the root directory of @root
 * nowhere else. Empty components, "." and a leading slash are allowed. A component followed by a slash must be a
 * directory, or a link to one. @last: also follow a link that is the last component. A name whose DIR_ITEM cannot be
 * read is found by its DIR_INDEX. Operations of a transaction have their own lookup, which refuses such a name.
 * @return 0; -ENOENT; -ENOTDIR; -ELOOP; <0
 */
int path_resolve(struct btrkit_fs *fs, const struct tree_root *root, const char *path, bool last,
		 struct inode_place *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Moves from @at to its child @name by its DIR_ITEM, and by nothing else. @return 0; 1: there is none; <0 */
int path_step(struct btrkit_fs *fs, struct inode_place *at, const char *name, size_t len,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Constructs paths of inodes in one subvolume. Caches paths of directories within limits. */
struct path_namer;

/* In namer.c: */
int path_namer_create(struct btrkit_fs *fs, const struct tree_root *root, struct path_namer **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct path_namer *path_namer_destroy(struct path_namer *n);

/*
 * From now on, directories whose INODE_REF is lost are named by the entries that lead to them. For that, the whole tree
 * is read when the first of them is met. Of more than 8192 of them, the others stay without a name.
 */
void path_namer_go_around(struct path_namer *n);

/*
 * Constructs the path, relative to the subvolume, of the name @name in directory @parent. The string belongs to the
 * namer and is valid until the next call.
 * @return 0; -EUCLEAN: a directory does not lead to the root; <0
 */
int path_namer_path(struct path_namer *n, uint64_t parent, const void *name, size_t name_len, const char **path,
		    size_t *path_len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
