// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Before anything is written, the mirrors are brought up to date with the primary superblocks. After a crash, they may
 * be those of the previous commit. The space that the last commit freed would then be overwritten, and if the primary
 * superblock was torn later, its mirror would refer to blocks that no longer exist. Devices with different generations
 * are not written at all.
 */
#include "lib/commit/sync_supers.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/supers.h"
#include "lib/volume/volume.h"

/* Whether a mirror has to be written. @return 1: yes; 0: no; <0 */
static int is_behind(const struct btrkit_fs *fs, const struct volume_device *device, unsigned mirror,
		     struct btrkit_error *err)
{
	struct disk_super disk;
	struct super super;
	int ret = btrkit_io_read(device->io, super_offset(mirror), &disk, sizeof(disk), err);

	if (ret)
		return ret;
	return super_decode(&disk, super_offset(mirror), &super, NULL) || super.generation != fs->super.generation ||
	       memcmp(super.fsid, fs->super.fsid, sizeof(super.fsid)) != 0;
}

static int write_mirror(struct btrkit_fs *fs, const struct volume_device *device, struct disk_super *d, unsigned mirror,
			struct btrkit_error *err)
{
	commit_super_make_copy(fs, d, mirror);
	return btrkit_io_write(device->io, super_offset(mirror), d, SUPER_SIZE, err);
}

static int sync_device(struct btrkit_fs *fs, const struct volume_device *device, struct btrkit_error *err)
{
	struct disk_super d = fs->super.disk;
	bool written = false;
	int ret = commit_device_item(fs, device->devid, &d.dev_item, err);

	if (ret)
		return ret;
	for (unsigned mirror = 1; mirror < SUPER_MIRRORS && commit_super_has_copy(&d, mirror); mirror++) {
		ret = is_behind(fs, device, mirror, err);
		written |= ret == 1;
		if (ret == 1)
			ret = write_mirror(fs, device, &d, mirror, err);
		if (ret) {
			err_at_device(err, device->devid, super_offset(mirror));
			return ret;
		}
	}
	ret = written ? btrkit_io_flush(device->io, err) : 0;
	if (ret)
		err_at_device(err, device->devid, super_offset(1));
	return ret;
}

int commit_sync_supers(struct btrkit_fs *fs, struct btrkit_error *err)
{
	const struct volume *v = fs->volume;
	int ret;

	/* If another program has written to the filesystem, its mirrors would seem to be outdated. */
	ret = commit_supers_check(fs, err);
	for (size_t i = 0; !ret && i < volume_num_devices(v); i++) {
		const struct volume_device device = volume_device(v, i);

		if (device.io)
			ret = sync_device(fs, &device, err);
	}
	return ret;
}
