// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares every copy of the superblock on every device with the one in use. */
#include "lib/check/supers/supers.h"

#include <string.h>

#include "lib/base/uuid.h"
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/supers/backups.h"
#include "lib/check/supers/super_fields.h"
#include "lib/format/feature_bits.h"
#include "lib/volume/super_place.h"
#include "lib/volume/volume.h"

struct copies {
	struct check *c;
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t total_bytes; /* of the device, from its superblock; 0: unknown */
};

/* Fields that are worth naming in a report of a difference. */
static const struct {
	const char *name;
	size_t at;
} fields[] = {
	{ "fsid", offsetof(struct disk_super, fsid) },
	{ "flags", offsetof(struct disk_super, flags) },
	{ "generation", offsetof(struct disk_super, generation) },
	{ "root", offsetof(struct disk_super, root) },
	{ "chunk_root", offsetof(struct disk_super, chunk_root) },
	{ "log_root", offsetof(struct disk_super, log_root) },
	{ "total_bytes", offsetof(struct disk_super, total_bytes) },
	{ "bytes_used", offsetof(struct disk_super, bytes_used) },
	{ "root_dir_objectid", offsetof(struct disk_super, root_dir_objectid) },
	{ "num_devices", offsetof(struct disk_super, num_devices) },
	{ "sectorsize", offsetof(struct disk_super, sectorsize) },
	{ "sys_chunk_array_size", offsetof(struct disk_super, sys_chunk_array_size) },
	{ "chunk_root_generation", offsetof(struct disk_super, chunk_root_generation) },
	{ "compat_flags", offsetof(struct disk_super, compat_flags) },
	{ "compat_ro_flags", offsetof(struct disk_super, compat_ro_flags) },
	{ "incompat_flags", offsetof(struct disk_super, incompat_flags) },
	{ "csum_type", offsetof(struct disk_super, csum_type) },
	{ "root_level", offsetof(struct disk_super, root_level) },
	{ "dev_item", offsetof(struct disk_super, dev_item) },
	{ "label", offsetof(struct disk_super, label) },
	{ "cache_generation", offsetof(struct disk_super, cache_generation) },
	{ "uuid_tree_generation", offsetof(struct disk_super, uuid_tree_generation) },
	{ "metadata_uuid", offsetof(struct disk_super, metadata_uuid) },
	{ "reserved", offsetof(struct disk_super, nr_global_roots) },
	{ "sys_chunk_array", offsetof(struct disk_super, sys_chunk_array) },
	{ "backups", offsetof(struct disk_super, backups) },
};

static const char *field_at(size_t offset)
{
	size_t i = sizeof(fields) / sizeof(fields[0]);

	while (i > 1 && fields[i - 1].at > offset)
		i--;
	return fields[i - 1].name;
}

/*
 * Returns a superblock reduced to what all copies have in common. @logs: fsync(2) only writes the primary superblocks,
 * so mirrors may lack the log.
 */
static struct disk_super common(const struct disk_super *disk, bool logs, bool devices)
{
	struct disk_super s = *disk;

	memset(s.csum, 0, sizeof(s.csum));
	s.bytenr = le64_put(0);
	if (devices)
		memset(&s.dev_item, 0, sizeof(s.dev_item));
	if (logs) {
		s.log_root = s.log_root_transid = le64_put(0);
		s.log_root_level = 0;
	}
	return s;
}

static const char *differing_field(const struct disk_super *x, const struct disk_super *y, bool logs, bool devices)
{
	const struct disk_super a = common(x, logs, devices), b = common(y, logs, devices);
	size_t i = 0;

	while (i < sizeof(a) && ((const uint8_t *)&a)[i] == ((const uint8_t *)&b)[i])
		i++;
	return i < sizeof(a) ? field_at(i) : NULL;
}

static void report_super(const struct copies *on, enum check_code code, unsigned mirror, uint64_t at, const char *field,
			 const uint64_t values[2], const char *message)
{
	const bool stale = code == CHECK_SUPER_STALE && volume_is_stale(on->c->fs->volume, on->devid);
	const struct check_location where = { .field = field, .devid = on->devid, .physical = at, .values = values,
					      .cause = stale ? BTRKIT_CAUSE_DEVICE_STALE : BTRKIT_CAUSE_OTHER };

	check_report_at(on->c, code, &where, "%s %s", super_mirror_names()[mirror], message);
}

