/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_WALK_H
#define BTRKIT_USAGE_WALK_H

#include "lib/usage/state.h"

/* Walks all file trees from the roots down, level by level. */
int usage_walk(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
