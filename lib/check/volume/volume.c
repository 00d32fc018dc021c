// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the chunk tree: chunks and devices. Invalid items are reported by leaf.c. */
#include "lib/check/volume/volume.h"

#include <stdlib.h>
#include <string.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/supers/system_chunks.h"
#include "lib/check/trees/items.h"
#include "lib/check/volume/dev_extents.h"
#include "lib/check/volume/devices.h"
#include "lib/check/volume/groups.h"
#include "lib/format/feature_bits.h"
#include "lib/volume/raid_map.h"

static void report_chunk(struct check *c, enum check_code code, const struct item *item, const char *field,
			 const char *message)
{
	check_report_at(c, code, &(struct check_location){ OID_CHUNK_TREE, 0, &item->key, field }, "%s", message);
}

static void add_stripes(struct volume_check *v, const struct chunk *chunk, const struct raid_shape *shape)
{
	for (unsigned i = 0; i < chunk->num_stripes; i++) {
		struct known_stripe *s = check_list_add(v->c, &v->stripes, sizeof(*s));

		if (!s)
			return;
		s->is = (struct dev_extent){ .devid = le64_get(chunk->stripes[i].devid),
					     .physical = le64_get(chunk->stripes[i].offset),
					     .chunk_tree = OID_CHUNK_TREE,
					     .chunk_objectid = OID_FIRST_CHUNK_TREE,
					     .chunk_offset = chunk->logical,
					     .length = chunk->length / raid_data_stripes(shape) };
		memcpy(s->dev_uuid, chunk->stripes[i].dev_uuid, sizeof(s->dev_uuid));
	}
}

static void take_chunk(struct volume_check *v, const struct item *item)
{
	const struct known_chunk *last = v->chunks.n ? (struct known_chunk *)v->chunks.at + v->chunks.n - 1 : NULL;
	struct raid_shape shape;
	struct known_chunk *to;
	struct chunk chunk;

	if (chunk_decode(&v->c->items, item, &chunk, NULL)) {
		v->c->chunks_lost = true;
		return;
	}
	if (item->key.objectid != OID_FIRST_CHUNK_TREE)
		report_chunk(v->c, CHECK_CHUNK_SHAPE, item, "key.objectid",
			     "invalid objectid of the chunk item, expected 256");
	if (chunk.type & BG_SYSTEM)
		volume_system_chunk(v, item);
	shape = (struct raid_shape){ chunk.type, chunk.num_stripes };
	if (!raid_shape_valid(&shape)) {
		report_chunk(v->c, CHECK_CHUNK_SHAPE, item, "num_stripes",
			     "number of stripes does not match the chunk's profile");
		v->c->chunks_lost = true;
		return;
	}
	add_stripes(v, &chunk, &shape);
	if (last && chunk.logical - last->logical < last->length) {
		report_chunk(v->c, CHECK_CHUNK_OVERLAP, item, "key.offset", "chunk overlaps the previous one");
		return;
	}
	to = check_list_add(v->c, &v->chunks, sizeof(*to));
	if (to)
		*to = (struct known_chunk){ chunk.logical, chunk.length, chunk.type };
}

static void take_device(struct volume_check *v, const struct item *item)
{
	struct dev_item device, *to;

	if (dev_item_decode(item, &device, NULL)) {
		v->devices_lost = true;
		return;
	}
	to = check_list_add(v->c, &v->devices, sizeof(*to));
	if (to)
		*to = device;
}

static void take_item(void *ctx, const struct item *item)
{
	if (item->key.type == KEY_CHUNK_ITEM)
		take_chunk(ctx, item);
	else if (item->key.type == KEY_DEV_ITEM)
		take_device(ctx, item);
}

/* Profiles that old software does not know require their incompat bits. */
static void check_profiles(const struct volume_check *v)
{
	const struct known_chunk *chunks = v->chunks.at;
	const uint64_t incompat = v->c->fs->super.incompat;
	uint64_t flags = 0;

	for (size_t i = 0; i < v->chunks.n; i++)
		flags |= chunks[i].type;
	if ((flags & (BG_RAID5 | BG_RAID6) && !(incompat & INCOMPAT_RAID56)) ||
	    (flags & (BG_RAID1C3 | BG_RAID1C4) && !(incompat & INCOMPAT_RAID1C34)))
		check_report_at(v->c, CHECK_SUPER_VALUE, &(struct check_location){ .field = "incompat_flags" },
				"a chunk has a profile whose incompat flag is not set");
}

int check_volume(struct check *c)
{
	struct volume_check v = { .c = c };
	int ret = check_each_item(c, &c->fs->chunk_tree, &c->chunks_lost, take_item, &v);

	v.devices_lost |= c->chunks_lost;
	if (!ret)
		ret = volume_groups(&v);
	if (!ret)
		ret = volume_dev_extents(&v);
	if (!ret) {
		volume_devices(&v);
		volume_system_chunks(&v);
		check_profiles(&v);
		ret = c->failed;
	}
	free(v.chunks.at);
	free(v.stripes.at);
	free(v.devices.at);
	free(v.extents.at);
	return ret;
}
