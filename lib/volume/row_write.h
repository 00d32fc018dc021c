/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_ROW_WRITE_H
#define BTRKIT_VOLUME_ROW_WRITE_H

/*
 * Writes to chunks with parity in full rows. Nothing is read: bytes of a row that the caller does not provide become
 * zero, and the parity is computed from the result. The caller must ensure that the row has no other contents.
 *
 * Consecutive rows are collected, so that each stripe is written with one write.
 */

#include "lib/volume/volume.h"

struct row_writer;

/* Statistics of what was written. */
struct row_writes {
	uint64_t writes, bytes;
};

/* Whether an address is in a chunk with parity. */
bool row_wanted(const struct volume *v, uint64_t logical);

/* @reserve: reserve space for the rows with btrkit_io_reserve() instead of writing them. @return 0 or -ENOMEM */
int row_writer_create(const struct volume *v, bool reserve, struct row_writer **ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @w may be NULL. */
struct row_writer *row_writer_destroy(struct row_writer *w);
/*
 * Add bytes to rows. All contents of a row must be added before those of any row that does not follow it, because that
 * may write the pending rows.
 * @return 0; -EOPNOTSUPP: build without ISA-L; -EUCLEAN: the range is not in a chunk with parity; error of a device
 */
int row_writer_put(struct row_writer *w, uint64_t logical, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Write the pending rows. */
int row_writer_finish(struct row_writer *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

struct row_writes row_writer_written(const struct row_writer *w);

#endif
