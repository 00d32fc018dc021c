/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_BATCH_H
#define BTRKIT_IO_BATCH_H

/*
 * Writes in any order, handed to the device in the order of addresses, neighbours as one write. What is queued is
 * copied; when the queue is full it is written out, so memory is bounded.
 */

#include <stdbool.h>

#include <btrkit/error.h>
#include <btrkit/io.h>

struct io_batch;

/* @budget: bytes to queue at the most. @return 0 or -ENOMEM */
int io_batch_create(struct btrkit_io *io, size_t budget, struct io_batch **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What is queued is lost. NULL is allowed. */
struct io_batch *io_batch_destroy(struct io_batch *b);

/* Whether a write of @len bytes can be queued without writing out what is. */
bool io_batch_has_room(const struct io_batch *b, size_t len);
/* Queues a write. Two writes of a byte reach the device in their order. @return 0, -EIO, -ENOSPC, -ENOMEM */
int io_batch_write(struct io_batch *b, uint64_t offset, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Writes out what is queued; after a failure what was not written is lost. It is not flushed: see btrkit_io_flush().
 * A run of neighbours is put together first, in memory of its own size.
 */
int io_batch_drain(struct io_batch *b, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Where on the device the last write was tried. */
uint64_t io_batch_place(const struct io_batch *b);

#endif
