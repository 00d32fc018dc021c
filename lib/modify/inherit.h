/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_INHERIT_H
#define BTRKIT_MODIFY_INHERIT_H

/* Attributes that something new has from its directory. */

#include "lib/modify/acl.h"
#include "lib/modify/xattr.h"

struct inherited {
	uint32_t mode; /* of the new inode: as it is asked for, and then as it becomes */
	struct acl *standard, *access; /* default and access ACL */
	const char *compression; /* NULL: none */
};

/* The ACLs that a directory's default one gives to what is made in it, and the mode. @return 0; -EINVAL; <0 */
int inherit_acls(struct op *op, const struct op_inode *dir, struct inherited *h,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Bytes of all of it as items. */
uint32_t inherit_bytes(const struct inherited *h);
/* What the compression does to the flags of an inode. Not by who has locked the trees. */
void inherit_property(struct op *op, const struct inherited *h, struct disk_inode_item *item);
/* Gives it to an inode that has no attributes. */
int inherit_put(struct op *op, uint64_t inode, const struct inherited *h, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void inherit_forget(struct inherited *h);

#endif
