/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_EXTENTS_H
#define BTRKIT_USAGE_EXTENTS_H

/* Interface between extents.c, which reads the extent tree, and extents_leaf.c, which decodes its leaves. */

#include "lib/backref/shared.h"
#include "lib/format/items/extent.h"
#include "lib/sweep/leaves.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* Summary of the references of a data extent so far. */
struct usage_refs {
	uint64_t bytenr;
	bool of_data;
	struct shared_refs refs; /* of any file */
};

/* A batch of leaves. */
struct usage_extents_batch {
	struct usage_work *w;
	struct sweep_leaves *leaves;
	size_t first, n;
	uint8_t *buf;
	struct node_ref *want;
	bool *ok;
	struct array blocks, extents; /* blocks and extents in these leaves */
	struct usage_refs head;	      /* references of an extent of the previous batch */
	struct usage_refs open;	      /* references of the last extent */
	uint64_t end;		      /* end of the last extent */
	size_t chunk;
};

/* Returns the flags (USAGE_*) for the table. */
static inline uint32_t usage_refs_flags(const struct shared_refs *refs)
{
	return shared_in_any_file(refs) ? USAGE_REFS_DIFFER : 0;
}

/* Reads the blocks and extents from the extent tree. */
int usage_load_extents(struct usage_work *w, const struct tree_root *extent_tree,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
