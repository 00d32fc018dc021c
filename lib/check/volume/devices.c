// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares device items with the devices, with the space allocated on them, and with the superblock. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/uuid.h"
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/volume/devices.h"
#include "lib/check/volume/volume.h"
#include "lib/volume/super_place.h"

static void report_device(const struct volume_check *v, enum check_code code, uint64_t devid, const char *field,
			  const uint64_t values[2], const char *message)
{
	check_report_at(v->c, code,
			&(struct check_location){ OID_CHUNK_TREE, 0, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid), field,
						  devid, 0, values },
			"%s", message);
}

const struct dev_item *volume_find_device(const struct volume_check *v, uint64_t devid)
{
	const struct dev_item *devices = v->devices.at;
	size_t low = 0, high = v->devices.n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (devices[mid].devid < devid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < v->devices.n && devices[low].devid == devid ? &devices[low] : NULL;
}

/* Whether bytes_used matches the chunks. If so, the device extents are wrong, which was reported. */
static bool is_of_chunks(const struct volume_check *v, const struct dev_item *device, size_t *next)
{
	const struct known_stripe *stripes = v->stripes.at;
	uint64_t sum = 0;

	while (*next < v->stripes.n && stripes[*next].is.devid < device->devid)
		++*next;
	for (; *next < v->stripes.n && stripes[*next].is.devid == device->devid; ++*next)
		sum += stripes[*next].is.length;
	return sum == device->bytes_used && !v->c->chunks_lost;
}

/* Where the entries of the next device start. */
struct next {
	size_t extent, stripe;
};

/* Checks the device extents of a device. They and the stripes are sorted by device. */
static void verify_extents(const struct volume_check *v, const struct dev_item *device, struct next *at)
{
	const struct dev_extent *extents = v->extents.at;
	uint64_t values[] = { device->bytes_used, 0 };
	const bool of_chunks = is_of_chunks(v, device, &at->stripe);
	size_t *next = &at->extent;

	while (*next < v->extents.n && extents[*next].devid < device->devid)
		++*next;
	for (; *next < v->extents.n && extents[*next].devid == device->devid; ++*next) {
		const struct dev_extent *e = &extents[*next];

		values[1] += e->length;
		if (e->physical > device->total_bytes || e->length > device->total_bytes - e->physical)
			check_report_at(v->c, CHECK_DEVEXT_END,
					&(struct check_location){ OID_DEV_TREE, 0,
								  &KEY(e->devid, KEY_DEV_EXTENT, e->physical), NULL,
								  e->devid, e->physical },
					"device extent ends past the end of its device of %" PRIu64 " bytes",
					device->total_bytes);
	}
	if (!v->extents_lost && values[0] != values[1] && !of_chunks)
		report_device(v, CHECK_DEVICE_USED, device->devid, "bytes_used", values,
			      "used bytes of the device are not the sum of its device extents");
}

/* Reports device extents and stripes on devices that the filesystem does not have. */
static void check_owners(const struct volume_check *v)
{
	const struct dev_extent *extents = v->extents.at;
	const struct known_stripe *stripes = v->stripes.at;
	const struct dev_item *device = NULL;

	for (size_t i = 0; i < v->extents.n; i++) {
		const struct dev_extent *e = &extents[i];

		if (!device || device->devid != e->devid)
			device = volume_find_device(v, e->devid);
		if (!device)
			check_report_at(v->c, CHECK_DEVEXT_DEVICE,
					&(struct check_location){ OID_DEV_TREE, 0,
								  &KEY(e->devid, KEY_DEV_EXTENT, e->physical),
								  "key.objectid", e->devid, e->physical },
					"device extent is on a device that does not exist");
	}
	for (size_t i = 0; i < v->stripes.n; i++) {
		const struct known_stripe *s = &stripes[i];
		const struct btrkit_key key = KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, s->is.chunk_offset);
		const struct check_location at = { OID_CHUNK_TREE, 0, &key, "stripe", s->is.devid, s->is.physical };

		if (!device || device->devid != s->is.devid)
			device = volume_find_device(v, s->is.devid);
		if (!device)
			check_report_at(v->c, CHECK_CHUNK_DEVICE, &at,
					"chunk has a stripe on a device that does not exist");
		else if (memcmp(device->uuid, s->dev_uuid, UUID_SIZE))
			check_report_at(v->c, CHECK_CHUNK_DEVICE, &at, "chunk has a stripe with the wrong device UUID");
	}
}

