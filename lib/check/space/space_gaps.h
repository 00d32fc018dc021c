/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPACE_GAPS_H
#define BTRKIT_CHECK_SPACE_GAPS_H

/* Compares the gaps between extents and tree blocks of a block group with a free space cache. */

#include "lib/check/codes.h"
#include "lib/check/state.h"
#include "lib/space/block_group.h"

struct space {
	struct check *c;
	size_t extent, block; /* the next entries of the tables */
};

struct gaps {
	struct space *s;
	struct range group;
	uint64_t pos;
	struct block_group_supers supers; /* superblock copies, which are not free space either */
};

/* @next: iterates over the cache. The first difference is reported as @code. @return 0, or what @next returned */
int space_compare(struct gaps *g, int (*next)(void *cache, struct range *ret, struct btrkit_error *err), void *cache,
		  enum check_code code, uint64_t tree, struct btrkit_error *err);

/* Converts a group to the form that lib/space uses. */
struct block_group space_group(const struct check_group *g);

#endif
