// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/key_names.h"

#include <errno.h>
#include <strings.h>

#include "lib/base/digits.h"
#include "lib/format/item.h"
#include "lib/format/raid.h"

#define OID_MULTIPLE ((uint64_t)-255)
#define OID_NONE ((uint64_t)-1)

#define KEY_ROOM 160 /* more than a key with the longest names and three numbers */

/*
 * Names of trees and other fixed objectids. All of them are small positive or negative numbers, so there are two
 * tables.
 */
static const char *const low_names[] = {
	[OID_ROOT_TREE] = "ROOT_TREE",
	[OID_EXTENT_TREE] = "EXTENT_TREE",
	[OID_CHUNK_TREE] = "CHUNK_TREE",
	[OID_DEV_TREE] = "DEV_TREE",
	[OID_FS_TREE] = "FS_TREE",
	[OID_ROOT_TREE_DIR] = "ROOT_TREE_DIR",
	[OID_CSUM_TREE] = "CSUM_TREE",
	[OID_QUOTA_TREE] = "QUOTA_TREE",
	[OID_UUID_TREE] = "UUID_TREE",
	[OID_FREE_SPACE_TREE] = "FREE_SPACE_TREE",
	[OID_BLOCK_GROUP_TREE] = "BLOCK_GROUP_TREE",
	[OID_RAID_STRIPE_TREE] = "RAID_STRIPE_TREE",
	[OID_REMAP_TREE] = "REMAP_TREE",
};

#define NEGATIVE(oid) (0 - (oid))

static const char *const high_names[] = {
	[NEGATIVE(OID_NONE)] = "-1",
	[NEGATIVE(OID_BALANCE)] = "BALANCE",
	[NEGATIVE(OID_ORPHAN)] = "ORPHAN",
	[NEGATIVE(OID_TREE_LOG)] = "TREE_LOG",
	[NEGATIVE(OID_TREE_LOG_FIXUP)] = "LOG_FIXUP",
	[NEGATIVE(OID_TREE_RELOC)] = "TREE_RELOC",
	[NEGATIVE(OID_DATA_RELOC_TREE)] = "DATA_RELOC_TREE",
	[NEGATIVE(OID_EXTENT_CSUM)] = "EXTENT_CSUM",
	[NEGATIVE(OID_FREE_SPACE)] = "FREE_SPACE",
	[NEGATIVE(OID_FREE_INO)] = "FREE_INO",
	[NEGATIVE(OID_CSUM_CHANGE)] = "CSUM_CHANGE",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *objectid_name(uint64_t oid, uint8_t type)
{
	if (oid < COUNT(low_names))
		return oid == OID_DEV_ITEMS && type == KEY_DEV_ITEM ? "DEV_ITEMS" : low_names[oid];
	if (NEGATIVE(oid) < COUNT(high_names))
		return high_names[NEGATIVE(oid)];
	if (oid == OID_FIRST_CHUNK_TREE && type == KEY_CHUNK_ITEM)
		return "FIRST_CHUNK_TREE";
	return oid == OID_MULTIPLE ? "MULTIPLE" : NULL;
}

int objectid_by_name(const char *name, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t oid;
	} others[] = {
		{ "DEV_ITEMS", OID_DEV_ITEMS },
		{ "FIRST_CHUNK_TREE", OID_FIRST_CHUNK_TREE },
		{ "MULTIPLE", OID_MULTIPLE },
		{ "DEV_STATS", OID_DEV_STATS },
	};

	for (uint64_t oid = 0; oid < COUNT(low_names) || oid < COUNT(high_names); oid++) {
		const bool low = oid < COUNT(low_names) && low_names[oid] && !strcasecmp(name, low_names[oid]);

		if (!low && (oid >= COUNT(high_names) || !high_names[oid] || strcasecmp(name, high_names[oid])))
			continue;
		*ret = low ? oid : NEGATIVE(oid);
		return 0;
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		if (strcasecmp(name, others[i].name))
			continue;
		*ret = others[i].oid;
		return 0;
	}
	return -ENOENT;
}

