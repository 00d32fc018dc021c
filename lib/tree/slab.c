// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/slab.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/hash.h"
#include "lib/tree/node.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

/* With more blocks than this, a chunk is worthwhile. */
#define HEAP_MAX ((size_t)64)

/* At the beginning of a chunk, so that it can be found from every block. */
struct slab {
	struct slab *prev, *next; /* of chunks with room */
	struct free_place *free;  /* freed places */
	uint32_t used;		  /* blocks in use */
	uint32_t touched;	  /* places that have ever been used */
};

struct free_place {
	struct free_place *next;
};

/* Blocks begin at cache lines. */
#define LINE 64u

static size_t stride_of(uint32_t nodesize)
{
	return (sizeof(struct node) + nodesize + LINE - 1) & ~(size_t)(LINE - 1);
}

static uint32_t places_of(uint32_t nodesize)
{
	return (uint32_t)((SLICE_SIZE - LINE) / stride_of(nodesize));
}

void slabs_init(struct slabs *s, struct stock *stock)
{
	*s = (struct slabs){ .stock = stock };
	pthread_mutex_init(&s->lock, NULL);
}

void slabs_destroy(struct slabs *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Requires the lock. */
static void *take_place(struct slabs *s, uint32_t nodesize)
{
	struct slab *slab = s->with_room;
	void *place;

	if (!slab) {
		slab = stock_take(s->stock);
		if (!slab)
			return NULL;
		*slab = (struct slab){ 0 };
		DL_APPEND(s->with_room, slab);
	}
	if (slab->free) {
		place = slab->free;
		slab->free = slab->free->next;
	} else {
		place = (char *)slab + LINE + slab->touched++ * stride_of(nodesize);
	}
	if (++slab->used == places_of(nodesize))
		DL_DELETE(s->with_room, slab);
	return place;
}

/* Requires the lock. */
static void give_place(struct slabs *s, void *place, uint32_t nodesize)
{
	struct slab *slab = stock_slice_of(place);
	struct free_place *f = place;

	if (slab->used-- == places_of(nodesize))
		DL_PREPEND(s->with_room, slab);
	f->next = slab->free;
	slab->free = f;
	if (slab->used)
		return;
	DL_DELETE(s->with_room, slab);
	stock_give(s->stock, slab);
}

/* Sanitizers only watch the heap. */
static bool is_heap_enough(const struct slabs *s)
{
#ifdef SANITIZED
	(void)s;
	return true;
#else
	return s->of_heap < HEAP_MAX;
#endif
}

static void forget_one(struct slabs *s)
{
	pthread_mutex_lock(&s->lock);
	s->of_heap--;
	pthread_mutex_unlock(&s->lock);
}

struct node *slab_take(struct slabs *s, uint32_t nodesize)
{
	struct node *n;
	bool heap;

	pthread_mutex_lock(&s->lock);
	heap = is_heap_enough(s);
	n = heap ? NULL : take_place(s, nodesize);
	s->of_heap += heap;
	pthread_mutex_unlock(&s->lock);
	if (heap) {
		n = malloc(sizeof(*n) + nodesize);
		if (!n)
			forget_one(s);
	}
	if (n)
		*n = (struct node){ .size = nodesize,
				    .place = heap ? NODE_OF_HEAP : NODE_OF_SLAB,
				    .data = (uint8_t *)(n + 1) };
	return n;
}

void node_free(struct slabs *s, struct node *n)
{
	if (n->place == NODE_READ || n->place == NODE_AWAY) {
		if (n->place == NODE_AWAY)
			free(n->data);
		free(n);
		return;
	}
	if (n->place == NODE_OF_HEAP) {
		free(n);
		forget_one(s);
		return;
	}
	pthread_mutex_lock(&s->lock);
	give_place(s, n, n->size);
	pthread_mutex_unlock(&s->lock);
}
