/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_ROOTS_H
#define BTRKIT_USAGE_ROOTS_H

#include "lib/usage/state.h"

/* Finds the owners in the root tree and numbers them. */
int usage_find_roots(struct usage_work *w, struct tree_root *extent_tree, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_name_owners(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
