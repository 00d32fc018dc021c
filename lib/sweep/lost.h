/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_LOST_H
#define BTRKIT_SWEEP_LOST_H

/*
 * What lies in blocks that could not be read, as ranges of objectids. In the extent tree these are addresses: an extent
 * in such a range may exist although nobody saw it.
 */

#include "lib/base/array.h"

struct sweep_lost {
	uint64_t first, last; /* inclusive */
};

/* Adds a range to @lost, an array of struct sweep_lost. @return 0; -ENOMEM */
int sweep_lost_add(struct array *lost, uint64_t first, uint64_t last, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Sorts the ranges, as sweep_lost_has() needs them. They do not overlap. */
void sweep_lost_sort(struct array *lost);
/* Returns whether one of the ranges contains @objectid. */
bool sweep_lost_has(const struct array *lost, uint64_t objectid);

#endif
