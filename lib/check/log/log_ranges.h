/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_LOG_RANGES_H
#define BTRKIT_CHECK_LOG_RANGES_H

#include "lib/check/state.h"

/*
 * Whether only a log refers to the data at an address. *end is lowered to where the answer changes: the
 * end of that data, or the start of the next.
 */
bool check_log_data(const struct check *c, uint64_t logical, uint64_t *end);
void check_log_sums_release(struct check *c);

#endif
