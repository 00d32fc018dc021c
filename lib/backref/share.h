/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_H
#define BTRKIT_BACKREF_SHARE_H

/*
 * Determines whether Linux reports a data extent of a file as shared. Extent items are read in batches, in the order of
 * their addresses: for one leaf of the file's tree, or if its extents are in quite another order, for many. The results
 * for the blocks between the root and the leaf are cached while neighbouring leaves are visited.
 * The rule itself is that of shared.h.
 */

#include "lib/backref/share_state.h"

/* share_release() is allowed in any case. @return 0; -ENOENT: no extent tree; <0 */
int share_init(struct share_ctx *s, struct btrkit_fs *fs, const struct tree_root *root, uint64_t last_snapshot,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void share_release(struct share_ctx *s);

/* Starts with a new file. */
void share_new_file(struct share_ctx *s);

/*
 * The listing arrives at the leaf of @c: finds out whether the leaf can be reached from another tree. If not, looks up
 * the references of its data extents from the current item on, with @one_inode only those of the current inode; and
 * perhaps those of the next leaves, for which this function must be called nevertheless.
 */
int share_enter_leaf(struct share_ctx *s, const struct cursor *c, bool one_inode, bool *shared,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds out whether the data extent of @fe, the decoded current item of @c, is shared. @leaf_shared is the result of
 * share_enter_leaf().
 */
int share_extent_shared(struct share_ctx *s, const struct cursor *c, const struct file_extent *fe, bool leaf_shared,
			bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
