// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "cmd.h"

#define SCANNED_MAX 1024	/* devices of a filesystem, far more than anybody has */

int cmd_keep_undo(const char *file, struct btrkit_io **io, struct btrkit_error *err)
{
	return file ? btrkit_io_undo(*io, file, 0, io, err) : 0;
}

/* On success the handle owns the devices. @ios has room for what is found by the scan. */
static int open_ios(const char *const *devices, size_t n, bool scan, const struct btrkit_open_options *opts,
		    struct btrkit_io **ios, const char **blame, struct btrkit_fs **ret, struct btrkit_error *err)
{
	size_t opened = 0, found = 0;
	int r = 0;

	while (opened < n && !r) {
		*blame = devices[opened];
		r = btrkit_io_open(devices[opened], BTRKIT_IO_READ, &ios[opened], err);
		opened += !r;
	}
	if (!r)
		*blame = devices[0];
	/* A superblock that the scan cannot use is for the library to judge when it opens: it has mirrors. */
	if (!r && scan && !btrkit_fs_scan(ios, n, ios + n, SCANNED_MAX, &found, NULL))
		opened += found;
	if (!r)
		r = btrkit_fs_open(ios, opened, opts, ret, err);
	while (r && opened)
		btrkit_io_close(ios[--opened]);
	return r;
}

static int open_fs(const char *const *devices, size_t n, bool scan, const struct btrkit_open_options *opts,
		   const char **blame, struct btrkit_fs **ret, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(n + SCANNED_MAX, sizeof(struct btrkit_io *));
	int r;

	if (!ios) {
		*err = (struct btrkit_error){ .code = BTRKIT_NO_MEMORY, .err = -ENOMEM, .message = "out of memory" };
		return -ENOMEM;
	}
	r = open_ios(devices, n, scan, opts, ios, blame, ret, err);
	free(ios);
	return r;
}

struct btrkit_fs *cmd_open(const struct command *cmd, const char *const *devices, size_t n, bool scan,
			   const struct btrkit_open_options *opts)
{
	struct btrkit_open_options o = BTRKIT_OPEN_OPTIONS_INIT;
	static struct cmd_note note;	/* the handle may tell something as long as it lives */
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const char *blame = devices[0];
	struct btrkit_fs *fs;

	note = (struct cmd_note){ cmd, devices[0] };
	if (opts)
		o = *opts;
	o.note = cmd_note;
	o.note_ctx = &note;
	if (!open_fs(devices, n, scan, &o, &blame, &fs, &err))
		return fs;
	cmd_fail(cmd, blame, &err);
	return NULL;
}
