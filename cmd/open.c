// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "cmd.h"

/* On success the handle owns the devices. */
static int open_all(const char *const *devices, size_t n, const struct btrkit_open_options *opts, const char **blame,
		    struct btrkit_fs **ret, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(n, sizeof(struct btrkit_io *));
	int r = 0;
	size_t i;

	if (!ios) {
		*err = (struct btrkit_error){ .code = BTRKIT_NO_MEMORY, .err = -ENOMEM, .message = "out of memory" };
		return -ENOMEM;
	}
	for (i = 0; i < n && !r; i++) {
		*blame = devices[i];
		r = btrkit_io_open(devices[i], BTRKIT_IO_READ, &ios[i], err);
	}
	if (!r) {
		*blame = devices[0];
		r = btrkit_fs_open(ios, n, opts, ret, err);
	}
	for (i = 0; r && i < n; i++)
		btrkit_io_close(ios[i]);
	free(ios);
	return r;
}

struct btrkit_fs *cmd_open(const struct command *cmd, const char *const *devices, size_t n,
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
	if (!open_all(devices, n, &o, &blame, &fs, &err))
		return fs;
	cmd_fail(cmd, blame, &err);
	return NULL;
}
