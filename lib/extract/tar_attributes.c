// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "lib/extract/tar.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/acl.h"
#include "lib/format/items/files/inode.h"

/* @return tag of libarchive */
static int tag_of(enum acl_tag tag)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return ARCHIVE_ENTRY_ACL_USER_OBJ;
	case ACL_USER:
		return ARCHIVE_ENTRY_ACL_USER;
	case ACL_GROUP_OBJ:
		return ARCHIVE_ENTRY_ACL_GROUP_OBJ;
	case ACL_GROUP:
		return ARCHIVE_ENTRY_ACL_GROUP;
	case ACL_MASK:
		return ARCHIVE_ENTRY_ACL_MASK;
	case ACL_OTHER:
		return ARCHIVE_ENTRY_ACL_OTHER;
	}
	return 0;
}

/* @return false: invalid ACL, or one that libarchive cannot store; nothing was added */
static bool add_acl(struct archive_entry *e, int type, const struct extract_xattr *a)
{
	const struct disk_acl_entry *entries;
	uint32_t n;

	if (acl_entries(a->value, a->value_len, &entries, &n, NULL))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (le16_get(entries[i].perm) > ACL_RWX ||
		    (acl_has_id(le16_get(entries[i].tag)) && le32_get(entries[i].id) > INT32_MAX))
			return false;
	for (uint32_t i = 0; i < n; i++) {
		const enum acl_tag tag = (enum acl_tag)le16_get(entries[i].tag);
		const int id = acl_has_id(tag) ? (int)le32_get(entries[i].id) : -1, perm = le16_get(entries[i].perm);

		if (archive_entry_acl_add_entry(e, type, perm, tag_of(tag), id, NULL) != ARCHIVE_OK)
			return false;
	}
	return true;
}

/*
 * Whether the name is the same for all readers. libarchive encodes other characters with a percent sign, of which GNU
 * tar decodes some and others none.
 */
static bool can_name(const struct extract_xattr *a)
{
	for (size_t i = 0; i < a->name_len; i++)
		if (a->name[i] < '!' || a->name[i] > '~' || a->name[i] == '%' || a->name[i] == '=')
			return false;
	return true;
}

static void add_flags(struct archive_entry *e, uint64_t flags)
{
	static const struct {
		uint64_t flag;
		const char *text;
	} names[] = { { INODE_IMMUTABLE, ",schg" }, { INODE_APPEND, ",sappnd" }, { INODE_NODUMP, ",nodump" } };
	char text[32] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & names[i].flag)
			strcat(text, names[i].text);
	if (*text)
		archive_entry_copy_fflags_text(e, text + 1);
}

int tar_attributes(struct extract *x, struct archive_entry *e, const struct extract_item *item)
{
	int ret = 0;

	for (size_t i = 0; i < item->num_xattrs && !ret; i++) {
		const struct extract_xattr *a = &item->xattrs[i];
		int type = 0;

		if (!strcmp(a->name, ACL_ACCESS))
			type = ARCHIVE_ENTRY_ACL_TYPE_ACCESS;
		else if (!strcmp(a->name, ACL_DEFAULT))
			type = ARCHIVE_ENTRY_ACL_TYPE_DEFAULT;
		if (type ? !add_acl(e, type, a) : !can_name(a))
			ret = extract_unmade(x, item->path, EINVAL, "cannot store attribute %.60s in an archive",
					     a->name);
		else if (!type)
			archive_entry_xattr_add_entry(e, a->name, a->value, a->value_len);
	}
	if (!item->link)
		add_flags(e, item->i.flags);
	return ret;
}

#endif
