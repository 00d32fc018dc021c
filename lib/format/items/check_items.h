/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_CHECK_ITEMS_H
#define BTRKIT_FORMAT_ITEMS_CHECK_ITEMS_H

/* Common checks of the validate functions. Fields are named as in the disk structs, or "key.*" and "item_size". */

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/item.h"

/* Sector sizes are powers of two, because the superblock is validated before any item. */
static inline bool sector_aligned(const struct item_ctx *ctx, uint64_t v)
{
	return !(v & (ctx->sectorsize - 1));
}

/* The log tree is one generation ahead of the superblock. */
static inline bool from_the_future(const struct item_ctx *ctx, uint64_t generation)
{
	return generation > ctx->generation && generation - ctx->generation > 1;
}

/* Whether an inode may have this objectid. */
static inline bool is_inode_number(uint64_t oid)
{
	return (oid >= OID_FIRST_FREE && oid <= OID_LAST_FREE) || oid == OID_ROOT_TREE_DIR || oid == OID_FREE_INO;
}

static inline int expect_size(const struct item *item, size_t size, struct btrkit_error *err)
{
	if (item->size == size)
		return 0;
	return err_corrupt(err, "item_size", "item has %" PRIu32 " bytes, expected %zu", item->size, size);
}

static inline int expect_aligned(const struct item_ctx *ctx, const char *field, uint64_t v, struct btrkit_error *err)
{
	if (sector_aligned(ctx, v))
		return 0;
	return err_corrupt(err, field, "%s %" PRIu64 " is not a multiple of the sector size", field, v);
}

static inline int expect_generation(const struct item_ctx *ctx, const char *field, uint64_t v,
				    struct btrkit_error *err)
{
	if (!from_the_future(ctx, v))
		return 0;
	return err_corrupt(err, field, "%s %" PRIu64 " is above the superblock's %" PRIu64, field, v, ctx->generation);
}

static inline int expect_level(const char *field, uint64_t v, struct btrkit_error *err)
{
	if (v < LEVELS_MAX)
		return 0;
	return err_corrupt(err, field, "%s %" PRIu64 " is above %d", field, v, LEVELS_MAX - 1);
}

#endif
