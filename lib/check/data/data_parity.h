/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_PARITY_H
#define BTRKIT_CHECK_DATA_PARITY_H

#include "lib/check/data/data_progress.h"
#include "lib/check/state.h"

/* Returns how many bytes data_check_parity() will add to the progress. */
uint64_t data_parity_bytes(const struct check *c);
/* Checks parity of block groups that have it against their data. */
void data_check_parity(struct data_check *d);

#endif
