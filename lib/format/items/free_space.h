/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_FREE_SPACE_H
#define BTRKIT_FORMAT_ITEMS_FREE_SPACE_H

#include "lib/format/item.h"

/*
 * The free space tree: for each block group, a FREE_SPACE_INFO followed by its free ranges, either as empty
 * FREE_SPACE_EXTENT items or as FREE_SPACE_BITMAP items.
 */

#define FREE_SPACE_USING_BITMAPS (1u << 0)

struct disk_free_space_info {
	le32 extent_count;
	le32 flags;
};
DISK_ASSERT_SIZE(disk_free_space_info, 8);
DISK_ASSERT_AT(disk_free_space_info, flags, 4);

struct free_space_info {
	uint64_t start;		/* of the block group */
	uint64_t length;
	uint32_t extent_count;
	uint32_t flags;
};

int free_space_info_decode(const struct item_ctx *ctx, const struct item *item, struct free_space_info *ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_free_space_info;
extern const struct item_type item_type_free_space_extent;
extern const struct item_type item_type_free_space_bitmap;

#endif
