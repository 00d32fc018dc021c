// SPDX-License-Identifier: LGPL-2.1-or-later
#include <getopt.h>
#include <stdlib.h>

#include "cmd.h"

int cmd_devices_begin(const struct command *cmd, int argc, struct cmd_devices *ret)
{
	*ret = (struct cmd_devices){ .at = calloc((size_t)argc + 1, sizeof(*ret->at)), .n = 1 };
	return ret->at ? 0 : cmd_fail(cmd, NULL, &(struct btrkit_error){ .message = "out of memory" });
}

bool cmd_devices_option(struct cmd_devices *d, int option)
{
	if (option == CMD_OPT_DEVICE)
		d->at[d->n++] = optarg;
	else if (option == CMD_OPT_NOSCAN)
		d->noscan = true;
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
