/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_FILES_H
#define BTRKIT_USAGE_PATHS_FILES_H

#include "lib/usage/paths/paths.h"

/* Counts the files in their directories. */
int paths_count(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
