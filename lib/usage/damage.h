/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_DAMAGE_H
#define BTRKIT_USAGE_DAMAGE_H

#include "lib/usage/state.h"

/* Returns whether damage in this block or item was reported before. */
bool usage_was_reported(const struct btrkit_usage *u, const struct btrkit_error *what);
/*
 * Reports to the caller that something is unreadable or contradictory, once per place. -ENOMEM is returned, not
 * reported.
 * @return 0: continue without it; <0
 */
int usage_damage(struct usage_work *w, int ret, const struct btrkit_error *what,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reports damage in something that the owners of @set have; the message names them. */
int usage_damage_of(struct usage_work *w, uint32_t set, int ret, struct btrkit_error *what,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
