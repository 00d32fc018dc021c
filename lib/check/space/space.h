/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPACE_H
#define BTRKIT_CHECK_SPACE_H

#include "lib/check/state.h"

/* Checks the counters of the groups, the free space tree and the v1 cache. */
int check_space(struct check *c);

#endif
