// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/fields.h"

#include <string.h>

#include "lib/format/ids.h"
#include "lib/format/items/devices/balance.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/format/items/devices/dev_stats.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/dir_log.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/free_space.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/devices/raid_stripe.h"
#include "lib/format/items/devices/remap.h"
#include "lib/format/items/root.h"
#include "lib/format/items/space_cache.h"
#include "lib/format/items/files/verity.h"

struct layout {
	uint32_t size, count;
	const struct field *fields;
};

#include "tests/fuzz/fields_table.h"

static const struct field number_at[] = { { 0, 8, "number" } }, count_at[] = { { 0, 4, "count" } };
static const struct layout number = { 8, 1, number_at }, count = { 4, 1, count_at };

/*
 * The items of a type: one struct, then others as often as they fit, each followed by as many bytes as its fields say.
 */
static const struct shape {
	uint8_t type;
	const struct layout *first, *each;
	uint8_t len_at[2]; /* offsets of 16-bit lengths in each; 0: none */
} shapes[] = {
	{ KEY_INODE_ITEM, &disk_inode_item, NULL, { 0 } },
	{ KEY_INODE_REF, NULL, &disk_inode_ref, { offsetof(struct disk_inode_ref, name_len) } },
	{ KEY_INODE_EXTREF, NULL, &disk_inode_extref, { offsetof(struct disk_inode_extref, name_len) } },
	{ KEY_XATTR_ITEM,
	  NULL,
	  &disk_dir_item,
	  { offsetof(struct disk_dir_item, name_len), offsetof(struct disk_dir_item, data_len) } },
	{ KEY_DIR_ITEM,
	  NULL,
	  &disk_dir_item,
	  { offsetof(struct disk_dir_item, name_len), offsetof(struct disk_dir_item, data_len) } },
	{ KEY_DIR_INDEX,
	  NULL,
	  &disk_dir_item,
	  { offsetof(struct disk_dir_item, name_len), offsetof(struct disk_dir_item, data_len) } },
	{ KEY_VERITY_DESC_ITEM, &disk_verity_desc, NULL, { 0 } },
	{ KEY_DIR_LOG_ITEM, &disk_dir_log, NULL, { 0 } },
	{ KEY_DIR_LOG_INDEX, &disk_dir_log, NULL, { 0 } },
	{ KEY_EXTENT_DATA, &disk_file_extent, NULL, { 0 } },
	{ KEY_ROOT_ITEM, &disk_root_item, NULL, { 0 } },
	{ KEY_ROOT_REF, &disk_root_ref, NULL, { 0 } },
	{ KEY_ROOT_BACKREF, &disk_root_ref, NULL, { 0 } },
	{ KEY_EXTENT_DATA_REF, &disk_extent_data_ref, NULL, { 0 } },
	{ KEY_SHARED_DATA_REF, &count, NULL, { 0 } },
	{ KEY_EXTENT_OWNER_REF, &number, NULL, { 0 } },
	{ KEY_BLOCK_GROUP_ITEM, &disk_block_group_remap, NULL, { 0 } },
	{ KEY_FREE_SPACE_INFO, &disk_free_space_info, NULL, { 0 } },
	{ KEY_DEV_EXTENT, &disk_dev_extent, NULL, { 0 } },
	{ KEY_DEV_ITEM, &disk_dev_item, NULL, { 0 } },
	{ KEY_CHUNK_ITEM, &disk_chunk, &disk_stripe, { 0 } },
	{ KEY_RAID_STRIPE, NULL, &disk_raid_stride, { 0 } },
	{ KEY_REMAP, &disk_remap, NULL, { 0 } },
	{ KEY_REMAP_BACKREF, &disk_remap, NULL, { 0 } },
	{ KEY_QGROUP_STATUS, &disk_qgroup_status, NULL, { 0 } },
	{ KEY_QGROUP_INFO, &disk_qgroup_info, NULL, { 0 } },
	{ KEY_QGROUP_LIMIT, &disk_qgroup_limit, NULL, { 0 } },
	{ KEY_TEMPORARY_ITEM, &disk_balance, NULL, { 0 } },
	{ KEY_PERSISTENT_ITEM, &disk_dev_stats, NULL, { 0 } },
	{ KEY_DEV_REPLACE, &disk_dev_replace, NULL, { 0 } },
	{ KEY_UUID_SUBVOL, NULL, &number, { 0 } },
	{ KEY_UUID_RECEIVED_SUBVOL, NULL, &number, { 0 } },
	{ 0, &disk_space_cache, NULL, { 0 } },
};

/* Visits the fields of a struct that are completely there. @return the end of the struct, at most @size */
static uint32_t put(const struct layout *l, uint8_t *data, uint32_t at, uint32_t size, field_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct field f = { at + l->fields[i].at, l->fields[i].width, l->fields[i].name };

		if (f.at + f.width <= size)
			fn(ctx, data, f);
	}
	return at + l->size < size ? at + l->size : size;
}

