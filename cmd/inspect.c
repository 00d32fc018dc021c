// SPDX-License-Identifier: LGPL-2.1-or-later
/* list-subvolumes and tree-stats. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"
#include "lib/print/subvolumes.h"
#include "lib/print/tree_stats.h"

/* When whole trees are read, most blocks are read only once. */
#define CACHE_BYTES (4u << 20)
/* Maximum number of sort keys; each is needed only once. */
#define ORDER_MAX 8

enum {
	OPT_FORMAT = 256,
	OPT_DELETED,
	OPT_BELOW,
	OPT_SORT
};

static const struct cmd_option subvolume_options[] = {
	{ OPT_DELETED, "deleted", NULL, "also list those that are being deleted" },
	{ 'd', "only-deleted", NULL, "list only those that are being deleted" },
	{ 'r', "read-only", NULL, "list only those that are read-only" },
	{ 's', "snapshots", NULL, "list only snapshots" },
	{ OPT_BELOW, "below", "ID|PATH", "list only those directly in this subvolume" },
	{ 'G', "generation", "[+|-]N", "list only those of generation N; +: or later; -: or earlier" },
	{ 'C', "created", "[+|-]N", "the same for the generation of creation" },
	{ OPT_SORT, "sort", "KEY[,KEY]...", "sort by rootid, gen, ogen (of creation) or path; - before\n"
					    "a key: in descending order" },
	{ OPT_FORMAT, "format", "text|json|tsv", "output format: text (the default), JSON Lines, or\n"
						"tab-separated values" },
	CMD_VERBOSE_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

static const struct cmd_option stats_options[] = {
	{ 't', "tree", "TREE", "print only the tree with this number or name (repeatable)" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	CMD_VERBOSE_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	enum btrkit_format last_format; /* the last one that the command supports */
	enum btrkit_format format;
	struct btrkit_subvolumes_options list;
	struct btrkit_subvolumes_order order[ORDER_MAX];
	const char *below;
	uint64_t *trees;
	size_t num_trees;
	struct cmd_devices devices;
	struct cmd_fold fold;
};

typedef int (*print_fn)(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
			struct btrkit_error *err);

/* Parses N, +N for N or more, -N for N or less. */
static void take_range(const struct command *cmd, const char *option, uint64_t *min, uint64_t *max)
{
	const bool up = *optarg == '+', down = *optarg == '-';
	const uint64_t n = cmd_number(cmd, option, optarg + (up || down), false);

	*min = down ? 0 : n;
	*max = up ? UINT64_MAX : n;
}

static void take_order(const struct command *cmd, struct request *req, const char *s)
{
	static const char *const keys[] = {
		[BTRKIT_SUBVOLUMES_BY_ID] = "rootid",
		[BTRKIT_SUBVOLUMES_BY_GENERATION] = "gen",
		[BTRKIT_SUBVOLUMES_BY_CREATION] = "ogen",
		[BTRKIT_SUBVOLUMES_BY_PATH] = "path",
	};

	for (req->list.num_order = 0;;) {
		const bool sign = *s == '+' || *s == '-';
		const size_t len = strcspn(s += sign, ",");
		unsigned i = 0;

		while (i < sizeof(keys) / sizeof(keys[0]) && (strlen(keys[i]) != len || strncmp(keys[i], s, len)))
			i++;
		if (i == sizeof(keys) / sizeof(keys[0]))
			cmd_usage_error(cmd, "--sort: '%.*s' is not a sort key", (int)len, s);
		if (req->list.num_order == ORDER_MAX)
			cmd_usage_error(cmd, "--sort: too many keys");
		req->order[req->list.num_order++] = (struct btrkit_subvolumes_order){
			(enum btrkit_subvolumes_key)i, sign && s[-1] == '-' };
		if (!s[len])
			return;
		s += len + 1;
	}
}

/* @return whether the option selects or sorts subvolumes */
static bool take_choice(const struct command *cmd, struct request *req, int c)
{
	struct btrkit_subvolumes_options *o = &req->list;

	switch (c) {
	case OPT_DELETED:
		o->flags |= BTRKIT_SUBVOLUMES_DELETED;
		return true;
	case 'd':
		o->flags |= BTRKIT_SUBVOLUMES_ONLY_DELETED;
		return true;
	case 'r':
		o->flags |= BTRKIT_SUBVOLUMES_READONLY;
		return true;
	case 's':
		o->flags |= BTRKIT_SUBVOLUMES_SNAPSHOTS;
		return true;
	case OPT_BELOW:
		req->below = cmd_path(cmd, optarg);
		return true;
	case 'G':
		take_range(cmd, "--generation", &o->min_generation, &o->max_generation);
		return true;
	case 'C':
		take_range(cmd, "--created", &o->min_creation, &o->max_creation);
		return true;
	case OPT_SORT:
		take_order(cmd, req, optarg);
		return true;
	default:
		return false;
	}
}

static void take_option(const struct command *cmd, struct request *req, int c)
{
	if (take_choice(cmd, req, c))
		return;
	switch (c) {
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, req->last_format);
		break;
	case 'v':
		req->fold.all = true;
		break;
	case 't':
		if (btrkit_tree_parse(optarg, &req->trees[req->num_trees++]))
			cmd_usage_error(cmd, "--tree: '%s' is not a tree", optarg);
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

static int run(const struct command *cmd, int argc, char **argv, enum btrkit_format last_format, size_t cache_bytes,
	       print_fn print)
{
	struct btrkit_open_options open = BTRKIT_OPEN_OPTIONS_INIT;
	struct request req = { .last_format = last_format, .list = BTRKIT_SUBVOLUMES_OPTIONS_INIT };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	struct btrkit_fs *fs;
	int c, status = EXIT_FAILED;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	req.trees = calloc((size_t)argc, sizeof(*req.trees));
	if (req.trees) {
		while ((c = cmd_next_option(cmd, argc, argv)) != -1)
			take_option(cmd, &req, c);
		cmd_check_args(cmd, argc, 1, 1);
		req.devices.at[0] = argv[optind];
		open.cache_bytes = cache_bytes;
		fs = cmd_devices_open(cmd, &req.devices, &open);
		req.fold.cmd = cmd;
		req.fold.device = req.devices.at[0];
		req.fold.advise = true;
		if (fs) {
			const int ret = print(fs, &req, &out, &err);

			cmd_fold_end(&req.fold);
			status = cmd_end(cmd, req.devices.at[0], &out, ret, &err);
		}
		if (!status && req.fold.told)
			status = EXIT_FAILED;
		btrkit_fs_close(fs);
	} else {
		cmd_fail_no_memory(cmd);
	}
	cmd_devices_end(&req.devices);
	free(req.trees);
	return status;
}

static int list_subvolumes(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
			   struct btrkit_error *err)
{
	struct btrkit_subvolumes_options options = req->list;
	int ret = req->below ? btrkit_subvolume_find(fs, req->below, &options.parent, err) : 0;

	options.order = req->order;
	return ret ? ret : print_subvolumes(fs, &options, req->format, cmd_fold_lost, &req->fold, cmd_write, out, err);
}

static int print_stats(struct btrkit_fs *fs, struct request *req, struct cmd_output *out,
		       struct btrkit_error *err)
{
	return print_tree_stats(fs, req->trees, req->num_trees, req->format, cmd_fold_lost, &req->fold, cmd_write, out,
				err);
}

static int run_subvolumes(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, PRINT_FORMAT_TSV, 0, list_subvolumes);
}

static int run_stats(const struct command *cmd, int argc, char **argv)
{
	return run(cmd, argc, argv, BTRKIT_FORMAT_JSON, CACHE_BYTES, print_stats);
}

const struct command cmd_list_subvolumes = {
	.name = "list-subvolumes",
	.args = "DEV",
	.summary = "List subvolumes, with everything known about them",
	.options = subvolume_options,
	.run = run_subvolumes,
};

const struct command cmd_tree_stats = {
	.name = "tree-stats",
	.args = "DEV",
	.summary = "Show how large trees are, by level and by item type",
	.options = stats_options,
	.run = run_stats,
};