/* Checks the copy of the device item in the device's superblock. */
static void check_copy(const struct volume_check *v, const struct dev_item *device, const struct super *super)
{
	const struct item item = { KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, super->devid),
				   (const uint8_t *)&super->disk.dev_item, sizeof(super->disk.dev_item) };
	const bool seed = memcmp(super->metadata_uuid, v->c->fs->super.metadata_uuid, UUID_SIZE);
	struct dev_item copy;
	const char *field = NULL;

	if (memcmp(super->dev_uuid, device->uuid, UUID_SIZE) || memcmp(super->metadata_uuid, device->fsid, UUID_SIZE))
		report_device(v, CHECK_DEVICE_IDENTITY, device->devid, "uuid", NULL,
			      "device UUID or filesystem UUID in the device's superblock differs from the device item");
	/* Linux tells by the generation whether a seed device was written to after the filesystem was grown from it. */
	if (seed && super->generation != device->generation) {
		const uint64_t generations[] = { super->generation, device->generation };

		report_device(v, CHECK_DEVICE_IDENTITY, device->devid, "generation", generations,
			      "generation in the seed device's superblock differs from the device item");
	}
	/* Seed devices are never written, and devices that were missing have old superblocks. */
	if (seed || super->generation != v->c->fs->super.generation)
		return;
	if (dev_item_decode(&item, &copy, NULL))
		field = "bytes_used";
	else if (copy.total_bytes != device->total_bytes)
		field = "total_bytes";
	else if (copy.bytes_used != device->bytes_used)
		field = "bytes_used";
	else if (copy.io_align != device->io_align)
		field = "io_align";
	else if (copy.io_width != device->io_width)
		field = "io_width";
	else if (copy.sector_size != device->sector_size)
		field = "sector_size";
	else if (copy.type != device->type)
		field = "type";
	if (field)
		report_device(v, CHECK_DEVICE_COPY, device->devid, field, NULL,
			      "device's superblock does not match the device item");
}

/* Reads the superblock that was used to open the device: the primary, or the newest mirror. */
static bool read_super(struct btrkit_io *io, struct super *ret)
{
	struct disk_super disk;
	struct super s;
	bool found = false;
	uint64_t at;

	for (unsigned mirror = 0; mirror < SUPER_MIRRORS && !(mirror && found && ret->bytenr == super_offset(0));
	     mirror++) {
		if (super_read(io, mirror, &disk, &at, NULL) || super_decode(&disk, super_offset(mirror), &s, NULL))
			continue;
		if (!found || s.generation > ret->generation)
			*ret = s;
		found = true;
	}
	return found;
}

static void report_missing(const struct volume_check *v, uint64_t devid)
{
	check_report_at(v->c, CHECK_DEVICE_MISSING,
			&(struct check_location){ .tree = OID_CHUNK_TREE,
						  .key = &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid),
						  .devid = devid,
						  .cause = BTRKIT_CAUSE_DEVICE_MISSING },
			"device is missing");
}

static void verify_device(const struct volume_check *v, const struct dev_item *device)
{
	const struct volume *volume = v->c->fs->volume;
	struct btrkit_io *io = NULL;
	uint64_t values[2];
	struct super super;

	for (size_t i = 0; i < volume_num_devices(volume); i++)
		if (volume_device(volume, i).devid == device->devid)
			io = volume_device(volume, i).io;
	if (!io) {
		report_missing(v, device->devid);
		return;
	}
	values[0] = device->total_bytes;
	values[1] = io->size;
	if (values[0] > values[1])
		report_device(v, CHECK_DEVICE_SIZE, device->devid, "total_bytes", values,
			      "device is smaller than its device item says");
	if (device->devid == v->c->fs->super.devid)
		check_copy(v, device, &v->c->fs->super);
	else if (read_super(io, &super))
		check_copy(v, device, &super);
}

/* Returns the number of devices that are not missing. */
static size_t num_present(const struct volume_check *v)
{
	size_t n = 0;

	for (size_t i = 0; i < volume_num_devices(v->c->fs->volume); i++)
		n += volume_device(v->c->fs->volume, i).io != NULL;
	return n;
}

static void check_counts(const struct volume_check *v)
{
	const struct super *super = &v->c->fs->super;
	const struct dev_item *devices = v->devices.at;
	const uint64_t counts[] = { super->num_devices, v->devices.n };
	uint64_t totals[] = { super->total_bytes, 0 }, own = 0;
	struct check_location at = { .field = "num_devices", .values = counts };

	for (size_t i = 0; i < v->devices.n; i++) {
		const bool seed = memcmp(devices[i].fsid, super->metadata_uuid, UUID_SIZE);

		totals[1] += devices[i].total_bytes;
		own += seed ? 0 : devices[i].total_bytes;
	}
	if (counts[0] == 1 && counts[1] > 1 && num_present(v) > 1)
		check_report_at(v->c, CHECK_SUPER_FIELD, &at,
				"superblock says that there is one device, so Linux ignores the others");
	else if (counts[0] != counts[1])
		check_report_at(v->c, CHECK_DEVICE_COUNT, &at, "wrong number of devices in the superblock");
	at = (struct check_location){ .field = "total_bytes", .values = totals };
	if (totals[0] < own)
		check_report_at(v->c, CHECK_DEVICE_TOTAL, &at,
				"total bytes in the superblock are fewer than the devices have");
	else if (totals[0] != totals[1])
		check_report_at(v->c, CHECK_DEVICE_SUM, &at,
				"total bytes in the superblock are not the sum of the devices");
	if (!volume_find_device(v, super->devid))
		check_report_at(v->c, CHECK_DEVICE_IDENTITY, &(struct check_location){ .field = "dev_item.devid" },
				"device %" PRIu64 " of the superblock has no device item", super->devid);
}

void volume_devices(const struct volume_check *v)
{
	const struct dev_item *devices = v->devices.at;
	struct next next = { 0 };

	for (size_t i = 0; i < v->devices.n && !check_failed(v->c); i++) {
		verify_extents(v, &devices[i], &next);
		verify_device(v, &devices[i]);
	}
	if (v->devices_lost)
		return;
	check_owners(v);
	check_counts(v);
}
