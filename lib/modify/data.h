/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_DATA_H
#define BTRKIT_MODIFY_DATA_H

/* Space for data, and its bytes. By who is in the gate. */

#include "lib/modify/extents.h"
#include "lib/space/range.h"

/* A place for data; a chunk is added when there is none. @return 0; -ENOSPC; <0 */
int data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes whole sectors there, with their checksums if @sums. @return 0; <0 */
int data_write(struct op *op, uint64_t logical, const uint8_t *data, size_t len, bool sums,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What the file has in one sector, behind its end too. @in: whether it has checksums */
int data_read_sector(struct op *op, const struct op_inode *in, uint64_t offset, uint8_t *to,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
