/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_DATA_H
#define BTRKIT_MODIFY_DATA_H

/* Allocation, writing and reading of file data. Callers are inside the gate. */

#include "lib/modify/extents.h"
#include "lib/space/range.h"

/*
 * Allocates between @min and @max bytes for data. Allocates a chunk first if there is no free range of a useful size.
 * @return 0; -ENOSPC; <0
 */
int data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes whole sectors to allocated space. @return 0; <0 */
int data_write(struct op *op, uint64_t logical, const uint8_t *data, size_t len,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the checksums of @n sectors starting at @logical. @return 0; -ENOMEM */
int data_add_sums(struct op *op, uint64_t logical, const uint8_t *sums, size_t n,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Whether a preallocated extent may be written in place: no other file or snapshot refers to it, no checksums show that
 * it was written already, and it shares no parity with committed data.
 * @return 0: it may; 1: it may not; -EUCLEAN: the item is damaged; <0
 */
int data_is_own(struct op *op, uint64_t inode, const struct extent_at *x, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads @n bytes of what the file extent covers, starting at @offset. @verify: check them against checksums */
int data_read_extent(struct op *op, const struct extent_at *x, uint64_t offset, bool verify, uint8_t *to, size_t n,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads a sector of a file, with zeros past the end. @in: tells whether the file has checksums, and its size */
int data_read_sector(struct op *op, const struct op_inode *in, uint64_t offset, uint8_t *to,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
