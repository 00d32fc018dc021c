/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_SPACE_CACHE_H
#define CMD_SPACE_CACHE_H

#include "cmd.h"

struct space_cache_request {
	struct cmd_devices devices;
	enum btrkit_format format; /* status */
	/* convert and clear */
	bool clear;
	enum btrkit_space_cache_kind kind;	/* to which, or which one */
	bool dry_run;
	const char *undo;			/* file for what is overwritten, or NULL */
};

/* convert and clear. @return the exit status */
int space_cache_change(const struct command *cmd, const struct space_cache_request *req);

#endif
