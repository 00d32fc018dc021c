// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "lib/extract/tar.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/le.h"
#include "lib/format/items/inode.h"

/* An ACL as Linux stores it in an attribute. */
#define ACL_VERSION 2

struct acl_entry {
	le16 tag, perm;
	le32 id;
};

/* @return tag of libarchive; 0: unknown */
static int tag_of(uint32_t tag)
{
	switch (tag) {
	case 1:
		return ARCHIVE_ENTRY_ACL_USER_OBJ;
	case 2:
		return ARCHIVE_ENTRY_ACL_USER;
	case 4:
		return ARCHIVE_ENTRY_ACL_GROUP_OBJ;
	case 8:
		return ARCHIVE_ENTRY_ACL_GROUP;
	case 16:
		return ARCHIVE_ENTRY_ACL_MASK;
	case 32:
		return ARCHIVE_ENTRY_ACL_OTHER;
	default:
		return 0;
	}
}

static bool has_id(int tag)
{
	return tag == ARCHIVE_ENTRY_ACL_USER || tag == ARCHIVE_ENTRY_ACL_GROUP;
}

/* Get the entries of an ACL, without copying. @return false: invalid ACL */
static bool find_entries(const struct extract_xattr *a, const struct acl_entry **entries, size_t *n)
{
	const size_t head = sizeof(le32);

	if (a->value_len < head || (a->value_len - head) % sizeof(**entries) ||
	    le32_get(*(const le32 *)a->value) != ACL_VERSION)
		return false;
	*entries = (const struct acl_entry *)(a->value + head);
	*n = (a->value_len - head) / sizeof(**entries);
	for (size_t i = 0; i < *n; i++) {
		const struct acl_entry *one = *entries + i;
		const int tag = tag_of(le16_get(one->tag));

		if (!tag || le16_get(one->perm) > 7 || (has_id(tag) && le32_get(one->id) > INT32_MAX))
			return false;
	}
	return true;
}

/* @return false: invalid ACL, nothing was added */
static bool add_acl(struct archive_entry *e, int type, const struct extract_xattr *a)
{
	const struct acl_entry *entries;
	size_t n;

	if (!find_entries(a, &entries, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const int tag = tag_of(le16_get(entries[i].tag));
		const int id = has_id(tag) ? (int)le32_get(entries[i].id) : -1;

		if (archive_entry_acl_add_entry(e, type, le16_get(entries[i].perm), tag, id, NULL) != ARCHIVE_OK)
			return false;
	}
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

		if (!strcmp(a->name, "system.posix_acl_access"))
			type = ARCHIVE_ENTRY_ACL_TYPE_ACCESS;
		else if (!strcmp(a->name, "system.posix_acl_default"))
			type = ARCHIVE_ENTRY_ACL_TYPE_DEFAULT;
		/* In the header, the name ends at the first equals sign. */
		if (type ? !add_acl(e, type, a) : strchr(a->name, '=') || strlen(a->name) != a->name_len)
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
