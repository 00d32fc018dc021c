// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"

static const struct cmd_option options[] = {
	{ 'q', "quiet", NULL, "print nothing" },
	{ 0 },
};

static int progress(void *ctx, uint64_t done, uint64_t total)
{
	int *told = ctx, percent = total ? (int)(100.0 * (double)done / (double)total) : 0;

	if (percent != *told) {
		*told = percent;
		fprintf(stderr, "\r%d %%", percent);
	}
	return 0;
}

static int undo(const char *file, const char *device, struct btrkit_undo_result *result, struct btrkit_error *err)
{
	struct btrkit_undo_options opts = BTRKIT_UNDO_OPTIONS_INIT;
	bool terminal = isatty(STDERR_FILENO);
	struct btrkit_io *io;
	int told = 0, ret;

	ret = btrkit_io_open(device, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, err);
	if (ret)
		return ret;
	if (terminal) {
		opts.progress = progress;
		opts.progress_ctx = &told;
	}
	ret = btrkit_undo(file, &io, 1, &opts, result, err);
	if (told)
		fprintf(stderr, "\r\033[K");
	btrkit_io_close(io);
	return ret;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_undo_result result;
	bool quiet = false;

	while (cmd_next_option(cmd, argc, argv) != -1)
		quiet = true;
	cmd_check_args(cmd, argc, 2, 2);
	if (undo(argv[optind], argv[optind + 1], &result, &err))
		return cmd_fail(cmd, argv[optind + 1], &err);
	if (quiet)
		return EXIT_DONE;
	if (result.restored)
		printf("%" PRIu64 " of %" PRIu64 " saved bytes put back\n", result.restored, result.saved);
	else
		printf("nothing to do: all of %" PRIu64 " saved bytes are as they were\n", result.saved);
	return EXIT_DONE;
}

const struct command cmd_undo = {
	.name = "undo",
	.args = "FILE DEV",
	.summary = "Put back what another command overwrote, from its undo file",
	.options = options,
	.run = run,
};
