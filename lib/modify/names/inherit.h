/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_INHERIT_H
#define BTRKIT_MODIFY_INHERIT_H

/* Attributes that a new inode inherits from its directory. */

#include "lib/modify/acl.h"
#include "lib/modify/xattr.h"

struct inherited {
	uint32_t mode; /* of the new inode: initially as requested, then reduced by the default ACL */
	struct acl *standard, *access; /* default and access ACL */
	const char *compression; /* NULL: none */
};

/* Derives the ACLs and the mode of a new inode from the directory's default ACL. @return 0; -EINVAL; <0 */
int inherit_acls(struct op *op, const struct op_inode *dir, struct inherited *h,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The bytes of all inherited attributes as items. */
uint32_t inherit_bytes(const struct inherited *h);
/* Applies the inherited compression to the flags of an inode. The caller must not hold the lock of the trees. */
void inherit_property(struct op *op, const struct inherited *h, struct disk_inode_item *item);
/* Adds the inherited attributes to an inode that has none yet. */
int inherit_put(struct op *op, uint64_t inode, const struct inherited *h, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void inherit_forget(struct inherited *h);

#endif
