// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/filesystem.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/io/file.h"
#include "lib/io/signature.h"
#include "lib/volume/super_place.h"

#define BLOCK_DEVICES "/sys/class/block"

static int read_primary(struct btrkit_io *io, struct super *ret, struct btrkit_error *err)
{
	struct disk_super disk;
	uint64_t at;
	int r = super_read(io, 0, &disk, &at, err);

	return r ? r : super_decode(&disk, super_offset(0), ret, err);
}

struct scan {
	struct super first;	/* superblock of the first given device */
	struct btrkit_io *const *given;
	size_t num_given;
	struct btrkit_io **found;
	size_t num_found, max;
	bool kernel;		/* scanning the kernel's list of the mounted filesystem */
	size_t num_kernel;	/* number of devices found there; they come first */
	struct btrkit_error *err;
};

static uint64_t devid_of(struct btrkit_io *io)
{
	struct super s;

	return read_primary(io, &s, NULL) ? 0 : s.devid;
}

/* The given device with this devid, or NULL. */
static const struct btrkit_io *given(const struct scan *scan, uint64_t devid)
{
	for (size_t i = 0; i < scan->num_given; i++)
		if (devid_of(scan->given[i]) == devid)
			return scan->given[i];
	return NULL;
}

/* The kernel also lists the seed devices of a mounted filesystem. */
static bool is_wanted(const struct scan *scan, const struct super *s)
{
	return !memcmp(s->fsid, scan->first.fsid, sizeof(s->fsid)) || (scan->kernel && s->flags & SUPER_FLAG_SEEDING);
}

/*
 * Handles another device with a devid that was given or found before: the same device with another name, or a copy.
 * With a copy it is unknown which of the two the other devices belong to, and writing to them could damage the
 * original.
 */
static int check_again(const struct scan *scan, const struct btrkit_io *first, const struct btrkit_io *io,
		       uint64_t devid)
{
	uint64_t start;
	int fd;

	/* The caller's own backend may be anything. */
	if (!io_file_place(first, &fd, &start) || io_file_shared(first, io))
		return 0;
	return err_set(scan->err, BTRKIT_INVALID, "device %" PRIu64 " was found twice: %.80s and %.80s", devid,
		       first->name, io->name);
}

static int verify_device(struct scan *scan, struct btrkit_io *io, bool *keep)
{
	const struct btrkit_io *same;
	struct super s;

	*keep = false;
	if (read_primary(io, &s, NULL) || !is_wanted(scan, &s))
		return 0;
	same = given(scan, s.devid);
	if (same)
		return check_again(scan, same, io, s.devid);
	for (size_t i = 0; i < scan->num_found; i++)
		/* Use the device that the kernel uses. */
		if (devid_of(scan->found[i]) == s.devid)
			return i < scan->num_kernel ? 0 : check_again(scan, scan->found[i], io, s.devid);
	*keep = scan->num_found < scan->max;
	return 0;
}

/* Devices that cannot be opened or have no btrfs are ignored. */
static int try_path(void *ctx, const char *path)
{
	struct scan *scan = ctx;
	struct btrkit_io *io;
	bool keep;
	int ret;

	if (btrkit_io_open(path, BTRKIT_IO_READ, &io, NULL))
		return 0;
	ret = verify_device(scan, io, &keep);
	if (keep)
		scan->found[scan->num_found++] = io;
	else
		btrkit_io_close(io);
	return ret;
}

/* Whether another block device is built on top of this one, and must be used instead. */
static bool is_part(const char *name)
{
	char path[PATH_MAX];
	struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), BLOCK_DEVICES "/%s/holders", name);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir)))
		found = d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

/* Tries the devices listed in a directory of sysfs. */
static int try_folder(struct scan *scan, const char *folder)
{
	struct dirent **names;
	int ret = 0, entries = scandir(folder, &names, NULL, alphasort);

	if (entries < 0)
		return 0;
	for (int i = 0; i < entries; i++) {
		char path[sizeof("/dev/") + sizeof(names[i]->d_name)];

		snprintf(path, sizeof(path), "/dev/%s", names[i]->d_name);
		/* The kernel replaces slashes in names by exclamation marks. */
		for (char *c = path; (c = strchr(c, '!'));)
			*c = '/';
		if (!ret && names[i]->d_name[0] != '.' && (scan->kernel || !is_part(names[i]->d_name)))
			ret = try_path(scan, path);
		free(names[i]);
	}
	free(names);
	return ret;
}

static bool is_complete(const struct scan *scan)
{
	return scan->num_given + scan->num_found >= scan->first.num_devices;
}

static int look_everywhere(struct scan *scan, unsigned sources)
{
	char text[UUID_TEXT], folder[100];
	int ret = 0;

	if (sources & BTRKIT_SCAN_MOUNTED) {
		snprintf(folder, sizeof(folder), "/sys/fs/btrfs/%s/devices", base_uuid_text(scan->first.fsid, text));
		scan->kernel = true;
		ret = try_folder(scan, folder);
		scan->kernel = false;
		scan->num_kernel = scan->num_found;
	}
	if (ret || is_complete(scan))
		return ret;
	if (sources & BTRKIT_SCAN_CACHE)
		ret = io_cached_devices(scan->first.fsid, false, try_path, scan, scan->err);
	/* Even if all devices are found by now: one of them may exist twice. */
	if (!ret && sources & BTRKIT_SCAN_DEVICES)
		ret = try_folder(scan, BLOCK_DEVICES);
	return ret;
}

int btrkit_fs_scan(struct btrkit_io *const *devices, size_t n, unsigned sources, struct btrkit_io **found, size_t max,
		   size_t *count, struct btrkit_error *err)
{
	struct scan scan = { .given = devices, .num_given = n, .found = found, .max = max, .err = err };
	int ret;

	*count = 0;
	if (!n)
		return err_set(err, BTRKIT_INVALID, "no device given");
	if (sources & ~(unsigned)BTRKIT_SCAN_ALL)
		return err_set(err, BTRKIT_INVALID, "unknown scan source");
	ret = read_primary(devices[0], &scan.first, err);
	if (ret || is_complete(&scan))
		return ret;
	ret = look_everywhere(&scan, sources);
	if (!ret)
		*count = scan.num_found;
	while (ret && scan.num_found)
		btrkit_io_close(found[--scan.num_found]);
	return ret;
}
