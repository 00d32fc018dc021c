// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/filesystem.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"

#define DEVICES_MAX 1024 /* maximum number of devices that are looked for */

static unsigned io_flags(const struct btrkit_open_options *opts)
{
	return opts && opts->flags & BTRKIT_OPEN_WRITE ? BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE : BTRKIT_IO_READ;
}

/* Opens @io again for writing, since the scan opens devices for reading. */
static int reopen(struct btrkit_io **io, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_io *again;
	int ret = btrkit_io_open((*io)->name, flags, &again, err);

	if (ret)
		return ret;
	btrkit_io_close(*io);
	*io = again;
	return 0;
}

/* @n: number of devices to close, also after a failure */
static int open_devices(const char *path, unsigned sources, unsigned flags, struct btrkit_io **ios, size_t *n,
			struct btrkit_error *err)
{
	size_t found = 0;
	int ret;

	ret = btrkit_io_open(path, flags, &ios[0], err);
	if (ret)
		return ret;
	*n = 1;
	if (!sources)
		return 0;
	ret = btrkit_fs_scan(ios, 1, sources, ios + 1, DEVICES_MAX, &found, err);
	/* If the scan cannot use the primary superblock, btrkit_fs_open() reports that, or uses a mirror. */
	if (ret == -EINVAL || ret == -ENOMEM)
		return ret;
	ret = 0;
	*n += found;
	for (size_t i = 1; flags != BTRKIT_IO_READ && i < *n && !ret; i++)
		ret = reopen(&ios[i], flags, err);
	return ret;
}

int btrkit_fs_open_path(const char *path, unsigned sources, const struct btrkit_open_options *opts,
			struct btrkit_fs **ret, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(1 + DEVICES_MAX, sizeof(struct btrkit_io *));
	size_t n = 0;
	int r;

	if (!ios)
		return err_nomem(err);
	r = open_devices(path, sources, io_flags(opts), ios, &n, err);
	/* On success the handle owns the devices. */
	if (!r)
		r = btrkit_fs_open(ios, n, opts, ret, err);
	while (r && n)
		btrkit_io_close(ios[--n]);
	free(ios);
	return r;
}
