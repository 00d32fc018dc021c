/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_BLOCK_H
#define BTRKIT_SWEEP_BLOCK_H

/* Accesses to verified tree blocks in a buffer, which have no struct node. */

#include "lib/format/item.h"

static inline const struct disk_header *block_header(const uint8_t *block)
{
	return (const struct disk_header *)block;
}

static inline uint32_t block_nritems(const uint8_t *block)
{
	return le32_get(block_header(block)->nritems);
}

static inline const struct disk_item *block_items(const uint8_t *block)
{
	return (const struct disk_item *)(block_header(block) + 1);
}

static inline struct item block_item(const uint8_t *block, uint32_t i)
{
	const struct disk_item *d = block_items(block) + i;

	return (struct item){ key_get(&d->key), block + sizeof(struct disk_header) + le32_get(d->offset),
			      le32_get(d->size) };
}

static inline const struct disk_key_ptr *block_ptrs(const uint8_t *block)
{
	return (const struct disk_key_ptr *)(block_header(block) + 1);
}

#endif