static uint32_t put_each(const struct shape *s, uint8_t *data, uint32_t at, uint32_t size, field_fn fn, void *ctx)
{
	while (size - at >= s->each->size) {
		const uint8_t *begin = data + at;

		at = put(s->each, data, at, size, fn, ctx);
		for (size_t i = 0; i < 2 && s->len_at[i]; i++) {
			uint32_t len = begin[s->len_at[i]] | (uint32_t)begin[s->len_at[i] + 1] << 8;

			at += len < size - at ? len : size - at;
		}
	}
	return at;
}

/* An extent item with its inline references: each is a type byte and what follows for that type. */
static uint32_t put_extent(const struct disk_key *key, uint8_t *data, uint32_t size, field_fn fn, void *ctx)
{
	uint32_t at = put(&disk_extent_item, data, 0, size, fn, ctx);

	if (key->type == KEY_EXTENT_ITEM && size > 16 && data[16] & EXTENT_FLAG_TREE_BLOCK)
		at = put(&disk_tree_block_info, data, at, size, fn, ctx);
	while (at < size) {
		uint8_t type = data[at];

		fn(ctx, data, (struct field){ at++, 1, "type" });
		if (type == KEY_EXTENT_DATA_REF)
			at = put(&disk_extent_data_ref, data, at, size, fn, ctx);
		else
			at = put(&number, data, at, size, fn, ctx);
		if (type == KEY_SHARED_DATA_REF)
			at = put(&count, data, at, size, fn, ctx);
	}
	return at;
}

static void put_rest(uint8_t *data, uint32_t at, uint32_t size, field_fn fn, void *ctx)
{
	uint32_t width = size - at >= 8 ? 8 : 1;

	if (at >= size)
		return;
	fn(ctx, data, (struct field){ at, width, "first-bytes" });
	if (size - width > at)
		fn(ctx, data, (struct field){ size - width, width, "last-bytes" });
}

void fields_of_item(const struct disk_key *key, uint8_t *data, uint32_t size, field_fn fn, void *ctx)
{
	uint32_t at = 0;

	if (key->type == KEY_EXTENT_ITEM || key->type == KEY_METADATA_ITEM)
		at = put_extent(key, data, size, fn, ctx);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *s = &shapes[i];

		if (s->type != key->type)
			continue;
		if (s->first)
			at = put(s->first, data, at, size, fn, ctx);
		if (s->each)
			at = put_each(s, data, at, size, fn, ctx);
	}
	put_rest(data, at, size, fn, ctx);
}

void fields_of_key(struct disk_key *key, field_fn fn, void *ctx)
{
	put(&disk_key, (uint8_t *)key, 0, sizeof(*key), fn, ctx);
}

void fields_of_super(uint8_t *super, field_fn fn, void *ctx)
{
	const uint32_t chunks = offsetof(struct disk_super, sys_chunk_array);

	put(&disk_super, super, 0, SUPER_SIZE, fn, ctx);
	put(&disk_key, super, chunks, SUPER_SIZE, fn, ctx);
	put(&disk_chunk, super, chunks + disk_key.size, SUPER_SIZE, fn, ctx);
	put(&disk_stripe, super, chunks + disk_key.size + disk_chunk.size, SUPER_SIZE, fn, ctx);
}

void fields_of_header(uint8_t *block, field_fn fn, void *ctx)
{
	put(&disk_header, block, 0, sizeof(struct disk_header), fn, ctx);
}

static const struct layout *slot_layout(const uint8_t *block)
{
	return block[offsetof(struct disk_header, level)] ? &disk_key_ptr : &disk_item;
}

uint32_t fields_slots(const uint8_t *block, uint32_t len)
{
	const struct disk_header *h = (const struct disk_header *)block;
	uint32_t most = (len - (uint32_t)sizeof(*h)) / slot_layout(block)->size, n = le32_get(h->nritems);

	return n < most ? n : most;
}

void fields_of_slot(uint8_t *block, uint32_t slot, field_fn fn, void *ctx)
{
	const struct layout *l = slot_layout(block);
	uint32_t at = (uint32_t)sizeof(struct disk_header) + slot * l->size;

	put(l, block, at, at + l->size, fn, ctx);
}

const struct disk_key *fields_slot_item(uint8_t *block, uint32_t len, uint32_t slot, uint8_t **data, uint32_t *size)
{
	struct disk_item *d = (struct disk_item *)(block + sizeof(struct disk_header)) + slot;
	uint32_t room = len - (uint32_t)sizeof(struct disk_header);

	if (block[offsetof(struct disk_header, level)])
		return NULL;
	*size = le32_get(d->size);
	if (*size > room || le32_get(d->offset) > room - *size)
		return NULL;
	*data = block + sizeof(struct disk_header) + le32_get(d->offset);
	return &d->key;
}

bool field_set(uint8_t *base, struct field f, unsigned n, uint64_t random)
{
	uint64_t old = 0, max = f.width == 8 ? UINT64_MAX : (1ull << 8 * f.width) - 1, v;

	for (uint32_t i = 0; i < f.width; i++)
		old |= (uint64_t)base[f.at + i] << 8 * i;
	v = (const uint64_t[]){ 0, 1, max, max - 1, random & max, (old + 1) & max, (old - 1) & max }[n];
	for (uint32_t i = 0; i < f.width; i++)
		base[f.at + i] = (uint8_t)(v >> 8 * i);
	return v != old;
}
