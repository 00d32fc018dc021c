/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CMD_FILES_H
#define BTRKIT_CMD_FILES_H

/* What ls, stat and cat share: paths in one subvolume, each of which is answered or reported. */

#include "cmd/cmd.h"
#include "cmd/fold.h"

enum {
	FILES_OPT_SUBVOL = 256,
	FILES_OPT_FORMAT,
	FILES_OPT_ZEROS
};

#define FILES_OPTION_SUBVOL \
	{ FILES_OPT_SUBVOL, "subvol", "ID|PATH", "start each PATH from this subvolume (default: the top level)" }
#define FILES_OPTION_FORMAT \
	{ FILES_OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" }

struct files_request {
	struct cmd_fold fold;
	unsigned flags; /* PRINT_LS_* */
	bool zeros;	/* for what cannot be read */
	const char *subvol;
	enum btrkit_format format;
	struct cmd_devices devices;
	const char *const *paths;
	size_t num_paths;
	/* State while running. */
	struct btrkit_fs *fs;
	uint64_t root;
	struct cmd_output out;
	bool failed; /* a failure was reported */
};

typedef int (*files_work_fn)(struct files_request *req, struct btrkit_error *err);

/* Takes options and at least @min operands, opens the filesystem and does the work. @return the exit status */
int files_run(const struct command *cmd, int argc, char **argv, int min, files_work_fn work);
/* Reports a failure for one of several paths, and continues with the others. A btrkit_problem_fn; @ctx: the request */
int files_problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what);

#endif
