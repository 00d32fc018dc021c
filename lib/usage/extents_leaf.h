/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_EXTENTS_LEAF_H
#define BTRKIT_USAGE_EXTENTS_LEAF_H

#include "lib/usage/extents.h"

/* Adds the blocks and extents of a leaf to the lists of the batch. */
int usage_extents_leaf(struct usage_extents_batch *b, const uint8_t *leaf, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Completes the last extent: it has no more references in this batch. */
void usage_extents_end(struct usage_extents_batch *b);

#endif
