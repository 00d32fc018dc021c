/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_BATCH_H
#define BTRKIT_IO_BATCH_H

/*
 * Collects writes, and hands them to the device in address order, with adjacent ones combined. Queued data is copied.
 * The queue is written out when it is full, so that memory is bounded.
 */

#include <stdbool.h>

#include <btrkit/error.h>
#include <btrkit/io.h>

struct io_batch;

/* @budget: the maximum number of bytes to queue. @return 0 or -ENOMEM */
int io_batch_create(struct btrkit_io *io, size_t budget, struct io_batch **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Discards what is queued. @b may be NULL. */
struct io_batch *io_batch_destroy(struct io_batch *b);

/* Whether a write of @len bytes fits into the queue without writing it out first. */
bool io_batch_has_room(const struct io_batch *b, size_t len);
/* Queues a write. Overlapping writes take effect in the order of the calls. @return 0, -EIO, -ENOSPC, -ENOMEM */
int io_batch_write(struct io_batch *b, uint64_t offset, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Writes out the queue, without a flush: see btrkit_io_flush(). After a failure, the writes that were not done are
 * lost. Each run of adjacent writes is first copied into a buffer of its size.
 */
int io_batch_drain(struct io_batch *b, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The offset on the device of the last write that was attempted. */
uint64_t io_batch_place(const struct io_batch *b);

#endif
