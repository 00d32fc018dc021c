/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CONVERT_PROGRESS_H
#define BTRKIT_CONVERT_PROGRESS_H

/* The steps of a conversion as one work, told to the caller, who may end it. */

#include <stdint.h>

#include <btrkit/error.h>
#include <btrkit/space.h>

/* Each takes a part of the time that was measured once; those that are not needed are passed over. */
enum progress_step {
	PROGRESS_LOOK,
	PROGRESS_COUNT,
	PROGRESS_REMOVE,
	PROGRESS_BUILD,
	PROGRESS_VERIFY
};

struct progress {
	const struct btrkit_space_change_options *opts;
	uint64_t told; /* 0: nothing */
};

/*
 * @done of @total units of a step are done; more than @total counts as all.
 * @return 0, or what the caller's function returned, with an error that says so
 */
int progress_tell(struct progress *p, enum progress_step step, uint64_t done, uint64_t total,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
