/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPACE_H
#define BTRKIT_CHECK_SPACE_H

/* What lies between extents and tree blocks of a group, and what a cache of free space says of it. */

#include "lib/check/state.h"
#include "lib/space/block_group.h"

struct space {
	struct check *c;
	size_t extent, block; /* the first of the tables that were not looked at */
};

struct gaps {
	struct space *s;
	struct range group;
	uint64_t pos;
	struct block_group_supers supers; /* what is no free space either */
};

/* @next: of the cache. What it contradicts first is told as @code. @return 0; what @next returned */
int space_compare(struct gaps *g, int (*next)(void *cache, struct range *ret, struct btrkit_error *err), void *cache,
		  enum check_code code, uint64_t tree, struct btrkit_error *err);

/* A group as those want it that know nothing of a check. */
struct block_group space_group(const struct check_group *g);

/* space_tree.c */
void space_judge_tree(struct check *c, const struct tree_root *root);
/* space_cache_v1.c */
void space_judge_caches(struct check *c);

#endif
