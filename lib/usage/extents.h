/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_EXTENTS_H
#define BTRKIT_USAGE_EXTENTS_H

/* What extents.c, which reads the extent tree, has extents_leaf.c make of its leaves. */

#include "lib/format/items/extent.h"
#include "lib/usage/state.h"

/* What the references of a data extent say so far. */
struct usage_refs {
	uint64_t bytenr;
	bool of_data;
	struct extent_ref first; /* type 0: none counts yet */
	uint64_t count;
	uint32_t flags;
};

/* A few leaves. */
struct usage_extents_batch {
	struct usage_work *w;
	struct usage_leaves *leaves;
	size_t first, n;
	uint8_t *buf;
	struct node_ref *want;
	bool *ok;
	struct usage_list blocks, extents; /* found there */
	struct usage_refs head;		   /* of an extent that began in the batch before */
	struct usage_refs open;		   /* of the last one */
	uint64_t end;			   /* of the last one, too */
	size_t chunk;
};

/* What is in a leaf goes into the lists. */
int usage_extents_leaf(struct usage_extents_batch *b, const uint8_t *leaf, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* There are no more of the last extent in this batch. */
void usage_extents_end(struct usage_extents_batch *b);
/* What @more says, too, which came behind @r. */
void usage_refs_join(struct usage_refs *r, const struct usage_refs *more);
/* USAGE_* of the table. */
uint32_t usage_refs_flags(const struct usage_refs *r);

#endif
