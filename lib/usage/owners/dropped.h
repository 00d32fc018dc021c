/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_DROPPED_H
#define BTRKIT_USAGE_DROPPED_H

#include "lib/usage/owners/reach.h"
#include "lib/usage/state.h"

/* Owners of what subvolumes being dropped have left: see lib/sweep/drop.h. */

/* Adds a block on the path to drop_progress of root number @root. */
int usage_add_dropped(struct usage_work *w, const struct usage_pointer *p, size_t root,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads such blocks of a level, and adds the owner to their remaining children. */
int usage_read_dropped(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the owners to the blocks on the paths themselves, after all levels. */
int usage_own_dropped(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
