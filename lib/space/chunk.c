// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/chunk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/dev.h"
#include "lib/space/free_space_edit.h"
#include "lib/space/free_space_tree.h"
#include "lib/space/space_impl.h"
#include "lib/tree/edit.h"
#include "lib/volume/raid_map.h"

/* A chunk item. */
struct item_bytes {
	struct disk_chunk chunk;
	struct disk_stripe stripes[CHUNK_STRIPES_MAX];
};

static void device_uuid(const struct space *s, uint64_t devid, uint8_t uuid[16])
{
	const size_t n = volume_num_devices(s->fs->volume);

	for (size_t i = 0; i < n; i++) {
		const struct volume_device d = volume_device(s->fs->volume, i);

		if (d.devid == devid)
			memcpy(uuid, d.uuid, sizeof(d.uuid));
	}
}

static uint32_t make_item(const struct space *s, const struct chunk_plan *plan, struct item_bytes *to)
{
	const struct raid_profile *raid = raid_profile_find(plan->type);

	to->chunk = (struct disk_chunk){
		.length = le64_put(plan->length),
		.owner = le64_put(OID_EXTENT_TREE),
		.stripe_len = le64_put(CHUNK_STRIPE_LEN),
		.type = le64_put(plan->type),
		.io_align = le32_put(CHUNK_STRIPE_LEN),
		.io_width = le32_put(CHUNK_STRIPE_LEN),
		.sector_size = le32_put(s->fs->geometry.sectorsize),
		.num_stripes = le16_put((uint16_t)plan->num_stripes),
		.sub_stripes = le16_put(raid->flag == BG_RAID10 ? 2 : 1),
	};
	for (unsigned i = 0; i < plan->num_stripes; i++) {
		struct disk_stripe *d = &to->stripes[i];

		*d = (struct disk_stripe){ .devid = le64_put(plan->stripes[i].devid),
					   .offset = le64_put(plan->stripes[i].physical) };
		device_uuid(s, plan->stripes[i].devid, d->dev_uuid);
	}
	return (uint32_t)chunk_item_size((uint16_t)plan->num_stripes);
}

/*
 * Finds the chunk at @logical in the array. @at, @size: where its entry is, and how long.
 * @return whether it was found
 */
static bool array_find(const struct disk_super *super, uint64_t logical, uint32_t *at, uint32_t *size)
{
	const uint32_t end = le32_get(super->sys_chunk_array_size);
	struct disk_chunk chunk;
	struct disk_key key;

	if (end > SUPER_SYS_CHUNKS_SIZE)
		return false;
	for (*at = 0; end - *at >= sizeof(key) + sizeof(chunk); *at += *size) {
		memcpy(&key, super->sys_chunk_array + *at, sizeof(key));
		memcpy(&chunk, super->sys_chunk_array + *at + sizeof(key), sizeof(chunk));
		*size = (uint32_t)(sizeof(key) + chunk_item_size(le16_get(chunk.num_stripes)));
		if (*size > end - *at)
			return false;
		if (key_get(&key).offset == logical)
			return true;
	}
	return false;
}

static bool array_has_room(const struct disk_super *super, uint32_t size)
{
	const uint32_t used = le32_get(super->sys_chunk_array_size);

	return used <= SUPER_SYS_CHUNKS_SIZE && SUPER_SYS_CHUNKS_SIZE - used >= sizeof(struct disk_key) + size;
}

static void array_add(struct disk_super *super, uint64_t logical, const struct item_bytes *item, uint32_t size)
{
	const struct disk_key key = key_put(&KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, logical));
	const uint32_t used = le32_get(super->sys_chunk_array_size);

	memcpy(super->sys_chunk_array + used, &key, sizeof(key));
	memcpy(super->sys_chunk_array + used + sizeof(key), item, size);
	super->sys_chunk_array_size = le32_put((uint32_t)(used + sizeof(key) + size));
}

static void array_remove(struct disk_super *super, uint64_t logical)
{
	const uint32_t used = le32_get(super->sys_chunk_array_size);
	uint32_t at, size;

	if (!array_find(super, logical, &at, &size))
		return;
	memmove(super->sys_chunk_array + at, super->sys_chunk_array + at + size, used - at - size);
	memset(super->sys_chunk_array + used - size, 0, size);
	super->sys_chunk_array_size = le32_put(used - size);
}

