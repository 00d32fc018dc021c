// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/print/space.h"
#include "cmd/space_cache/space_cache.h"

enum {
	OPT_FORMAT = 256,
	OPT_TO,
	OPT_DRY_RUN,
	OPT_UNDO
};

static const struct cmd_option options[] = {
	{ OPT_FORMAT, "format", "text|json", "status: output format: text (the default) or JSON Lines" },
	{ OPT_TO, "to", "v2|v1|none", "convert: the cache to use; the default is v2" },
	{ OPT_DRY_RUN, "dry-run", NULL, "convert, clear: only print what would be changed" },
	{ OPT_UNDO, "undo", "FILE", "convert, clear: save what is overwritten in the new FILE,\nfor btrkit undo" },
	CMD_DEGRADED_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

enum action { STATUS, CONVERT, CLEAR };

static int status(const struct command *cmd, const struct space_cache_request *req)
{
	static const char *const names[] = { "", "v1 cache", "free space tree" };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_summary sum = { 0 };
	struct cmd_output out = { 0 };
	struct btrkit_fs *fs;
	int ret, exit_status;

	fs = cmd_devices_open(cmd, &req->devices, NULL);
	if (!fs)
		return EXIT_FAILED;
	ret = print_space_status(fs, req->format, cmd_write, &out, &sum, &err);
	btrkit_fs_close(fs);
	exit_status = cmd_end(cmd, req->devices.at[0], &out, ret, &err);
	if (exit_status != EXIT_DONE || !sum.contradictions)
		return exit_status;
	cmd_say("btrkit %s: %s: the %s contradicts the extent tree in %" PRIu64 " of %" PRIu64
		" block groups, first in %" PRIu64,
		cmd->name, req->devices.at[0], names[sum.in_use], sum.contradictions, sum.groups,
		sum.first_contradiction);
	return EXIT_FAILED;
}

/* Parses v1 or v2, or if allowed none. */
static enum btrkit_space_cache_kind kind_of(const struct command *cmd, const char *what, const char *s, bool none)
{
	if (!strcmp(s, "v2"))
		return BTRKIT_SPACE_CACHE_V2;
	if (!strcmp(s, "v1"))
		return BTRKIT_SPACE_CACHE_V1;
	if (!none || strcmp(s, "none"))
		cmd_usage_error(cmd, "%s: '%s' is unknown", what, s);
	return BTRKIT_SPACE_CACHE_NONE;
}

static enum action action_of(const struct command *cmd, const char *s)
{
	static const char *const names[] = { "status", "convert", "clear" };

	for (int i = STATUS; i <= CLEAR; i++)
		if (!strcmp(names[i], s))
			return (enum action)i;
	cmd_usage_error(cmd, "'%s' is unknown", s);
}

/* Refuses options that do not apply to the action. */
static void check_options(const struct command *cmd, const char *name, enum action action, const bool *given,
			  const struct cmd_devices *devices)
{
	static const struct {
		int option;
		const char *name;
		bool of[CLEAR + 1];
	} rules[] = {
		{ OPT_FORMAT, "--format", { [STATUS] = true } },
		{ OPT_TO, "--to", { [CONVERT] = true } },
		{ OPT_DRY_RUN, "--dry-run", { [CONVERT] = true, [CLEAR] = true } },
		{ OPT_UNDO, "--undo", { [CONVERT] = true, [CLEAR] = true } },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (given[rules[i].option - OPT_FORMAT] && !rules[i].of[action])
			cmd_usage_error(cmd, "%s cannot be used with '%s'", rules[i].name, name);
	if (given[OPT_DRY_RUN - OPT_FORMAT] && given[OPT_UNDO - OPT_FORMAT])
		cmd_usage_error(cmd, "--undo and --dry-run cannot be combined");
	if (devices->degraded && action == STATUS)
		cmd_usage_error(cmd, "--degraded cannot be used with '%s'", name);
}

static void parse_options(const struct command *cmd, int argc, char **argv, struct space_cache_request *req,
			  bool *given)
{
	int c;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		if (cmd_devices_option(&req->devices, c))
			continue;
		given[c - OPT_FORMAT] = true;
		if (c == OPT_FORMAT)
			req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		else if (c == OPT_TO)
			req->kind = kind_of(cmd, "--to", optarg, true);
		else if (c == OPT_DRY_RUN)
			req->dry_run = true;
		else
			req->undo = optarg;
	}
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct space_cache_request req = { .kind = BTRKIT_SPACE_CACHE_V2 };
	bool given[OPT_UNDO - OPT_FORMAT + 1] = { false };
	enum action action;
	int exit_status;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	parse_options(cmd, argc, argv, &req, given);
	cmd_check_args(cmd, argc, 1, -1);
	action = action_of(cmd, argv[optind]);
	check_options(cmd, argv[optind], action, given, &req.devices);
	req.clear = action == CLEAR;
	cmd_check_args(cmd, argc, 2 + req.clear, 2 + req.clear);
	if (req.clear)
		req.kind = kind_of(cmd, "clear", argv[optind + 1], false);
	req.devices.at[0] = argv[optind + 1 + req.clear];
	exit_status = action == STATUS ? status(cmd, &req) : space_cache_change(cmd, &req);
	cmd_devices_end(&req.devices);
	return exit_status;
}

const struct command cmd_space_cache = {
	.name = "space-cache",
	.args = "status|convert|clear v1|clear v2 DEV",
	.summary = "Check, convert and remove the free space caches",
	.options = options,
	.run = run,
};
