// SPDX-License-Identifier: LGPL-2.1-or-later
/* dump-tree without trees: the bytes of a block, and blocks found by a scan. */
#include "cmd/dump_tree.h"

bool dump_take_other(const struct command *cmd, struct dump_other *other, int c, const char *arg)
{
	uint64_t n;

	switch (c) {
	case OPT_RAW:
		other->bytenr = cmd_number(cmd, "--raw", arg, false);
		other->raw = true;
		return true;
	case OPT_COPY:
		n = cmd_number(cmd, "--copy", arg, false);
		if (!n || n > 1024)
			cmd_usage_error(cmd, "--copy: must be from 1 to 1024");
		other->copy = (unsigned)n - 1;
		other->copy_given = true;
		return true;
	case OPT_SCAN:
		other->scan = true;
		return true;
	case OPT_DUMP:
		other->dump = true;
		return true;
	default:
		return false;
	}
}

void dump_check_other(const struct command *cmd, const struct dump_other *other, const struct btrkit_dump_options *opts)
{
	const unsigned shown = BTRKIT_DUMP_HIDE_NAMES | BTRKIT_DUMP_CSUM_HEADERS | BTRKIT_DUMP_CSUM_ITEMS |
			       BTRKIT_DUMP_COMPAT_6_19;

	if (other->copy_given && !other->raw)
		cmd_usage_error(cmd, "--copy requires --raw");
	if (other->dump && !other->scan)
		cmd_usage_error(cmd, "--dump requires --scan");
	if (other->raw && (other->scan || opts->flags || opts->num_trees || opts->num_blocks || opts->select ||
			   opts->fields))
		cmd_usage_error(cmd, "--raw cannot be combined with options about the output of trees");
	if (other->scan && (opts->num_blocks || opts->flags & ~shown))
		cmd_usage_error(cmd, "--scan cannot be combined with --block or options that select trees");
	if (other->scan && opts->select &&
	    (opts->select->path || opts->select->flags & BTRKIT_DUMP_WITH_EXTENTS))
		cmd_usage_error(cmd, "--scan cannot be combined with --path or --with-extents");
}

int dump_other(struct btrkit_fs *fs, const struct dump_other *other, const struct btrkit_dump_options *opts,
	       struct cmd_output *out, struct btrkit_error *err)
{
	struct btrkit_dump_scan_options scan = BTRKIT_DUMP_SCAN_OPTIONS_INIT;
	struct cmd_progress progress;
	int ret;

	if (other->raw)
		return btrkit_dump_raw(fs, other->bytenr, other->copy, opts->format, cmd_write, out, err);
	cmd_progress_begin(&progress, "scan");
	scan.flags = other->dump ? BTRKIT_DUMP_SCAN_BLOCKS : 0;
	scan.progress = cmd_progress;
	scan.progress_ctx = &progress;
	ret = btrkit_dump_scan(fs, opts, &scan, cmd_write, out, err);
	cmd_progress_end(&progress);
	return ret;
}
