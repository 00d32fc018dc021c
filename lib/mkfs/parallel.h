/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PARALLEL_H
#define BTRKIT_MKFS_PARALLEL_H

/* Runs a job on all devices of a new filesystem in parallel. */

#include "lib/mkfs/plan.h"

struct mkfs_job {
	/* Works on one device, given by its index in the plan. Called from threads if there are several devices. */
	int (*work)(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err);
	/* Called several times a second and at the end by the waiting thread. May be NULL. */
	void (*watch)(void *ctx);
	void *ctx;
	bool all; /* continue with other devices after a failure */
};

/*
 * Runs the job and returns when all devices are done. After a failure no other device is started, unless @all is set.
 * @return 0, or the first error of @work: @err names the device if there are several
 */
int mkfs_on_devices(const struct mkfs_plan *p, const struct mkfs_job *job, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
