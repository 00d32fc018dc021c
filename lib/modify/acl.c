// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/xattr.h"

#define RWX 7u

static bool has_id(enum acl_tag tag)
{
	return tag == ACL_USER || tag == ACL_GROUP;
}

static bool is_tag(uint32_t tag)
{
	switch ((enum acl_tag)tag) {
	case ACL_USER_OBJ:
	case ACL_USER:
	case ACL_GROUP_OBJ:
	case ACL_GROUP:
	case ACL_MASK:
	case ACL_OTHER:
		return true;
	}
	return false;
}

int acl_parse(const void *value, size_t size, struct acl **ret, struct btrkit_error *err)
{
	const uint8_t *at = value;
	struct disk_acl head;
	struct acl *a;

	*ret = NULL;
	if (size < sizeof(head))
		return err_set(err, BTRKIT_INVALID, "an ACL of %zu bytes", size);
	memcpy(&head, at, sizeof(head));
	if (le32_get(head.version) != ACL_VERSION)
		return err_set(err, BTRKIT_UNSUPPORTED, "an ACL of version %u", le32_get(head.version));
	if ((size - sizeof(head)) % sizeof(struct disk_acl_entry))
		return err_set(err, BTRKIT_INVALID, "an ACL of %zu bytes", size);
	if (size == sizeof(head))
		return 0;
	a = malloc(sizeof(*a) + (size - sizeof(head)) / sizeof(struct disk_acl_entry) * sizeof(a->at[0]));
	if (!a)
		return err_nomem(err);
	a->n = 0;
	for (at += sizeof(head); a->n < (size - sizeof(head)) / sizeof(struct disk_acl_entry); a->n++) {
		struct disk_acl_entry d;

		memcpy(&d, at + a->n * sizeof(d), sizeof(d));
		a->at[a->n] = (struct acl_entry){ (enum acl_tag)le16_get(d.tag), le16_get(d.perm), le32_get(d.id) };
		if (!is_tag(le16_get(d.tag)) || (has_id(a->at[a->n].tag) && a->at[a->n].id == ACL_NO_ID)) {
			free(a);
			return err_set(err, BTRKIT_INVALID, "an entry of an ACL is of nobody");
		}
	}
	*ret = a;
	return 0;
}

int acl_judge(const struct acl *a, struct btrkit_error *err)
{
	enum acl_tag wanted = ACL_USER_OBJ;
	bool named = false, over = false, right = true;

	for (uint32_t i = 0; right && i < a->n; i++) {
		const enum acl_tag tag = a->at[i].tag;

		right = !over && !(a->at[i].perm & ~RWX);
		named |= has_id(tag);
		if (tag == ACL_OTHER) {
			over = true;
			right = right && (wanted == ACL_OTHER || (wanted == ACL_GROUP && !named));
		} else if (tag == ACL_MASK) {
			right = right && wanted == ACL_GROUP;
			wanted = ACL_OTHER;
		} else if (tag == ACL_USER_OBJ) {
			right = right && wanted == ACL_USER_OBJ;
			wanted = ACL_USER;
		} else if (tag == ACL_GROUP_OBJ) {
			right = right && wanted == ACL_USER;
			wanted = ACL_GROUP;
		} else {
			right = right && wanted == tag;
		}
	}
	return right && over ? 0 : err_set(err, BTRKIT_INVALID, "an ACL whose entries are none that go together");
}

bool acl_to_mode(const struct acl *a, uint32_t *mode)
{
	uint32_t owner = 0, group = 0, other = 0, mask = 0;
	bool all = true, masked = false;

	for (uint32_t i = 0; i < a->n; i++) {
		const uint32_t perm = a->at[i].perm & RWX;

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

/* The entry that the middle three bits of the mode are of; NULL: a damaged ACL. */
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
		return err_set(err, BTRKIT_INVALID, "an ACL that has no entry for the group");
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].tag == ACL_USER_OBJ)
			a->at[i].perm = mode >> 6 & RWX;
		else if (a->at[i].tag == ACL_OTHER)
			a->at[i].perm = mode & RWX;
	}
	group->perm = mode >> 3 & RWX;
	return 0;
}

int acl_inherit(struct acl *a, uint32_t *mode, struct btrkit_error *err)
{
	struct acl_entry *group = group_class(a);

	if (!group)
		return err_set(err, BTRKIT_INVALID, "a default ACL that has no entry for the group");
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].tag == ACL_USER_OBJ)
			a->at[i].perm &= *mode >> 6 & RWX;
		else if (a->at[i].tag == ACL_OTHER)
			a->at[i].perm &= *mode & RWX;
	}
	group->perm &= *mode >> 3 & RWX;
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
						    le32_put(has_id(a->at[i].tag) ? a->at[i].id : ACL_NO_ID) };
	ret = xattr_put(op, inode, name, d, acl_size(a), err);
	free(d);
	return ret;
}

int acl_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err)
{
	const int ret = xattr_drop(op, inode, name, err);

	return ret < 0 ? ret : 0;
}
