/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_CACHE_H
#define BTRKIT_TREE_CACHE_H

/* Verified tree blocks by address, limited by a budget of bytes. Pinned blocks count, but are never dropped. */

#include <btrkit/error.h>

struct node;
struct node_cache;
struct slabs;

/* @return 0 or -ENOMEM */
int node_cache_create(size_t budget, uint32_t nodesize, struct slabs *slabs, struct node_cache **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* No block may be pinned. NULL is allowed. */
struct node_cache *node_cache_destroy(struct node_cache *c);

/* Takes over a private block, verified and not pinned, in place of any other block of that address. */
void node_cache_adopt(struct node_cache *c, struct node *node);
/* Drops the blocks of a generation that was never committed. None may be pinned. */
void node_cache_forget_generation(struct node_cache *c, uint64_t generation);

#endif
