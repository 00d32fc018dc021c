// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/names/inherit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int inherit_acls(struct op *op, const struct op_inode *dir, struct inherited *h, struct btrkit_error *err)
{
	struct dir_entry e;
	int ret;

	if (S_ISLNK(h->mode))
		return 0;
	ret = xattr_find_noted(op, dir->inode, XATTR_DEFAULT_ACL, &e, err);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = acl_parse(e.data, e.data_len, &h->access, err);
	if (!ret && h->access && S_ISDIR(h->mode))
		ret = acl_parse(e.data, e.data_len, &h->standard, err);
	if (ret || !h->access)
		return ret;
	ret = acl_inherit(h->access, &h->mode, err);
	if (ret == 1) {
		free(h->access);
		h->access = NULL;
	}
	return ret < 0 ? ret : 0;
}

uint32_t inherit_bytes(const struct inherited *h)
{
	uint32_t n = 0;

	if (h->standard)
		n += xattr_bytes(strlen(ACL_DEFAULT), acl_size(h->standard));
	if (h->access)
		n += xattr_bytes(strlen(ACL_ACCESS), acl_size(h->access));
	if (h->compression)
		n += xattr_bytes(strlen(ATTRIBUTE_COMPRESSION), strlen(h->compression));
	return n;
}

void inherit_property(struct op *op, const struct inherited *h, struct disk_inode_item *item)
{
	if (h->compression)
		property_apply(op, item, h->compression, strlen(h->compression));
}

int inherit_put(struct op *op, uint64_t inode, const struct inherited *h, struct btrkit_error *err)
{
	int ret = 0;

	if (h->compression)
		ret = xattr_put(op, inode, ATTRIBUTE_COMPRESSION, h->compression, strlen(h->compression), err);
	if (!ret && h->standard)
		ret = acl_put(op, inode, ACL_DEFAULT, h->standard, err);
	if (!ret && h->access)
		ret = acl_put(op, inode, ACL_ACCESS, h->access, err);
	return ret;
}

void inherit_forget(struct inherited *h)
{
	free(h->standard);
	free(h->access);
	*h = (struct inherited){ 0 };
}
