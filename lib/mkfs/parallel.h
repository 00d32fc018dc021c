/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PARALLEL_H
#define BTRKIT_MKFS_PARALLEL_H

/* What is done on every device of a new filesystem, on all of them at once. */

#include "lib/mkfs/plan.h"

struct mkfs_job {
	/* On a device, whose number is that in the plan. With several devices it is called by threads. */
	int (*work)(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err);
	/* Called by the thread that waits for the others, some times a second and at the end. May be NULL. */
	void (*watch)(void *ctx);
	void *ctx;
	bool all; /* Of the devices, even when it has failed on one. */
};

/*
 * Returns when the job is done on all devices. After a failure it is begun on no other, unless @all is set.
 * @return 0, or what @work returned: @err names the device, if there are several
 */
int mkfs_on_devices(const struct mkfs_plan *p, const struct mkfs_job *job, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
