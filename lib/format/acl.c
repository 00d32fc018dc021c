// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/acl.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"

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

int acl_entries(const void *value, size_t size, const struct disk_acl_entry **ret, uint32_t *n,
		struct btrkit_error *err)
{
	const struct disk_acl *d = value;

	if (size < sizeof(*d))
		return err_set(err, BTRKIT_INVALID, "ACL has invalid size %zu", size);
	if (le32_get(d->version) != ACL_VERSION)
		return err_set(err, BTRKIT_UNSUPPORTED, "ACL has unknown version %u", le32_get(d->version));
	if ((size - sizeof(*d)) % sizeof(d->at[0]))
		return err_set(err, BTRKIT_INVALID, "ACL has invalid size %zu", size);
	*ret = d->at;
	*n = (uint32_t)((size - sizeof(*d)) / sizeof(d->at[0]));
	for (uint32_t i = 0; i < *n; i++) {
		const uint32_t tag = le16_get(d->at[i].tag);

		if (!is_tag(tag) || (acl_has_id((enum acl_tag)tag) && le32_get(d->at[i].id) == ACL_NO_ID))
			return err_set(err, BTRKIT_INVALID, "invalid ACL entry");
	}
	return 0;
}

/* Whether the entries are in order, and required entries are present. */
static bool go_together(const struct disk_acl_entry *at, uint32_t n)
{
	enum acl_tag wanted = ACL_USER_OBJ;
	bool named = false, over = false, right = true;

	for (uint32_t i = 0; right && i < n; i++) {
		const enum acl_tag tag = (enum acl_tag)le16_get(at[i].tag);

		right = !over && !(le16_get(at[i].perm) & ~ACL_RWX);
		named |= acl_has_id(tag);
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
	return right && over;
}

int acl_check(const void *value, size_t size, struct btrkit_error *err)
{
	const struct disk_acl_entry *at = NULL;
	uint32_t n = 0;
	const int ret = acl_entries(value, size, &at, &n, err);

	if (ret || !n || go_together(at, n))
		return ret;
	return err_set(err, BTRKIT_INVALID, "ACL entries are invalid, missing or out of order");
}
