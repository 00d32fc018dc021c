// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/space_device.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/raid.h"
#include "lib/io/zone.h"
#include "lib/space/space_impl.h"
#include "lib/tree/edit.h"

/* What is not used at the beginning of a device, and one strip: no chunk fits on a smaller one. */
#define SIZE_MIN ((1ull << 20) + CHUNK_STRIPE_LEN)

static struct btrkit_key item_key(uint64_t devid)
{
	return KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid);
}

/* Index of a device in the volume, or the number of devices. */
static size_t find(const struct space *s, uint64_t devid)
{
	const size_t n = volume_num_devices(s->fs->volume);
	size_t i = 0;

	while (i < n && volume_device(s->fs->volume, i).devid != devid)
		i++;
	return i;
}

/* Finds a device that is not leaving. */
static int find_device(const struct space *s, uint64_t devid, struct volume_device *ret, struct btrkit_error *err)
{
	const size_t i = find(s, devid);

	if (i < volume_num_devices(s->fs->volume))
		*ret = volume_device(s->fs->volume, i);
	if (i == volume_num_devices(s->fs->volume) || ret->state == VOLUME_LEAVING)
		return err_set(err, BTRKIT_INVALID, "there is no device %" PRIu64, devid);
	if (!ret->io)
		return err_because(err, BTRKIT_CAUSE_DEVICE_MISSING,
				   err_set(err, BTRKIT_UNSUPPORTED, "device %" PRIu64 " is missing", devid));
	return 0;
}

static void add_to(le64 *sum, uint64_t n)
{
	*sum = le64_put(le64_get(*sum) + n);
}

static uint64_t whole_sectors(const struct space *s, uint64_t bytes)
{
	return bytes - bytes % s->fs->geometry.sectorsize;
}

/* The next ID, also after devices that this transaction removes. */
static int next_devid(struct space *s, uint64_t *ret, struct btrkit_error *err)
{
	const struct btrkit_key last = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, UINT64_MAX);
	uint64_t most = 0;
	struct cursor c;
	int r;

	cursor_init(&c, s->fs, &s->fs->chunk_tree);
	r = cursor_seek_back(&c, &last, err);
	if (!r && c.item.key.objectid == OID_DEV_ITEMS && c.item.key.type == KEY_DEV_ITEM)
		most = c.item.key.offset;
	cursor_release(&c);
	if (r < 0)
		return r;
	for (size_t i = 0; i < volume_num_devices(s->fs->volume); i++)
		if (volume_device(s->fs->volume, i).devid > most)
			most = volume_device(s->fs->volume, i).devid;
	if (most == UINT64_MAX)
		return err_set(err, BTRKIT_INVALID, "no device ID is left");
	*ret = most + 1;
	return 0;
}

/* Whether a new device can be one of the filesystem. */
static int check_new(const struct space *s, struct btrkit_io *io, const uint8_t uuid[16], struct btrkit_error *err)
{
	struct btrkit_zone zone;
	int ret;

	if (!s->overlay)
		return err_set(err, BTRKIT_BUSY, "no transaction is open");
	for (size_t i = 0; i < volume_num_devices(s->fs->volume); i++) {
		const struct volume_device d = volume_device(s->fs->volume, i);

		if (d.io == io)
			return err_set(err, BTRKIT_INVALID, "%s is device %" PRIu64 " already", io->name, d.devid);
		/* Two superblocks cannot be written at once: after a crash in between, the other would be missing. */
		if (d.state == VOLUME_JOINING)
			return err_set(err, BTRKIT_BUSY, "device %" PRIu64 " was added by the same transaction",
				       d.devid);
		if (!memcmp(d.uuid, uuid, sizeof(d.uuid)))
			return err_set(err, BTRKIT_INVALID, "device %" PRIu64 " has the same UUID", d.devid);
	}
	if (!io->ops->write || !io->ops->flush)
		return err_system(err, EROFS, "cannot write %s", io->name);
	ret = io_zone(io, 0, &zone, err);
	if (ret <= 0)
		return ret ? ret : err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: zoned device");
	if (whole_sectors(s, io->size) < SIZE_MIN)
		return err_set(err, BTRKIT_INVALID, "%s of %" PRIu64 " bytes is too small", io->name, io->size);
	return 0;
}

static int insert_device(struct space *s, uint64_t devid, const uint8_t uuid[16], uint64_t total,
			 struct btrkit_error *err)
{
	const uint32_t sector = s->fs->geometry.sectorsize;
	const struct btrkit_key key = item_key(devid);
	struct disk_dev_item d = {
		.devid = le64_put(devid),
		.total_bytes = le64_put(total),
		.io_align = le32_put(sector),
		.io_width = le32_put(sector),
		.sector_size = le32_put(sector),
	};

