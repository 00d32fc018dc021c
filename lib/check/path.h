/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_PATH_H
#define BTRKIT_CHECK_PATH_H

#include "lib/check/state.h"

/* The path of the file that a finding is about, to be freed by the caller; NULL: none, or not known. */
char *check_path(const struct check *c, const struct btrkit_error *what);

#endif
