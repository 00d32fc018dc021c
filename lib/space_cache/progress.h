/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CACHE_PROGRESS_H
#define BTRKIT_SPACE_CACHE_PROGRESS_H

/* Reports the progress of all steps as one number to the caller, who may stop the conversion. */

#include <stdint.h>

#include <btrkit/error.h>
#include <btrkit/space.h>

/* Each step has a fixed share of the total time, from measurements. Unnecessary steps are skipped. */
enum progress_step {
	PROGRESS_LOOK,
	PROGRESS_COUNT,
	PROGRESS_REMOVE,
	PROGRESS_BUILD,
	PROGRESS_VERIFY
};

struct progress {
	const struct btrkit_space_change_options *opts;
	uint64_t told; /* last reported value plus one; 0: none */
};

/*
 * Report that @done of @total units of a step are done; more than @total counts as all.
 * @return 0, or the result of the caller's function, with an error message
 */
int progress_tell(struct progress *p, enum progress_step step, uint64_t done, uint64_t total,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
