// SPDX-License-Identifier: LGPL-2.1-or-later
/* diff: compares two filesystems, or two trees of one. */
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"
#include "lib/print/diff.h"

/* Most blocks are read only once. */
#define CACHE_BYTES (4u << 20)

enum {
	OPT_FROM = 256,
	OPT_TO,
	OPT_FORMAT,
	OPT_BRIEF,
	OPT_HIDE_NAMES,
	OPT_EXIT_CODE
};

static const struct cmd_option options[] = {
	{ OPT_FROM, "from", "TREE", "with one device: the first tree, by number or name, or by\n"
				     "the path of a subvolume" },
	{ OPT_TO, "to", "TREE", "with one device: the second tree" },
	{ 't', "tree", "TREE", "with two devices: compare only this tree (number or name)" },
	{ OPT_BRIEF, "brief", NULL, "do not print the contents of items" },
	{ OPT_HIDE_NAMES, "hide-names", NULL, "print HIDDEN in place of names and contents" },
	{ OPT_EXIT_CODE, "exit-code", NULL, "exit with status 3 if anything differs" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	CMD_VERBOSE_OPTION,
	CMD_NOSCAN_OPTION,
	{ 0 },
};

struct request {
	const char *from, *to, *tree;
	enum btrkit_format format;
	unsigned flags;
	bool noscan, exit_code;
	struct cmd_fold folds[2];	/* of either side */
	bool damaged;			/* something could not be compared */
};

static void take_option(const struct command *cmd, struct request *req, int c)
{
	switch (c) {
	case OPT_FROM:
		req->from = cmd_path(cmd, optarg);
		break;
	case OPT_TO:
		req->to = cmd_path(cmd, optarg);
		break;
	case 't':
		req->tree = optarg;
		break;
	case OPT_BRIEF:
		req->flags |= PRINT_DIFF_BRIEF;
		break;
	case OPT_HIDE_NAMES:
		req->flags |= PRINT_DIFF_HIDE_NAMES;
		break;
	case OPT_EXIT_CODE:
		req->exit_code = true;
		break;
	case OPT_FORMAT:
		req->format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
		break;
	case 'v':
		req->folds[0].all = req->folds[1].all = true;
		break;
	case CMD_OPT_NOSCAN:
		req->noscan = true;
		break;
	}
}

static int find_tree(struct btrkit_fs *fs, const char *name, uint64_t *ret, struct btrkit_error *err)
{
	return btrkit_tree_parse(name, ret) ? btrkit_subvolume_find(fs, name, ret, err) : 0;
}

/* A btrkit_diff_lost_fn. */
static int tell_lost(void *ctx, unsigned side, const struct btrkit_error *what)
{
	struct request *req = ctx;

	req->damaged = true;
	cmd_fold_tell(&req->folds[side], NULL, 0, what);
	return 0;
}

static int compare(const struct command *cmd, struct request *req, struct btrkit_diff_side sides[2], const char *device)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	bool differ = false;
	int ret = 0;

	if (req->from) {
		ret = find_tree(sides[0].fs, req->from, &sides[0].tree, &err);
		if (!ret)
			ret = find_tree(sides[1].fs, req->to, &sides[1].tree, &err);
	}
	if (!ret)
		ret = print_diff(&sides[0], &sides[1], req->flags, req->format, tell_lost, req, cmd_write, &out,
				 &differ, &err);
	for (int i = 0; i < 2; i++)
		cmd_fold_end(&req->folds[i]);
	ret = cmd_end(cmd, device, &out, ret, &err);
	if (ret == EXIT_DONE && req->damaged)
		return cmd_failed(cmd);
	return ret == EXIT_DONE && req->exit_code && differ ? EXIT_DIFFER : ret;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_diff_side sides[2] = { { NULL, 0 }, { NULL, 0 } };
	struct btrkit_open_options open = BTRKIT_OPEN_OPTIONS_INIT;
	struct request req = { .noscan = false };
	int c, status = EXIT_FAILED;
	bool two;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	cmd_check_args(cmd, argc, 1, 2);
	two = argc - optind == 2;
	if (two && (req.from || req.to))
		cmd_usage_error(cmd, "--from and --to require a single device");
	if (!two && (!req.from || !req.to || req.tree))
		cmd_usage_error(cmd, "a single device requires --from and --to, without --tree");
	if (req.tree && btrkit_tree_parse(req.tree, &sides[0].tree))
		cmd_usage_error(cmd, "--tree: '%s' is not a tree", req.tree);
	sides[1].tree = sides[0].tree;
	for (int i = 0; i < 2; i++) {
		req.folds[i].cmd = cmd;
		req.folds[i].device = argv[optind + (i && two)];
		req.folds[i].advise = !i || two;
	}
	open.cache_bytes = CACHE_BYTES;
	sides[0].fs = cmd_open(cmd, (const char *const *)argv + optind, 1, !req.noscan, &open);
	if (sides[0].fs)
		sides[1].fs = two ? cmd_open(cmd, (const char *const *)argv + optind + 1, 1, !req.noscan, &open) :
			      sides[0].fs;
	if (sides[1].fs)
		status = compare(cmd, &req, sides, argv[optind]);
	if (two)
		btrkit_fs_close(sides[1].fs);
	btrkit_fs_close(sides[0].fs);
	return status;
}

const struct command cmd_diff = {
	.name = "diff",
	.args = "DEV-A [DEV-B]",
	.summary = "Show which items differ between two filesystems or two trees",
	.options = options,
	.run = run,
};
