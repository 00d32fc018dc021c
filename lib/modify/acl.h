/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ACL_H
#define BTRKIT_MODIFY_ACL_H

/* POSIX ACLs in memory, and how they interact with the mode of an inode. */

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
 * Parses the value of an ACL attribute. The caller frees *@ret, which is NULL if the ACL has no entries.
 * @return 0; -EINVAL; -EOPNOTSUPP: unknown version; -ENOMEM
 */
int acl_parse(const void *value, size_t size, struct acl **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Sets the permissions of *@mode from the ACL. @return whether the mode expresses the ACL completely */
bool acl_to_mode(const struct acl *a, uint32_t *mode);
/* Changes the entries to match a new mode. @return 0; -EINVAL: there is no entry for the group */
int acl_follow_mode(struct acl *a, uint32_t mode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Turns a directory's default ACL into the access ACL of an inode created with *@mode, and masks the permissions of
 * both.
 * @return 0; 1: *@mode expresses the ACL completely; -EINVAL
 */
int acl_inherit(struct acl *a, uint32_t *mode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline size_t acl_size(const struct acl *a)
{
	return sizeof(struct disk_acl) + a->n * sizeof(struct disk_acl_entry);
}

/* Sets the ACL @name, ACL_ACCESS or ACL_DEFAULT, of an inode. It must fit: xattr_fits(). */
int acl_put(struct op *op, uint64_t inode, const char *name, const struct acl *a,
	    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes an ACL, if there is one. */
int acl_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
