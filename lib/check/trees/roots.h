/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_ROOTS_H
#define BTRKIT_CHECK_ROOTS_H

#include "lib/check/state.h"

/* Finds a tree's root by objectid (the last one, if there are several), or returns NULL. */
const struct check_root *check_find_root(const struct check *c, uint64_t id);
/* Checks the root items; fills in roots. */
int check_roots(struct check *c);

#endif
