/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_REMOVE_H
#define BTRKIT_MODIFY_REMOVE_H

#include "lib/modify/names/names.h"

/*
 * Items that removing a name changes at most: those of the directory, and those of an inode that is removed, or an
 * ORPHAN_ITEM.
 */
#define REMOVE_ITEMS 8u

/*
 * Removes a name of @in from @dir. With the last name the inode is removed too; if it has too many items for that
 * *@orphan is set, and the caller calls remove_orphan(). Writes back @in, but not @dir. @return 0; <0
 */
int remove_name(struct op *op, struct op_inode *dir, struct op_inode *in, const struct name *name, bool *orphan,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Checks whether a name of @in may be removed from @dir. @directory: @in must be a directory, otherwise it must not.
 * @return 0; -EPERM; -EROFS; -EISDIR; -ENOTDIR
 */
int remove_check_name(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like remove_check_name(), and a directory must be empty. @return as remove_check_name(); -ENOTEMPTY */
int remove_check(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes all items of an inode without names, in operations of its own, since there may be any number of them. After a
 * failure the rest is an orphan, which Linux removes at the next mount. Must not be called inside the gate.
 */
int remove_orphan(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Deletes the ORPHAN_ITEM of an inode, if it still exists. Requires the lock of OID_ORPHAN. @return 0; <0 */
int remove_orphan_item(struct op *op, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
