/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_DEV_H
#define BTRKIT_FORMAT_ITEMS_DEV_H

#include "lib/format/item.h"

/* DEV_ITEM. Its disk struct is in disk.h, because the superblock also contains it. */
struct dev_item {
	uint64_t devid;
	uint64_t total_bytes, bytes_used;
	uint32_t io_align, io_width, sector_size;
	uint64_t type;
	uint64_t generation;
	uint64_t start_offset;
	uint32_t dev_group;
	uint8_t seek_speed, bandwidth;
	uint8_t uuid[16], fsid[16];
};

int dev_item_decode(const struct item *item, struct dev_item *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

struct disk_dev_extent {
	le64 chunk_tree;
	le64 chunk_objectid;
	le64 chunk_offset;
	le64 length;
	uint8_t chunk_tree_uuid[16];
};
DISK_ASSERT_SIZE(disk_dev_extent, 48);
DISK_ASSERT_AT(disk_dev_extent, chunk_objectid, 8);
DISK_ASSERT_AT(disk_dev_extent, chunk_offset, 16);
DISK_ASSERT_AT(disk_dev_extent, length, 24);
DISK_ASSERT_AT(disk_dev_extent, chunk_tree_uuid, 32);

/* A range of a device that a chunk occupies. */
struct dev_extent {
	uint64_t devid;
	uint64_t physical;
	uint64_t chunk_tree, chunk_objectid;
	uint64_t chunk_offset;	/* logical address of the chunk */
	uint64_t length;
};

int dev_extent_decode(const struct item_ctx *ctx, const struct item *item, struct dev_extent *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_dev;
extern const struct item_type item_type_dev_extent;

#endif
