/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_ANCESTORS_H
#define BTRKIT_REPORT_ANCESTORS_H

/* Tree blocks by their back references: which trees reach a block. */

#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"

/*
 * Calls @visit for every reference of the extent at @bytenr, inline and keyed, in the order of Linux's walk. A value
 * other than 0 that @visit returns ends the walk and is returned. Without an extent item there are no references.
 */
typedef int (*ref_visit_fn)(void *ctx, const struct extent_item *extent, const struct extent_ref *ref);
int extent_for_each_ref(struct cursor *extents, uint64_t bytenr, ref_visit_fn visit, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the tree block at @bytenr can be reached from another tree than @root by any chain of back references. A
 * relocation tree's root refers to itself, so relocation trees do not count.
 */
int block_reached_from_elsewhere(struct cursor *extents, const struct tree_root *root, uint64_t bytenr, bool *yes,
				 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
