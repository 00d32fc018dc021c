// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/cmd.h"

enum { OPT_ORDERED = 256 };

static const struct cmd_option options[] = {
	{ OPT_ORDERED, "ordered", NULL, "take the devices in the order of FILE, if they cannot be told apart" },
	{ 'q', "quiet", NULL, "print nothing but errors" },
	{ 0 },
};

struct request {
	const char *file;
	const char *const *devices;
	size_t n;
	bool ordered, quiet;
	const char *blame; /* the device to name in an error */
};

static int open_all(struct request *req, struct btrkit_io **ios, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < req->n; i++) {
		req->blame = req->devices[i];
		ret = cmd_open_device(req->devices, i, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &ios[i], err);
	}
	return ret;
}

static int undo_on(struct request *req, struct btrkit_io **ios, struct btrkit_undo_result *result,
		   struct btrkit_error *err)
{
	struct btrkit_undo_options opts = BTRKIT_UNDO_OPTIONS_INIT;
	/* Not with cmd_progress_begin(): a signal ends the program at once, and running it again completes the undo. */
	struct cmd_progress p = { .what = "undoing", .terminal = !req->quiet && isatty(STDERR_FILENO), .percent = -1 };
	int ret;

	ret = open_all(req, ios, err);
	if (ret)
		return ret;
	/* If there are several, the library names the one. */
	req->blame = req->n == 1 ? req->devices[0] : NULL;
	opts.progress = cmd_progress;
	opts.progress_ctx = &p;
	if (req->ordered)
		opts.flags = BTRKIT_UNDO_ORDERED;
	ret = btrkit_undo(req->file, ios, req->n, &opts, result, err);
	cmd_progress_end(&p);
	return ret;
}

static int undo(struct request *req, struct btrkit_undo_result *result, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(req->n, sizeof(struct btrkit_io *));
	int ret;

	if (!ios)
		return cmd_no_memory(err);
	ret = undo_on(req, ios, result, err);
	for (size_t i = 0; i < req->n; i++)
		btrkit_io_close(ios[i]);
	free(ios);
	return ret;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_undo_result result;
	struct request req = { 0 };
	int c;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		*(c == 'q' ? &req.quiet : &req.ordered) = true;
	cmd_check_args(cmd, argc, 2, -1);
	req.file = argv[optind];
	req.devices = (const char *const *)argv + optind + 1;
	req.n = (size_t)(argc - optind - 1);
	if (undo(&req, &result, &err))
		return cmd_fail(cmd, req.blame, &err);
	if (req.quiet)
		return EXIT_DONE;
	if (result.restored)
		printf("%" PRIu64 " of %" PRIu64 " saved bytes restored\n", result.restored, result.saved);
	else
		printf("nothing to do: all %" PRIu64 " saved bytes are unchanged\n", result.saved);
	return EXIT_DONE;
}

const struct command cmd_undo = {
	.name = "undo",
	.args = "FILE DEV...",
	.summary = "Restore what another command overwrote, from its undo file",
	.options = options,
	.run = run,
};
