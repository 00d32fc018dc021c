// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/dump.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/format/ids.h"

/* Dashes in the input match underscores. */
static const struct {
	const char *name;
	uint64_t id;
} names[] = {
	{ "root", OID_ROOT_TREE },
	{ "extent", OID_EXTENT_TREE },
	{ "chunk", OID_CHUNK_TREE },
	{ "device", OID_DEV_TREE },
	{ "dev", OID_DEV_TREE },
	{ "fs", OID_FS_TREE },
	{ "csum", OID_CSUM_TREE },
	{ "checksum", OID_CSUM_TREE },
	{ "quota", OID_QUOTA_TREE },
	{ "uuid", OID_UUID_TREE },
	{ "free_space", OID_FREE_SPACE_TREE },
	{ "tree_log_fixup", OID_TREE_LOG_FIXUP },
	{ "tree_log", OID_TREE_LOG },
	{ "tree_reloc", OID_TREE_RELOC },
	{ "data_reloc", OID_DATA_RELOC_TREE },
	{ "block_group", OID_BLOCK_GROUP_TREE },
	{ "raid_stripe", OID_RAID_STRIPE_TREE },
	{ "remap", OID_REMAP_TREE },
};

/* If @s begins with @word (dashes match underscores), return the rest of @s; otherwise NULL. */
static const char *behind(const char *s, const char *word)
{
	for (; *word; word++, s++)
		if ((*s == '-' ? '_' : tolower((unsigned char)*s)) != *word)
			return NULL;
	return s;
}

/* Accepts [BTRFS_]NAME[_TREE][_OBJECTID]. */
static bool is_name(const char *s, const char *name)
{
	const char *at = behind(s, "btrfs_");

	s = behind(at ? at : s, name);
	if (!s)
		return false;
	at = behind(s, "_tree");
	s = at ? at : s;
	at = behind(s, "_objectid");
	return !*(at ? at : s);
}

int btrkit_tree_parse(const char *name, uint64_t *ret)
{
	char *end;
	unsigned long long id;

	if (isdigit((unsigned char)*name)) {
		errno = 0;
		id = strtoull(name, &end, 0);
		if (errno || *end || !id)
			return -ENOENT;
		*ret = id;
		return 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!is_name(name, names[i].name))
			continue;
		*ret = names[i].id;
		return 0;
	}
	return -ENOENT;
}
