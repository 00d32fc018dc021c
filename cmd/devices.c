// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"

int cmd_devices_begin(const struct command *cmd, int argc, struct cmd_devices *ret)
{
	*ret = (struct cmd_devices){ .at = calloc((size_t)argc + 1, sizeof(*ret->at)), .n = 1 };
	return ret->at ? 0 : cmd_fail_no_memory(cmd);
}

bool cmd_devices_option(struct cmd_devices *d, int option)
{
	if (option == CMD_OPT_DEVICE)
		d->at[d->n++] = optarg;
	else if (option == CMD_OPT_NOSCAN)
		d->noscan = true;
	else if (option == CMD_OPT_NO_LINKS)
		d->no_links = true;
	else if (option == CMD_OPT_DEGRADED)
		d->degraded = true;
	else
		return false;
	return true;
}

void cmd_devices_end(struct cmd_devices *d)
{
	free(d->at);
}

struct btrkit_fs *cmd_devices_open(const struct command *cmd, const struct cmd_devices *d,
				   const struct btrkit_open_options *opts)
{
	return cmd_open(cmd, d->at, d->n, !d->noscan, opts);
}

struct btrkit_fs *cmd_files_open(const struct command *cmd, const struct cmd_devices *d)
{
	const struct btrkit_open_options opts = { .flags = d->no_links ? BTRKIT_OPEN_NO_LINKS : 0 };
	struct btrkit_fs *fs = cmd_devices_open(cmd, d, &opts);
	struct btrkit_fs_info info;

	if (!fs)
		return NULL;
	btrkit_fs_get_info(fs, &info);
	if (info.log_root)
		cmd_say("btrkit %s: %s: it has a log tree, which Linux replays when it mounts: files are as they were "
			"at the last commit", cmd->name, d->at[0]);
	return fs;
}

bool cmd_start_option(const struct command *cmd, struct btrkit_open_options *o, int c)
{
	uint64_t n;

	switch (c) {
	case CMD_OPT_SUPER:
		n = cmd_number(cmd, "--super", optarg, false);
		if (n > 2)
			cmd_usage_error(cmd, "--super: must be 0, 1 or 2");
		o->super_mirror = (unsigned)n;
		o->flags |= BTRKIT_OPEN_SUPER_MIRROR;
		return true;
	case CMD_OPT_BACKUP:
		n = cmd_number(cmd, "--backup", optarg, false);
		if (n > 3)
			cmd_usage_error(cmd, "--backup: must be from 0 to 3");
		o->backup = (unsigned)n;
		o->flags |= BTRKIT_OPEN_BACKUP;
		return true;
	case CMD_OPT_TREE_ROOT:
		o->tree_root = cmd_number(cmd, "--tree-root", optarg, false);
		o->flags |= BTRKIT_OPEN_TREE_ROOT;
		return true;
	case CMD_OPT_CHUNK_ROOT:
		o->chunk_root = cmd_number(cmd, "--chunk-root", optarg, false);
		o->flags |= BTRKIT_OPEN_CHUNK_ROOT;
		return true;
	default:
		return false;
	}
}
