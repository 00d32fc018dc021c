/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEM_H
#define BTRKIT_FORMAT_ITEM_H

/*
 * The item registry, with one row per key type. Dump, check, reading, and the verification before a write all use it.
 * The functions of a type are in one file in items/, together with its disk struct, its decoded struct and its decode
 * function.
 */

#include <btrkit/error.h>

#include "lib/base/emit.h"
#include "lib/format/disk.h"
#include "lib/format/ids.h"

/* Properties of the filesystem and the leaf that are needed to validate items. */
struct item_ctx {
	uint32_t sectorsize;
	uint32_t nodesize;
	uint16_t csum_type;
	uint16_t csum_size;
	uint64_t incompat;	/* feature bits of the superblock */
	uint64_t compat_ro;
	uint64_t generation;	/* of the superblock; no generation in the trees exceeds it by more than one */
	uint64_t owner;		/* of the leaf, from its header */
};

/* An item whose data is inside its leaf; nothing else has been validated. */
struct item {
	struct btrkit_key key;
	const uint8_t *data;
	uint32_t size;
};

/* Options of the renderers. */
enum render_flags {
	RENDER_HIDE_NAMES = 1 << 0,	/* print "HIDDEN" for names, xattr values, inline data */
	RENDER_CSUM_ITEMS = 1 << 1,	/* print each checksum of a checksum item */
	RENDER_COMPAT_6_19 = 1 << 2,	/* print text as btrfs-progs 6.19 does */
};

struct item_type {
	uint8_t type;		/* of the key */
	const char *name;	/* as printed by dump-tree */
	uint32_t min_size;
	/*
	 * Validate key and data like Linux's tree checker does. Called only with min_size bytes or more.
	 * @return 0, or the result of err_corrupt() with the name of the field
	 */
	int (*validate)(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err);
	/*
	 * Render the body of the item, which dump-tree prints after the line with the key. Also called for items that
	 * validate() rejected, so it must not access data outside of the item.
	 */
	void (*render)(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags);
};

/* The rows by the type of their keys, but for the header of the v1 cache. */
extern const struct item_type *const item_types_by_number[256];
extern const struct item_type item_type_space_cache;

/*
 * The row for a key; NULL for an unknown type. Some rows depend on more than the type: the renderers of
 * KEY_TEMPORARY_ITEM and KEY_PERSISTENT_ITEM on the objectid, and type 0 with objectid OID_FREE_SPACE is the header of
 * the v1 cache. Inline, because dump and check ask for every item.
 */
static inline const struct item_type *item_type_find(const struct btrkit_key *key)
{
	if (!key->type && key->objectid == OID_FREE_SPACE)
		return &item_type_space_cache;
	return item_types_by_number[key->type];
}

/* All rows in the order of types; *count is their number. */
const struct item_type *const *item_types(size_t *count);

/* Validates size and contents of an item by its row. Unknown types are valid. @return 0 or -EUCLEAN */
int item_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
