/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_SUBVOLUME_H
#define BTRKIT_FS_SUBVOLUME_H

#include <btrkit/subvolume.h>

#include "lib/tree/cursor.h"

/* A subvolume that is in use: the top level, or one that is not being deleted. */
struct subvolume {
	struct tree_root root;
	struct root_item item;
};

/* @return 0; -ENOENT: no tree of files has that number, or it is being deleted; <0 */
int subvolume_get(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of one that need not be there. @return 0; 1: there is none, of which nothing is told; <0 */
int subvolume_try(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The first subvolume with a number above @after (0: the first of all), in ascending order.
 * @return 0, 1 there is none, <0
 */
int subvolume_next(struct btrkit_fs *fs, uint64_t after, struct subvolume *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The one that is mounted when nothing else is asked for. @return 0; -ENOENT: none is named; <0 */
int subvolume_default(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The subvolume that @id lies in; 0: none. @c is a cursor in the root tree, and stands on the item that says so. */
int subvolume_parent(struct cursor *c, uint64_t id, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the subvolume @id lies in directory @dir of tree @parent under that name. An entry alone does not say so: a
 * snapshot has the entries of the subvolumes that are below its original.
 * @return 0 it does, 1 it does not, <0
 */
int subvolume_lies_at(struct btrkit_fs *fs, uint64_t id, uint64_t parent, uint64_t dir, const void *name, size_t len,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
