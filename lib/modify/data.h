/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_DATA_H
#define BTRKIT_MODIFY_DATA_H

/* Space for data, and its bytes. By who is in the gate. */

#include "lib/modify/extents.h"
#include "lib/space/range.h"

/*
 * A place for data, not of fewer than @min bytes; a chunk is added when there is none that is worth it.
 * @return 0; -ENOSPC; <0
 */
int data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes whole sectors there. @return 0; <0 */
int data_write(struct op *op, uint64_t logical, const uint8_t *data, size_t len,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checksums of @n sectors from @logical on. @return 0; -ENOMEM */
int data_add_sums(struct op *op, uint64_t logical, const uint8_t *sums, size_t n,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Whether an extent that was kept for a file may be written: no file but this one refers to it, nor a snapshot of its
 * tree, nobody has written there, by checksums, and it shares no parity with what is committed.
 * @return 0 it may; 1 it may not; -EUCLEAN: it cannot be what it says; <0
 */
int data_is_own(struct op *op, uint64_t inode, const struct extent_at *x, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @n bytes from @offset of what an extent covers. @verify: it has checksums */
int data_read_extent(struct op *op, const struct extent_at *x, uint64_t offset, bool verify, uint8_t *to, size_t n,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What the file has in one sector; behind its end that is zeros. @in: whether it has checksums, and its size */
int data_read_sector(struct op *op, const struct op_inode *in, uint64_t offset, uint8_t *to,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
