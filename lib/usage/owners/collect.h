/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_COLLECT_H
#define BTRKIT_USAGE_COLLECT_H

#include "lib/usage/state.h"

/*
 * Returns whether unused sets should be dropped. May be called at any time, but usage_collect_sets() only while no
 * thread is running. It renumbers all sets.
 */
bool usage_sets_are_many(struct usage_work *w);
int usage_collect_sets(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
