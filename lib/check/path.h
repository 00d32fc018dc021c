/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_PATH_H
#define BTRKIT_CHECK_PATH_H

#include "lib/check/state.h"

/* The tree in which names were last looked up. Initially all 0. */
struct check_namer {
	struct path_namer *namer;
	struct tree_root root;
};

/*
 * The path of the file that a finding is about, to be freed by the caller; NULL: none, or not known. Directories on the
 * way whose INODE_REF is lost are found by their entries.
 */
char *check_path(const struct check *c, struct check_namer *n, const struct btrkit_error *what);
void check_namer_end(struct check_namer *n);

#endif
