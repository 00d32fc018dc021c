// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items that describe devices, chunks, and used and free space. */
#include "lib/mkfs/streams.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/free_space.h"
#include "lib/format/raid.h"

struct disk_dev_item mkfs_dev_item(const struct mkfs_plan *p, unsigned device)
{
	const struct mkfs_device *from = &p->devices[device];
	struct disk_dev_item d = {
		.devid = le64_put(device + 1u),
		.total_bytes = le64_put(from->total_bytes),
		.bytes_used = le64_put(from->bytes_used),
		.io_align = le32_put(p->opts.sectorsize),
		.io_width = le32_put(p->opts.sectorsize),
		.sector_size = le32_put(p->opts.sectorsize),
	};

	memcpy(d.uuid, from->uuid, sizeof(d.uuid));
	memcpy(d.fsid, p->rules.fsid, sizeof(d.fsid));
	return d;
}

uint32_t mkfs_chunk_item_size(const struct mkfs_group *g)
{
	return (uint32_t)(sizeof(struct disk_chunk) + g->shape.num_stripes * sizeof(struct disk_stripe));
}

void mkfs_chunk_item(const struct mkfs_plan *p, const struct mkfs_group *g, uint8_t *to)
{
	struct disk_chunk *c = (struct disk_chunk *)to;
	struct disk_stripe *stripes = (struct disk_stripe *)(c + 1);

	*c = (struct disk_chunk){
		.length = le64_put(g->length),
		.owner = le64_put(OID_EXTENT_TREE),
		.stripe_len = le64_put(CHUNK_STRIPE_LEN),
		.type = le64_put(g->shape.type),
		.io_align = le32_put(CHUNK_STRIPE_LEN),
		.io_width = le32_put(CHUNK_STRIPE_LEN),
		.sector_size = le32_put(p->opts.sectorsize),
		.num_stripes = le16_put((uint16_t)g->shape.num_stripes),
		.sub_stripes = le16_put(g->shape.type & BG_RAID10 ? 2 : 1),
	};
	for (unsigned i = 0; i < g->shape.num_stripes; i++) {
		const struct mkfs_stripe *s = &g->stripes[i];

		stripes[i] = (struct disk_stripe){ .devid = le64_put(s->device + 1u),
						   .offset = le64_put(s->physical) };
		memcpy(stripes[i].dev_uuid, p->devices[s->device].uuid, sizeof(stripes[i].dev_uuid));
	}
}

static int add_chunk(const struct mkfs_plan *p, const struct mkfs_group *g, struct bulk *b, struct btrkit_error *err)
{
	const uint32_t size = mkfs_chunk_item_size(g);
	uint8_t *item = malloc(size);
	int ret;

	if (!item)
		return err_nomem(err);
	mkfs_chunk_item(p, g, item);
	ret = bulk_add(b, &KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, g->logical), item, size, err);
	free(item);
	return ret;
}

int mkfs_stream_chunks(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
		       struct btrkit_error *err)
{
	int ret = 0;

	(void)t;
	for (unsigned d = 0; !ret && d < p->num_devices; d++) {
		struct disk_dev_item dev = mkfs_dev_item(p, d);

		ret = bulk_add(b, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, d + 1u), &dev, sizeof(dev), err);
	}
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++)
		ret = add_chunk(p, &p->layout.groups[i], b, err);
	return ret;
}

/* Adds the device extents of a device. Their order on the device is that of the logical addresses. */
static int add_device_extents(const struct mkfs_plan *p, unsigned device, struct bulk *b, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned i = 0; i < p->layout.num_groups; i++) {
		const struct mkfs_group *g = &p->layout.groups[i];
		struct disk_dev_extent d = {
			.chunk_tree = le64_put(OID_CHUNK_TREE),
			.chunk_objectid = le64_put(OID_FIRST_CHUNK_TREE),
			.chunk_offset = le64_put(g->logical),
			.length = le64_put(g->stripe_length),
		};

		memcpy(d.chunk_tree_uuid, p->chunk_tree_uuid, sizeof(d.chunk_tree_uuid));
		for (unsigned s = 0; !ret && s < g->shape.num_stripes; s++)
			if (g->stripes[s].device == device)
				ret = bulk_add(b, &KEY(device + 1u, KEY_DEV_EXTENT, g->stripes[s].physical), &d,
					       sizeof(d), err);
	}
	return ret;
}

int mkfs_stream_devices(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err)
{
	static const uint8_t no_errors[5 * sizeof(le64)];
	int ret = 0;

	(void)t;
	for (unsigned d = 0; !ret && d < p->num_devices; d++)
		ret = bulk_add(b, &KEY(OID_DEV_STATS, KEY_PERSISTENT_ITEM, d + 1u), no_errors, sizeof(no_errors), err);
	for (unsigned d = 0; !ret && d < p->num_devices; d++)
		ret = add_device_extents(p, d, b, err);
	return ret;
}

static int add_block_group(const struct mkfs_plan *p, const struct mkfs_group *g, struct bulk *b,
			   struct btrkit_error *err)
{
	struct disk_block_group d = {
		.used = le64_put(mkfs_group_used(p, g)),
		.chunk_objectid = le64_put(OID_FIRST_CHUNK_TREE),
		.flags = le64_put(g->shape.type),
	};

	return bulk_add(b, &KEY(g->logical, KEY_BLOCK_GROUP_ITEM, g->length), &d, sizeof(d), err);
}

