/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPACE_TREE_H
#define BTRKIT_CHECK_SPACE_TREE_H

#include "lib/check/state.h"

void space_check_tree(struct check *c, const struct tree_root *root);

#endif