	memcpy(d.uuid, uuid, sizeof(d.uuid));
	memcpy(d.fsid, s->fs->rules.fsid, sizeof(d.fsid));
	return space_insert_item(s, OID_CHUNK_TREE, &key, &d, sizeof(d), err);
}

static struct btrkit_key stats_key(uint64_t devid)
{
	return KEY(OID_DEV_STATS, KEY_PERSISTENT_ITEM, devid);
}

/* Checks that delete_stats() can read its place in the device tree. */
static int check_stats(struct space *s, uint64_t devid, struct btrkit_error *err)
{
	const struct btrkit_key key = stats_key(devid);
	struct tree_root root;
	struct cursor c;
	int ret = fs_find_root(s->fs, OID_DEV_TREE, &root, NULL, err);

	if (ret)
		return ret;
	cursor_init(&c, s->fs, &root);
	ret = cursor_find(&c, &key, err);
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Error counters of an earlier device with this ID must not become those of a new one. */
static int delete_stats(struct space *s, uint64_t devid, struct btrkit_error *err)
{
	const struct btrkit_key key = stats_key(devid);
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, OID_DEV_TREE, &t, err);

	if (ret)
		return ret;
	ret = edit_delete(t, &key, &own);
	if (!ret || ret == -ENOENT)
		return 0;
	if (err)
		*err = own;
	return ret;
}

int space_device_add(struct space *s, struct btrkit_io *io, const uint8_t uuid[16], struct disk_super *super,
		     uint64_t *devid, struct btrkit_error *err)
{
	const uint64_t total = whole_sectors(s, io->size);
	uint64_t id;
	int ret;

	ret = check_new(s, io, uuid, err);
	if (!ret)
		ret = next_devid(s, &id, err);
	if (!ret)
		ret = check_stats(s, id, err);
	if (!ret)
		ret = volume_make_room(s->fs->volume, err);
	if (ret)
		return ret;
	ret = insert_device(s, id, uuid, total, err);
	if (!ret)
		ret = delete_stats(s, id, err);
	if (ret)
		return space_edited(s, ret, err);
	volume_join(s->fs->volume, io, id, uuid);
	add_to(&super->num_devices, 1);
	add_to(&super->total_bytes, total);
	*devid = id;
	return 0;
}

/* The superblock in memory has the item of one device, which must not be one that leaves. @ret: another one */
static int find_other(struct space *s, uint64_t devid, struct disk_dev_item *ret, struct btrkit_error *err)
{
	for (size_t i = 0; i < volume_num_devices(s->fs->volume); i++) {
		const struct volume_device d = volume_device(s->fs->volume, i);

		if (d.io && d.devid != devid && d.state != VOLUME_LEAVING)
			return space_read_device(s, d.devid, ret, err);
	}
	return err_set(err, BTRKIT_BUSY, "device %" PRIu64 " is the last", devid);
}

/* Writes the item of a device, which exists. */
static int write_item(struct space *s, uint64_t devid, const struct disk_dev_item *d, struct btrkit_error *err)
{
	const struct btrkit_key key = item_key(devid);
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, OID_CHUNK_TREE, &t, err);

	return ret ? ret : space_missing_item(edit_replace(t, &key, d, sizeof(*d), err), OID_CHUNK_TREE, &key, err);
}

/* A device that was just added leaves only with an abort. */
static int check_old(const struct space *s, uint64_t devid, struct btrkit_error *err)
{
	struct volume_device device;
	size_t others = 0;
	int ret;

	if (!s->overlay)
		return err_set(err, BTRKIT_BUSY, "no transaction is open");
	ret = find_device(s, devid, &device, err);
	if (ret)
		return ret;
	if (device.state == VOLUME_JOINING)
		return err_set(err, BTRKIT_INVALID, "device %" PRIu64 " was added by the same transaction", devid);
	for (size_t i = 0; i < volume_num_devices(s->fs->volume); i++)
		others += volume_device(s->fs->volume, i).state == VOLUME_MEMBER;
	if (others < 2)
		return err_set(err, BTRKIT_BUSY, "device %" PRIu64 " is the last", devid);
	if (volume_device_in_use(s->fs->volume, devid))
		return err_set(err, BTRKIT_BUSY, "device %" PRIu64 " has chunks", devid);
	return 0;
}

/* Checks everything before the first edit. @d: the item of the device; @other: what the superblock has after that */
static int check_removal(struct space *s, uint64_t devid, const struct disk_super *super, struct disk_dev_item *d,
			 struct disk_dev_item *other, struct btrkit_error *err)
{
	int ret = check_old(s, devid, err);

