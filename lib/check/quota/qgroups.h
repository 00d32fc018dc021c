/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_QGROUPS_H
#define BTRKIT_CHECK_QGROUPS_H

#include "lib/check/state.h"

/* Checks the counters of full and simple quotas. */
int check_qgroups(struct check *c);

#endif
