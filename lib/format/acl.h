/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ACL_H
#define BTRKIT_FORMAT_ACL_H

/* A POSIX ACL as Linux keeps it in an extended attribute: a version, and entries one behind the other. */

#include "lib/base/le.h"

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
#define ACL_VERSION 2
#define ACL_NO_ID UINT32_MAX /* of those who are no user and no group by number */

enum acl_tag {
	ACL_USER_OBJ = 1,
	ACL_USER = 2,
	ACL_GROUP_OBJ = 4,
	ACL_GROUP = 8,
	ACL_MASK = 16,
	ACL_OTHER = 32
};

struct disk_acl_entry {
	le16 tag, perm;
	le32 id;
};

struct disk_acl {
	le32 version;
	struct disk_acl_entry at[];
};

#endif
