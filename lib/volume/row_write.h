/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_ROW_WRITE_H
#define BTRKIT_VOLUME_ROW_WRITE_H

/*
 * Writing into chunks with parity, in whole rows. Nothing is read for it: what nobody puts into a row that is written
 * becomes zeroes, and the parity is made of what is there then. Whoever writes sees to it that a row has nothing else.
 *
 * Rows that follow one another are gathered, so that each stripe gets them as one write.
 */

#include "lib/volume/volume.h"

struct row_writer;

/* What it has written so far. */
struct row_writes {
	uint64_t writes, bytes;
};

/* Whether an address lies in a chunk with parity. */
bool row_wanted(const struct volume *v, uint64_t logical);

/* @reserve: room is made for what is put, with btrkit_io_reserve(), and nothing written. @return 0 or -ENOMEM */
int row_writer_create(const struct volume *v, bool reserve, struct row_writer **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct row_writer *row_writer_destroy(struct row_writer *w);
/*
 * Puts bytes into the rows of a chunk. All that a row will have must have been put into it before anything goes into a
 * row that does not follow it, since that may write it.
 * @return 0; -EOPNOTSUPP: a build without ISA-L; -EUCLEAN: no chunk with parity has the range; what a device said
 */
int row_writer_put(struct row_writer *w, uint64_t logical, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes the rows that are still gathered. */
int row_writer_finish(struct row_writer *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

struct row_writes row_writer_written(const struct row_writer *w);

#endif
