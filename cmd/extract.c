// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

enum {
	OPT_SUBVOL = 256,
	OPT_DEVICE,
	OPT_NOSCAN
};

static const struct cmd_option options[] = {
	{ 'C', "directory", "DIR", "where files come to (default: the working directory)" },
	{ OPT_SUBVOL, "subvol", "ID|PATH", "the subvolume that each PATH is relative to (default: 5, the top\nlevel)" },
	{ OPT_DEVICE, "device", "DEV", "another device of the same filesystem (repeatable)" },
	{ OPT_NOSCAN, "noscan", NULL, "use the given devices only, look for no others" },
	{ 0 },
};

struct request {
	const struct command *cmd;
	const char *directory, *subvol;
	const char **devices; /* the first is the argument */
	size_t num_devices;
	bool noscan;
	const char *const *paths;
	size_t num_paths;
	/* While it runs. */
	bool terminal, told;
	struct timespec when; /* the last time that it was told how far it is */
};

#define TELL_NSEC 200000000

static void clear_line(struct request *req)
{
	if (req->told)
		cmd_progress_clear();
	req->told = false;
}

static int progress(void *ctx, uint64_t names, uint64_t bytes)
{
	struct request *req = ctx;
	struct timespec now;

	if (cmd_progress_stopped())
		return -EINTR;
	if (!req->terminal || clock_gettime(CLOCK_MONOTONIC, &now))
		return 0;
	if (now.tv_sec == req->when.tv_sec && now.tv_nsec - req->when.tv_nsec < TELL_NSEC)
		return 0;
	req->when = now;
	req->told = true;
	fprintf(stderr, "\rextracting: %" PRIu64 " files, %" PRIu64 " MiB", names, bytes >> 20);
	return 0;
}

static int problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct request *req = ctx;

	clear_line(req);
	cmd_fail_path(req->cmd, req->devices[0], path, len, what);
	return 0;
}

static int extract(struct btrkit_fs *fs, struct request *req, struct btrkit_extract_result *result,
		   struct btrkit_error *err)
{
	const struct btrkit_extract_options opts = {
		.flags = geteuid() ? 0 : BTRKIT_EXTRACT_OWNERS,
		.problem = problem,
		.problem_ctx = req,
		.progress = progress,
		.progress_ctx = req,
	};
	struct cmd_progress p;
	uint64_t root = 5;
	int ret = req->subvol ? btrkit_subvolume_find(fs, req->subvol, &root, err) : 0;

	if (ret)
		return ret;
	cmd_progress_begin(&p, "extracting");
	req->terminal = p.terminal;
	ret = btrkit_extract(fs, root, req->paths, req->num_paths, req->directory, &opts, result, err);
	clear_line(req);
	return ret;
}

static void take_option(struct request *req, int c)
{
	switch (c) {
	case 'C':
		req->directory = optarg;
		break;
	case OPT_SUBVOL:
		req->subvol = optarg;
		break;
	case OPT_DEVICE:
		req->devices[req->num_devices++] = optarg;
		break;
	case OPT_NOSCAN:
		req->noscan = true;
		break;
	}
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { .cmd = cmd, .num_devices = 1, .directory = "." };
	struct btrkit_extract_result result = { 0 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	int c, status = EXIT_FAILED;

	req.devices = calloc((size_t)argc + 1, sizeof(*req.devices));
	if (!req.devices)
		return cmd_fail(cmd, NULL, &(struct btrkit_error){ .message = "out of memory" });
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(&req, c);
	cmd_check_args(cmd, argc, 1, -1);
	req.devices[0] = argv[optind];
	req.paths = (const char *const *)argv + optind + 1;
	req.num_paths = (size_t)(argc - optind - 1);
	fs = cmd_open(cmd, req.devices, req.num_devices, !req.noscan, NULL);
	if (fs && extract(fs, &req, &result, &err))
		status = cmd_fail(cmd, req.devices[0], &err);
	else if (fs)
		status = result.problems ? EXIT_FAILED : EXIT_DONE;
	btrkit_fs_close(fs);
	free(req.devices);
	return status;
}

const struct command cmd_extract = {
	.name = "extract",
	.args = "DEV [PATH]...",
	.summary = "Bring files, directories or a whole subvolume to a directory",
	.options = options,
	.run = run,
};
