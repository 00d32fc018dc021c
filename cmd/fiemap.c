// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

enum {
	OPT_OWNERS = 256,
	OPT_STATS,
	OPT_SUBVOL,
	OPT_FORMAT
};

static const struct cmd_option options[] = {
	{ 'a', "all", NULL, "list every regular file of every subvolume, except those\nwithout extents" },
	{ OPT_OWNERS, "owners", NULL,
	  "print a row for each extent, with everything that refers to\nit: subvolumes, inodes and offsets" },
	{ OPT_STATS, "stats", NULL, "print counters of the work done to the standard error" },
	{ OPT_SUBVOL, "subvol", "ID|PATH", "start each PATH from this subvolume (default: the top level)" },
	{ OPT_FORMAT, "format", "text|tsv|json",
	  "output format: text as in filefrag -v (the default),\ntab-separated values, or JSON Lines" },
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	bool all, owners, stats;
	const char *subvol;
	enum btrkit_format format;
	struct cmd_devices devices;
	char **paths;
	int num_paths;
};

/* Text names a file as it was given, as filefrag does; the other forms name it as its subvolume does. */
struct renamed {
	const struct btrkit_fiemap_sink *sink;
	const char *path;
};

static int rename_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	const struct renamed *r = ctx;
	struct btrkit_fiemap_file as_given = *file;

	as_given.path = r->path;
	as_given.path_len = strlen(r->path);
	return r->sink->file(r->sink->ctx, &as_given);
}

static int pass_extents(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	const struct renamed *r = ctx;

	return r->sink->extents(r->sink->ctx, rows, n);
}

static int pass_owners(void *ctx, const struct btrkit_reference *refs, size_t n)
{
	const struct renamed *r = ctx;

	return r->sink->owners(r->sink->ctx, refs, n);
}

static int list_path(struct btrkit_fs *fs, const struct request *req, uint64_t root, const char *path,
		     const struct btrkit_fiemap_sink *sink, struct btrkit_fiemap_stats *stats, struct btrkit_error *err)
{
	struct renamed renamed = { sink, path };
	const struct btrkit_fiemap_sink as_given = { rename_file, pass_extents, &renamed,
						     sink->owners ? pass_owners : NULL };

	return btrkit_fiemap_path(fs, root, path, req->format ? sink : &as_given, stats, err);
}

static int list(struct btrkit_fs *fs, const struct request *req, const struct btrkit_fiemap_sink *sink,
		struct btrkit_fiemap_stats *stats, struct btrkit_error *err)
{
	uint64_t root;
	int ret;

	if (req->all)
		return btrkit_fiemap_all(fs, sink, stats, err);
	ret = cmd_find_subvolume(fs, req->subvol, &root, err);
	for (int i = 0; !ret && i < req->num_paths; i++)
		ret = list_path(fs, req, root, req->paths[i], sink, stats, err);
	return ret;
}

static void say_stats(const struct btrkit_fiemap_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
		{ "files", s->files },
		{ "rows", s->extents },
		{ "leaves", s->leaves },
		{ "extent_leaves", s->extent_leaves },
		{ "checked", s->checked },
		{ "saved_by_leaf", s->saved_by_leaf },
		{ "saved_by_batch", s->saved_by_batch },
		{ "blocks_checked", s->blocks_checked },
		{ "saved_by_path", s->saved_by_path },
		{ "spread_checked", s->spread_checked },
		{ "saved_by_repeat", s->saved_by_repeat },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fprintf(stderr, "%s\t%" PRIu64 "\n", all[i].name, all[i].value);
}

static int print(const struct command *cmd, const struct request *req, struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fiemap_printer *printer = NULL;
	struct btrkit_fiemap_stats stats = { 0 };
	struct cmd_output out = { 0 };
	int ret, ended, status;

	ret = btrkit_fiemap_printer_create(fs, req->format, req->owners ? BTRKIT_FIEMAP_OWNERS : 0, cmd_write, &out,
					   &printer, &err);
	if (!ret)
		ret = list(fs, req, btrkit_fiemap_printer_sink(printer), &stats, &err);
	ended = btrkit_fiemap_printer_finish(printer, !ret);
	status = cmd_end(cmd, req->devices.at[0], &out, ret ? ret : ended, &err);
	if (req->stats && status == EXIT_DONE)
		say_stats(&stats);
	return status;
}

static void take_option(const struct command *cmd, struct request *req, int c)
{
	switch (c) {
	case 'a':
		req->all = true;
		break;
	case OPT_OWNERS:
		req->owners = true;
		break;
	case OPT_STATS:
		req->stats = true;
		break;
	case OPT_SUBVOL:
		req->subvol = cmd_path(cmd, optarg);
		break;
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_TSV);
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { 0 };
	struct btrkit_fs *fs;
	int c, status;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	cmd_check_args(cmd, argc, 1, -1);
	cmd_check_paths(cmd, argc, argv, optind + 1);
	req.devices.at[0] = argv[optind];
	req.paths = argv + optind + 1;
	req.num_paths = argc - optind - 1;
	if (req.all && (req.num_paths || req.subvol))
		cmd_usage_error(cmd, "--all lists every file: no PATH and no --subvol beside it");
	if (!req.all && !req.num_paths)
		cmd_usage_error(cmd, "no PATH given (or --all)");
	fs = cmd_files_open(cmd, &req.devices);
	status = fs ? print(cmd, &req, fs) : EXIT_FAILED;
	btrkit_fs_close(fs);
	cmd_devices_end(&req.devices);
	return status;
}

const struct command cmd_fiemap = {
	.name = "fiemap",
	.args = "DEV [PATH...]",
	.summary = "List the extents of files, with the flags of FIEMAP",
	.options = options,
	.run = run,
};
