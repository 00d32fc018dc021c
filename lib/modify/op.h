/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_OP_H
#define BTRKIT_MODIFY_OP_H

/* The begin and end of all operations, and access to the inodes that they change. */

#include <btrkit/modify.h>

#include "lib/commit/txn.h"
#include "lib/delayed/delayed.h"
#include "lib/format/items/files/inode.h"
#include "lib/reserve/ticket.h"

struct op {
	struct btrkit_txn *txn;
	struct delayed *d;
	struct delayed_tree *t; /* of the subvolume */
	struct delayed_reader reader;
	struct delayed_locks locks;
	struct disk_time now;
	bool exclusive; /* exclusive: no locks are needed */
	bool changed; /* something besides delayed items */
	uint64_t edits, delayed; /* an exclusive operation: changes of trees and delayed items before it */
};

/*
 * Begins an operation on a subvolume: makes the reservation, and enters the gate. After a failure do not call op_end().
 * This does not check whether the subvolume is writable: call op_check_writable() at the point where Linux checks.
 * @return 0; -ENOENT: no such subvolume; -ENOSPC; <0; as failure_check()
 */
int op_begin(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Begins an operation that changes nothing, and therefore reserves nothing. */
int op_begin_reading(struct op *op, struct btrkit_txn *txn, uint64_t root, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Begins an exclusive operation on a subvolume whose entries change. All delayed items have been run, and trees may be
 * edited directly while sync_lock_trees() is held. @exclusive: what that may need. The transaction may have been
 * committed meanwhile.
 */
int op_begin_exclusive(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
		       const struct ticket_exclusive *exclusive, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Begins an exclusive operation that changes no entries of any subvolume. */
int op_begin_nowhere(struct op *op, struct btrkit_txn *txn, const struct ticket_need *need,
		     const struct ticket_exclusive *exclusive, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Opens another subvolume within the same operation. The caller releases its reader, and ends nothing else.
 * @return 0; -ENOENT; <0
 */
int op_join(const struct op *op, uint64_t root, struct op *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether an exclusive operation has begun to change a tree or to delay items: what fails before that fails alone. */
bool op_has_changed(const struct op *op);
/* Ends an exclusive operation, running the items that it has delayed. @return @ret; <0 */
int op_end_exclusive(struct op *op, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Called before op_end(): gives back what the operation has not used of its reservation, which is everything except the
 * delayed items of the inodes locked since then, and @bytes. Only for operations that add no checksums.
 */
void op_spare(struct op *op, const struct ticket_need *need, uint32_t bytes);
/*
 * Ends an operation and releases its locks. The caller must not hold others: this may wait until delayed items are run.
 * @err: describes @ret. @return @ret
 */
int op_end(struct op *op, int ret, const struct btrkit_error *err);

/*
 * Determines whether an operation that returned @ret is to be repeated: after -ENOSPC once, after a commit if that is
 * allowed, unless a device is full.
 * @tried: initially false. @return 0: repeat it; otherwise the result
 */
int op_again(struct btrkit_txn *txn, bool *tried, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether a step that failed with -ENOSPC can be repeated as smaller steps. It cannot if a device is full. */
bool op_less_may_do(const struct btrkit_txn *txn, int ret);
/*
 * Handles the result of a step that changes at most *@max things: after -ENOSPC it is to be repeated with @few, which
 * becomes *@max.
 * @return 0: it is done, or is to be repeated; <0
 */
int op_try_fewer(const struct btrkit_txn *txn, int ret, unsigned *max, unsigned few) BTRKIT_MUST_CHECK;

/* Sets an incompatible feature that the operation needs. */
void op_need_feature(struct op *op, uint64_t incompat);

/* The item of an inode whose lock is held. It is changed here and written back with op_inode_put(). */
struct op_inode {
	uint64_t inode;
	struct disk_inode_item item;
};

/* @return 0; -ENOENT; <0 */
int op_inode_get(struct op *op, uint64_t inode, struct op_inode *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes the item back, with an updated transid and sequence. */
int op_inode_put(struct op *op, struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline struct disk_time op_put_time(const struct btrkit_time *t)
{
	return (struct disk_time){ le64_put((uint64_t)t->sec), le32_put(t->nsec) };
}

static inline uint32_t op_inode_mode(const struct op_inode *in)
{
	return le32_get(in->item.mode);
}

/* Checks owner and group: Linux reserves the highest number. @return 0; -EINVAL */
int op_check_owner(uint32_t uid, uint32_t gid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks that the nanoseconds are in range. @return 0; -EINVAL */
int op_check_time(const struct btrkit_time *time, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks that the subvolume is writable. @return 0; -EROFS */
int op_check_writable(const struct op *op, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks that an inode is a directory, which Linux does before anything else. @return 0; -ENOTDIR */
int op_check_is_dir(const struct op_inode *dir, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Checks whether attributes may be changed or a name be removed. @return 0; -EPERM: the inode is immutable or
 * append-only
 */
int op_check_fixed(const struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Checks whether entries of a directory may be changed. @forbidden: flags besides INODE_IMMUTABLE that forbid it.
 * @return 0; -ENOTDIR; -EPERM; -EROFS
 */
int op_check_dir(const struct op *op, const struct op_inode *dir, uint64_t forbidden,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
