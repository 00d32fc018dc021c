// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cmd/cmd.h"

enum { OPT_FORMAT = 256 };

static const struct cmd_option options[] = {
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	{ 0 },
};

static const char *const set_names[] = { "compat", "compat_ro", "incompat" };
static const char *const support_names[] = { "refused", "read", "write" };

static void print_text(const struct btrkit_feature *f, size_t n)
{
	printf("%-10s%-12s%-24s%-10s%s\n", "SET", "BIT", "FEATURE", "SUPPORT", "TESTED AGAINST LINUX");
	for (; n--; f++) {
		printf("%-10s0x%-10" PRIx64 "%-24s%-10s%s\n", set_names[f->set], f->bit, f->name,
		       support_names[f->support],
		       f->support == BTRKIT_SUPPORT_REFUSED ? "-" :
		       f->tried				    ? "yes" :
							      "no");
	}
	printf("Bits that are not listed: compat are ignored, compat_ro are refused when writing, incompat always.\n");
}

static void print_json(const struct btrkit_feature *f, size_t n)
{
	printf("{\"__header\":{\"version\":1,\"command\":\"features\"}}\n");
	for (; n--; f++) {
		printf("{\"set\":\"%s\",\"bit\":%" PRIu64 ",\"name\":\"%s\",\"support\":\"%s\",\"tried\":%s}\n",
		       set_names[f->set], f->bit, f->name, support_names[f->support], f->tried ? "true" : "false");
	}
}

static int run(const struct command *cmd, int argc, char **argv)
{
	const struct btrkit_feature *f;
	enum btrkit_format format = BTRKIT_FORMAT_TEXT;
	size_t n;
	int c;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		if (c == OPT_FORMAT)
			format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
	}
	cmd_check_args(cmd, argc, 0, 0);
	f = btrkit_features(&n);
	if (format == BTRKIT_FORMAT_JSON)
		print_json(f, n);
	else
		print_text(f, n);
	return EXIT_DONE;
}

const struct command cmd_features = {
	.name = "features",
	.args = "",
	.summary = "List the features of the format, and which are read, written or refused",
	.options = options,
	.run = run,
};
