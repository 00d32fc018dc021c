/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_PATH_H
#define BTRKIT_BACKREF_SHARE_PATH_H

/* Whether leaves of the subvolume are shared, by the blocks between them and the root. */

#include "lib/backref/share_state.h"

/*
 * Finds out whether the leaf of @c can be reached from another tree. @path: results for the blocks of an earlier leaf,
 * to be reused and updated
 */
int share_path(struct share_ctx *s, struct share_path *path, const struct cursor *c, bool *shared,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Answers that for a leaf of the listing, or ahead of it. In a tree without snapshots, no leaf is shared. */
int share_leaf(struct share_ctx *s, const struct cursor *c, bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
