/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_CIRCLES_H
#define BTRKIT_CHECK_CIRCLES_H

#include "lib/check/files/leaves.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"

/*
 * Reports cycles of directories in a tree whose sums of names cancel out. @top: the tree's root block;
 * @dirs: see struct span. Not thread-safe.
 */
void check_circles(const struct leaves *l, const struct check_root *root, const struct check_block *top, uint64_t dirs);

#endif
