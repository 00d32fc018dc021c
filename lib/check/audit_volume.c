// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chunks, device extents, devices, and what the superblock repeats of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"
#include "lib/volume/raid_map.h"

/* The copy of a system chunk in the superblock. */
static int judge_system_chunk(struct audit *a, const struct item *item, struct btrkit_error *err)
{
	struct item copy;
	uint32_t pos = 0;
	int ret;

	while (!(ret = super_next_chunk(&a->fs->super, &pos, &copy, err))) {
		if (key_cmp(&copy.key, &item->key))
			continue;
		if (copy.size != item->size || memcmp(copy.data, item->data, item->size))
			return err_corrupt(err, "sys_chunk_array",
					   "chunk that differs from the superblock's copy of it");
		a->system_chunks += (uint32_t)sizeof(struct disk_key) + item->size;
		return 0;
	}
	return ret < 0 ? ret : err_corrupt(err, "sys_chunk_array", "system chunk of which the superblock has no copy");
}

static int take_chunk(struct audit *a, const struct item *item, struct btrkit_error *err)
{
	struct raid_shape shape;
	struct chunk chunk;
	int ret = chunk_decode(&a->fs->items, item, &chunk, err);

	if (!ret && chunk.type & BG_SYSTEM)
		ret = judge_system_chunk(a, item, err);
	if (ret)
		return ret;
	shape = (struct raid_shape){ chunk.type, chunk.num_stripes };
	if (!raid_shape_valid(&shape))
		return err_corrupt(err, "num_stripes", "chunk of %u stripes", chunk.num_stripes);
	for (uint16_t i = 0; i < chunk.num_stripes; i++) {
		struct dev_extent *stripe = audit_list_add(&a->stripes, sizeof(*stripe));

		if (!stripe)
			return err_nomem(err);
		*stripe = (struct dev_extent){ .devid = le64_get(chunk.stripes[i].devid),
					       .physical = le64_get(chunk.stripes[i].offset),
					       .chunk_tree = OID_CHUNK_TREE,
					       .chunk_objectid = OID_FIRST_CHUNK_TREE,
					       .chunk_offset = chunk.logical,
					       .length = chunk.length / raid_data_stripes(&shape) };
	}
	return 0;
}

int audit_volume_item(struct audit *a, const struct item *item, struct btrkit_error *err)
{
	struct dev_item dev, *to;
	struct dev_extent extent, *at;
	int ret;

	if (item->key.type == KEY_CHUNK_ITEM)
		return take_chunk(a, item, err);
	if (item->key.type == KEY_DEV_ITEM) {
		ret = dev_item_decode(item, &dev, err);
		to = ret ? NULL : audit_list_add(&a->devices, sizeof(*to));
		if (to)
			*to = dev;
		return ret || to ? ret : err_nomem(err);
	}
	ret = dev_extent_decode(&a->fs->items, item, &extent, err);
	at = ret ? NULL : audit_list_add(&a->dev_extents, sizeof(*at));
	if (at)
		*at = extent;
	return ret || at ? ret : err_nomem(err);
}

static int compare_stripes(const void *x, const void *y)
{
	const struct dev_extent *a = x, *b = y;

	if (a->devid != b->devid)
		return a->devid < b->devid ? -1 : 1;
	return a->physical < b->physical ? -1 : a->physical > b->physical;
}

static int blame(const struct dev_extent *e, int ret, struct btrkit_error *err)
{
	if (ret < 0) {
		err_at_tree(err, OID_DEV_TREE);
		err_at_key(err, &KEY(e->devid, KEY_DEV_EXTENT, e->physical));
	}
	return ret;
}

