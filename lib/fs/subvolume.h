/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_SUBVOLUME_H
#define BTRKIT_FS_SUBVOLUME_H

#include <btrkit/subvolume.h>

#include "lib/tree/cursor.h"

/* A live subvolume, which is not being deleted, or the top level. */
struct subvolume {
	struct tree_root root;
	struct root_item item;
};

/* Finds a subvolume. @return 0; -ENOENT: there is no file tree with that id, or it is being deleted; <0 */
int subvolume_get(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like subvolume_get(), for one that need not be there. @return 0; 1: there is none, of which nothing is told; <0 */
int subvolume_try(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds the subvolume with the lowest id above @after (0: the first).
 * @return 0; 1: there is none; <0
 */
int subvolume_next(struct btrkit_fs *fs, uint64_t after, struct subvolume *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like subvolume_next(), skipping what cannot be read; @lost also gets the error of a root item. */
int subvolume_next_around(struct btrkit_fs *fs, uint64_t after, struct subvolume *ret, cursor_lost_fn lost, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In path.c: */
/* Finds the id of the default subvolume. @return 0; -ENOENT: there is none; <0 */
int subvolume_default(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In subvolume.c: */
/* Finds the parent of subvolume @id; 0: none. @c is a cursor in the root tree and is left at the back reference. */
int subvolume_parent(struct cursor *c, uint64_t id, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Like subvolume_parent(), also if the back reference cannot be read: the cursor is then left at the reference that the
 * parent has, for which the whole tree is searched. For those who only read.
 */
int subvolume_parent_either(struct cursor *c, uint64_t id, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Checks whether subvolume @id is attached to directory @dir of tree @parent with that name. The directory entry alone
 * does not say so, because a snapshot also has the entries for subvolumes nested in its source.
 * @return 0: it is; 1: it is not; <0
 */
int subvolume_lies_at(struct btrkit_fs *fs, uint64_t id, uint64_t parent, uint64_t dir, const void *name, size_t len,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like subvolume_lies_at(), by the back reference if the reference cannot be read. For those who only read. */
int subvolume_lies_at_either(struct btrkit_fs *fs, uint64_t id, uint64_t parent, uint64_t dir, const void *name,
			     size_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
