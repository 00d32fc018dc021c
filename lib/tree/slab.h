/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_SLAB_H
#define BTRKIT_TREE_SLAB_H

/*
 * Memory for the private blocks of a transaction. A few come from the heap, many are in chunks of a stock. These are
 * chunks that delayed items release while they are inserted into blocks, so no new memory is needed.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/stock.h"

struct node;
struct slab;

struct slabs {
	struct stock *stock;
	pthread_mutex_t lock;
	struct slab *with_room;
	size_t of_heap; /* blocks from the heap */
};

void slabs_init(struct slabs *s, struct stock *stock);
/* All blocks must have been freed. */
void slabs_destroy(struct slabs *s);

/* Allocates a block of @nodesize, which is always the same; zeroed except for its data. @return NULL: no memory */
struct node *slab_take(struct slabs *s, uint32_t nodesize);
/* Frees any block, whether it was allocated here or on the heap. */
void node_free(struct slabs *s, struct node *n);

#endif
