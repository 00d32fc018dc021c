// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"
#include "lib/print/fiemap.h"

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
	CMD_VERBOSE_OPTION,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	bool all, owners, stats, verbose;
	const char *subvol;
	enum btrkit_format format;
	struct cmd_devices devices;
	char **paths;
	int num_paths;
};

struct listing {
	struct cmd_fold fold;
	const struct request *req;
	struct fiemap_printer *printer;
	const struct btrkit_fiemap_sink *sink; /* of the printer */
	struct btrkit_fiemap_stats stats;
	const char *path;     /* as given; NULL: files are named as their subvolumes name them */
	uint64_t root, inode; /* of the file being printed; 0: none */
	bool any;	      /* something was printed */
	bool failed;	      /* something could not be listed */
};

static int begin_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	struct btrkit_fiemap_file as_given = *file;
	struct listing *l = ctx;

	l->any = true;
	l->root = file->root;
	l->inode = file->inode;
	/* Text names a file as it was given, as filefrag does; the other formats name it as its subvolume does. */
	if (l->path && !l->req->format) {
		as_given.path = l->path;
		as_given.path_len = strlen(l->path);
	}
	return l->sink->file(l->sink->ctx, &as_given);
}

static int pass_extents(void *ctx, const struct btrkit_extent *rows, size_t count)
{
	const struct listing *l = ctx;

	return l->sink->extents(l->sink->ctx, rows, count);
}

static int pass_owners(void *ctx, const struct btrkit_reference *refs, size_t count)
{
	const struct listing *l = ctx;

	return l->sink->owners(l->sink->ctx, refs, count);
}

static int pass_lost(void *ctx, const struct btrkit_fiemap_file *file, uint64_t logical, uint64_t length)
{
	const struct listing *l = ctx;

	return l->sink->lost(l->sink->ctx, file, logical, length);
}

/* The error names the tree and, for most damage of a file without a path, the key of the item. */
static int report(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	struct listing *l = ctx;

	l->failed = true;
	if (file->inode && file->root == l->root && file->inode == l->inode)
		fiemap_printer_break_off(l->printer);
	cmd_fold_tell(&l->fold, file->path_len ? file->path : NULL, file->path_len, what);
	return 0;
}

/* Lists each path. One that cannot be listed is reported, and the others still are, as filefrag does it. */
static int list_paths(struct listing *l, struct btrkit_fs *fs, const struct btrkit_fiemap_sink *sink,
		      const struct cmd_output *out, struct btrkit_error *err)
{
	uint64_t root;
	int ret = cmd_find_subvolume(fs, l->req->subvol, &root, err);

	for (int i = 0; !ret && i < l->req->num_paths; i++) {
		const char *path = l->req->paths[i];

		l->path = path;
		l->root = l->inode = 0;
		ret = btrkit_fiemap_path(fs, root, path, sink, &l->stats, err);
		if (ret < 0 && !out->error && ret != -ENOMEM)
			ret = report(l, &(struct btrkit_fiemap_file){ .root = l->root, .inode = l->inode, .path = path,
								      .path_len = strlen(path) }, err);
	}
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
	/* Paths that were given are each answered. */
	struct listing l = { .fold = { cmd, req->devices.at[0], req->verbose || !req->all, true, { { 0 } } },
			     .req = req };
	const struct btrkit_fiemap_sink sink = { begin_file, pass_extents, &l, req->owners ? pass_owners : NULL,
						 report, pass_lost, { NULL } };
	struct cmd_output out = { 0 };
	int ret, ended, status;

	ret = fiemap_printer_create(fs, req->format, req->owners ? PRINT_FIEMAP_OWNERS : 0, cmd_write, &out,
					   &l.printer, &err);
	if (!ret) {
		l.sink = fiemap_printer_sink(l.printer);
		ret = req->all ? btrkit_fiemap_all(fs, &sink, &l.stats, &err) : list_paths(&l, fs, &sink, &out, &err);
	}
	/* Without any file a header alone would look like an empty listing. */
	ended = fiemap_printer_finish(l.printer, !ret && (!l.failed || l.any));
	cmd_fold_end(&l.fold);
	status = cmd_end(cmd, req->devices.at[0], &out, ret ? ret : ended, &err);
	if (l.failed)
		status = cmd_failed(cmd);
	if (req->stats && status == EXIT_DONE)
		say_stats(&l.stats);
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
	case 'v':
		req->verbose = true;
		break;
	case OPT_STATS:
		req->stats = true;
		break;
	case OPT_SUBVOL:
		req->subvol = cmd_path(cmd, optarg);
		break;
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, PRINT_FORMAT_TSV);
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
		cmd_usage_error(cmd, "--all cannot be combined with PATH or --subvol");
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
