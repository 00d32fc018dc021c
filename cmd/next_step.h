/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_NEXT_STEP_H
#define CMD_NEXT_STEP_H

#include "cmd/cmd.h"

struct cmd_next_step {
	char text[256];
};

/*
 * Returns what a user can do about a failure, to be appended to its message, in @step, or "" if that is not known.
 * @device: as given
 */
const char *cmd_next_step(const struct command *cmd, const char *device, const struct btrkit_error *err,
			  struct cmd_next_step *step);

#endif