	if (!ret)
		ret = space_read_device(s, devid, d, err);
	if (!ret)
		ret = check_stats(s, devid, err);
	if (ret)
		return ret;
	if (le64_get(d->bytes_used))
		return err_corrupt(err, "bytes_used", "device %" PRIu64 " has no chunks, but %" PRIu64 " bytes used",
				   devid, le64_get(d->bytes_used));
	*other = super->dev_item;
	return le64_get(other->devid) == devid ? find_other(s, devid, other, err) : 0;
}

int space_device_remove(struct space *s, uint64_t devid, struct disk_super *super, struct btrkit_error *err)
{
	const struct btrkit_key key = item_key(devid);
	struct disk_dev_item d, other;
	int ret = check_removal(s, devid, super, &d, &other, err);

	if (ret)
		return ret;
	ret = space_delete_item(s, OID_CHUNK_TREE, &key, err);
	if (!ret)
		ret = delete_stats(s, devid, err);
	if (ret)
		return space_edited(s, ret, err);
	super->dev_item = other;
	volume_set_state(s->fs->volume, find(s, devid), VOLUME_LEAVING);
	add_to(&super->num_devices, UINT64_MAX);
	add_to(&super->total_bytes, -le64_get(d.total_bytes));
	return 0;
}

/* Sets @end to the end of the last chunk on a device, or to 0. */
static int last_end(struct space *s, uint64_t devid, uint64_t *end, struct btrkit_error *err)
{
	struct tree_root root;
	struct dev_extent e;
	struct cursor c;
	int ret;

	ret = fs_find_root(s->fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret;
	*end = 0;
	cursor_init(&c, s->fs, &root);
	ret = cursor_seek_back(&c, &KEY(devid, KEY_DEV_EXTENT, UINT64_MAX), err);
	if (!ret && c.item.key.objectid == devid && c.item.key.type == KEY_DEV_EXTENT) {
		ret = cursor_blame(&c, dev_extent_decode(&s->fs->items, &c.item, &e, err), err);
		*end = ret ? 0 : e.physical + e.length;
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static int check_size(struct space *s, uint64_t devid, uint64_t total, struct btrkit_error *err)
{
	struct volume_device device;
	uint64_t end;
	int ret;

	if (!s->overlay)
		return err_set(err, BTRKIT_BUSY, "no transaction is open");
	ret = find_device(s, devid, &device, err);
	if (ret)
		return ret;
	if (total < SIZE_MIN || total > device.io->size)
		return err_set(err, BTRKIT_INVALID,
			       "device %" PRIu64 " of %" PRIu64 " bytes cannot get a size of %" PRIu64, devid,
			       device.io->size, total);
	ret = last_end(s, devid, &end, err);
	if (!ret && end > total)
		ret = err_set(err, BTRKIT_BUSY, "a chunk on device %" PRIu64 " ends at %" PRIu64, devid, end);
	return ret;
}

int space_device_resize(struct space *s, uint64_t devid, uint64_t total, struct disk_super *super,
			struct btrkit_error *err)
{
	struct disk_dev_item d;
	uint64_t old;
	int ret;

	total = whole_sectors(s, total);
	ret = check_size(s, devid, total, err);
	if (!ret)
		ret = space_read_device(s, devid, &d, err);
	if (ret)
		return ret;
	old = le64_get(d.total_bytes);
	d.total_bytes = le64_put(total);
	ret = write_item(s, devid, &d, err);
	if (ret)
		return space_edited(s, ret, err);
	if (le64_get(super->dev_item.devid) == devid)
		super->dev_item.total_bytes = d.total_bytes;
	add_to(&super->total_bytes, total - old);
	return 0;
}

int space_device_take_chunks(struct space *s, uint64_t devid, bool take, struct btrkit_error *err)
{
	struct volume_device device;
	int ret = find_device(s, devid, &device, err);

	if (!ret)
		volume_set_closed(s->fs->volume, find(s, devid), !take);
	return ret;
}

/* Drops the devices in one state, and makes all others members. Without any, nothing is written: others may read. */
static void settle(struct space *s, enum volume_state gone)
{
	struct volume *v = s->fs->volume;

	for (size_t i = volume_num_devices(v); i--;) {
		if (volume_device(v, i).state == gone)
			volume_drop_device(v, i);
		else if (volume_device(v, i).state != VOLUME_MEMBER)
			volume_set_state(v, i, VOLUME_MEMBER);
	}
}

void space_devices_committed(struct space *s)
{
	settle(s, VOLUME_LEAVING);
}

void space_devices_aborted(struct space *s)
{
	settle(s, VOLUME_JOINING);
}