int mkfs_stream_block_groups(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			     struct btrkit_error *err)
{
	int ret = 0;

	(void)t;
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++)
		ret = add_block_group(p, &p->layout.groups[i], b, err);
	return ret;
}

/* Adds the extent item of block number @n of a tree, counted from its first leaf. */
static int add_block(const struct mkfs_plan *p, const struct mkfs_tree *t, unsigned level, uint64_t n, uint64_t bytenr,
		     struct bulk *b, struct btrkit_error *err)
{
	bool skinny = p->opts.incompat & INCOMPAT_SKINNY_METADATA;
	struct {
		struct disk_extent_item head;
		uint8_t rest[sizeof(struct disk_tree_block_info) + 1 + sizeof(le64)];
	} item = { .head = { le64_put(1), le64_put(p->generation), le64_put(EXTENT_FLAG_TREE_BLOCK) } };
	struct btrkit_key key = KEY(bytenr, KEY_METADATA_ITEM, level);
	uint8_t *at = item.rest;
	le64 root = le64_put(t->owner);

	if (!skinny) {
		/* The keys are not known yet while blocks are only counted. */
		struct disk_tree_block_info info = { .level = (uint8_t)level };

		if (n < t->num_keys)
			info.key = key_put(&t->keys[n]);
		memcpy(at, &info, sizeof(info));
		at += sizeof(info);
		key = KEY(bytenr, KEY_EXTENT_ITEM, p->opts.nodesize);
	}
	*at++ = KEY_TREE_BLOCK_REF;
	memcpy(at, &root, sizeof(root));
	at += sizeof(root);
	return bulk_add(b, &key, &item, (uint32_t)(at - (uint8_t *)&item), err);
}

/* Position of a slot in the trees. Slots are visited in order. */
struct walk {
	unsigned tree, level;
	uint64_t index; /* number in the level */
	uint64_t n;	/* number in the tree */
};

/* Advances to the next block of a tree with that role, which must exist. */
static void step(const struct mkfs_plan *p, enum mkfs_role role, struct walk *w)
{
	while (p->trees[w->tree].role != role || w->index == p->trees[w->tree].blocks[w->level]) {
		w->index = 0;
		if (p->trees[w->tree].role == role && w->level + 1 < LEVELS_MAX) {
			w->level++;
			continue;
		}
		w->level = 0;
		w->n = 0;
		w->tree++;
	}
}

static int add_tree_blocks(const struct mkfs_plan *p, const struct mkfs_group *g, struct walk *w, bool *told,
			   struct bulk *b, struct btrkit_error *err)
{
	const uint64_t blocks = mkfs_group_used(p, g) / p->opts.nodesize;
	int ret = 0;

	for (uint64_t slot = 0; !ret && slot < blocks; slot++) {
		const uint64_t bytenr = mkfs_group_block(g, p->opts.nodesize, slot);

		step(p, g->role, w);
		/* The key of the block group item sorts directly after that of a block at the start of the group. */
		if (!*told && bytenr != g->logical) {
			ret = add_block_group(p, g, b, err);
			*told = true;
		}
		if (!ret)
			ret = add_block(p, &p->trees[w->tree], w->level, w->n, bytenr, b, err);
		w->index++;
		w->n++;
	}
	return ret;
}

static int add_data_extents(const struct mkfs_plan *p, const struct mkfs_group *g, size_t *next, bool *told,
			    struct bulk *b, struct btrkit_error *err)
{
	bool first = g->used && g->end > g->logical;
	int ret = 0;

	/* The first extent is at the start of the group, unless there is a hole. */
	if (g->num_holes && g->holes[0].start == g->logical)
		first = false;
	while (!ret) {
		if (!first && !*told) {
			ret = add_block_group(p, g, b, err);
			*told = true;
		}
		if (!ret)
			ret = mkfs_add_data_extent(p, g, next, b, err);
		first = false;
	}
	return ret == 1 ? 0 : ret;
}

int mkfs_stream_extents(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			struct btrkit_error *err)
{
	struct walk walks[] = { [MKFS_CHUNK_TREE] = { 0 }, [MKFS_TREES] = { 0 } };
	size_t next = 0;
	int ret = 0;

	(void)t;
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++) {
		const struct mkfs_group *g = &p->layout.groups[i];
		/* Block group items may be in a tree of their own. */
		bool told = p->opts.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE;

		ret = g->role == MKFS_DATA ? add_data_extents(p, g, &next, &told, b, err) :
					     add_tree_blocks(p, g, &walks[g->role], &told, b, err);
		if (!ret && !told)
			ret = add_block_group(p, g, b, err);
	}
	return ret;
}

/* A new group has so few free ranges that they are always stored as extents, never as bitmaps. */
int mkfs_stream_free_space(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			   struct btrkit_error *err)
{
	int ret = 0;

	(void)t;
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++) {
		const struct mkfs_group *g = &p->layout.groups[i];
		uint64_t end = mkfs_group_end(p, g), from = g->logical;
		struct disk_free_space_info info = { 0 };
		struct mkfs_range range;
		uint32_t count = 0;

		for (; mkfs_group_next_free(g, end, from, &range); from = range.start + range.length)
			count++;
		info.extent_count = le32_put(count);
		ret = bulk_add(b, &KEY(g->logical, KEY_FREE_SPACE_INFO, g->length), &info, sizeof(info), err);
		for (from = g->logical; !ret && mkfs_group_next_free(g, end, from, &range);
		     from = range.start + range.length)
			ret = bulk_add(b, &KEY(range.start, KEY_FREE_SPACE_EXTENT, range.length), "", 0, err);
	}
	return ret;
}
