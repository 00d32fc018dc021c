/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ACL_H
#define BTRKIT_MODIFY_ACL_H

/* POSIX ACLs in memory, and what they and the mode of an inode say of each other. */

#include "lib/format/acl.h"
#include "lib/modify/op.h"

struct acl_entry {
	enum acl_tag tag;
	uint16_t perm;
	uint32_t id;
};

struct acl {
	uint32_t n;
	struct acl_entry at[];
};

/*
 * *@ret is the caller's to free; NULL: it has no entries. @return 0; -EINVAL; -EOPNOTSUPP: another version; -ENOMEM
 */
int acl_parse(const void *value, size_t size, struct acl **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The mode that goes with it. @return whether that says all of it */
bool acl_to_mode(const struct acl *a, uint32_t *mode);
/* It follows a new mode. @return 0; -EINVAL: it cannot */
int acl_follow_mode(struct acl *a, uint32_t mode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * A directory's default ACL becomes the access ACL of an inode that is made with a mode, of which some permissions go.
 * @return 0; 1: the mode says all of it; -EINVAL
 */
int acl_inherit(struct acl *a, uint32_t *mode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline size_t acl_size(const struct acl *a)
{
	return sizeof(struct disk_acl) + a->n * sizeof(struct disk_acl_entry);
}

/* Gives an inode an ACL by the name ACL_ACCESS or ACL_DEFAULT. It fits. */
int acl_put(struct op *op, uint64_t inode, const char *name, const struct acl *a,
	    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes it away, if it is there. */
int acl_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
