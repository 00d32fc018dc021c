/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_SUM_H
#define BTRKIT_USAGE_SUM_H

#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* Computes the sums by set and by owner. */
int usage_sum(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_extent_describe(const struct btrkit_usage *u, const struct usage_extent *e, struct btrkit_usage_extent *ret);
void usage_space_add(struct btrkit_usage_space *to, const struct btrkit_usage_space *more);

#endif
