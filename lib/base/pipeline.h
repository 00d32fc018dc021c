/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_PIPELINE_H
#define BTRKIT_BASE_PIPELINE_H

/*
 * Work done by several threads, with the results processed in the order of submission. The number of slots limits how
 * much work is in progress. The caller keeps the data for each piece of work in its slot.
 */

#include <stddef.h>

#include <btrkit/error.h>

struct pipeline;

struct pipeline_ops {
	/* Called by any thread, by many at the same time. */
	int (*work)(void *ctx, void *slot, struct btrkit_error *err);
	/* Called by any thread, by only one at a time, in the order of submission. */
	int (*finish)(void *ctx, void *slot, struct btrkit_error *err);
	void *ctx;
};

#define PIPELINE_THREADS_MAX 64u

/* Number of threads to use: @wanted, or the number of processors if @wanted is 0, but at most PIPELINE_THREADS_MAX. */
unsigned pipeline_threads(unsigned wanted);

/*
 * @slots: the caller's @n slots. @threads: 0 to do the work in pipeline_submit(), in the calling thread.
 * @return 0; -ENOMEM; -EAGAIN: cannot start any thread
 */
int pipeline_create(const struct pipeline_ops *ops, unsigned threads, void *const *slots, size_t n,
		    struct pipeline **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Waits for work in progress, and drop work that has not been started. @p may be NULL. */
struct pipeline *pipeline_destroy(struct pipeline *p);

/* Waits for a free slot, which the caller then fills. @return 0, or the first failure of other work */
int pipeline_next(struct pipeline *p, void **slot, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Submits the slot that pipeline_next() returned. */
void pipeline_submit(struct pipeline *p);
/*
 * Waits until all work is finished. @return 0, or the first failure; after that, work may be in progress until
 * pipeline_destroy()
 */
int pipeline_drain(struct pipeline *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
