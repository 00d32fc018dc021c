// SPDX-License-Identifier: LGPL-2.1-or-later
/* check: verifies all structures of a filesystem, and compares them with each other. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <btrkit/check.h>

#include "cmd/cmd.h"
#include "lib/print/check.h"

/* Most blocks are read once, bypassing the cache. */
#define CACHE_BYTES (4u << 20)

/* Exit statuses of fsck(8). */
#define EXIT_ERRORS 4
#define EXIT_OPERATION 8
#define EXIT_SYNTAX 16
#define EXIT_CANCELLED 32

enum {
	OPT_DATA = 256,
	OPT_FORMAT,
	OPT_JSON,
	OPT_MEMORY,
	OPT_SPILL,
	OPT_THREADS,
	OPT_REPEATS,
	OPT_FORCE,
	OPT_LIST_CODES
};

static const struct cmd_option options[] = {
	{ OPT_DATA, "data", NULL, "also read every copy of data with checksums, and parity" },
	{ 'p', "progress", NULL, "show progress if the standard error is a terminal" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	{ OPT_JSON, "json", NULL, "the same as --format json" },
	{ OPT_REPEATS, "repeats", "N", "list at most N findings of each code (default: 32)" },
	{ OPT_MEMORY, "memory", "SIZE", "limit the memory for tables (default: no limit)" },
	{ OPT_SPILL, "spill", "DIR", "keep tables beyond that limit in a file in DIR" },
	{ OPT_THREADS, "threads", "N", "use at most N threads (default: one for each processor)" },
	{ OPT_FORCE, "force", NULL, "also read devices that are mounted" },
	{ OPT_LIST_CODES, "list-codes", NULL, "print all codes of findings, and exit" },
	CMD_START_OPTIONS,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct progress {
	struct cmd_progress common;
	uint64_t rate_of; /* bytes per unit of progress */
	int64_t begun;	  /* by cmd_clock() */
};

struct request {
	struct btrkit_check_options opts;
	struct btrkit_open_options open;
	struct cmd_devices devices;
	enum btrkit_format format;
	bool progress, force, list_codes;
};

/* Printed whenever it is due, since the rate may change when the percentage does not. */
static int tell_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;
	double elapsed;

	if (cmd_progress_stopped())
		return -EINTR;
	if (!cmd_progress_due(&p->common))
		return 0;
	elapsed = (double)(p->common.told - p->begun) / 1e9;
	cmd_progress_clear();
	fprintf(stderr, "%s: %d %%", p->common.what, cmd_percent(done, total));
	if (elapsed > 0.1)
		fprintf(stderr, ", %.0f MiB/s", (double)done * (double)p->rate_of / elapsed / 1048576);
	return 0;
}

static int report(const struct command *cmd, struct request *req, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_check_result result = { 0 };
	struct cmd_output out = { 0 };
	struct btrkit_fs_info info;
	struct progress p;
	int ret, status;

	btrkit_fs_get_info(fs, &info);
	cmd_progress_begin(&p.common, "checking");
	p.common.terminal &= req->progress;
	p.rate_of = info.nodesize;
	p.begun = cmd_clock();
	req->opts.progress = tell_progress;
	req->opts.progress_ctx = &p;
	ret = print_check(fs, &req->opts, req->format, cmd_write, &out, &result, &err);
	cmd_progress_end(&p.common);
	status = cmd_end(cmd, req->devices.at[0], &out, ret, &err);
	if (status != EXIT_DONE)
		return cmd_was_interrupted(ret) ? EXIT_CANCELLED : status;
	return result.findings[BTRKIT_CHECK_REFUSED] || result.findings[BTRKIT_CHECK_MISBEHAVES] ? EXIT_ERRORS :
												   EXIT_DONE;
}

static int check(const struct command *cmd, struct request *req)
{
	const struct cmd_devices *d = &req->devices;
	struct btrkit_fs *fs;
	int status;

	req->open.flags |= BTRKIT_OPEN_PARTIAL;
	req->open.cache_bytes = CACHE_BYTES;
	fs = (req->force ? cmd_open : cmd_open_unused)(cmd, d->at, d->n, !d->noscan, &req->open);
	if (!fs)
		return EXIT_OPERATION;
	status = report(cmd, req, fs);
	btrkit_fs_close(fs);
	return status;
}

static int list_codes(const struct command *cmd, const struct request *req)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	const int ret = print_check_codes(req->format, cmd_write, &out, &err);

	return cmd_end(cmd, NULL, &out, ret, &err);
}

static void take_option(const struct command *cmd, struct request *req, int c)
{
	switch (c) {
	case OPT_DATA:
		req->opts.flags |= BTRKIT_CHECK_DATA;
		break;
	case 'p':
		req->progress = true;
		break;
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		break;
	case OPT_JSON:
		req->format = BTRKIT_FORMAT_JSON;
		break;
	case OPT_REPEATS:
		req->opts.repeats = cmd_count(cmd, "--repeats", optarg, 65536);
		break;
	case OPT_MEMORY:
		req->opts.memory = cmd_size(cmd, "--memory", optarg);
		if (!req->opts.memory)
			cmd_usage_error(cmd, "--memory: must not be 0");
		break;
	case OPT_SPILL:
		req->opts.spill = cmd_path(cmd, optarg);
		break;
	case OPT_THREADS:
		req->opts.threads = cmd_count(cmd, "--threads", optarg, CMD_THREADS_MAX);
		break;
	case OPT_FORCE:
		req->force = true;
		break;
	case OPT_LIST_CODES:
		req->list_codes = true;
		break;
	default:
		if (!cmd_start_option(cmd, &req->open, c))
			cmd_devices_option(&req->devices, c);
		break;
	}
}

/* Puts the devices given as arguments before those of --device. */
static void take_devices(struct cmd_devices *d, int argc, char **argv)
{
	const size_t more = d->n - 1, n = (size_t)(argc - optind);

	for (size_t i = more; i--;)
		d->at[n + i] = d->at[1 + i];
	for (size_t i = 0; i < n; i++)
		d->at[i] = argv[optind + (int)i];
	d->n = n + more;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { .opts = BTRKIT_CHECK_OPTIONS_INIT, .open = BTRKIT_OPEN_OPTIONS_INIT };
	int c, status;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_OPERATION;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	if (req.list_codes) {
		cmd_check_args(cmd, argc, 0, 0);
		status = list_codes(cmd, &req);
	} else {
		cmd_check_args(cmd, argc, 1, -1);
		if (req.opts.spill && !req.opts.memory)
			cmd_usage_error(cmd, "--spill requires --memory");
		take_devices(&req.devices, argc, argv);
		status = check(cmd, &req);
	}
	cmd_devices_end(&req.devices);
	return status;
}

const struct command cmd_check = {
	.name = "check",
	.args = "DEV...",
	.summary = "Check every structure of a filesystem, and each against the others",
	.options = options,
	.run = run,
	.failed = EXIT_OPERATION,
	.usage = EXIT_SYNTAX,
};
