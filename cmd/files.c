// SPDX-License-Identifier: LGPL-2.1-or-later
/* ls and stat: directories and attributes of files, and what both share with cat. */
#include <getopt.h>

#include "cmd/files.h"
#include "lib/print/ls.h"
#include "lib/print/stat.h"

static const struct cmd_option ls_options[] = {
	{ 'l', "long", NULL, "also print type, mode, links, owners, size and time" },
	{ 'R', "recursive", NULL, "also list the directories and subvolumes below" },
	{ 'd', "directory", NULL, "list directories themselves, not their entries" },
	{ 'i', "inode", NULL, "also print the number of each inode" },
	CMD_VERBOSE_OPTION,
	FILES_OPTION_SUBVOL,
	FILES_OPTION_FORMAT,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static const struct cmd_option stat_options[] = {
	FILES_OPTION_SUBVOL,
	FILES_OPTION_FORMAT,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static void take_option(const struct command *cmd, struct files_request *req, int c)
{
	switch (c) {
	case 'l':
		req->flags |= PRINT_LS_LONG;
		break;
	case 'R':
		req->flags |= PRINT_LS_RECURSIVE;
		break;
	case 'd':
		req->flags |= PRINT_LS_DIRECTORY;
		break;
	case 'i':
		req->flags |= PRINT_LS_INODE;
		break;
	case 'v':
		req->fold.all = true;
		break;
	case FILES_OPT_ZEROS:
		req->zeros = true;
		break;
	case FILES_OPT_SUBVOL:
		req->subvol = cmd_path(cmd, optarg);
		break;
	case FILES_OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

int files_problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct files_request *req = ctx;

	req->failed = true;
	cmd_fold_tell(&req->fold, path, len, what);
	return 0;
}

static int ls(struct files_request *req, struct btrkit_error *err)
{
	const struct print_ls_options opts = { req->flags, req->format, files_problem, req };

	return print_ls(req->fs, req->root, req->paths, req->num_paths, &opts, cmd_write, &req->out, err);
}

int files_run(const struct command *cmd, int argc, char **argv, int min, files_work_fn work)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	/* Of stat and cat, each path was given, and is answered. */
	struct files_request req = { .fold = { .cmd = cmd, .all = work != ls, .advise = true } };
	int c, ret, status = EXIT_FAILED;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	cmd_check_args(cmd, argc, min, -1);
	cmd_check_paths(cmd, argc, argv, optind + 1);
	if ((req.flags & PRINT_LS_RECURSIVE) && (req.flags & PRINT_LS_DIRECTORY))
		cmd_usage_error(cmd, "--recursive and --directory cannot be combined");
	req.fold.device = req.devices.at[0] = argv[optind];
	req.paths = (const char *const *)argv + optind + 1;
	req.num_paths = (size_t)(argc - optind - 1);
	req.fs = cmd_files_open(cmd, &req.devices);
	if (req.fs) {
		ret = cmd_find_subvolume(req.fs, req.subvol, &req.root, &err);
		if (!ret)
			ret = work(&req, &err);
		cmd_fold_end(&req.fold);
		status = cmd_end(cmd, req.devices.at[0], &req.out, ret, &err);
	}
	btrkit_fs_close(req.fs);
	cmd_devices_end(&req.devices);
	return req.failed ? EXIT_FAILED : status;
}

static int run_ls(const struct command *cmd, int argc, char **argv)
{
	return files_run(cmd, argc, argv, 1, ls);
}

static int show(struct files_request *req, struct btrkit_error *err)
{
	const struct print_stat_options opts = { 0, req->format, files_problem, req };

	return print_stat(req->fs, req->root, req->paths, req->num_paths, &opts, cmd_write, &req->out, err);
}

static int run_stat(const struct command *cmd, int argc, char **argv)
{
	return files_run(cmd, argc, argv, 2, show);
}

const struct command cmd_ls = {
	.name = "ls",
	.args = "DEV [PATH]...",
	.summary = "List files and directories",
	.options = ls_options,
	.run = run_ls,
};

const struct command cmd_stat = {
	.name = "stat",
	.args = "DEV PATH...",
	.summary = "Show everything about files: inode, attributes and extents",
	.options = stat_options,
	.run = run_stat,
};
