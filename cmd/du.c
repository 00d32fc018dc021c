// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <stdlib.h>

#include "cmd/du.h"
#include "cmd/fold.h"
#include "lib/print/usage.h"
#include "lib/print/usage_html.h"

enum {
	OPT_FREED_BY = 256,
	OPT_MATRIX,
	OPT_PATHS,
	OPT_TYPES,
	OPT_EXTENTS,
	OPT_HTML,
	OPT_RAW,
	OPT_FORMAT,
	OPT_THREADS,
	OPT_SET_MEMORY
};

static const struct cmd_option options[] = {
	{ OPT_FREED_BY, "freed-by", "LIST",
	  "show what deleting exactly these subvolumes would free;\n"
	  "numbers or paths, separated by commas (repeatable)" },
	{ OPT_MATRIX, "matrix", NULL, "show what each pair of subvolumes has in common" },
	{ OPT_PATHS, "paths", "[=DEPTH]",
	  "show what is below each directory, and what deleting it would\n"
	  "free; at most DEPTH steps below the top of a subvolume" },
	{ OPT_TYPES, "types", NULL, "show data by the way it is stored" },
	{ OPT_EXTENTS, "extents", NULL, "list all data extents with their owners" },
	{ OPT_HTML, "html", "FILE",
	  "write a page for a browser, in which subvolumes to delete can\n"
	  "be selected (- for the standard output); with --paths it also\n"
	  "has directories" },
	{ OPT_RAW, "raw", NULL, "print sizes in bytes in text too" },
	{ OPT_FORMAT, "format", "text|tsv|json", "output format: text (the default), tab-separated values,\n"
						"or JSON Lines" },
	CMD_VERBOSE_OPTION,
	{ OPT_THREADS, "threads", "N", "use at most N threads (default: one for each CPU)" },
	{ OPT_SET_MEMORY, "set-memory", "SIZE",
	  "limit the memory for sets of owners (default: 128m)" },
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	bool matrix, paths, types, extents, formed, verbose, no_memory;
	struct du_page page;
	struct btrkit_usage_options how;
	struct btrkit_usage_paths_options below;
	struct usage_printer_options print;
	struct du_subset *subsets;
	size_t num_subsets;
	struct cmd_devices devices;
};

struct loaded {
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *paths; /* if requested */
};

/* Damage is reported when it is found; the command then fails at the end. */
struct damages {
	struct cmd_fold fold;
	bool terminal;
	bool any;
};

static int tell_damage(void *ctx, const struct btrkit_error *what)
{
	struct damages *d = ctx;

	if (d->terminal)
		cmd_progress_clear();
	cmd_fold_tell(&d->fold, NULL, 0, what);
	d->any = true;
	return 0;
}

static int print_all(const struct request *req, const struct loaded *l, struct usage_printer *p,
		     struct btrkit_error *err)
{
	int r = 0;

	if (!req->num_subsets && !req->matrix && !req->paths && !req->types && !req->extents)
		return usage_printer_owners(p, err);
	for (size_t i = 0; i < req->num_subsets && !r; i++)
		r = usage_printer_freed(p, req->subsets[i].owners, req->subsets[i].n, err);
	if (!r && req->matrix)
		r = usage_printer_matrix(p, err);
	if (!r && req->paths)
		r = usage_printer_paths(p, l->paths, err);
	if (!r && req->types)
		r = usage_printer_types(p);
	if (!r && req->extents)
		r = usage_printer_extents(p);
	return r;
}

static int print(struct request *req, struct btrkit_fs *fs, const struct loaded *l, struct cmd_output *out,
		 struct btrkit_error *err)
{
	struct usage_printer *p = NULL;
	int r = 0, ended;

	if (req->page.file && du_page_is_stdout(&req->page))
		return print_usage_html(fs, l->usage, l->paths, &req->print, cmd_write, out, err);
	if (req->page.file)
		return print_usage_html(fs, l->usage, l->paths, &req->print, du_page_write, &req->page, err);
	for (size_t i = 0; i < req->num_subsets && !r; i++)
		r = du_subset_find(l->usage, &req->subsets[i], err);
	if (!r)
		r = usage_printer_create(fs, l->usage, &req->print, cmd_write, out, &p, err);
	if (!r)
		r = print_all(req, l, p, err);
	ended = usage_printer_finish(p);
	return r ? r : ended;
}

static int load_paths(struct request *req, struct btrkit_fs *fs, struct loaded *l, struct btrkit_error *err)
{
	req->below.threads = req->how.threads;
	req->below.progress = req->how.progress;
	req->below.progress_ctx = req->how.progress_ctx;
	req->below.damage = req->how.damage;
	req->below.damage_ctx = req->how.damage_ctx;
	return btrkit_usage_paths_load(fs, l->usage, &req->below, &l->paths, err);
}

static int load(struct request *req, struct btrkit_fs *fs, struct damages *damages, struct loaded *ret,
		struct btrkit_error *err)
{
	struct cmd_progress progress;
	int r = 0;

