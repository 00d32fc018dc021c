/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_NODATASUM_H
#define BTRKIT_CHECK_DATA_NODATASUM_H

#include "lib/check/state.h"

/* Sorts c->nodatasum by address and merges adjacent ranges. */
void data_sort_nodatasum(struct check *c);
/* Records written data that lacks some or all checksums. May be called by any thread. */
void check_nodatasum_data(struct check *c, uint64_t start, uint64_t length);

#endif
