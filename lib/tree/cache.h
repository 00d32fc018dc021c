/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_CACHE_H
#define BTRKIT_TREE_CACHE_H

/* Verified tree blocks by address, up to a budget of bytes; pinned ones stay and count. */

#include <btrkit/error.h>

struct node_cache;

/* @return 0 or -ENOMEM */
int node_cache_create(size_t budget, uint32_t nodesize, struct node_cache **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* No block may be pinned. NULL is allowed. */
struct node_cache *node_cache_destroy(struct node_cache *c);

#endif
