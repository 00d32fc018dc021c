/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_STOCK_H
#define BTRKIT_BASE_STOCK_H

/*
 * Reusable slices of memory of one size, several per huge page, for users that need memory at different times. Freed
 * slices are reused before more memory is taken from the kernel, which has to clear it first. With heavy use, a thread
 * prepares cleared pages in advance, so that nobody waits for that with a lock held.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Distance of slices. The first bytes of each are reserved for the stock; the slice follows them. */
#define SLICE_ALIGN ((size_t)512 << 10)
#define SLICE_SIZE (SLICE_ALIGN - 64)

struct stock_page;

/* Thread-safe. */
struct stock {
	pthread_mutex_t lock;
	struct stock_page *with_room;
	size_t spare; /* pages without any used slice */
	size_t taken; /* pages taken from the kernel since the last trim */
	/* Pages prepared by the thread, or NULL. */
	struct stock_page *ready;
	size_t num_ready;
	pthread_t thread;
	pthread_cond_t wanted;
	bool has_thread, no_thread, stop;
};

void stock_init(struct stock *s);
/* Returns unused pages to the kernel. No thread may take slices meanwhile. */
void stock_trim(struct stock *s);
/* All slices must have been given back. */
void stock_destroy(struct stock *s);
/* Takes a slice of SLICE SIZE bytes, not zeroed. @return NULL: out of memory */
void *stock_take(struct stock *s);
void stock_give(struct stock *s, void *slice);
/* The slice that contains the address @p. */
void *stock_slice_of(void *p);

#endif
