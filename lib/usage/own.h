/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_OWN_H
#define BTRKIT_USAGE_OWN_H

#include "lib/usage/state.h"

/* Reaches the blocks of the filesystem's own trees, if parts of the extent tree are unreadable. */
int usage_own_trees(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