/* Number of bytes used on a device after @length more, or less. @return 0; -EUCLEAN: it cannot be */
static int count_used(const struct disk_dev_item *d, uint64_t length, bool more, uint64_t *ret,
		      struct btrkit_error *err)
{
	const uint64_t used = le64_get(d->bytes_used), total = le64_get(d->total_bytes);

	if (more ? used > total || length > total - used : length > used)
		return err_corrupt(err, "bytes_used", "device %" PRIu64 " of %" PRIu64 " bytes, %" PRIu64
				   " used, cannot use %" PRIu64 " %s", le64_get(d->devid), total, used, length,
				   more ? "more" : "less");
	*ret = more ? used + length : used - length;
	return 0;
}

/* Adds @length to the bytes used on a device, or subtracts it. */
static int count_device(struct space *s, uint64_t devid, uint64_t length, bool more, struct disk_super *super,
			struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid);
	struct disk_dev_item d;
	struct edit_tree *t;
	uint64_t used;
	uint8_t *data;
	uint32_t size;
	int ret;

	ret = overlay_tree(s->overlay, OID_CHUNK_TREE, &t, err);
	if (!ret)
		ret = space_missing_item(edit_bytes(t, &key, &data, &size, err), OID_CHUNK_TREE, &key, err);
	if (ret)
		return ret;
	if (size != sizeof(d))
		return err_corrupt(err, NULL, "device item of %" PRIu32 " bytes", size);
	memcpy(&d, data, sizeof(d));
	ret = count_used(&d, length, more, &used, err);
	if (ret)
		return ret;
	d.bytes_used = le64_put(used);
	memcpy(data, &d, sizeof(d));
	if (le64_get(super->dev_item.devid) == devid)
		super->dev_item.bytes_used = d.bytes_used;
	return 0;
}

static int insert_dev_extent(struct space *s, const struct chunk_plan *plan, unsigned i, uint64_t length,
			     struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(plan->stripes[i].devid, KEY_DEV_EXTENT, plan->stripes[i].physical);
	struct disk_dev_extent d = {
		.chunk_tree = le64_put(OID_CHUNK_TREE),
		.chunk_objectid = le64_put(OID_FIRST_CHUNK_TREE),
		.chunk_offset = le64_put(plan->logical),
		.length = le64_put(length),
	};
	int ret;

	ret = fs_chunk_tree_uuid(s->fs, d.chunk_tree_uuid, err);
	return ret ? ret : space_insert_item(s, OID_DEV_TREE, &key, &d, sizeof(d), err);
}

static bool has_free_space_tree(const struct disk_super *super)
{
	return free_space_tree_is_valid(le64_get(super->compat_ro_flags));
}

/* Bytes of a chunk in each of its stripes. */
static uint64_t stripe_length(const struct chunk_plan *plan)
{
	const struct raid_shape shape = { plan->type, plan->num_stripes };

	return plan->length / raid_data_stripes(&shape);
}

static struct btrkit_key chunk_key(uint64_t logical)
{
	return KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, logical);
}

static struct btrkit_key group_key(const struct block_group *g)
{
	return KEY(g->start, KEY_BLOCK_GROUP_ITEM, g->length);
}

/*
 * Checks that the item of a stripe can be inserted or removed, and that @bytes can be added to what its device has in
 * use, or subtracted from it.
 */
static int check_stripe(struct space *s, uint64_t devid, uint64_t physical, uint64_t bytes, bool adding,
			struct btrkit_error *err)
{
	const struct btrkit_key extent = KEY(devid, KEY_DEV_EXTENT, physical);
	struct disk_dev_item d;
	uint64_t used;
	int ret = space_expect_item(s, OID_DEV_TREE, &extent, !adding, err);

	if (!ret)
		ret = space_read_device(s, devid, &d, err);
	return ret ? ret : count_used(&d, bytes, adding, &used, err);
}

/* Checks before the first edit that the items of a new chunk can be inserted, and those of its devices be changed. */
static int check_new_items(struct space *s, const struct chunk_plan *plan, const struct block_group *g,
			   const struct disk_super *super, struct btrkit_error *err)
{
	const struct btrkit_key chunk = chunk_key(plan->logical), group = group_key(g),
				info = KEY(g->start, KEY_FREE_SPACE_INFO, g->length);
	uint8_t uuid[16];
	int ret = space_expect_item(s, OID_CHUNK_TREE, &chunk, false, err);

	if (!ret)
		ret = fs_chunk_tree_uuid(s->fs, uuid, err);
	for (unsigned i = 0; !ret && i < plan->num_stripes; i++) {
		const uint64_t devid = plan->stripes[i].devid;
		uint64_t n = 0;

		for (unsigned k = 0; k < plan->num_stripes; k++)
			n += plan->stripes[k].devid == devid;
		ret = check_stripe(s, devid, plan->stripes[i].physical, n * stripe_length(plan), true, err);
	}
	if (!ret)
		ret = space_expect_item(s, s->tree, &group, false, err);
	if (ret || !has_free_space_tree(super))
		return ret;
	return space_expect_item(s, OID_FREE_SPACE_TREE, &info, false, err);
}

