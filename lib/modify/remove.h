/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_REMOVE_H
#define BTRKIT_MODIFY_REMOVE_H

#include "lib/modify/names.h"

/* What the removal of a name changes: of the directory, and of an inode that goes, or an ORPHAN_ITEM. */
#define REMOVE_ITEMS 8u

/*
 * Takes a name of @in out of @dir. With the last one the inode goes, or has too many items for that: *@orphan says so,
 * and remove_orphan() does it. Puts @in back, and not @dir. @return 0; <0
 */
int remove_name(struct op *op, struct op_inode *dir, struct op_inode *in, const struct name *name, bool *orphan,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Whether something may lose its name in a directory: a directory, or anything else.
 * @return 0; -EPERM; -EROFS; -EISDIR; -ENOTDIR
 */
int remove_judge_name(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same, and a directory must be empty. @return as remove_judge_name(); -ENOTEMPTY */
int remove_judge(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Takes all items of an inode that has no name away, by operations of their own: it may have any number of them. If
 * that fails the rest is an orphan, which Linux removes when it is mounted. Not by who is in the gate.
 */
int remove_orphan(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes away what says that an inode is an orphan, if nobody else has; with the lock of OID_ORPHAN. @return 0; <0 */
int remove_orphan_item(struct op *op, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
