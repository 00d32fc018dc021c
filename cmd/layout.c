// SPDX-License-Identifier: LGPL-2.1-or-later
/* list-chunks, list-devices and map-logical: the layout of a filesystem on its devices. */
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "lib/print/layout.h"

enum {
	OPT_FORMAT = 256
};

static const struct cmd_option options[] = {
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	enum btrkit_format format;
	struct cmd_devices devices;
	uint64_t address; /* for map-logical */
};

typedef int (*print_fn)(struct btrkit_fs *fs, const struct request *req, struct cmd_output *out,
			struct btrkit_error *err);

/* Parses options and arguments, with an address after the device if @has_address, before any device is opened. */
static void parse(const struct command *cmd, int argc, char **argv, bool has_address, struct request *req)
{
	int c;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		if (c == OPT_FORMAT)
			req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		else
			cmd_devices_option(&req->devices, c);
	}
	cmd_check_args(cmd, argc, 1 + has_address, 1 + has_address);
	req->devices.at[0] = argv[optind];
	if (has_address)
		req->address = cmd_number(cmd, "ADDRESS", argv[optind + 1], true);
}

static int run(const struct command *cmd, int argc, char **argv, bool has_address, print_fn print)
{
	struct request req = { 0 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	struct btrkit_fs *fs;
	int status = EXIT_FAILED;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	parse(cmd, argc, argv, has_address, &req);
	fs = cmd_devices_open(cmd, &req.devices, NULL);
	if (fs)
		status = cmd_end(cmd, req.devices.at[0], &out, print(fs, &req, &out, &err), &err);
	btrkit_fs_close(fs);
	cmd_devices_end(&req.devices);
	return status;
}

static int list_chunks(struct btrkit_fs *fs, const struct request *req, struct cmd_output *out,
		       struct btrkit_error *err)
{
	return print_chunks(fs, req->format, cmd_write, out, err);
}

static int list_devices(struct btrkit_fs *fs, const struct request *req, struct cmd_output *out,
			struct btrkit_error *err)
{
	return print_devices(fs, req->format, cmd_write, out, err);
}

static int run_chunks(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, false, list_chunks);
}

static int run_devices(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, false, list_devices);
}

static int print_copies(struct btrkit_fs *fs, const struct request *req, struct cmd_output *out,
			struct btrkit_error *err)
{
	return print_logical_copies(fs, req->address, req->format, cmd_write, out, err);
}

static int run_map(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, true, print_copies);
}

const struct command cmd_list_chunks = {
	.name = "list-chunks",
	.args = "DEV",
	.summary = "List the chunks, and where they are on the devices",
	.options = options,
	.run = run_chunks,
};

const struct command cmd_list_devices = {
	.name = "list-devices",
	.args = "DEV",
	.summary = "List the devices of a filesystem",
	.options = options,
	.run = run_devices,
};

const struct command cmd_map_logical = {
	.name = "map-logical",
	.args = "DEV ADDRESS",
	.summary = "Show where a logical address is on the devices",
	.options = options,
	.run = run_map,
};
