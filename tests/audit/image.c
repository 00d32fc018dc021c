// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Audit images, print a line for each, and fail on the first finding in any.
 * audit-image [--live] IMAGE...
 * --live: they were copied while mounted
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"

static int run(const char *path, bool live, struct btrkit_error *err)
{
	struct btrkit_check_result n = { 0 };
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	int ret = btrkit_io_open(path, BTRKIT_IO_READ, &io, err);

	if (ret)
		return ret;
	ret = btrkit_fs_open(&io, 1, NULL, &fs, err);
	if (ret) {
		btrkit_io_close(io);
		return ret;
	}
	/* mkfs.btrfs or Linux may have left something behind. */
	ret = audit(fs, AUDIT_LEFTOVERS, &n, err);
	if (!ret && !live)
		ret = audit_backups(fs, err);
	btrkit_fs_close(fs);
	if (!ret)
		printf("%s: %" PRIu64 " tree blocks, %" PRIu64 " data extents\n", path, n.blocks, n.extents);
	return ret;
}

int main(int argc, char **argv)
{
	const bool live = argc > 1 && !strcmp(argv[1], "--live");
	int failed = argc < 2 + live;

	for (int i = 1 + live; i < argc; i++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		char line[512];

		if (run(argv[i], live, &err)) {
			printf("%s: %s\n", argv[i], btrkit_error_format(&err, line, sizeof(line)));
			failed = 1;
		}
	}
	return failed;
}
