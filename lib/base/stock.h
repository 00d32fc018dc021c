/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_STOCK_H
#define BTRKIT_BASE_STOCK_H

/*
 * Memory in chunks of one size, several to a huge page, for uses of which one needs more while another needs less: what
 * is given back is taken again before the kernel is asked, which has to clear what it gives. Where much is taken a
 * thread has it cleared ahead, so that nobody waits for that who holds a lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes, of which some in front are the stock's: a chunk is aligned to this but for them. */
#define CHUNK_ALIGN ((size_t)512 << 10)
#define CHUNK_SIZE (CHUNK_ALIGN - 64)

struct stock_page;

/* Any number of threads may use it. */
struct stock {
	pthread_mutex_t lock;
	struct stock_page *with_room;
	size_t spare; /* pages of which nothing is used */
	size_t taken; /* pages that were ever asked of the kernel, since it was trimmed */
	/* Those that a thread has made ready, or NULL. */
	struct stock_page *ready;
	size_t num_ready;
	pthread_t thread;
	pthread_cond_t wanted;
	bool has_thread, no_thread, stop;
};

void stock_init(struct stock *s);
/* To the kernel goes what nothing is used of. Nobody takes any meanwhile. */
void stock_trim(struct stock *s);
/* All has been given back. */
void stock_destroy(struct stock *s);
/* CHUNK_SIZE bytes, not zeroed. @return NULL: no memory */
void *stock_take(struct stock *s);
void stock_give(struct stock *s, void *chunk);
/* The chunk that has an address in it. */
void *stock_chunk_of(void *p);

#endif