	for (size_t i = 0; i < req->num_subsets && !r; i++)
		r = du_subset_resolve(fs, &req->subsets[i], err);
	if (r)
		return r;
	cmd_progress_begin(&progress, "reading");
	damages->terminal = progress.terminal;
	req->how.progress = cmd_progress;
	req->how.progress_ctx = &progress;
	req->how.damage = req->print.damage = tell_damage;
	req->how.damage_ctx = req->print.damage_ctx = damages;
	/* Better to report now than after a long time that the page cannot be written. */
	r = du_page_begin(&req->page, req->devices.at, req->devices.n, err);
	if (!r)
		r = btrkit_usage_load(fs, &req->how, &ret->usage, err);
	if (!r && req->paths)
		r = load_paths(req, fs, ret, err);
	cmd_progress_end(&progress);
	damages->terminal = false;
	return r;
}

static int answer(const struct command *cmd, struct request *req, struct btrkit_fs *fs)
{
	struct damages damages = { .fold = { .cmd = cmd, .device = req->devices.at[0], .all = req->verbose } };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	struct loaded l = { NULL, NULL };
	int r, status;

	r = load(req, fs, &damages, &l, &err);
	if (!r)
		r = print(req, fs, &l, &out, &err);
	btrkit_usage_paths_free(l.paths);
	btrkit_usage_free(l.usage);
	cmd_fold_end(&damages.fold);
	r = du_page_end(&req->page, r, &err);
	status = cmd_end(cmd, req->devices.at[0], &out, r, &err);
	return damages.any ? EXIT_FAILED : status;
}

static void take_depth(const struct command *cmd, struct request *req)
{
	const uint64_t depth = optarg ? cmd_number(cmd, "--paths", optarg, false) : 0;

	if (depth > UINT32_MAX)
		cmd_usage_error(cmd, "--paths: '%s' is too large", optarg);
	req->below.flags = optarg ? BTRKIT_USAGE_PATHS_LIMITED : 0;
	req->below.depth = (uint32_t)depth;
}

static void take_option(const struct command *cmd, struct request *req, int c)
{
	switch (c) {
	case OPT_FREED_BY:
		if (!du_subset_take(cmd, &req->subsets[req->num_subsets++], optarg))
			req->no_memory = true;
		break;
	case OPT_MATRIX:
		req->matrix = true;
		break;
	case OPT_PATHS:
		req->paths = true;
		take_depth(cmd, req);
		break;
	case OPT_TYPES:
		req->types = true;
		break;
	case OPT_EXTENTS:
		req->extents = true;
		break;
	case OPT_HTML:
		req->page.file = optarg;
		break;
	case OPT_RAW:
		req->formed = true;
		req->print.flags |= USAGE_PRINTER_BYTES;
		break;
	case OPT_FORMAT:
		req->formed = true;
		req->print.format = cmd_format(cmd, optarg, PRINT_FORMAT_TSV);
		break;
	case 'v':
		req->verbose = true;
		break;
	case OPT_THREADS:
		req->how.threads = cmd_count(cmd, "--threads", optarg, CMD_THREADS_MAX);
		break;
	case OPT_SET_MEMORY:
		req->how.set_memory = cmd_size(cmd, "--set-memory", optarg);
		if (!req->how.set_memory)
			cmd_usage_error(cmd, "--set-memory: must not be 0");
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

static void free_request(struct request *req)
{
	for (size_t i = 0; i < req->num_subsets; i++)
		du_subset_free(&req->subsets[i]);
	free(req->subsets);
	cmd_devices_end(&req->devices);
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { .page.whole.fd = -1,
			       .how = BTRKIT_USAGE_OPTIONS_INIT,
			       .below = BTRKIT_USAGE_PATHS_OPTIONS_INIT,
			       .print = USAGE_PRINTER_OPTIONS_INIT };
	struct btrkit_fs *fs = NULL;
	int c, status = EXIT_FAILED;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	req.subsets = calloc((size_t)argc + 1, sizeof(*req.subsets));
	while (req.subsets && (c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(cmd, &req, c);
	if (!req.subsets || req.no_memory) {
		cmd_fail_no_memory(cmd);
		free_request(&req);
		return EXIT_FAILED;
	}
	cmd_check_args(cmd, argc, 1, 1);
	if (req.page.file && (req.num_subsets || req.matrix || req.types || req.extents || req.formed))
		cmd_usage_error(cmd, "--html: cannot be combined with other reports or formats");
	req.devices.at[0] = argv[optind];
	fs = cmd_devices_open(cmd, &req.devices, NULL);
	if (fs)
		status = answer(cmd, &req, fs);
	btrkit_fs_close(fs);
	free_request(&req);
	return status;
}

const struct command cmd_du = {
	.name = "du",
	.args = "DEV",
	.summary = "Show what uses space, and what deleting subvolumes would free",
	.options = options,
	.run = run,
};
