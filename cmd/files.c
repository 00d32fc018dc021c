// SPDX-License-Identifier: LGPL-2.1-or-later
/* ls, stat and cat: directories, attributes and contents of files. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"
#include "lib/print/ls.h"
#include "lib/print/stat.h"

enum {
	OPT_SUBVOL = 256,
	OPT_FORMAT
};

#define OPTIONS_SUBVOL \
	{ OPT_SUBVOL, "subvol", "ID|PATH", "start each PATH from this subvolume (default: the top level)" }
#define OPTIONS_FORMAT { OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" }

static const struct cmd_option ls_options[] = {
	{ 'l', "long", NULL, "also print type, mode, links, owners, size and time" },
	{ 'R', "recursive", NULL, "also list the directories and subvolumes below" },
	{ 'd', "directory", NULL, "list directories themselves, not their entries" },
	{ 'i', "inode", NULL, "also print the number of each inode" },
	CMD_VERBOSE_OPTION,
	OPTIONS_SUBVOL,
	OPTIONS_FORMAT,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static const struct cmd_option stat_options[] = {
	OPTIONS_SUBVOL,
	OPTIONS_FORMAT,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static const struct cmd_option cat_options[] = {
	OPTIONS_SUBVOL,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	struct cmd_fold fold;
	unsigned flags; /* PRINT_LS_* */
	const char *subvol;
	enum btrkit_format format;
	struct cmd_devices devices;
	const char *const *paths;
	size_t num_paths;
	/* State while running. */
	struct btrkit_fs *fs;
	uint64_t root;
	struct cmd_output out;
	bool failed; /* a failure was reported */
};

typedef int (*work_fn)(struct request *req, struct btrkit_error *err);

static void take_option(const struct command *cmd, struct request *req, int c)
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

/* Reports a failure for one of several paths, and continues with the others. */
static int problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct request *req = ctx;

	req->failed = true;
	cmd_fold_tell(&req->fold, path, len, what);
	return 0;
}

static int ls(struct request *req, struct btrkit_error *err)
{
	const struct print_ls_options opts = { req->flags, req->format, problem, req };

	return print_ls(req->fs, req->root, req->paths, req->num_paths, &opts, cmd_write, &req->out, err);
}

static int run(const struct command *cmd, int argc, char **argv, int min, work_fn work)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	/* Of stat and cat, each path was given, and is answered. */
	struct request req = { .fold = { .cmd = cmd, .all = work != ls, .advise = true } };
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
	return run(cmd, argc, argv, 1, ls);
}

static int show(struct request *req, struct btrkit_error *err)
{
	const struct print_stat_options opts = { 0, req->format, problem, req };

	return print_stat(req->fs, req->root, req->paths, req->num_paths, &opts, cmd_write, &req->out, err);
}

static int run_stat(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, 2, show);
}

/* Reads many extents at once, but in small steps after damage, so that everything before it is printed. */
#define CAT_BYTES ((size_t)1 << 20)
#define CAT_STEP ((size_t)4096)

static int copy(struct request *req, struct btrkit_file *f, char *buf, struct btrkit_error *err)
{
	size_t got, want = CAT_BYTES;
	uint64_t at = 0;

	for (;;) {
		int ret = btrkit_file_read(f, at, buf, want, &got, err);

		if (ret && want > CAT_STEP) {
			want = CAT_STEP;
			continue;
		}
		if (ret || !got)
			return ret;
		ret = cmd_write(&req->out, buf, got);
		if (ret)
			return ret;
		at += got;
	}
}

/* @return 0; <0: give up */
static int cat_path(struct request *req, const char *path, char *buf)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_file *f = NULL;
	struct btrkit_inode i;
	int ret = btrkit_inode_find_target(req->fs, req->root, path, &i, &err);

	if (!ret && !S_ISREG(i.mode)) {
		ret = -EINVAL;
		err = (struct btrkit_error){ .code = BTRKIT_INVALID, .err = ret, .message = "not a regular file" };
	}
	if (!ret)
		ret = btrkit_file_open(req->fs, i.root, i.inode, &f, &err);
	if (!ret)
		ret = copy(req, f, buf, &err);
	btrkit_file_close(f);
	if (req->out.error)
		return ret;
	return ret ? problem(req, path, strlen(path), &err) : 0;
}

static int cat(struct request *req, struct btrkit_error *err)
{
	char *buf = malloc(CAT_BYTES);
	int ret = 0;

	if (!buf)
		return cmd_no_memory(err);
	for (size_t i = 0; i < req->num_paths && !ret; i++)
		ret = cat_path(req, req->paths[i], buf);
	free(buf);
	return ret;
}

static int run_cat(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, 2, cat);
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

const struct command cmd_cat = {
	.name = "cat",
	.args = "DEV PATH...",
	.summary = "Print the contents of files",
	.options = cat_options,
	.run = run_cat,
};