static int insert_items(struct space *s, const struct chunk_plan *plan, const struct item_bytes *item, uint32_t size,
			const struct block_group *g, struct disk_super *super, struct btrkit_error *err)
{
	const struct btrkit_key chunk = chunk_key(plan->logical), group = group_key(g);
	const uint64_t length = stripe_length(plan);
	const struct disk_block_group d = { .chunk_objectid = le64_put(g->chunk_objectid),
					    .flags = le64_put(g->flags) };
	struct edit_tree *t;
	int ret;

	ret = space_insert_item(s, OID_CHUNK_TREE, &chunk, item, size, err);
	for (unsigned i = 0; !ret && i < plan->num_stripes; i++) {
		ret = insert_dev_extent(s, plan, i, length, err);
		if (!ret)
			ret = count_device(s, plan->stripes[i].devid, length, true, super, err);
	}
	if (!ret)
		ret = space_insert_item(s, s->tree, &group, &d, sizeof(d), err);
	if (ret || !has_free_space_tree(super))
		return ret;
	ret = overlay_tree(s->overlay, OID_FREE_SPACE_TREE, &t, err);
	return ret ? ret : free_space_add_group(t, g, err);
}

/* Profiles with a feature flag, without which older kernels would not know what to do with them. */
static const struct {
	uint64_t profiles, incompat;
} features[] = {
	{ BG_RAID5 | BG_RAID6, INCOMPAT_RAID56 },
	{ BG_RAID1C3 | BG_RAID1C4, INCOMPAT_RAID1C34 },
};

static void set_features(struct disk_super *super, uint64_t type)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (type & features[i].profiles)
			super->incompat_flags = le64_put(le64_get(super->incompat_flags) | features[i].incompat);
}

int chunk_create(struct space *s, const struct chunk_plan *plan, struct disk_super *super, struct space_group **ret,
		 struct btrkit_error *err)
{
	const struct block_group group = { plan->logical, plan->length, 0, OID_FIRST_CHUNK_TREE, plan->type };
	struct chunk chunk = { .logical = plan->logical, .length = plan->length, .type = plan->type,
			       .num_stripes = (uint16_t)plan->num_stripes };
	struct space_group *g;
	struct item_bytes item;
	uint32_t size;
	int r;

	if (!s->overlay)
		return err_set(err, BTRKIT_INVALID, "no transaction is open");
	size = make_item(s, plan, &item);
	chunk.stripes = item.stripes;
	if (plan->type & BG_SYSTEM && !array_has_room(super, size))
		return err_set(err, BTRKIT_NO_SPACE, "the superblock has no room for another system chunk");
	r = check_new_items(s, plan, &group, super, err);
	if (!r)
		r = volume_add_chunk(s->fs->volume, &chunk, err);
	if (r)
		return r;
	r = space_add_group(s, &group, &g, err);
	if (r) {
		free(volume_take_chunk(s->fs->volume, plan->logical));
		return r;
	}
	/* From here on, edits may take blocks of the new group. */
	r = insert_items(s, plan, &item, size, &group, super, err);
	if (r)
		return space_edited(s, r, err);
	if (plan->type & BG_SYSTEM)
		array_add(super, plan->logical, &item, size);
	set_features(super, plan->type);
	*ret = g;
	return 0;
}

/* Allocated space counts as used, even before it is in the extent tree, and so does pinned space. */
static int is_empty(const struct space *s, const struct space_group *g, bool *ret, struct btrkit_error *err)
{
	struct block_group_supers supers;
	uint64_t free;
	int r;

	r = block_group_supers(s->fs, &g->item, &supers, err);
	if (r)
		return r;
	free = g->item.length - block_group_supers_bytes(&supers);
	block_group_supers_release(&supers);
	*ret = !g->item.used && !g->committed_used && (!g->loaded || space_group_free(g) == free);
	return 0;
}

