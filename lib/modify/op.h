/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_OP_H
#define BTRKIT_MODIFY_OP_H

/* What every operation begins and ends with, and the inodes that it changes. */

#include <btrkit/modify.h>

#include "lib/format/items/inode.h"
#include "lib/txn/delayed.h"
#include "lib/txn/txn.h"

struct op {
	struct btrkit_txn *txn;
	struct delayed *d;
	struct delayed_tree *t; /* of the subvolume */
	struct delayed_reader reader;
	struct delayed_locks locks;
	struct disk_time now;
	bool alone; /* it needs no locks */
};

/*
 * Begins an operation on a subvolume: reserves what it may take, and goes through the gate. If that fails it must not
 * be ended. That the subvolume may be written is to be judged when Linux would: op_judge_writable().
 * @return 0; -ENOENT: no such subvolume; -ENOSPC; <0; as delayed_judge()
 */
int op_begin(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
	     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same for an operation that changes nothing: it reserves nothing. */
int op_begin_reading(struct op *op, struct btrkit_txn *txn, uint64_t root, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * The same for an operation that is alone, on a subvolume in which entries change: what waits is in the trees, and
 * it may edit these while it holds delayed_lock_trees(). @alone: what it may need for that. The transaction may have
 * been committed meanwhile.
 */
int op_begin_alone(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
		   const struct ticket_alone *alone, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same where no entries of any subvolume change. */
int op_begin_nowhere(struct op *op, struct btrkit_txn *txn, const struct ticket_need *need,
		     const struct ticket_alone *alone, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Another subvolume that the same operation has to do with. Its reader is to be released, and nothing else ended.
 * @return 0; -ENOENT; <0
 */
int op_join(const struct op *op, uint64_t root, struct op *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Puts into the trees what it has left to wait. @return @ret; <0 */
int op_end_alone(struct op *op, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Before the end: of what was reserved nothing is used but for what waits of the inodes whose locks it has had since
 * they were taken, and @bytes; checksums are not added.
 */
void op_spare(struct op *op, const struct ticket_need *need, uint32_t bytes);
/*
 * Gives back the locks that are held. The caller has no others: it may wait until what others have left to wait is run.
 * @err: what was told of @ret. @return @ret
 */
int op_end(struct op *op, int ret, const struct btrkit_error *err);

/*
 * What an operation returned that may be done again: for want of space once, after a commit that is allowed; not if a
 * device has none.
 * @tried: false at first. @return 0: it is to be done again, or what is the result then
 */
int op_again(struct btrkit_txn *txn, bool *tried, int ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether what failed for want of space may be tried in smaller steps: not if a device has none. */
bool op_less_may_do(const struct btrkit_txn *txn, int ret);
/*
 * What a step returned of which at most *@max things are done: where that was too much for the space there is, it is to
 * be done again with @few, which *@max is then.
 * @return 0: it is done, or to be done again; <0
 */
int op_try_fewer(const struct btrkit_txn *txn, int ret, unsigned *max, unsigned few) BTRKIT_MUST_CHECK;

/* What is done needs an incompatible feature. */
void op_need_feature(struct op *op, uint64_t incompat);

/* An inode whose lock is held, and its item, to be changed in place and put back. */
struct op_inode {
	uint64_t inode;
	struct disk_inode_item item;
};

/* @return 0; -ENOENT; <0 */
int op_inode_get(struct op *op, uint64_t inode, struct op_inode *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Says in which transaction it was changed. */
int op_inode_put(struct op *op, struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline struct disk_time op_put_time(const struct btrkit_time *t)
{
	return (struct disk_time){ le64_put((uint64_t)t->sec), le32_put(t->nsec) };
}

static inline uint32_t op_inode_mode(const struct op_inode *in)
{
	return le32_get(in->item.mode);
}

/* Whether an inode can have the owner: Linux takes the highest number for nobody's. @return 0; -EINVAL */
int op_judge_owner(uint32_t uid, uint32_t gid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether that is a time. @return 0; -EINVAL */
int op_judge_time(const struct btrkit_time *time, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the subvolume may be written. @return 0; -EROFS */
int op_judge_writable(const struct op *op, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What Linux looks up in what is none fails before anything else. @return 0; -ENOTDIR */
int op_judge_is_dir(const struct op_inode *dir, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether an inode may get other attributes, or lose a name. @return 0; -EPERM: it is immutable or append-only */
int op_judge_fixed(const struct op_inode *in, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Whether entries of a directory may be changed: @forbidden are flags besides INODE_IMMUTABLE that forbid it.
 * @return 0; -ENOTDIR; -EPERM; -EROFS
 */
int op_judge_dir(const struct op *op, const struct op_inode *dir, uint64_t forbidden,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
