/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_WRITE_H
#define BTRKIT_MODIFY_WRITE_H

/* What operations that change data of a file share. */

#include "lib/modify/store.h"

#define WRITE_INLINE_MAX 2048u /* bytes of a file that lie in its item, as Linux mounts by default */
#define WRITE_ITEMS 256u /* file extents that one operation takes away */

/* A file whose lock is held, while its data is changed. */
struct writing {
	struct op *op;
	struct op_inode in;
	const struct btrkit_write_options *opts;
	uint8_t compression; /* as the inode allows it */
	bool stored; /* something lies in extents of its own */
	struct store_bytes bytes;
	uint8_t *edges; /* two sectors that the bytes may begin and end with */
};

/* Whether data of an inode may be changed. @return 0; -EISDIR; -EINVAL; -EPERM; -EROFS */
int write_judge(const struct op *op, const struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Takes the lock and gets the inode. Close with write_close(), on failure too. */
int write_open(struct writing *w, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same by who has the lock. */
int write_open_locked(struct writing *w, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void write_close(struct writing *w);

/* Says when it was changed, and puts the inode back; what it was capable of is gone. */
int write_put_inode(struct writing *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same when an operation ends with @ret: for want of space it leaves what it did until then. @return @ret; <0 */
int write_end(struct writing *w, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the beginning of the file lies in an item. @return 0 it does, and *size bytes; 1 it does not; <0 */
int write_is_inline(struct writing *w, uint64_t *size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The file gets @len bytes from @offset on, zeros if @data is NULL, which must then be in one sector; and the size
 * @size. Changes the inode, which is not put back. @return 0; -ENOSPC: nothing was changed; <0
 */
int write_range(struct writing *w, uint64_t offset, const void *data, size_t len, uint64_t size,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The first sector of w->edges takes the place of what the file has at @offset, a multiple of the sector size. */
int write_sector(struct writing *w, uint64_t offset, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The file is to have something from @to on, or to end there, which is behind its end: in the sector of its end there
 * are zeros from now on, and a hole between. Its size stays. @size: what it will be
 */
int write_extend(struct writing *w, uint64_t to, uint64_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What an operation returns that has changed nothing: write_clear() is to come first. */
#define WRITE_CLEAR 2

/* Whether write_extend() can be done by this operation. @return 0, also if nothing is extended; WRITE_CLEAR; <0 */
int write_judge_extend(struct writing *w, uint64_t to, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * What lies behind the end of the file and before @to, and is not to be there, goes, by operations of its own. That
 * does not change what the file has. Not by who is in the gate.
 */
int write_clear(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t to,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* write_all.c: what writing @len bytes may change. */
struct ticket_need write_need(const struct btrkit_txn *txn, uint64_t len);

/* Takes away what the file has from @from to @to, as often as needed. */
int write_drop(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t from, uint64_t to,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
