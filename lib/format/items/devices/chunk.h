/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_CHUNK_H
#define BTRKIT_FORMAT_ITEMS_CHUNK_H

#include "lib/format/item.h"

/* A CHUNK_ITEM, or an entry of the superblock's sys_chunk_array. */
struct chunk {
	uint64_t logical;
	uint64_t length;
	uint64_t owner;
	uint64_t stripe_len;
	uint64_t type;		/* BG_* */
	uint32_t io_align, io_width, sector_size;
	uint16_t num_stripes;
	uint16_t sub_stripes;
	const struct disk_stripe *stripes;	/* num_stripes stripes, inside the item */
};

/* @return 0 or -EUCLEAN; *ret is set on success only */
int chunk_decode(const struct item_ctx *ctx, const struct item *item, struct chunk *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Size of a chunk item with @num_stripes stripes. */
static inline size_t chunk_item_size(uint16_t num_stripes)
{
	return sizeof(struct disk_chunk) + (size_t)num_stripes * sizeof(struct disk_stripe);
}

extern const struct item_type item_type_chunk;

#endif
