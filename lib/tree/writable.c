// SPDX-License-Identifier: LGPL-2.1-or-later
/* What stands against writing a filesystem that can be read. */
#include "lib/tree/writable.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/format/items/dev_replace.h"
#include "lib/format/raid.h"
#include "lib/io/zone.h"
#include "lib/tree/cursor.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume.h"

/* States of a device replacement that Linux takes up again when it mounts. */
#define REPLACE_STARTED 1
#define REPLACE_SUSPENDED 4

static int refuse(const char *why, struct btrkit_error *err)
{
	return err_set(err, BTRKIT_UNSUPPORTED, "writing is not supported: %s", why);
}

/* Linux goes on with a balance when it mounts, and its trees hold references that nobody else keeps. */
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

static int check_replace(struct btrkit_fs *fs, struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	uint64_t state;
	int ret;

	ret = fs_find_root(fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	cursor_init(&c, fs, &root);
	ret = cursor_find(&c, &KEY(0, KEY_DEV_REPLACE, 0), err);
	if (!ret)
		ret = cursor_blame(&c, item_validate(&fs->items, &c.item, err), err);
	if (!ret) {
		state = le64_get(((const struct disk_dev_replace *)c.item.data)->state);
		if (state == REPLACE_STARTED || state == REPLACE_SUSPENDED)
			ret = refuse("unfinished device replace", err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* A device must have what its superblock says: a part of an image would be written past its end. */
static int check_device(struct btrkit_io *io, struct btrkit_error *err)
{
	struct btrkit_zone zone;
	struct disk_super disk;
	uint64_t total;
	int ret;

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
			    "device of %" PRIu64 " bytes, of which the filesystem takes %" PRIu64, io->size, total);
		err_at_device(err, le64_get(disk.dev_item.devid), super_offset(0));
		return -EUCLEAN;
	}
	return 0;
}

static uint64_t num_present(const struct volume *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < volume_num_devices(v); i++)
		n += !!volume_device(v, i).io;
	return n;
}

static bool has_parity(const struct volume *v)
{
	for (size_t i = 0; i < volume_num_chunks(v); i++)
		if (raid_profile_find(volume_chunk(v, i)->type)->parity)
			return true;
	return false;
}

int fs_check_write(struct btrkit_fs *fs, struct btrkit_io *const *devices, size_t n, struct btrkit_error *err)
{
	int ret = features_check_write(&fs->super, err);

	if (!ret && num_present(fs->volume) < fs->super.num_devices)
		ret = refuse("a device is missing", err);
	if (!ret && !parity_available() && has_parity(fs->volume))
		ret = refuse("RAID5 and RAID6, by a build without ISA-L", err);
	for (size_t i = 0; !ret && i < n; i++)
		ret = check_device(devices[i], err);
	if (!ret)
		ret = check_balance(fs, err);
	if (!ret)
		ret = check_replace(fs, err);
	return ret;
}
