/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_WRITE_H
#define BTRKIT_MODIFY_WRITE_H

/* Shared by the operations that change the data of a file. */

#include "lib/modify/store.h"

#define WRITE_INLINE_MAX 2048u /* bytes of an inline extent at most, as Linux mounts by default */
#define WRITE_ITEMS 256u /* file extents that one operation removes */

/* A file whose lock is held while its data is changed. */
struct writing {
	struct op *op;
	struct op_inode in;
	const struct btrkit_write_options *opts;
	uint8_t compression; /* as far as the inode allows it */
	bool stored; /* some data was stored outside of the tree */
	struct store_bytes bytes;
	uint8_t *edges; /* buffer for the first and last sector */
};

/* Checks whether data of an inode may be changed. @return 0; -EISDIR; -EINVAL; -EPERM; -EROFS */
int write_check(const struct op *op, const struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Locks and reads the inode. Call write_close() afterwards, also on failure. */
int write_open(struct writing *w, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like write_open(), if the caller holds the lock. */
int write_open_locked(struct writing *w, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void write_close(struct writing *w);

/* Updates the times, removes security.capability, and writes the inode back. */
int write_put_inode(struct writing *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Like write_put_inode(), at the end of an operation with result @ret: after -ENOSPC what was done until then stays.
 * @return @ret; <0
 */
int write_end(struct writing *w, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the file begins with an inline extent; *@size: its bytes. @return 0: it does; 1: it does not; <0 */
int write_is_inline(struct writing *w, uint64_t *size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Writes @len bytes at @offset, zeros if @data is NULL: the range must then be within one sector. Sets the size to
 * @size. Changes the inode, but does not write it back. @return 0; -ENOSPC: nothing was changed; <0
 */
int write_range(struct writing *w, uint64_t offset, const void *data, size_t len, uint64_t size,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Replaces the sector at @offset, a multiple of the sector size, by the first sector of w->edges. */
int write_sector(struct writing *w, uint64_t offset, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Prepares a file that will have data at @to, or end there, past its current end: zeroes the rest of its last sector,
 * and makes the range between a hole. Its size stays. @size: its future size
 */
int write_extend(struct writing *w, uint64_t to, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returned by an operation that has changed nothing: call write_clear() and repeat it. */
#define WRITE_CLEAR 2

/* Checks whether write_extend() fits into this operation. @return 0, also if nothing is extended; WRITE_CLEAR; <0 */
int write_check_extend(struct writing *w, uint64_t to, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In resize.c: */
/*
 * Removes extents between the end of the file and @to that must not be there, in operations of its own. This does not
 * change the contents. Must not be called inside the gate.
 */
int write_clear(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t to,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In write_all.c: the reservation for writing @len bytes. */
struct ticket_need write_need(const struct btrkit_txn *txn, uint64_t len);

/* In resize.c: */
/* Removes the range [@from, @to) from the file, in as many operations as needed. */
int write_drop(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t from, uint64_t to,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
