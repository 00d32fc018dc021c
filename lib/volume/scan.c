// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/filesystem.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
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
	struct super first;	/* of the first device that was given */
	struct btrkit_io *const *given;
	size_t num_given;
	struct btrkit_io **found;
	size_t num_found;
};

static bool is_devid(struct btrkit_io *io, uint64_t devid)
{
	struct super s;

	return !read_primary(io, &s, NULL) && s.devid == devid;
}

/* Several block devices may show one disk (multipath, device mapper): the first that was met is taken. */
static bool has_devid(const struct scan *scan, uint64_t devid)
{
	for (size_t i = 0; i < scan->num_given; i++)
		if (is_devid(scan->given[i], devid))
			return true;
	for (size_t i = 0; i < scan->num_found; i++)
		if (is_devid(scan->found[i], devid))
			return true;
	return false;
}

/* What cannot be opened, or is no btrfs, is not what is looked for. */
static void try_device(struct scan *scan, const char *name)
{
	char path[sizeof("/dev/") + sizeof(((struct dirent *)NULL)->d_name)];
	struct btrkit_io *io;
	struct super s;

	snprintf(path, sizeof(path), "/dev/%s", name);
	/* The kernel writes the slashes of a name as exclamation marks. */
	for (char *c = path; (c = strchr(c, '!'));)
		*c = '/';
	if (btrkit_io_open(path, BTRKIT_IO_READ, &io, NULL))
		return;
	if (read_primary(io, &s, NULL) || memcmp(s.fsid, scan->first.fsid, sizeof(s.fsid)) || has_devid(scan, s.devid))
		btrkit_io_close(io);
	else
		scan->found[scan->num_found++] = io;
}

int btrkit_fs_scan(struct btrkit_io *const *devices, size_t n, struct btrkit_io **found, size_t max, size_t *count,
		   struct btrkit_error *err)
{
	struct scan scan = { .given = devices, .num_given = n, .found = found };
	struct dirent **names;
	int ret, entries;

	*count = 0;
	if (!n)
		return err_set(err, BTRKIT_INVALID, "no device");
	ret = read_primary(devices[0], &scan.first, err);
	if (ret)
		return ret;
	if (scan.first.num_devices <= n)
		return 0;
	entries = scandir(BLOCK_DEVICES, &names, NULL, alphasort);
	if (entries < 0)
		return err_system(err, errno, "cannot list %s", BLOCK_DEVICES);
	for (int i = 0; i < entries; i++) {
		if (names[i]->d_name[0] != '.' && scan.num_found < max && n + scan.num_found < scan.first.num_devices)
			try_device(&scan, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	*count = scan.num_found;
	return 0;
}
