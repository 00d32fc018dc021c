// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/xattr.h"

int acl_parse(const void *value, size_t size, struct acl **ret, struct btrkit_error *err)
{
	const struct disk_acl_entry *at = NULL;
	struct acl *a;
	uint32_t n = 0;
	const int r = acl_entries(value, size, &at, &n, err);

	*ret = NULL;
	if (r || !n)
		return r;
	a = malloc(sizeof(*a) + n * sizeof(a->at[0]));
	if (!a)
		return err_nomem(err);
	a->n = n;
	for (uint32_t i = 0; i < n; i++)
		a->at[i] = (struct acl_entry){ (enum acl_tag)le16_get(at[i].tag), le16_get(at[i].perm),
					       le32_get(at[i].id) };
	*ret = a;
	return 0;
}

bool acl_to_mode(const struct acl *a, uint32_t *mode)
{
	uint32_t owner = 0, group = 0, other = 0, mask = 0;
	bool all = true, masked = false;

	for (uint32_t i = 0; i < a->n; i++) {
		const uint32_t perm = a->at[i].perm & ACL_RWX;

		switch (a->at[i].tag) {
		case ACL_USER_OBJ:
			owner = perm;
			break;
		case ACL_GROUP_OBJ:
			group = perm;
			break;
		case ACL_OTHER:
			other = perm;
			break;
		case ACL_MASK:
			masked = true;
			mask = perm;
			all = false;
			break;
		default:
			all = false;
		}
	}
	*mode = (*mode & ~0777u) | owner << 6 | (masked ? mask : group) << 3 | other;
	return all;
}

/* The entry that the group permissions of the mode apply to; NULL: damaged ACL. */
static struct acl_entry *group_class(struct acl *a)
{
	struct acl_entry *group = NULL;

	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].tag == ACL_MASK)
			return &a->at[i];
		if (a->at[i].tag == ACL_GROUP_OBJ)
			group = &a->at[i];
	}
	return group;
}

int acl_follow_mode(struct acl *a, uint32_t mode, struct btrkit_error *err)
{
	struct acl_entry *group = group_class(a);

	if (!group)
		return err_set(err, BTRKIT_INVALID, "ACL has no entry for the owning group");
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].tag == ACL_USER_OBJ)
			a->at[i].perm = mode >> 6 & ACL_RWX;
		else if (a->at[i].tag == ACL_OTHER)
			a->at[i].perm = mode & ACL_RWX;
	}
	group->perm = mode >> 3 & ACL_RWX;
	return 0;
}

int acl_inherit(struct acl *a, uint32_t *mode, struct btrkit_error *err)
{
	struct acl_entry *group = group_class(a);

	if (!group)
		return err_set(err, BTRKIT_INVALID, "default ACL has no entry for the owning group");
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].tag == ACL_USER_OBJ)
			a->at[i].perm &= *mode >> 6 & ACL_RWX;
		else if (a->at[i].tag == ACL_OTHER)
			a->at[i].perm &= *mode & ACL_RWX;
	}
	group->perm &= *mode >> 3 & ACL_RWX;
	return acl_to_mode(a, mode);
}

int acl_put(struct op *op, uint64_t inode, const char *name, const struct acl *a, struct btrkit_error *err)
{
	struct disk_acl *d = malloc(acl_size(a));
	int ret;

	if (!d)
		return err_nomem(err);
	d->version = le32_put(ACL_VERSION);
	for (uint32_t i = 0; i < a->n; i++)
		d->at[i] = (struct disk_acl_entry){ le16_put((uint16_t)a->at[i].tag), le16_put(a->at[i].perm),
						    le32_put(acl_has_id(a->at[i].tag) ? a->at[i].id : ACL_NO_ID) };
	ret = xattr_put(op, inode, name, d, acl_size(a), err);
	free(d);
	return ret;
}

int acl_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err)
{
	const int ret = xattr_drop(op, inode, name, err);

	return ret < 0 ? ret : 0;
}
