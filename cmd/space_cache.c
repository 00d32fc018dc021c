// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

enum {
	OPT_FORMAT = 256,
	OPT_DEVICE
};

static const struct cmd_option options[] = {
	{ OPT_FORMAT, "format", "text|json", "text (the default), or JSON Lines" },
	{ OPT_DEVICE, "device", "DEV", "another device of the same filesystem (repeatable)" },
	{ 0 },
};

struct request {
	enum btrkit_space_format format;
	const char **devices;
	size_t num_devices;
};

static int status(const struct command *cmd, const struct request *req, struct btrkit_fs *fs)
{
	static const char *const names[] = { "", "v1 cache", "free space tree" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_summary sum = { 0 };
	struct cmd_output out = { 0 };
	int ret, exit_status;

	ret = btrkit_space_status_print(fs, req->format, cmd_write, &out, &sum, &err);
	exit_status = cmd_end(cmd, req->devices[0], &out, ret, &err);
	if (exit_status != EXIT_DONE || !sum.contradictions)
		return exit_status;
	fprintf(stderr,
		"btrkit %s: %s: the %s contradicts the extent tree in %" PRIu64 " of %" PRIu64
		" block groups, first in %" PRIu64 "\n",
		cmd->name, req->devices[0], names[sum.in_use], sum.contradictions, sum.groups,
		sum.first_contradiction);
	return EXIT_FAILED;
}

/* What is done on DEV is named by the first argument. */
static void check_action(const struct command *cmd, const char *action)
{
	if (!strcmp(action, "status"))
		return;
	if (!strcmp(action, "convert") || !strcmp(action, "clear"))
		cmd_usage_error(cmd, "'%s' is not supported yet: this version does not write", action);
	cmd_usage_error(cmd, "'%s' is unknown", action);
}

static int run(const struct command *cmd, int argc, char **argv)
{
	static const char *const formats[] = { "text", "json", NULL };
	struct request req = { .num_devices = 1 };
	struct btrkit_fs *fs;
	int c, exit_status;

	req.devices = calloc((size_t)argc + 1, sizeof(*req.devices));
	if (!req.devices)
		return cmd_fail(cmd, NULL, &(struct btrkit_error){ .message = "out of memory" });
	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		if (c == OPT_FORMAT)
			req.format = cmd_format(cmd, optarg, formats);
		else
			req.devices[req.num_devices++] = optarg;
	}
	cmd_check_args(cmd, argc, 1, -1);
	check_action(cmd, argv[optind]);
	cmd_check_args(cmd, argc, 2, 2);
	req.devices[0] = argv[optind + 1];
	fs = cmd_open(cmd, req.devices, req.num_devices, true, NULL);
	exit_status = fs ? status(cmd, &req, fs) : EXIT_FAILED;
	btrkit_fs_close(fs);
	free(req.devices);
	return exit_status;
}

const struct command cmd_space_cache = {
	.name = "space-cache",
	.args = "status DEV",
	.summary = "Hold the caches of free space against the extent tree",
	.options = options,
	.run = run,
};
