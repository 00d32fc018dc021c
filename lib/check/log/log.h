/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_H
#define BTRKIT_CHECK_LOG_H

#include "lib/check/state.h"

/* Checks the log trees; fills in log_data and log_sums. */
int check_logs(struct check *c);

#endif
