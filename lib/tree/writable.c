// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks what prevents writing to a filesystem that can be read. */
#include "lib/tree/writable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/io/zone.h"
#include "lib/tree/cursor.h"
#include "lib/volume/parity.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

/* States of device replacements that Linux resumes when it mounts the filesystem. */
#define REPLACE_STARTED 1
#define REPLACE_SUSPENDED 4

static int refuse(const char *why, struct btrkit_error *err)
{
	return err_because(err, BTRKIT_CAUSE_FEATURE,
			   err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: %s", why));
}

/* Linux resumes a balance at mount, and the trees of that have references that nothing else maintains. */
static int check_balance(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct cursor c;
	int ret;

	cursor_init(&c, fs, &fs->root_tree);
	ret = cursor_seek(&c, &KEY(OID_BALANCE, KEY_TEMPORARY_ITEM, 0), err);
	if (!ret && c.item.key.objectid == OID_BALANCE && c.item.key.type == KEY_TEMPORARY_ITEM)
		ret = refuse("unfinished balance", err);
	if (ret >= 0)
		ret = cursor_seek(&c, &KEY(OID_TREE_RELOC, KEY_ROOT_ITEM, 0), err);
	if (!ret && c.item.key.objectid == OID_TREE_RELOC && c.item.key.type == KEY_ROOT_ITEM)
		ret = refuse("relocation tree of an interrupted balance", err);
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

int writable_replacing(struct btrkit_fs *fs, bool *unfinished, struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	uint64_t state;
	int ret;

	*unfinished = false;
	ret = fs_try_root(fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, fs, &root);
	ret = cursor_find(&c, &KEY(0, KEY_DEV_REPLACE, 0), err);
	if (!ret)
		ret = cursor_blame(&c, item_validate(&fs->items, &c.item, err), err);
	if (!ret) {
		state = le64_get(((const struct disk_dev_replace *)c.item.data)->state);
		*unfinished = state == REPLACE_STARTED || state == REPLACE_SUSPENDED;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int check_replace(struct btrkit_fs *fs, struct btrkit_error *err)
{
	bool unfinished;
	int ret = writable_replacing(fs, &unfinished, err);

	return !ret && unfinished ? refuse("unfinished device replace", err) : ret;
}

/* A device must be as large as its superblock says: writes to a truncated image would go past its end. */
static int check_device(struct btrkit_io *io, struct btrkit_error *err)
{
	struct btrkit_zone zone;
	struct disk_super disk;
	uint64_t total;
	int ret;

	if (!io)
		return 0;
	ret = io_zone(io, 0, &zone, err);
	if (ret <= 0)
		return ret ? ret : refuse("zoned device", err);
	if (!io->ops->write || !io->ops->flush)
		return err_system(err, EROFS, "cannot write %s", io->name);
	ret = btrkit_io_read(io, super_offset(0), &disk, sizeof(disk), err);
	if (ret)
		return ret;
	total = le64_get(disk.dev_item.total_bytes);
	if (total > io->size) {
		err_corrupt(err, "dev_item.total_bytes",
			    "device of %" PRIu64 " bytes, but the filesystem uses %" PRIu64, io->size, total);
		err_at_device(err, le64_get(disk.dev_item.devid), super_offset(0));
		return -EUCLEAN;
	}
	return 0;
}

static int refuse_missing(uint64_t devid, struct btrkit_error *err)
{
	err_at_devid(err, devid);
	return err_because(err, BTRKIT_CAUSE_DEVICE_MISSING, -EOPNOTSUPP);
}

static int check_degraded(const struct volume *v, uint64_t devid, struct btrkit_error *err)
{
	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		const struct volume_chunk *c = volume_chunk(v, i);

		if (volume_chunk_writable(v, i))
			continue;
		err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: too many devices of a %s chunk are missing",
			raid_profile_find(c->type)->name);
		err_at_logical(err, c->logical);
		return refuse_missing(devid, err);
	}
	return 0;
}

/* There may be more devices than in the superblock's count. */
static int check_missing(const struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct volume *v = fs->volume;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct volume_device d = volume_device(v, i);

		if (d.io)
			continue;
		if (fs->degraded)
			return check_degraded(v, d.devid, err);
		(void)refuse("a device is missing", err);
		return refuse_missing(d.devid, err);
	}
	return 0;
}

/* A filesystem that was opened for writing has none. */
static int check_stale(const struct volume *v, struct btrkit_error *err)
{
	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const uint64_t devid = volume_device(v, i).devid;

		if (!volume_is_stale(v, devid))
			continue;
		(void)refuse("a device is stale", err);
		err_at_devid(err, devid);
		if (err)
			err->unmirrored = volume_unmirrored(v, devid);
		return err_because(err, BTRKIT_CAUSE_DEVICE_STALE, -EOPNOTSUPP);
	}
	return 0;
}

/*
 * New chunks may be placed up to the end of a device, as recorded in the chunk tree. Linux looks for the device with
 * the UUID there, so what is written to another one would not be part of the filesystem.
 */