/* Whether a mirror is within the device size that the superblock records. Past that, there may be anything. */
static bool expected(const struct copies *on, unsigned mirror)
{
	return !mirror || !on->total_bytes || super_offset(mirror) + SUPER_SIZE < on->total_bytes;
}

static void verify_mirror(const struct copies *on, const struct super *primary, const struct super *s, unsigned mirror,
			  uint64_t at)
{
	const uint64_t values[] = { s->generation, primary->generation };
	const bool log = primary->log_root && !s->log_root;
	const char *field;

	if (memcmp(s->fsid, primary->fsid, UUID_SIZE) || s->devid != primary->devid) {
		report_super(on, CHECK_SUPER_COPY, mirror, at, "fsid", NULL, "belongs to another filesystem or device");
	} else if (s->generation < primary->generation) {
		report_super(on, CHECK_SUPER_OLD, mirror, at, "generation", values,
			     "is older than the primary superblock");
	} else if (s->generation > primary->generation) {
		report_super(on, CHECK_SUPER_NEW, mirror, at, "generation", values,
			     "is newer than the primary superblock");
	} else {
		field = differing_field(&primary->disk, &s->disk, log, false);
		if (field)
			report_super(on, CHECK_SUPER_COPY, mirror, at, field, NULL,
				     "differs from the primary superblock");
	}
}

/* Linux opens no seed device whose metadata UUID was changed. */
static void check_seed(const struct copies *on, const struct super *s, uint64_t at)
{
	if (s->flags & SUPER_FLAG_SEEDING && s->incompat & INCOMPAT_METADATA_UUID)
		report_super(on, CHECK_SUPER_FEATURE, 0, at, "incompat_flags", NULL,
			     "is that of a seed device, whose metadata UUID must be its filesystem's");
}

/* Compares the primary superblock of a device with the one in use, which may be another device's. */
static void check_primary(const struct copies *on, const struct super *s, uint64_t at)
{
	const struct super *used = &on->c->fs->super;
	const uint64_t values[] = { s->generation, used->generation };
	const char *field;

	/* Seed devices do not change. */
	if (memcmp(s->fsid, used->fsid, UUID_SIZE))
		return;
	if (s->generation != used->generation) {
		report_super(on, CHECK_SUPER_STALE, 0, at, "generation", values,
			     "has another generation than the filesystem");
		return;
	}
	field = differing_field(&used->disk, &s->disk, false, true);
	if (field && s->devid != used->devid)
		report_super(on, CHECK_SUPER_COPY, 0, at, field, NULL, "differs from that of another device");
}

/* Tools that restore a metadata dump only write the primary superblock. */
static bool is_empty(const struct disk_super *disk)
{
	static const struct disk_super none;

	return !memcmp(disk, &none, sizeof(none));
}

/* Reads a copy of the superblock, and reports damage. @return whether it is valid */
static bool read_copy(const struct copies *on, unsigned mirror, struct super *ret, uint64_t *at)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct disk_super disk;
	int r = super_read(on->io, mirror, &disk, at, &what);

	if (r == -ENXIO)
		return false;
	if (!r)
		r = super_decode(&disk, super_offset(mirror), ret, &what);
	if (!r)
		return true;
	if (!expected(on, mirror) || (mirror && r == -EMEDIUMTYPE && is_empty(&disk)))
		return false;
	err_name(&what, super_mirror_names()[mirror]);
	err_at_device(&what, on->devid, *at);
	check_report(on->c, mirror ? CHECK_SUPER_COPY : CHECK_SUPER_PRIMARY, &what);
	return false;
}

static void verify_device(struct copies *on)
{
	struct super primary, s;
	uint64_t at;
	bool found = read_copy(on, 0, &primary, &at);

	if (found) {
		on->total_bytes = le64_get(primary.disk.dev_item.total_bytes);
		check_primary(on, &primary, at);
		check_seed(on, &primary, at);
	}
	for (unsigned mirror = 1; mirror < SUPER_MIRRORS; mirror++) {
		if (!read_copy(on, mirror, &s, &at) || !expected(on, mirror))
			continue;
		if (found)
			verify_mirror(on, &primary, &s, mirror, at);
	}
}

int check_supers(struct check *c)
{
	const struct volume *v = c->fs->volume;

	for (size_t i = 0; i < volume_num_devices(v) && !check_failed(c); i++) {
		struct copies on = { .c = c, .io = volume_device(v, i).io, .devid = volume_device(v, i).devid };

		if (on.io)
			verify_device(&on);
	}
	supers_check_fields(c);
	supers_check_backups(c);
	return c->failed;
}
