// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"

#define CACHE_BYTES (4u << 20)

enum { OPT_FOLLOW = 256, OPT_NOSCAN, OPT_BFS, OPT_DFS, OPT_HIDE_NAMES, OPT_CSUM_HEADERS, OPT_CSUM_ITEMS };

static const struct cmd_option options[] = {
	{ 'e', "extents", NULL, "only the extent and device trees, without their nodes" },
	{ 'd', "device", NULL, "only the root, chunk and device trees" },
	{ 'r', "roots", NULL, "a line for each tree: where its root block lies" },
	{ 'R', "backups", NULL, "the same, and the superblock's backup roots" },
	{ 'u', "uuid", NULL, "only the UUID tree" },
	{ 'b', "block", "BYTENR", "only the block at a logical address (repeatable)" },
	{ 't', "tree", "TREE", "only the tree with this number or name: extent, fs, csum,\n"
			       "free_space and the like (repeatable)" },
	{ OPT_FOLLOW, "follow", NULL, "with -b: what lies below the block too" },
	{ OPT_NOSCAN, "noscan", NULL, "use the given devices only, look for no others" },
	{ OPT_BFS, "bfs", NULL, "breadth first: nodes, then leaves (the default)" },
	{ OPT_DFS, "dfs", NULL, "depth first" },
	{ OPT_HIDE_NAMES, "hide-names", NULL, "HIDDEN in the place of names and of values of xattrs;\n"
						"as in btrfs-progs not in root references" },
	{ OPT_CSUM_HEADERS, "csum-headers", NULL, "the checksums of nodes" },
	{ OPT_CSUM_ITEMS, "csum-items", NULL, "the checksums of data" },
	{ 0 },
};

struct request {
	struct btrkit_dump_options opts;
	uint64_t *trees, *blocks;
	bool scan;
};

static unsigned flag_of(int c)
{
	switch (c) {
	case 'e':
		return BTRKIT_DUMP_EXTENTS;
	case 'd':
		return BTRKIT_DUMP_DEVICES;
	case 'r':
		return BTRKIT_DUMP_ROOTS;
	case 'R':
		return BTRKIT_DUMP_ROOTS | BTRKIT_DUMP_BACKUPS;
	case 'u':
		return BTRKIT_DUMP_UUIDS;
	case OPT_FOLLOW:
		return BTRKIT_DUMP_FOLLOW;
	case OPT_DFS:
		return BTRKIT_DUMP_DFS;
	case OPT_HIDE_NAMES:
		return BTRKIT_DUMP_HIDE_NAMES;
	case OPT_CSUM_HEADERS:
		return BTRKIT_DUMP_CSUM_HEADERS;
	case OPT_CSUM_ITEMS:
		return BTRKIT_DUMP_CSUM_ITEMS;
	default:
		return 0;
	}
}

static void take_option(const struct command *cmd, struct request *req, int c)
{
	struct btrkit_dump_options *o = &req->opts;

	switch (c) {
	case 'b':
		req->blocks[o->num_blocks++] = cmd_number(cmd, "--block", optarg, false);
		break;
	case 't':
		if (btrkit_tree_by_name(optarg, &req->trees[o->num_trees++]))
			cmd_usage_error(cmd, "--tree: '%s' is no tree", optarg);
		break;
	case OPT_BFS:
		o->flags &= ~BTRKIT_DUMP_DFS;
		break;
	case OPT_NOSCAN:
		req->scan = false;
		break;
	default:
		o->flags |= flag_of(c);
	}
}

static int dump(const struct command *cmd, struct request *req, const char *const *devices, size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_open_options open = BTRKIT_OPEN_OPTIONS_INIT;
	struct cmd_output out = { 0 };
	struct btrkit_fs *fs;
	int status;

	/* A dump meets most blocks once: a large cache would only cost the memory's first touch. */
	open.cache_bytes = CACHE_BYTES;
	fs = cmd_open(cmd, devices, n, req->scan, &open);
	if (!fs)
		return EXIT_FAILED;
	status = cmd_end(cmd, devices[0], &out, btrkit_dump_tree(fs, &req->opts, cmd_write, &out, &err), &err);
	btrkit_fs_close(fs);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	/* No more of either than there are arguments. */
	struct request req = {
		.opts = BTRKIT_DUMP_OPTIONS_INIT,
		.trees = calloc((size_t)argc, sizeof(uint64_t)),
		.blocks = calloc((size_t)argc, sizeof(uint64_t)),
		.scan = true,
	};
	int c, status = EXIT_FAILED;

	if (req.trees && req.blocks) {
		while ((c = cmd_next_option(cmd, argc, argv)) != -1)
			take_option(cmd, &req, c);
		cmd_check_args(cmd, argc, 1, -1);
		req.opts.trees = req.trees;
		req.opts.blocks = req.blocks;
		status = dump(cmd, &req, (const char *const *)argv + optind, (size_t)(argc - optind));
	} else {
		cmd_say("btrkit %s: out of memory", cmd->name);
	}
	free(req.trees);
	free(req.blocks);
	return status;
}

const struct command cmd_dump_tree = {
	.name = "dump-tree",
	.args = "DEV...",
	.summary = "Print trees as text",
	.options = options,
	.run = run,
};
