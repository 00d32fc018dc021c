/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ACL_H
#define BTRKIT_FORMAT_ACL_H

/* A POSIX ACL as Linux stores it in an extended attribute: a version, followed by the entries. */

#include <btrkit/types.h>

#include "lib/base/le.h"

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
#define ACL_VERSION 2
#define ACL_RWX 7u
#define ACL_NO_ID UINT32_MAX /* id of entries that do not name a user or group */

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

static inline bool acl_has_id(enum acl_tag tag)
{
	return tag == ACL_USER || tag == ACL_GROUP;
}

/* Gets the entries of an ACL, and validates each of them. @return 0; -EINVAL; -EOPNOTSUPP: unknown version */
int acl_entries(const void *value, size_t size, const struct disk_acl_entry **ret, uint32_t *n,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether Linux accepts the ACL, which may also have no entries. @return as acl_entries() */
int acl_check(const void *value, size_t size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
