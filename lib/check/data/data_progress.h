/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_PROGRESS_H
#define BTRKIT_CHECK_DATA_PROGRESS_H

#include "lib/check/state.h"

#define DATA_BAD_MAX 65536u /* limit on recorded addresses */

/* Shared by the passes over the data; protected by check.lock. */
struct data_check {
	struct check *c;
	uint64_t bytes; /* done, for progress */
	uint64_t *bad;	/* addresses of sectors with a damaged copy; sorted at the end */
	size_t num_bad;
};

/* Adds @n bytes to the progress. */
void data_progress(struct data_check *d, uint64_t n);

#endif
