/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_SLAB_H
#define BTRKIT_TREE_SLAB_H

/*
 * Memory for the private blocks of a transaction: few are of the heap, many lie side by side in chunks of a stock.
 * Those come from where delayed items give theirs back while they become blocks, so that no new memory is asked for.
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
	size_t of_heap; /* blocks that are */
};

void slabs_init(struct slabs *s, struct stock *stock);
/* All blocks have been given back. */
void slabs_destroy(struct slabs *s);

/* For a block of @nodesize, which is always the same: zeroed but for its data. @return NULL: no memory */
struct node *slab_take(struct slabs *s, uint32_t nodesize);
/* Any block, whether it was taken here or is of the heap. */
void node_free(struct slabs *s, struct node *n);

#endif