static char *put_string(char *to, const char *s)
{
	const size_t len = strlen(s);

	memcpy(to, s, len);
	return to + len;
}

/* Half of a UUID as sixteen hexadecimal digits. */
static char *put_half_uuid(char *to, uint64_t v)
{
	to = put_string(to, "0x");
	for (int shift = 60; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[v >> shift & 15];
	return to;
}

/* LEVEL/ID */
static char *put_qgroup(char *to, uint64_t id)
{
	to = digits_put(to, id >> 48);
	*to++ = '/';
	return digits_put(to, id & ((1ull << 48) - 1));
}

static char *put_objectid(char *to, uint64_t oid, uint8_t type)
{
	const char *name;

	switch (type) {
	case KEY_PERSISTENT_ITEM:
		return oid == OID_DEV_STATS ? put_string(to, "DEV_STATS") : digits_put(to, oid);
	case KEY_DEV_EXTENT:
		return digits_put(to, oid);
	case KEY_QGROUP_RELATION:
		return put_qgroup(to, oid);
	case KEY_UUID_SUBVOL:
	case KEY_UUID_RECEIVED_SUBVOL:
		return put_half_uuid(to, oid);
	}
	name = objectid_name(oid, type);
	return name ? put_string(to, name) : digits_put(to, oid);
}

static char *put_type(char *to, uint64_t oid, uint8_t type)
{
	const char *name = key_type_name(oid, type);

	return name ? put_string(to, name) : digits_put(put_string(to, "UNKNOWN."), type);
}

static char *put_offset(char *to, const struct btrkit_key *key)
{
	switch (key->type) {
	case KEY_QGROUP_RELATION:
	case KEY_QGROUP_INFO:
	case KEY_QGROUP_LIMIT:
		return put_qgroup(to, key->offset);
	case KEY_UUID_SUBVOL:
	case KEY_UUID_RECEIVED_SUBVOL:
		return put_half_uuid(to, key->offset);
	case KEY_ROOT_ITEM:
		/*
		 * The tree that a relocation tree relocates; other root items have a transaction id, printed as a
		 * number even if it is UINT64_MAX.
		 */
		if (key->objectid == OID_TREE_RELOC)
			return put_objectid(to, key->offset, KEY_ROOT_ITEM);
		return digits_put(to, key->offset);
	default:
		return key->offset == UINT64_MAX ? put_string(to, "-1") : digits_put(to, key->offset);
	}
}

static char *put_key(char *to, const struct btrkit_key *key)
{
	to = put_string(to, "key (");
	to = put_objectid(to, key->objectid, key->type);
	*to++ = ' ';
	to = put_type(to, key->objectid, key->type);
	*to++ = ' ';
	to = put_offset(to, key);
	*to++ = ')';
	return to;
}

/* A separate function, because few keys need the buffer. */
static void type_unknown_emit(struct emit *e, const char *words, uint8_t type)
{
	char name[16];

	*put_type(name, 0, type) = '\0';
	emit_str(e, "type_name", words, name);
}

void key_type_emit(struct emit *e, const char *words, uint64_t objectid, uint8_t type)
{
	const char *name = key_type_name(objectid, type);

	if (!name)
		type_unknown_emit(e, words, type);
	else if (e->form == EMIT_JSON)
		emit_word(e, "type_name", name);
	else
		emit_str(e, "", words, name);
}

static void key_emit_json(struct emit *e, const char *name, const struct btrkit_key *key)
{
	emit_object(e, name);
	emit_u64(e, "objectid", "", key->objectid);
	emit_u64(e, "type", "", key->type);
	key_type_emit(e, "", key->objectid, key->type);
	emit_u64(e, "offset", "", key->offset);
	emit_object_end(e);
}

void key_emit(struct emit *e, const char *name, const char *words, const struct btrkit_key *key)
{
	char *to;

	if (e->form == EMIT_JSON) {
		key_emit_json(e, name, key);
		return;
	}
	emit_text(e, words);
	to = emit_room(e, KEY_ROOM);
	if (to)
		emit_took(e, (size_t)(put_key(to, key) - to));
}

void objectid_emit(struct emit *e, const char *name, const char *words, uint64_t objectid, uint8_t type)
{
	char *to;

	if (e->form == EMIT_JSON) {
		emit_u64(e, name, words, objectid);
		return;
	}
	emit_text(e, words);
	to = emit_room(e, KEY_ROOM);
	if (to)
		emit_took(e, (size_t)(put_objectid(to, objectid, type) - to));
}

void item_line_emit(struct emit *e, uint32_t slot, const struct btrkit_key *key, uint32_t offset, uint32_t size)
{
	char *to, *start;

	if (e->form == EMIT_JSON) {
		emit_u64(e, "slot", "", slot);
		key_emit_json(e, "key", key);
		emit_u64(e, "offset", "", offset);
		emit_u64(e, "size", "", size);
		return;
	}
	start = emit_room(e, 2 * KEY_ROOM);
	if (!start)
		return;
	to = put_string(start, "\titem ");
	to = digits_put(to, slot);
	*to++ = ' ';
	to = put_key(to, key);
	to = put_string(to, " itemoff ");
	to = digits_put(to, offset);
	to = put_string(to, " itemsize ");
	to = digits_put(to, size);
	*to++ = '\n';
	emit_took(e, (size_t)(to - start));
}

const char *tree_title(uint64_t objectid)
{
	switch (objectid) {
	case OID_ROOT_TREE: return "root";
	case OID_EXTENT_TREE: return "extent";
	case OID_CHUNK_TREE: return "chunk";
	case OID_DEV_TREE: return "device";
	case OID_FS_TREE: return "fs";
	case OID_ROOT_TREE_DIR: return "directory";
	case OID_CSUM_TREE: return "checksum";
	case OID_QUOTA_TREE: return "quota";
	case OID_UUID_TREE: return "uuid";
	case OID_FREE_SPACE_TREE: return "free space";
	case OID_BLOCK_GROUP_TREE: return "block group";
	case OID_RAID_STRIPE_TREE: return "raid stripe";
	case OID_ORPHAN: return "orphan";
	case OID_TREE_LOG: return "log";
	case OID_TREE_LOG_FIXUP: return "log fixup";
	case OID_TREE_RELOC: return "reloc";
	case OID_DATA_RELOC_TREE: return "data reloc";
	case OID_EXTENT_CSUM: return "extent checksum";
	case OID_MULTIPLE: return "multiple";
	default: return "file";
	}
}

uint64_t flags_text(struct emit *e, const struct flag_name *names, uint64_t flags)
{
	bool any = false;

	for (; names->bit; names++) {
		if (!(flags & names->bit))
			continue;
		if (any)
			emit_text(e, "|");
		emit_text(e, names->name);
		flags &= ~names->bit;
		any = true;
	}
	return flags;
}

void flags_names_emit(struct emit *e, const char *name, const struct flag_name *names, uint64_t flags)
{
	if (e->form != EMIT_JSON)
		return;
	emit_array(e, name);
	for (; names->bit; names++)
		if (flags & names->bit)
			emit_word(e, NULL, names->name);
	emit_array_end(e);
}

static const struct flag_name bg_types[] = {
	{ BG_DATA, "DATA" },
	{ BG_METADATA, "METADATA" },
	{ BG_SYSTEM, "SYSTEM" },
	{ BG_METADATA_REMAP, "METADATA_REMAP" },
	{ 0, NULL },
};

void bg_flags_emit(struct emit *e, const char *name, const char *words, uint64_t flags)
{
	if (e->form == EMIT_JSON) {
		emit_u64(e, name, words, flags);
		return;
	}
	emit_text(e, words);
	flags_text(e, bg_types, flags);
	emit_text(e, "|");
	emit_text(e, raid_profile_find(flags)->name);
}

void bg_flags_names_emit(struct emit *e, const char *name, uint64_t flags)
{
	if (e->form != EMIT_JSON)
		return;
	emit_array(e, name);
	for (const struct flag_name *type = bg_types; type->bit; type++)
		if (flags & type->bit)
			emit_word(e, NULL, type->name);
	emit_str(e, NULL, "", raid_profile_find(flags)->name);
	emit_array_end(e);
}
