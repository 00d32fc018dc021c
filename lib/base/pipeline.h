/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_PIPELINE_H
#define BTRKIT_BASE_PIPELINE_H

/*
 * Work that is done by threads, of which the results are taken in the order in which it was given out. What is under
 * way at a time is bounded by the number of slots, in which the caller keeps what belongs to a piece of work.
 */

#include <stddef.h>

#include <btrkit/error.h>

struct pipeline;

struct pipeline_ops {
	/* Called by any thread, many at once. */
	int (*work)(void *ctx, void *slot, struct btrkit_error *err);
	/* Called by any thread, by one at a time, in the order of the slots. */
	int (*finish)(void *ctx, void *slot, struct btrkit_error *err);
	void *ctx;
};

#define PIPELINE_THREADS_MAX 64u

/* How many threads to have: as many as are wanted, or with 0 as there are processors, but no more than the most. */
unsigned pipeline_threads(unsigned wanted);

/*
 * @slots: @n of the caller's. Without @threads the caller's own does the work when it gives it out.
 * @return 0; -ENOMEM; -EAGAIN: no thread can be had
 */
int pipeline_create(const struct pipeline_ops *ops, unsigned threads, void *const *slots, size_t n,
		    struct pipeline **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Waits for what is being worked on; what waits is dropped. NULL is allowed. */
struct pipeline *pipeline_destroy(struct pipeline *p);

/* A slot that nobody uses any more, to be filled by the caller. @return 0, or what failed in another one */
int pipeline_next(struct pipeline *p, void **slot, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gives out the slot that pipeline_next() returned. */
void pipeline_submit(struct pipeline *p);
/* Waits until all is finished. @return 0, or what failed: others may be at work then until pipeline_destroy() */
int pipeline_drain(struct pipeline *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
