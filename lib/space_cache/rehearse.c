// SPDX-License-Identifier: LGPL-2.1-or-later
/* Does a conversion over devices that keep what is written in memory, so that a dry run has the figures of the run. */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/dry.h"
#include "lib/space_cache/convert.h"
#include "lib/volume/volume.h"

/* Small, since private blocks take memory as well. */
#define CACHE_BYTES (16u << 20)

static void close_all(struct btrkit_io **ios, size_t n)
{
	while (n)
		btrkit_io_close(ios[--n]);
}

/* Puts a device in memory over each of the filesystem's. @n: their number, also after a failure */
static int cover(const struct btrkit_fs *fs, struct btrkit_io **ios, size_t *n, struct btrkit_error *err)
{
	const struct volume *v = fs->volume;
	int ret = 0;

	for (size_t i = 0; i < volume_num_devices(v) && !ret; i++) {
		struct btrkit_io *io = volume_device(v, i).io;

		if (io)
			ret = io_dry(io, &ios[*n], err);
		*n += io && !ret;
	}
	return ret;
}

static int open_covered(const struct btrkit_fs *fs, struct btrkit_fs **ret, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = {
		.flags = BTRKIT_OPEN_WRITE | (fs->degraded ? BTRKIT_OPEN_DEGRADED : 0),
		.cache_bytes = CACHE_BYTES,
	};
	struct btrkit_io **ios = calloc(volume_num_devices(fs->volume), sizeof(struct btrkit_io *));
	size_t n = 0;
	int r;

	if (!ios)
		return err_nomem(err);
	r = cover(fs, ios, &n, err);
	if (!r)
		r = btrkit_fs_open(ios, n, &opts, ret, err);
	if (r)
		close_all(ios, n);
	free(ios);
	return r;
}

int convert_rehearse(struct conversion *cv, struct btrkit_error *err)
{
	struct conversion own = *cv;
	int ret;

	/* The caller is told that there is not enough space. */
	if (cv->sum.available_bytes < cv->sum.needed_bytes)
		return 0;
	ret = open_covered(cv->fs, &own.fs, err);
	if (ret)
		return ret;
	ret = convert_run(&own, err);
	btrkit_fs_close(own.fs);
	if (!ret)
		cv->sum = own.sum;
	return ret;
}
