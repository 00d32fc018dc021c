/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEM_H
#define BTRKIT_FORMAT_ITEM_H

/*
 * The item registry: one row per key type. Dump, check, read and the seal before a write all walk it. The functions of
 * a type stand in one file of items/, together with its disk struct, its decoded struct and its decode function.
 */

#include <btrkit/error.h>

#include "lib/base/emit.h"
#include "lib/format/disk.h"
#include "lib/format/ids.h"

/* What a filesystem says once and items are judged by. */
struct item_ctx {
	uint32_t sectorsize;
	uint32_t nodesize;
	uint16_t csum_type;
	uint16_t csum_size;
	uint64_t incompat;	/* the superblock's feature bits */
	uint64_t compat_ro;
	uint64_t generation;	/* of the superblock: none in the trees is above it by more than one */
	uint64_t owner;		/* of the leaf, from its header */
};

/* An item whose bytes lie inside its leaf, and about which nothing else has been judged. */
struct item {
	struct btrkit_key key;
	const uint8_t *data;
	uint32_t size;
};

/* What a person may ask a renderer to do. */
enum render_flags {
	RENDER_HIDE_NAMES = 1 << 0,	/* "HIDDEN" for names, xattr values, inline data */
	RENDER_CSUM_ITEMS = 1 << 1,	/* each checksum of a checksum item */
};

struct item_type {
	uint8_t type;		/* of the key */
	const char *name;	/* as in the text of dump-tree */
	uint32_t min_size;
	/*
	 * Judges key and bytes as Linux's tree checker does: 0 or what err_corrupt() returned, with the field's name.
	 * Called only with min_size bytes or more.
	 */
	int (*validate)(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err);
	/*
	 * The body of the item, below the line that dump-tree prints for its key. Called for items that validate()
	 * refused too: whatever the bytes are, it stays inside them.
	 */
	void (*render)(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags);
};

/*
 * The row of a key; NULL for an unknown type. A few rows depend on more than the type: KEY_TEMPORARY_ITEM and
 * KEY_PERSISTENT_ITEM on the objectid, and objectid OID_FREE_SPACE with type 0 is the v1 cache's header.
 */
const struct item_type *item_type_find(const struct btrkit_key *key);

/* Every row, in order of type; *count is their number. */
const struct item_type *const *item_types(size_t *count);

/* Size and then contents by the registry. An unknown type is valid. @return 0 or -EUCLEAN */
int item_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
