// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/dump_tree.h"
#include "cmd/fold.h"

#define CACHE_BYTES (4u << 20)

static const struct cmd_option options[] = {
	{ 'e', "extents", NULL, "print only the extent and device trees, without their nodes" },
	{ 'd', "device", NULL, "print only the root, chunk and device trees" },
	{ 'r', "roots", NULL, "print a line for each tree, with the address of its root" },
	{ 'R', "backups", NULL, "the same, and the backup roots in the superblock" },
	{ 'u', "uuid", NULL, "print only the UUID tree" },
	{ 'b', "block", "BYTENR", "print only the block at this logical address (repeatable)" },
	{ 't', "tree", "TREE", "print only the tree with this number or name (extent, fs,\n"
			       "csum, free_space and so on), or the subvolume with this\n"
			       "path (repeatable)" },
	{ OPT_KEY, "key", "MIN..MAX", "print only items with keys in this range; each end is\n"
				      "OBJECTID,TYPE,OFFSET, and parts may be omitted;\n"
				      "OBJECTID alone selects all of it (repeatable)" },
	{ OPT_TYPE, "type", "NAME[,NAME]...", "print only items of these types (repeatable)" },
	{ OPT_INODE, "inode", "N", "print only items of this inode, in all subvolumes or\n"
				  "those of --tree" },
	{ OPT_PATH, "path", "PATH", "print only items of this file or directory" },
	{ OPT_SUBVOL, "subvol", "ID|PATH", "start PATH from this subvolume (default: the top level)" },
	{ OPT_WITH_EXTENTS, "with-extents", NULL, "with --inode or --path: also print the checksums of its\n"
						  "data and the items of its extents" },
	{ OPT_BYTENR, "bytenr", "A..B", "print only blocks with logical addresses from A to B" },
	{ OPT_GENERATION, "generation", "N..M", "print only blocks of these generations" },
	{ OPT_LEVEL, "level", "N[..M]", "print only blocks of these levels" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	{ OPT_FIELDS, "fields", "LIST", "with JSON: print only these members of each line,\n"
					"separated by commas, as in key.objectid,item.size" },
	CMD_START_OPTIONS,
	{ OPT_RAW, "raw", "BYTENR", "print the bytes of the block at this logical address,\n"
				    "with their meaning" },
	{ OPT_COPY, "copy", "N", "with --raw: print copy N of the block, from 1" },
	{ OPT_SCAN, "scan", NULL, "search the devices for tree blocks, including those that\n"
				  "no tree refers to" },
	{ OPT_DUMP, "dump", NULL, "with --scan: also print their contents" },
	{ OPT_FOLLOW, "follow", NULL, "with --block: also print everything below the block" },
	CMD_VERBOSE_OPTION,
	CMD_NOSCAN_OPTION,
	{ OPT_BFS, "bfs", NULL, "print breadth first: nodes, then leaves (the default)" },
	{ OPT_DFS, "dfs", NULL, "print depth first" },
	{ OPT_HIDE_NAMES, "hide-names", NULL, "print HIDDEN in place of names and contents" },
	{ OPT_CSUM_HEADERS, "csum-headers", NULL, "print the checksums of tree blocks" },
	{ OPT_CSUM_ITEMS, "csum-items", NULL, "print the checksums of data" },
	{ OPT_COMPAT, "compat", "VERSION", "print the text of this version of btrfs-progs: 7.3 (the\n"
					   "default) or 6.19" },
	{ 0 },
};

struct request {
	struct btrkit_dump_options opts;
	struct dump_choice choice;
	struct dump_other other;
	struct btrkit_open_options open;
	uint64_t *trees, *blocks;
	const char **names;	/* trees as given */
	bool scan;
	bool compat;	/* a version of the text is given */
	struct cmd_fold fold;
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

static void check_fields(const struct command *cmd, const char *list)
{
	size_t count;
	const char *const *known = btrkit_dump_fields(&count);

	for (;;) {
		const size_t len = strcspn(list, ",");
		size_t i = 0;

		while (i < count && (strncmp(known[i], list, len) || known[i][len]))
			i++;
		if (i == count)
			cmd_usage_error(cmd, "--fields: unknown member '%.*s'", (int)len, list);
		if (!list[len])
			return;
		list += len + 1;
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
		req->names[o->num_trees++] = optarg;
		break;
	case OPT_FORMAT:
		o->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		break;
	case OPT_FIELDS:
		check_fields(cmd, optarg);
		o->fields = optarg;
		break;
	case OPT_BFS:
		o->flags &= ~BTRKIT_DUMP_DFS;
		break;
	case OPT_COMPAT:
		if (strcmp(optarg, "7.3") && strcmp(optarg, "6.19"))
			cmd_usage_error(cmd, "--compat: '%s' is neither 7.3 nor 6.19", optarg);
		o->flags &= ~BTRKIT_DUMP_COMPAT_6_19;
		o->flags |= strcmp(optarg, "7.3") ? BTRKIT_DUMP_COMPAT_6_19 : 0;
		req->compat = true;
		break;
	case 'v':
		req->fold.all = true;
		break;
	case CMD_OPT_NOSCAN:
		req->scan = false;
		break;
	default:
		if (!cmd_start_option(cmd, &req->open, c) && !dump_choose(cmd, &req->choice, c, optarg) &&
		    !dump_take_other(cmd, &req->other, c, optarg))
			o->flags |= flag_of(c);
	}
}

/* Reports conflicting options. */
static void check_request(const struct command *cmd, const struct request *req)
{
	const struct btrkit_dump_select *s = &req->choice.select;
	const bool file = s->path || s->flags & BTRKIT_DUMP_BY_INODE;

	if (req->opts.fields && req->opts.format != BTRKIT_FORMAT_JSON)
		cmd_usage_error(cmd, "--fields needs --format json");
	if (req->compat && req->opts.format == BTRKIT_FORMAT_JSON)
		cmd_usage_error(cmd, "--compat cannot be combined with --format json");
	if (req->compat && req->other.raw)
		cmd_usage_error(cmd, "--compat cannot be combined with --raw");
	if (s->path && (s->flags & BTRKIT_DUMP_BY_INODE || req->opts.num_trees))
		cmd_usage_error(cmd, "--path cannot be combined with --inode or --tree");
	if (req->choice.subvol && !s->path)
		cmd_usage_error(cmd, "--subvol requires --path");
	if (s->flags & BTRKIT_DUMP_WITH_EXTENTS && !file)
		cmd_usage_error(cmd, "--with-extents requires --inode or --path");
	if (req->opts.flags & BTRKIT_DUMP_FOLLOW && !req->opts.num_blocks)
		cmd_usage_error(cmd, "--follow requires --block");
	if (file && req->opts.num_blocks)
		cmd_usage_error(cmd, "--inode and --path cannot be combined with --block");
	if (req->choice.any && req->opts.flags & BTRKIT_DUMP_ROOTS)
		cmd_usage_error(cmd, "--roots and --backups cannot be combined with options that select items");
}

/* Looks up trees by name or number, or as paths of subvolumes. */
static int find_trees(struct request *req, struct btrkit_fs *fs, const char **bad, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < req->opts.num_trees; i++) {
		const char *name = req->names[i];

		if (!btrkit_tree_parse(name, &req->trees[i]))
			continue;
		ret = *name ? btrkit_subvolume_find(fs, name, &req->trees[i], err) : -ENOENT;
		if (ret == -ENOENT || ret == -EINVAL)
			*bad = name;
	}
	if (!ret && req->choice.subvol)
		ret = btrkit_subvolume_find(fs, req->choice.subvol, &req->choice.select.subvolume, err);
	return ret;
}

static int dump(const struct command *cmd, struct request *req, const char *const *devices, size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	const char *bad = NULL;
	struct btrkit_fs *fs;
	int ret, status;

	/* Most blocks are read only once, so a large cache would just cost memory. */
	req->open.cache_bytes = CACHE_BYTES;
	req->open.flags |= BTRKIT_OPEN_PARTIAL;
	fs = cmd_open(cmd, devices, n, req->scan, &req->open);
	if (!fs)
		return EXIT_FAILED;
	ret = find_trees(req, fs, &bad, &err);
	if (bad) {
		btrkit_fs_close(fs);
		cmd_usage_error(cmd, "--tree: '%s' is not a tree", bad);
	}
	req->fold.cmd = cmd;
	req->fold.device = devices[0];
	req->fold.advise = true;
	req->opts.lost = cmd_fold_lost;
	req->opts.lost_ctx = &req->fold;
	if (!ret && (req->other.raw || req->other.scan))
		ret = dump_other(fs, &req->other, &req->opts, &out, &err);
	else if (!ret)
		ret = btrkit_dump_tree(fs, &req->opts, cmd_write, &out, &err);
	/* Then it is about an item, which may be in the place of a part that was told to be missing. */
	if (ret < 0 && req->fold.told && err.code == BTRKIT_CORRUPT && !out.error) {
		cmd_fold_tell(&req->fold, NULL, 0, &err);
		ret = 0;
	}
	cmd_fold_end(&req->fold);
	status = cmd_end(cmd, devices[0], &out, ret, &err);
	btrkit_fs_close(fs);
	return status || !req->fold.told ? status : cmd_failed(cmd);
}

static int run(const struct command *cmd, int argc, char **argv)
{
	/* There are at most as many of each as there are arguments. */
	struct request req = {
		.opts = BTRKIT_DUMP_OPTIONS_INIT,
		.open = BTRKIT_OPEN_OPTIONS_INIT,
		.trees = calloc((size_t)argc, sizeof(uint64_t)),
		.blocks = calloc((size_t)argc, sizeof(uint64_t)),
		.names = calloc((size_t)argc, sizeof(const char *)),
		.choice = { .ranges = calloc((size_t)argc, sizeof(struct btrkit_dump_range)) },
		.scan = true,
	};
	int c, status = EXIT_FAILED;

	if (req.trees && req.blocks && req.names && req.choice.ranges) {
		while ((c = cmd_next_option(cmd, argc, argv)) != -1)
			take_option(cmd, &req, c);
		cmd_check_args(cmd, argc, 1, -1);
		check_request(cmd, &req);
		req.opts.trees = req.trees;
		req.opts.blocks = req.blocks;
		req.choice.select.ranges = req.choice.ranges;
		req.choice.select.types = req.choice.types;
		if (req.choice.any)
			req.opts.select = &req.choice.select;
		dump_check_other(cmd, &req.other, &req.opts);
		status = dump(cmd, &req, (const char *const *)argv + optind, (size_t)(argc - optind));
	} else {
		cmd_fail_no_memory(cmd);
	}
	free(req.trees);
	free(req.blocks);
	free(req.names);
	free(req.choice.ranges);
	return status;
}

const struct command cmd_dump_tree = {
	.name = "dump-tree",
	.args = "DEV...",
	.summary = "Print trees as text or JSON",
	.options = options,
	.run = run,
};
