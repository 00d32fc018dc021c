/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_ANCESTORS_H
#define BTRKIT_BACKREF_ANCESTORS_H

/* Finds out from back references which trees reach a tree block. */

#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"

/*
 * Calls @visit for every reference of the extent at @bytenr, inline and keyed, in the same order as Linux does. If
 * @visit returns a value other than 0, stop and return that value. Without an extent item there are no references.
 */
typedef int (*ref_visit_fn)(void *ctx, const struct extent_item *extent, const struct extent_ref *ref);
int extent_for_each_ref(struct cursor *extents, uint64_t bytenr, ref_visit_fn visit, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Sets *yes if the tree block at @bytenr can be reached from a tree other than @root by any chain of back references.
 * Relocation trees do not count, because their roots refer to themselves.
 */
int block_reached_from_elsewhere(struct cursor *extents, const struct tree_root *root, uint64_t bytenr, bool *yes,
				 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
