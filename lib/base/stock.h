/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_STOCK_H
#define BTRKIT_BASE_STOCK_H

/*
 * Reusable chunks of memory of one size, several per huge page, for users that need memory at different times. Freed
 * chunks are reused before more memory is taken from the kernel, which has to clear it first. With heavy use, a thread
 * prepares cleared pages in advance, so that nobody waits for that with a lock held.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Distance of chunks. The first bytes of each are reserved for the stock; the chunk follows them. */
#define CHUNK_ALIGN ((size_t)512 << 10)
#define CHUNK_SIZE (CHUNK_ALIGN - 64)

struct stock_page;

/* Thread-safe. */
struct stock {
	pthread_mutex_t lock;
	struct stock_page *with_room;
	size_t spare; /* pages without any used chunk */
	size_t taken; /* pages taken from the kernel since the last trim */
	/* Pages prepared by the thread, or NULL. */
	struct stock_page *ready;
	size_t num_ready;
	pthread_t thread;
	pthread_cond_t wanted;
	bool has_thread, no_thread, stop;
};

void stock_init(struct stock *s);
/* Return unused pages to the kernel. No thread may take chunks meanwhile. */
void stock_trim(struct stock *s);
/* All chunks must have been given back. */
void stock_destroy(struct stock *s);
/* Take a chunk of CHUNK_SIZE bytes, not zeroed. @return NULL: out of memory */
void *stock_take(struct stock *s);
void stock_give(struct stock *s, void *chunk);
/* The chunk that contains the address @p. */
void *stock_chunk_of(void *p);

#endif