/* Whether no other group has any of these flags. */
static bool is_last(const struct space *s, const struct space_group *g, uint64_t flags)
{
	for (size_t i = 0; i < s->num_groups; i++)
		if (s->groups[i] != g && !s->groups[i]->removed && s->groups[i]->item.flags & flags)
			return false;
	return true;
}

/* @g is about to go. */
static void clear_features(const struct space *s, const struct space_group *g, struct disk_super *super)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (g->item.flags & features[i].profiles && is_last(s, g, features[i].profiles))
			super->incompat_flags = le64_put(le64_get(super->incompat_flags) & ~features[i].incompat);
}

/* Makes room for another removed chunk in the list. */
static int reserve_gone(struct space *s, struct btrkit_error *err)
{
	const size_t size = s->gone_size ? 2 * s->gone_size : 4;
	struct volume_chunk **more;

	if (s->num_gone < s->gone_size)
		return 0;
	more = reallocarray(s->gone, size, sizeof(*more));
	if (!more)
		return err_nomem(err);
	s->gone = more;
	s->gone_size = size;
	return 0;
}

/* Checks before the first edit that the items of a chunk can be deleted, and those of its devices be changed. */
static int check_old_items(struct space *s, const struct space_group *g, const struct volume_chunk *c,
			   struct btrkit_error *err)
{
	const struct btrkit_key chunk = chunk_key(c->logical), group = group_key(&g->item);
	int ret = space_expect_item(s, OID_CHUNK_TREE, &chunk, true, err);

	for (unsigned i = 0; !ret && i < c->num_stripes; i++) {
		const uint64_t devid = c->stripes[i].devid;
		uint64_t n = 0;

		for (unsigned k = 0; k < c->num_stripes; k++)
			n += c->stripes[k].devid == devid;
		ret = check_stripe(s, devid, c->stripes[i].physical, n * c->stripe_length, false, err);
	}
	return ret ? ret : space_expect_item(s, s->tree, &group, true, err);
}

static int delete_items(struct space *s, const struct space_group *g, const struct volume_chunk *c,
			struct disk_super *super, struct btrkit_error *err)
{
	const struct btrkit_key chunk = chunk_key(c->logical), group = group_key(&g->item);
	struct edit_tree *t;
	int ret;

	ret = space_delete_item(s, OID_CHUNK_TREE, &chunk, err);
	for (unsigned i = 0; !ret && i < c->num_stripes; i++) {
		const struct volume_stripe *stripe = &c->stripes[i];

		ret = space_delete_item(s, OID_DEV_TREE, &KEY(stripe->devid, KEY_DEV_EXTENT, stripe->physical), err);
		if (!ret)
			ret = count_device(s, stripe->devid, c->stripe_length, false, super, err);
	}
	if (!ret)
		ret = space_delete_item(s, s->tree, &group, err);
	if (ret || !has_free_space_tree(super))
		return ret;
	ret = overlay_tree(s->overlay, OID_FREE_SPACE_TREE, &t, err);
	return ret ? ret : free_space_remove_group(t, &g->item, err);
}

int chunk_remove(struct space *s, struct space_group *g, struct disk_super *super, struct btrkit_error *err)
{
	struct volume *v = s->fs->volume;
	struct volume_chunk *chunk;
	bool empty = false;
	int ret = 0;

	if (!s->overlay)
		return err_set(err, BTRKIT_INVALID, "no transaction is open");
	if (!g->removed)
		ret = is_empty(s, g, &empty, err);
	if (ret)
		return ret;
	if (!empty)
		return err_set(err, BTRKIT_BUSY, "block group %" PRIu64 " is not empty", g->item.start);
	if (is_last(s, g, g->item.flags & BG_TYPE_MASK))
		return err_set(err, BTRKIT_BUSY, "block group %" PRIu64 " is the last of its type", g->item.start);
	ret = reserve_gone(s, err);
	if (ret)
		return ret;
	chunk = volume_take_chunk(v, g->item.start);
	if (!chunk)
		return err_corrupt(err, NULL, "block group %" PRIu64 " has no chunk", g->item.start);
	ret = check_old_items(s, g, chunk, err);
	if (ret) {
		volume_put_chunk(v, chunk);
		return ret;
	}
	s->gone[s->num_gone++] = chunk;
	space_touch(s, g);
	g->removed = true;
	ret = delete_items(s, g, chunk, super, err);
	if (ret)
		return space_edited(s, ret, err);
	if (chunk->type & BG_SYSTEM)
		array_remove(super, chunk->logical);
	clear_features(s, g, super);
	g->changed = false;
	g->num_changes = 0;
	return 0;
}
