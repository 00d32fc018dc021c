// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lists devices, chunks, and locations of logical addresses. */
#include <btrkit/device.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_stats.h"
#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

/* Index of the device with @devid in the volume; volume_num_devices() if there is none. */
static size_t find_device(const struct volume *v, uint64_t devid)
{
	size_t i = 0;

	while (i < volume_num_devices(v) && volume_device(v, i).devid != devid)
		i++;
	return i;
}

static const char *device_name(const struct volume *v, uint64_t devid)
{
	const size_t i = find_device(v, devid);

	if (i == volume_num_devices(v) || !volume_device(v, i).io)
		return NULL;
	return volume_device(v, i).io->name;
}

/* Reads the error counters that Linux stored, if any. */
static int read_stats(struct cursor *c, uint64_t devid, struct btrkit_device *to, struct btrkit_error *err)
{
	uint64_t *const counters[DEV_STATS] = { &to->write_errors, &to->read_errors, &to->flush_errors,
						&to->corruption_errors, &to->generation_errors };
	int ret = cursor_find(c, &KEY(OID_DEV_STATS, KEY_PERSISTENT_ITEM, devid), err);

	/* Older kernels have fewer counters. */
	for (unsigned i = 0; !ret && i < DEV_STATS && (i + 1) * sizeof(le64) <= c->item.size; i++)
		*counters[i] = le64_get(((const le64 *)c->item.data)[i]);
	return ret < 0 ? ret : 0;
}

static int tell_device(struct cursor *c, struct cursor *stats, btrkit_device_fn fn, void *ctx,
		       struct btrkit_error *err)
{
	const struct volume *v = c->fs->volume;
	struct btrkit_device told = { 0 };
	struct dev_item d;
	size_t number;
	int ret;

	ret = cursor_blame(c, dev_item_decode(&c->item, &d, err), err);
	if (ret)
		return ret;
	told.devid = d.devid;
	memcpy(told.uuid, d.uuid, sizeof(told.uuid));
	told.name = device_name(v, d.devid);
	told.total_bytes = d.total_bytes;
	told.bytes_used = d.bytes_used;
	number = find_device(v, d.devid);
	if (number < volume_num_devices(v)) {
		told.failed_reads = volume_errors(v, number).read_errors;
		told.rejected_copies = volume_errors(v, number).damaged;
	}
	ret = read_stats(stats, d.devid, &told, err);
	return ret ? ret : fn(ctx, &told);
}

int btrkit_devices(struct btrkit_fs *fs, btrkit_device_fn fn, void *ctx, struct btrkit_error *err)
{
	struct tree_root root = { 0 };
	struct cursor c, stats;
	int ret;

	ret = fs_find_root(fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret;
	cursor_init(&stats, fs, &root);
	cursor_init(&c, fs, &fs->chunk_tree);
	for (ret = cursor_seek(&c, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0), err);
	     !ret && c.item.key.objectid == OID_DEV_ITEMS && c.item.key.type == KEY_DEV_ITEM;) {
		ret = tell_device(&c, &stats, fn, ctx, err);
		if (!ret)
			ret = cursor_next(&c, err);
	}
	cursor_release(&c);
	cursor_release(&stats);
	return ret < 0 ? ret : 0;
}

static int tell_chunk(const struct volume *v, size_t number, uint64_t used, btrkit_chunk_fn fn, void *ctx,
		      struct btrkit_error *err)
{
	const struct volume_chunk *c = volume_chunk(v, number);
	struct btrkit_stripe *stripes = calloc(c->num_stripes, sizeof(*stripes));
	const struct btrkit_chunk told = { c->logical, c->length, c->type, used, c->stripe_length,
					   volume_chunk_reachable(v, number), c->num_stripes, stripes };
	int ret;

	if (!stripes)
		return err_nomem(err);
	for (unsigned i = 0; i < c->num_stripes; i++)
		stripes[i] = (struct btrkit_stripe){ c->stripes[i].devid, c->stripes[i].physical };
	ret = fn(ctx, &told);
	free(stripes);
	return ret;
}

int btrkit_chunks(struct btrkit_fs *fs, btrkit_chunk_fn fn, void *ctx, struct btrkit_error *err)
{
	struct block_groups groups;
	int ret;

	ret = fs_check_committed(fs, err);
	/* There is one block group per chunk, in the same order. */
	if (!ret)
		ret = block_groups_load(fs, &groups, err);
	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < groups.n; i++)
		ret = tell_chunk(fs->volume, i, groups.at[i].used, fn, ctx, err);
	block_groups_release(&groups);
	return ret;
}

static int tell_parity(const struct volume *v, const struct volume_chunk *c, uint64_t logical, btrkit_copy_fn fn,
		       void *ctx)
{
	const struct raid_shape shape = { c->type, c->num_stripes };
	const struct raid_place place = raid_map(&shape, logical - c->logical, 0);
	const unsigned data = raid_data_stripes(&shape);
	int ret = 0;

	for (unsigned i = 0; !ret && i < raid_profile_find(c->type)->parity; i++) {
		const struct volume_stripe *s =
			&c->stripes[raid_strip_stripe(&shape, place.offset / CHUNK_STRIPE_LEN, data + i)];

		ret = fn(ctx, &(struct btrkit_copy){ 0, i ? BTRKIT_COPY_Q : BTRKIT_COPY_P, s->devid,
						     device_name(v, s->devid), s->physical + place.offset,
						     place.length });
	}
	return ret;
}

int btrkit_logical_copies(struct btrkit_fs *fs, uint64_t logical, btrkit_copy_fn fn, void *ctx,
			  struct btrkit_error *err)
{
	const struct volume *v = fs->volume;
	const struct volume_chunk *c = NULL;
	int ret = 0;

	for (size_t i = 0; i < volume_num_chunks(v) && !c; i++)
		if (logical - volume_chunk(v, i)->logical < volume_chunk(v, i)->length)
			c = volume_chunk(v, i);
	if (!c)
		return err_set(err, BTRKIT_NOT_FOUND, "no chunk contains the address %" PRIu64, logical);
	if (fs->items.incompat & INCOMPAT_RAID_STRIPE_TREE && (c->type & BG_TYPE_MASK) == BG_DATA)
		return features_refuse(BTRKIT_FEATURE_INCOMPAT, INCOMPAT_RAID_STRIPE_TREE,
				       "locating file data is not supported", err);
	for (unsigned mirror = 0; !ret; mirror++) {
		struct copy copy;

		ret = volume_map(v, logical, c->length - (logical - c->logical), mirror, &copy, err);
		if (ret)
			break;
		ret = fn(ctx, &(struct btrkit_copy){ mirror + 1, BTRKIT_COPY_DATA, copy.devid,
						     copy.io ? copy.io->name : NULL, copy.physical, copy.length });
	}
	return ret == 1 ? tell_parity(v, c, logical, fn, ctx) : ret;
}
