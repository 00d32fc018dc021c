/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_LEAF_H
#define BTRKIT_USAGE_LEAF_H

#include "lib/usage/state.h"
#include "lib/usage/table.h"

/* A data extent as a leaf refers to it. */
struct usage_named {
	uint32_t slot; /* slot of the file extent item */
	uint32_t info;
	uint64_t bytenr, sectors;
};

/* Results of reading leaves, per thread. */
struct usage_leaf_reader {
	struct array *pending; /* where to note owners that are to be added later */
	size_t hint;
	bool astray; /* the last extent was not near the one before: look up the next ones together */
	struct usage_named waiting[USAGE_FIND_MANY];
	size_t num_waiting;
	uint32_t weight;		 /* of the leaf's set */
	struct btrkit_usage_types types; /* inline and referenced bytes */
	struct array orphans;		 /* struct usage_orphans */
};

struct usage_orphans {
	uint32_t set;
	uint64_t n;
};

int usage_read_leaf(struct usage_work *w, struct usage_leaf_reader *r, const uint8_t *leaf, uint32_t set,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the results of a reader to the totals. To be called by one thread at a time. */
void usage_leaf_gathered(struct usage_work *w, struct usage_leaf_reader *r);

#endif
