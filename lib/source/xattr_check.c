// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decides which extended attributes an inode may have: those that Linux can show and remove. */
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/acl.h"
#include "lib/format/attribute.h"
#include "lib/source/state.h"

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static int check_acl(const char *name, const void *value, size_t size, uint32_t mode, struct btrkit_error *err)
{
	const struct disk_acl_entry *entries;
	uint32_t n;
	int ret;

	if (S_ISLNK(mode))
		return err_set(err, BTRKIT_INVALID, "a symbolic link has no ACL");
	if (!strcmp(name, ACL_DEFAULT) && !S_ISDIR(mode))
		return err_set(err, BTRKIT_INVALID, "only directories have a default ACL");
	ret = acl_entries(value, size, &entries, &n, err);
	if (!ret && !n)
		return err_set(err, BTRKIT_INVALID, "ACL has no entries");
	return ret ? ret : acl_check(value, size, err);
}

static int check_name(const char *name, uint32_t mode, struct btrkit_error *err)
{
	static const char *const kinds[] = { "security.", "trusted.", "user.", ATTRIBUTE_PROPERTY };
	const bool plain = S_ISREG(mode) || S_ISDIR(mode);
	size_t i = 0;

	while (i < sizeof(kinds) / sizeof(kinds[0]) && !begins(name, kinds[i]))
		i++;
	if (i == sizeof(kinds) / sizeof(kinds[0]))
		return err_set(err, BTRKIT_UNSUPPORTED, "unsupported attribute namespace");
	if (!name[strlen(kinds[i])])
		return err_set(err, BTRKIT_INVALID, "name consists of a prefix only");
	if (begins(name, ATTRIBUTE_PROPERTY) && strcmp(name, ATTRIBUTE_COMPRESSION) != 0)
		return err_set(err, BTRKIT_INVALID, "unknown property");
	if (!plain && (begins(name, "user.") || begins(name, ATTRIBUTE_PROPERTY)))
		return err_set(err, BTRKIT_INVALID, "only files and directories can have such attributes");
	return 0;
}

int source_check_xattr(const char *name, const void *value, size_t size, uint32_t mode, struct btrkit_error *err)
{
	uint32_t flags = 0;
	int ret;

	if (!strcmp(name, ACL_ACCESS) || !strcmp(name, ACL_DEFAULT))
		return check_acl(name, value, size, mode, err);
	ret = check_name(name, mode, err);
	if (!ret && !strcmp(name, ATTRIBUTE_CAPABILITY) &&
	    (attribute_capability(value, size, &flags) < 2 || flags & ~ATTRIBUTE_CAPABILITY_EFFECTIVE))
		ret = err_set(err, BTRKIT_INVALID, "invalid file capabilities");
	if (!ret && !strcmp(name, ATTRIBUTE_COMPRESSION) && !attribute_compression_valid(value, size))
		ret = err_set(err, BTRKIT_INVALID, "invalid compression");
	return ret;
}
