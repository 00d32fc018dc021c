/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PARTIAL_H
#define BTRKIT_USAGE_PARTIAL_H

#include "lib/usage/owners/reach.h"
#include "lib/usage/state.h"

/*
 * Subvolumes that are being deleted (dropped.c): add a block on the path to drop_progress of root number @root; read
 * such blocks of a level and reach their remaining children; and finally, reach the blocks themselves.
 */
int usage_add_dropped(struct usage_work *w, const struct usage_pointer *p, size_t root,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_read_dropped(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_own_dropped(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
