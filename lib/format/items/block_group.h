/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_BLOCK_GROUP_H
#define BTRKIT_FORMAT_ITEMS_BLOCK_GROUP_H

#include "lib/format/item.h"

struct disk_block_group {
	le64 used;
	le64 chunk_objectid;
	le64 flags;
};
DISK_ASSERT_SIZE(disk_block_group, 24);
DISK_ASSERT_AT(disk_block_group, chunk_objectid, 8);
DISK_ASSERT_AT(disk_block_group, flags, 16);

/* The item with the remap-tree feature. */
struct disk_block_group_remap {
	struct disk_block_group v1;
	le64 remap_bytes;
	le32 identity_remap_count;
};
DISK_ASSERT_SIZE(disk_block_group_remap, 36);
DISK_ASSERT_AT(disk_block_group_remap, remap_bytes, 24);
DISK_ASSERT_AT(disk_block_group_remap, identity_remap_count, 32);

struct block_group {
	uint64_t start;
	uint64_t length;
	uint64_t used;
	uint64_t chunk_objectid;
	uint64_t flags;		/* BG_* */
};

int block_group_decode(const struct item_ctx *ctx, const struct item *item, struct block_group *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_block_group;

#endif