static int compare_extents(struct audit *a, struct btrkit_error *err)
{
	struct dev_extent *stripes = a->stripes.at;
	const struct dev_extent *extents = a->dev_extents.at;

	if (a->stripes.n)
		qsort(stripes, a->stripes.n, sizeof(*stripes), compare_stripes);
	for (size_t i = 0; i < a->stripes.n || i < a->dev_extents.n; i++) {
		const int cmp = i == a->stripes.n     ? 1 :
				i == a->dev_extents.n ? -1 :
							compare_stripes(&stripes[i], &extents[i]);

		if (cmp > 0)
			return blame(&extents[i], err_corrupt(err, NULL, "device extent of no chunk"), err);
		if (cmp < 0)
			return blame(&stripes[i],
				     err_corrupt(err, NULL, "chunk %" PRIu64 " has no device extent here",
						 stripes[i].chunk_offset),
				     err);
		if (stripes[i].chunk_offset != extents[i].chunk_offset)
			return blame(&extents[i],
				     err_corrupt(err, "chunk_offset",
						 "device extent of chunk %" PRIu64 " where %" PRIu64 " has a copy",
						 extents[i].chunk_offset, stripes[i].chunk_offset),
				     err);
		if (stripes[i].length != extents[i].length)
			return blame(&extents[i],
				     err_corrupt(err, "length",
						 "device extent of %" PRIu64 " bytes for a chunk of %" PRIu64,
						 extents[i].length, stripes[i].length),
				     err);
		if (i && extents[i - 1].devid == extents[i].devid &&
		    extents[i].physical - extents[i - 1].physical < extents[i - 1].length)
			return blame(&extents[i], err_corrupt(err, NULL, "device extents overlap"), err);
	}
	a->counts.dev_extents = a->dev_extents.n;
	return 0;
}

static int judge_device(const struct audit *a, const struct dev_item *dev, struct btrkit_error *err)
{
	const struct dev_extent *extents = a->dev_extents.at;
	uint64_t used = 0;

	for (size_t i = 0; i < a->dev_extents.n; i++) {
		if (extents[i].devid != dev->devid)
			continue;
		used += extents[i].length;
		if (extents[i].physical > dev->total_bytes ||
		    extents[i].length > dev->total_bytes - extents[i].physical)
			return blame(&extents[i],
				     err_corrupt(err, NULL, "device extent ends behind its device of %" PRIu64 " bytes",
						 dev->total_bytes),
				     err);
	}
	if (used != dev->bytes_used)
		return err_corrupt(err, "bytes_used",
				   "device says %" PRIu64 " bytes are used, its extents are %" PRIu64, dev->bytes_used,
				   used);
	return 0;
}

/* The device item in the superblock of the device that was opened first. */
static int judge_super_item(const struct audit *a, const struct dev_item *dev, struct btrkit_error *err)
{
	const struct disk_super *super = &a->fs->super.disk;
	const struct item item = { KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, a->fs->super.devid),
				   (const uint8_t *)&super->dev_item, sizeof(super->dev_item) };
	const char *field = NULL;
	struct dev_item copy;
	int ret = dev_item_decode(&item, &copy, err);

	if (ret)
		return ret;
	if (copy.total_bytes != dev->total_bytes)
		field = "dev_item.total_bytes";
	else if (copy.bytes_used != dev->bytes_used)
		field = "dev_item.bytes_used";
	else if (copy.io_align != dev->io_align || copy.io_width != dev->io_width ||
		 copy.sector_size != dev->sector_size || copy.type != dev->type)
		field = "dev_item.type";
	else if (memcmp(copy.uuid, dev->uuid, sizeof(dev->uuid)) || memcmp(copy.fsid, dev->fsid, sizeof(dev->fsid)))
		field = "dev_item.uuid";
	return field ? err_corrupt(err, field, "device item of the superblock differs") : 0;
}

int audit_compare_volume(struct audit *a, struct btrkit_error *err)
{
	const struct super *super = &a->fs->super;
	const struct dev_item *devices = a->devices.at;
	uint64_t total = 0;
	bool found = false;
	int ret = compare_extents(a, err);

	for (size_t i = 0; !ret && i < a->devices.n; i++) {
		total += devices[i].total_bytes;
		ret = judge_device(a, &devices[i], err);
		if (!ret && devices[i].devid == super->devid) {
			found = true;
			ret = judge_super_item(a, &devices[i], err);
		}
		if (ret) {
			err_at_tree(err, OID_CHUNK_TREE);
			err_at_key(err, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devices[i].devid));
			return ret;
		}
	}
	if (ret)
		return ret;
	if (!found || a->devices.n != super->num_devices)
		return err_corrupt(err, "num_devices", "superblock counts %" PRIu64 " devices, the chunk tree %zu",
				   super->num_devices, a->devices.n);
	if (total != super->total_bytes)
		return err_corrupt(err, "total_bytes", "superblock says %" PRIu64 " bytes, the devices have %" PRIu64,
				   super->total_bytes, total);
	if (a->system_chunks != le32_get(super->disk.sys_chunk_array_size))
		return err_corrupt(err, "sys_chunk_array", "superblock has a system chunk that there is not");
	return 0;
}
