/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_FILE_EXTENT_H
#define BTRKIT_FORMAT_ITEMS_FILE_EXTENT_H

#include "lib/format/item.h"

enum file_extent_type { FILE_EXTENT_INLINE, FILE_EXTENT_REG, FILE_EXTENT_PREALLOC };
enum compression { COMPRESS_NONE, COMPRESS_ZLIB, COMPRESS_LZO, COMPRESS_ZSTD };

/* In an inline extent, the data replaces the last four fields. */
struct disk_file_extent {
	le64 generation;
	le64 ram_bytes;
	uint8_t compression;
	uint8_t encryption;
	le16 other_encoding;
	uint8_t type;
	le64 disk_bytenr;
	le64 disk_num_bytes;
	le64 offset;
	le64 num_bytes;
};
DISK_ASSERT_SIZE(disk_file_extent, 53);
DISK_ASSERT_AT(disk_file_extent, compression, 16);
DISK_ASSERT_AT(disk_file_extent, type, 20);
DISK_ASSERT_AT(disk_file_extent, disk_bytenr, 21);
DISK_ASSERT_AT(disk_file_extent, disk_num_bytes, 29);
DISK_ASSERT_AT(disk_file_extent, offset, 37);
DISK_ASSERT_AT(disk_file_extent, num_bytes, 45);
#define FILE_EXTENT_INLINE_START 21

struct file_extent {
	uint64_t generation;
	uint64_t ram_bytes;
	uint8_t compression;
	uint8_t type;
	uint16_t other_encoding; /* not used by any known kernel, 0 */
	/* Regular and preallocated extents; disk_bytenr 0 is a hole. Zero for inline extents. */
	uint64_t disk_bytenr, disk_num_bytes, offset, num_bytes;
	/* Inline extents. */
	const uint8_t *inline_data;
	uint32_t inline_len;
};

int file_extent_decode(const struct item_ctx *ctx, const struct item *item, struct file_extent *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_extent_data;

#endif
