// SPDX-License-Identifier: LGPL-2.1-or-later
/* logical-resolve and inode-resolve: translate addresses and inode numbers to paths. */
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"
#include "lib/print/references.h"

enum {
	OPT_SUBVOL = 256,
	OPT_FORMAT
};

static const struct cmd_option logical_options[] = {
	{ 'P', "inodes", NULL, "print inodes, offsets and subvolumes instead of paths" },
	{ 'o', "whole-extent", NULL,
	  "print all files that refer to the extent, not only those\nthat contain the byte" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static const struct cmd_option inode_options[] = {
	{ OPT_SUBVOL, "subvol", "ID|PATH", "the subvolume of the inode (default: 5, the top level)" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	unsigned flags;
	const char *subvol;
	enum btrkit_format format;
	struct cmd_devices devices;
	uint64_t number; /* the address or inode */
	struct cmd_fold fold;
};

typedef int (*print_fn)(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
			struct btrkit_error *err);

static void take_option(const struct command *cmd, struct request *req, int c)
{
	switch (c) {
	case 'P':
		req->flags |= PRINT_NO_PATHS;
		break;
	case 'o':
		req->flags |= BTRKIT_LOGICAL_WHOLE_EXTENT;
		break;
	case OPT_SUBVOL:
		req->subvol = cmd_path(cmd, optarg);
		break;
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

static int run(const struct command *cmd, int argc, char **argv, const char *what, print_fn print)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct request req = { .fold = { .cmd = cmd, .all = true, .advise = true } };
	struct cmd_output out = { 0 };
	int c, status = EXIT_FAILED;
	struct btrkit_fs *fs;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	cmd_check_args(cmd, argc, 2, 2);
	req.fold.device = req.devices.at[0] = argv[optind];
	req.number = cmd_number(cmd, what, argv[optind + 1], true);
	fs = cmd_files_open(cmd, &req.devices);
	if (fs) {
		const int ret = print(fs, &req, &out, &err);

		cmd_fold_end(&req.fold);
		status = cmd_end(cmd, req.devices.at[0], &out, ret, &err);
	}
	if (!status && req.fold.told)
		status = EXIT_FAILED;
	btrkit_fs_close(fs);
	cmd_devices_end(&req.devices);
	return status;
}

static int print_logical(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
			 struct btrkit_error *err)
{
	return print_logical_references(fs, req->number, req->flags, req->format, cmd_fold_lost, &req->fold, cmd_write,
					out, err);
}

static int run_logical(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, "ADDRESS", print_logical);
}

static int print_inode(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
		       struct btrkit_error *err)
{
	uint64_t root;
	int ret = cmd_find_subvolume(fs, req->subvol, &root, err);

	return ret ? ret : print_inode_paths(fs, root, req->number, req->format, cmd_fold_lost, &req->fold, cmd_write,
					     out, err);
}

static int run_inode(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, "INODE", print_inode);
}

const struct command cmd_logical_resolve = {
	.name = "logical-resolve",
	.args = "DEV ADDRESS",
	.summary = "Find the files that use a logical address",
	.options = logical_options,
	.run = run_logical,
};

const struct command cmd_inode_resolve = {
	.name = "inode-resolve",
	.args = "DEV INODE",
	.summary = "Print the paths of an inode",
	.options = inode_options,
	.run = run_inode,
};
