/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_TREE_H
#define BTRKIT_CHECK_SPAN_TREE_H

#include "lib/check/files/span.h"
#include "lib/check/state.h"

/*
 * Checks the first and the last inode and the names of a whole tree. Not for trees that are partly dropped. Not
 * thread-safe; called for the trees in order.
 * @return whether nothing is lost or in doubt, and the sums of names cancel out
 */
bool span_tree(struct check *c, const struct check_root *root, const struct span *all);

#endif
