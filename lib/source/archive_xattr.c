// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/archive.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/acl.h"
#include "lib/source/layers.h"

#define ENCODED_MAX (3 * SOURCE_NAME_MAX + 1)

static enum acl_tag tag_of(int tag)
{
	switch (tag) {
	case ARCHIVE_ENTRY_ACL_USER_OBJ:
		return ACL_USER_OBJ;
	case ARCHIVE_ENTRY_ACL_USER:
		return ACL_USER;
	case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
		return ACL_GROUP_OBJ;
	case ARCHIVE_ENTRY_ACL_GROUP:
		return ACL_GROUP;
	case ARCHIVE_ENTRY_ACL_MASK:
		return ACL_MASK;
	default:
		return ACL_OTHER;
	}
}

static int compare(const void *a, const void *b)
{
	const struct disk_acl_entry *x = a, *y = b;
	const uint32_t tags[2] = { le16_get(x->tag), le16_get(y->tag) };
	const uint32_t ids[2] = { le32_get(x->id), le32_get(y->id) };

	if (tags[0] != tags[1])
		return tags[0] < tags[1] ? -1 : 1;
	return (ids[0] > ids[1]) - (ids[0] < ids[1]);
}

/* Determines a numeric id. A name is only accepted if it is a number. @return false: no number */
static bool id_of(int id, const char *name, uint32_t *ret)
{
	unsigned long long v;
	char *end;

	*ret = (uint32_t)id;
	if (id >= 0)
		return true;
	if (!name || *name < '0' || *name > '9')
		return false;
	errno = 0;
	v = strtoull(name, &end, 10);
	*ret = (uint32_t)v;
	return !errno && !*end && v < ACL_NO_ID;
}

static int add_acl(struct source *s, uint32_t inode, struct archive_entry *e, int type, const char *attribute,
		   struct btrkit_error *err)
{
	int n = archive_entry_acl_reset(e, type), kind, permset, tag, id, ret = 0;
	struct disk_acl *acl;
	const char *name;
	uint32_t count = 0;

	if (n <= 0)
		return 0;
	acl = calloc(1, sizeof(*acl) + (size_t)n * sizeof(acl->at[0]));
	if (!acl)
		return err_nomem(err);
	acl->version = le32_put(ACL_VERSION);
	while (count < (uint32_t)n &&
	       archive_entry_acl_next(e, type, &kind, &permset, &tag, &id, &name) == ARCHIVE_OK) {
		struct disk_acl_entry *one = &acl->at[count++];
		const enum acl_tag t = tag_of(tag);
		uint32_t number = ACL_NO_ID;

		if ((t == ACL_USER || t == ACL_GROUP) && !id_of(id, name, &number)) {
			ret = source_fail(s, inode, err, EINVAL, "ACL has the name %.32s without a numeric id",
					  name ? name : "");
			break;
		}
		one->tag = le16_put((uint16_t)t);
		one->perm = le16_put((uint16_t)(permset & 7));
		one->id = le32_put(number);
	}
	qsort(acl->at, count, sizeof(acl->at[0]), compare);
	if (!ret)
		ret = source_add_xattr(s, inode, attribute, acl, sizeof(*acl) + count * sizeof(acl->at[0]), err);
	free(acl);
	return ret;
}

uint32_t archive_mode(struct archive_entry *e)
{
	uint32_t mode = archive_entry_mode(e);
	int kind, permset, tag, id;
	const char *name;

	if (!(archive_entry_acl_types(e) & ARCHIVE_ENTRY_ACL_TYPE_ACCESS))
		return mode;
	/* stat(2) shows the mask in the group bits, where libarchive has the permissions of the owning group. */
	(void)archive_entry_acl_reset(e, ARCHIVE_ENTRY_ACL_TYPE_ACCESS);
	while (archive_entry_acl_next(e, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, &kind, &permset, &tag, &id, &name) ==
	       ARCHIVE_OK)
		if (tag == ARCHIVE_ENTRY_ACL_MASK)
			mode = (mode & ~070u) | ((uint32_t)permset & 7) << 3;
	return mode;
}

/* Decodes what GNU tar encodes in the names of attributes: equals and percent signs. @return @name or @to */
static const char *decode_name(const char *name, char to[ENCODED_MAX])
{
	size_t n = 0;

	if (!strchr(name, '%') || strlen(name) >= ENCODED_MAX)
		return name;
	while (*name) {
		const bool equals = !strncmp(name, "%3D", 3), percent = !strncmp(name, "%25", 3);

		to[n++] = equals ? '=' : *name;
		name += equals || percent ? 3 : 1;
	}
	to[n] = '\0';
	return to;
}

struct archive_overlay archive_overlay(struct archive_entry *e)
{
	struct archive_overlay ret = { 0 };
	const void *value;
	const char *name, *word;
	size_t len;

	(void)archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &value, &len) == ARCHIVE_OK) {
		word = source_overlay_word(name);
		if (!word)
			continue;
		if (!strcmp(word, "opaque") && len == 1 && *(const char *)value == 'y')
			ret.opaque = true;
		else if (!strcmp(word, "redirect") || !strcmp(word, "metacopy") || !strcmp(word, "whiteout"))
			ret.wrong = word;
	}
	return ret;
}

int archive_add_xattrs(struct source *s, uint32_t inode, struct archive_entry *e, struct btrkit_error *err)
{
	static const char access[] = ACL_ACCESS, standard[] = ACL_DEFAULT;
	static const char selinux[] = "security.selinux";
	const int types = archive_entry_acl_types(e);
	bool has_access = false, has_default = false;
	const void *value, *label = NULL;
	const char *stored, *name;
	char decoded[ENCODED_MAX];
	size_t len, label_len = 0;
	int ret = 0;

	(void)archive_entry_xattr_reset(e);
	while (!ret && archive_entry_xattr_next(e, &stored, &value, &len) == ARCHIVE_OK) {
		name = decode_name(stored, decoded);
		has_access |= !strcmp(name, access);
		has_default |= !strcmp(name, standard);
		if (strcmp(name, selinux)) {
			ret = source_add_xattr(s, inode, name, value, len, err);
		} else if (!label || len > label_len) {
			label = value;
			label_len = len;
		}
	}
	/* GNU tar may store it twice, once without the terminating zero byte. */
	if (!ret && label)
		ret = source_add_xattr(s, inode, selinux, label, label_len, err);
	if (!ret && (types & ~(ARCHIVE_ENTRY_ACL_TYPE_ACCESS | ARCHIVE_ENTRY_ACL_TYPE_DEFAULT)))
		ret = source_fail(s, inode, err, EINVAL, "ACL type is not supported by Linux");
	if (!ret && !has_access && (types & ARCHIVE_ENTRY_ACL_TYPE_ACCESS))
		ret = add_acl(s, inode, e, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, access, err);
	if (!ret && !has_default && (types & ARCHIVE_ENTRY_ACL_TYPE_DEFAULT))
		ret = add_acl(s, inode, e, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, standard, err);
	return ret;
}

#endif