static int check_device_item(const struct volume_device *device, const struct dev_item *d, struct btrkit_error *err)
{
	struct disk_super disk;
	int ret;

	if (!device->io)
		return 0;
	if (d->total_bytes > device->io->size)
		return err_corrupt(err, "total_bytes",
				   "device of %" PRIu64 " bytes, but the filesystem uses %" PRIu64,
				   device->io->size, d->total_bytes);
	ret = btrkit_io_read(device->io, super_offset(0), &disk, sizeof(disk), err);
	if (ret)
		return ret;
	if (memcmp(d->uuid, disk.dev_item.uuid, sizeof(d->uuid)))
		return err_corrupt(err, "uuid", "device %" PRIu64 " has a different UUID in its superblock", d->devid);
	return 0;
}

static int verify_device(const struct volume *v, const struct item *item, struct btrkit_error *err)
{
	struct dev_item d;
	int ret = dev_item_decode(item, &d, err);

	for (size_t i = 0; !ret && i < volume_num_devices(v); i++) {
		const struct volume_device device = volume_device(v, i);

		if (device.devid == d.devid)
			ret = check_device_item(&device, &d, err);
	}
	return ret;
}

/* Linux looks for the device of a stripe by ID and UUID, and does not mount the filesystem if there is none. */
static int verify_stripes(const struct btrkit_fs *fs, const struct item *item, struct btrkit_error *err)
{
	struct chunk chunk;
	int ret = chunk_decode(&fs->items, item, &chunk, err);

	for (unsigned k = 0; !ret && k < chunk.num_stripes; k++) {
		const struct disk_stripe *s = &chunk.stripes[k];

		for (size_t i = 0; !ret && i < volume_num_devices(fs->volume); i++) {
			const struct volume_device device = volume_device(fs->volume, i);

			if (device.devid == le64_get(s->devid) &&
			    memcmp(device.uuid, s->dev_uuid, sizeof(device.uuid)))
				ret = err_corrupt(err, "dev_uuid",
						  "stripe %u of chunk %" PRIu64 " has a different UUID for device "
						  "%" PRIu64 " than its superblock",
						  k, chunk.logical, device.devid);
		}
	}
	return ret;
}

/* Device items and chunks must name the devices that were given. */
static int check_chunk_tree(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct cursor c;
	int ret;

	cursor_init(&c, fs, &fs->chunk_tree);
	c.scan = true;
	for (ret = cursor_seek(&c, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0), err); !ret; ret = cursor_next(&c, err)) {
		if (c.item.key.objectid == OID_DEV_ITEMS && c.item.key.type == KEY_DEV_ITEM)
			ret = verify_device(fs->volume, &c.item, err);
		else if (c.item.key.type == KEY_CHUNK_ITEM)
			ret = verify_stripes(fs, &c.item, err);
		if (ret) {
			cursor_blame(&c, ret, err);
			break;
		}
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Like check_chunk_tree(), for the chunks in the superblock, from which every reader starts. */
static int check_system_chunks(const struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct item item;
	uint32_t pos = 0;
	int ret;

	while (!(ret = super_next_chunk(&fs->super, &pos, &item, err))) {
		ret = verify_stripes(fs, &item, err);
		if (ret) {
			err_at_device(err, fs->super.devid, super_offset(fs->super_mirror));
			break;
		}
	}
	return ret < 0 ? ret : 0;
}

/* Location of a stripe. */
struct lying {
	unsigned device;
	uint64_t devid, start, length, chunk;
};

static int by_place(const void *a, const void *b)
{
	const struct lying *x = a, *y = b;

	if (x->devid != y->devid)
		return x->devid < y->devid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Stripes must not overlap, and must not extend past the end of their device. */
static int check_places(const struct volume *v, const struct lying *at, size_t n, struct btrkit_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const bool last = i + 1 == n || at[i + 1].device != at[i].device;
		const struct btrkit_io *io = volume_device(v, at[i].device).io;
		const uint64_t end = !last ? at[i + 1].start : io ? io->size : UINT64_MAX;

		if (at[i].start <= end && at[i].length <= end - at[i].start)
			continue;
		if (last)
			err_corrupt(err, NULL, "chunk %" PRIu64 " extends past the end of its device", at[i].chunk);
		else
			err_corrupt(err, NULL, "chunks %" PRIu64 " and %" PRIu64 " overlap on a device", at[i].chunk,
				    at[i + 1].chunk);
		err_at_device(err, at[i].devid, at[i].start);
		return -EUCLEAN;
	}
	return 0;
}

/* Check that a device extent is that of the next stripe, in order of location. */
static int check_dev_extent(const struct dev_extent *e, const struct lying *next, struct btrkit_error *err)
{
	if (next && (next->devid < e->devid || (next->devid == e->devid && next->start < e->physical)))
		return err_corrupt(err, NULL,
				   "chunk %" PRIu64 " has no device extent at %" PRIu64 " of device %" PRIu64,
				   next->chunk, next->start, next->devid);
	if (!next || next->devid != e->devid || next->start != e->physical)
		return err_corrupt(err, NULL, "device extent of chunk %" PRIu64 ", which has no stripe there",
				   e->chunk_offset);
	if (next->chunk != e->chunk_offset || next->length != e->length)
		return err_corrupt(err, NULL, "device extent has %" PRIu64 " bytes of chunk %" PRIu64 ", the stripe "
				   "there %" PRIu64 " bytes of chunk %" PRIu64,
				   e->length, e->chunk_offset, next->length, next->chunk);
	return 0;
}

/*
 * New chunks may be placed where there is no device extent: if one was missing, they would overlap an existing chunk.
 * Linux refuses to mount if stripes and device extents differ.
 */
static int check_dev_extents(struct btrkit_fs *fs, const struct lying *at, size_t n, struct btrkit_error *err)
{
	struct tree_root root;
	struct dev_extent e;
	struct cursor c;
	size_t i = 0;
	int ret;

	/* Without the tree no chunks can be allocated. */
	ret = fs_try_root(fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, fs, &root);
	c.scan = true;
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		if (c.item.key.type != KEY_DEV_EXTENT)
			continue;
		ret = dev_extent_decode(&fs->items, &c.item, &e, err);
		if (!ret)
			ret = check_dev_extent(&e, i < n ? &at[i] : NULL, err);
		if (ret) {
			cursor_blame(&c, ret, err);
			break;
		}
		i++;
	}
	cursor_release(&c);
	if (ret == 1 && i < n) {
		ret = err_corrupt(err, NULL, "chunk %" PRIu64 " has no device extent", at[i].chunk);
		err_at_tree(err, OID_DEV_TREE);
		err_at_device(err, at[i].devid, at[i].start);
	}
	return ret < 0 ? ret : 0;
}

