/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_PAGES_H
#define BTRKIT_IO_UNDO_PAGES_H

/*
 * Blocks waiting to be written, and the blocks saved in the undo file. All functions require the lock of the log, and
 * record failures in the device.
 */

#include "lib/base/hash.h"
#include "lib/io/undo_log.h"

#define UNDO_PAGES 2048u	/* the maximum number of waiting blocks */
#define UNDO_LEAF_BLOCKS 4096u	/* a multiple of a window's */

/* A block waiting to be written. */
struct undo_page {
	uint64_t number;	/* of the block */
	unsigned slot;		/* index of its bytes in the pool */
};

/* Which blocks of a part of the device have been saved. */
struct undo_leaf {
	uint64_t number;
	uint64_t bits[UNDO_LEAF_BLOCKS / 64];
	UT_hash_handle hh;
};

struct undo_io {
	struct btrkit_io io;
	struct btrkit_io *below;
	struct undo_log *log;
	unsigned device;	/* number in the file */
	struct undo_leaf *saved;
	struct undo_page pages[UNDO_PAGES];	/* ordered by block */
	size_t num_pages;
	uint8_t *pool;		/* bytes of all pages */
	uint8_t *run;		/* buffer for a window */
	struct btrkit_error failure;	/* of the latest call; it may concern another range than that of the call */
	struct btrkit_error lost;	/* why pages never reached the device: from then on all writes are refused */
};

/* Allocates the memory for waiting blocks. @return false: out of memory */
bool undo_pages_create(struct undo_io *u) BTRKIT_MUST_CHECK;
void undo_pages_release(struct undo_io *u);
struct disk_undo_record undo_record_of(const struct undo_io *u, enum undo_type type, uint64_t offset, uint64_t len,
				       size_t payload);
/* Saves the blocks in [@first, @end) that have not been saved yet. */
int undo_save(struct undo_io *u, uint64_t first, uint64_t end) BTRKIT_MUST_CHECK;
/* Writes out all waiting blocks. After a failure those not written are lost, although their writes had succeeded. */
int undo_drain(struct undo_io *u);
/* The index of the first page at or after @block. */
size_t undo_page_from(const struct undo_io *u, uint64_t block);
/* Writes to a part of a block, or to all of it. */
int undo_put(struct undo_io *u, uint64_t block, size_t at, const uint8_t *from, size_t len) BTRKIT_MUST_CHECK;

#endif
