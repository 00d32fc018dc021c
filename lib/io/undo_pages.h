/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_PAGES_H
#define BTRKIT_IO_UNDO_PAGES_H

/*
 * Blocks that wait to be written over an undo file, and what the file has of those below them. All with the lock of
 * the log; what failed is told in the device's failure.
 */

#include "lib/base/hash.h"
#include "lib/io/undo_log.h"

#define UNDO_PAGES 2048u	/* blocks that wait at the most */
#define UNDO_LEAF_BLOCKS 4096u	/* a multiple of a window's */

/* A block that waits to be written. */
struct undo_page {
	uint64_t number;	/* of the block */
	unsigned slot;		/* where in the pool its bytes are */
};

/* Which blocks of a stretch of the device the file has. */
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
	struct undo_page pages[UNDO_PAGES];	/* in the order of blocks */
	size_t num_pages;
	uint8_t *pool;		/* bytes of all pages */
	uint8_t *run;		/* a window's bytes */
	struct btrkit_error failure;	/* of the latest call: it may be about another range than the call is */
	struct btrkit_error lost;	/* why pages never reached the device: from then on nothing is taken */
};

/* Memory for what waits. @return false: there is none */
bool undo_pages_create(struct undo_io *u) BTRKIT_MUST_CHECK;
void undo_pages_release(struct undo_io *u);
struct disk_undo_record undo_record_of(const struct undo_io *u, enum undo_type type, uint64_t offset, uint64_t len,
				       size_t payload);
/* What the file lacks of the blocks from @first up to @end. */
int undo_save(struct undo_io *u, uint64_t first, uint64_t end) BTRKIT_MUST_CHECK;
/* Writes out what waits; after a failure what was not written is lost, though its writes were said to be done. */
int undo_drain(struct undo_io *u);
/* The index of the first page from @block on. */
size_t undo_page_from(const struct undo_io *u, uint64_t block);
/* Bytes of a block, which may be all of them. */
int undo_put(struct undo_io *u, uint64_t block, size_t at, const uint8_t *from, size_t len) BTRKIT_MUST_CHECK;

#endif