/* Linux creates chunks of full stripes. Otherwise the last strips would be past the end of the device extents. */
static int check_full_stripes(const struct volume_chunk *c, struct btrkit_error *err)
{
	const struct raid_shape shape = { c->type, c->num_stripes };
	const unsigned data = raid_data_stripes(&shape);

	if ((data == 1 && !raid_profile_find(c->type)->parity) ||
	    !(c->length % ((uint64_t)CHUNK_STRIPE_LEN * data)))
		return 0;
	return err_corrupt(err, "length",
			   "chunk %" PRIu64 " of %" PRIu64 " bytes ends within a full stripe of %u strips", c->logical,
			   c->length, data);
}

static int check_chunks(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct volume *v = fs->volume;
	struct lying *at;
	size_t n = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < volume_num_chunks(v); i++) {
		const struct volume_chunk *c = volume_chunk(v, i);

		n += c->num_stripes;
		if (raid_profile_find(c->type)->parity && !parity_available())
			ret = refuse("RAID5 and RAID6 require a build with ISA-L", err);
		else
			ret = check_full_stripes(c, err);
	}
	if (ret)
		return ret;
	at = calloc(n + 1, sizeof(*at));
	if (!at)
		return err_nomem(err);
	n = 0;
	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		const struct volume_chunk *c = volume_chunk(v, i);

		for (unsigned k = 0; k < c->num_stripes; k++)
			at[n++] = (struct lying){ c->stripes[k].device, c->stripes[k].devid, c->stripes[k].physical,
						  c->stripe_length, c->logical };
	}
	qsort(at, n, sizeof(*at), by_place);
	ret = check_places(v, at, n, err);
	if (!ret)
		ret = check_dev_extents(fs, at, n, err);
	free(at);
	return ret;
}

/* Linux uses any quota status item. One with another key would not be found here. */
static int check_quotas(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct btrkit_key known = KEY(0, KEY_QGROUP_STATUS, 0);
	struct tree_root root;
	struct cursor c;
	int ret;

	ret = fs_try_root(fs, OID_QUOTA_TREE, &root, NULL, err);
	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, fs, &root);
	c.scan = true;
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(&c, err)) {
		if (c.item.key.type != KEY_QGROUP_STATUS || !key_cmp(&c.item.key, &known))
			continue;
		ret = cursor_blame(&c, err_corrupt(err, "key", "quota status item has an invalid key"), err);
		break;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

int fs_check_write(struct btrkit_fs *fs, bool devices, struct btrkit_error *err)
{
	int ret = features_check_write(&fs->super, err);

	if (!ret)
		ret = check_missing(fs, err);
	if (!ret && !fs->degraded)
		ret = check_stale(fs->volume, err);
	for (size_t i = 0; !ret && devices && i < volume_num_devices(fs->volume); i++)
		ret = check_device(volume_device(fs->volume, i).io, err);
	if (!ret)
		ret = check_chunk_tree(fs, err);
	if (!ret)
		ret = check_system_chunks(fs, err);
	if (!ret)
		ret = check_chunks(fs, err);
	if (!ret)
		ret = check_balance(fs, err);
	if (!ret)
		ret = check_replace(fs, err);
	if (!ret)
		ret = check_quotas(fs, err);
	return ret;
}
