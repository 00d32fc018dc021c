/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_EXTENTS_H
#define BTRKIT_USAGE_EXTENTS_H

/* Interface between extents.c, which reads the extent tree, and extents_leaf.c, which decodes its leaves. */

#include "lib/backref/shared.h"
#include "lib/format/items/extent.h"
#include "lib/sweep/leaves.h"
#include "lib/usage/state.h"

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
	struct usage_refs head;		   /* references of an extent of the previous batch */
	struct usage_refs open;		   /* references of the last extent */
	uint64_t end;			   /* end of the last extent */
	size_t chunk;
};

/* Adds the blocks and extents of a leaf to the lists of the batch. */
int usage_extents_leaf(struct usage_extents_batch *b, const uint8_t *leaf, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Completes the last extent: it has no more references in this batch. */
void usage_extents_end(struct usage_extents_batch *b);
/* Returns the flags (USAGE_*) for the table. */
static inline uint32_t usage_refs_flags(const struct shared_refs *refs)
{
	return shared_in_any_file(refs) ? USAGE_REFS_DIFFER : 0;
}

#endif
