/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_SPACE_CACHE_H
#define CMD_SPACE_CACHE_H

#include "cmd/cmd.h"

struct space_cache_request {
	struct cmd_devices devices;
	enum btrkit_format format; /* for status */
	/* For convert and clear. */
	bool clear;
	enum btrkit_space_cache_kind kind;	/* the new one, or the one to clear */
	bool dry_run;
	const char *undo;			/* undo file, or NULL */
};

/* In space_cache_change.c: */
/* Runs convert and clear. @return the exit status */
int space_cache_change(const struct command *cmd, const struct space_cache_request *req);

#endif
