/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_MAKE_H
#define BTRKIT_MKFS_MAKE_H

/* The steps that an empty filesystem and one that is filled have in common. */

#include "lib/mkfs/plan.h"

/* All UUIDs of the plan. @fsid: NULL for a random one. */
int mkfs_make_uuids(struct mkfs_plan *p, const uint8_t *fsid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What tree blocks and items are judged by, when the fsid is there. */
void mkfs_set_judge(struct mkfs_plan *p);
/* What was on the devices is disowned, discarded if that is asked for, and wiped. */
int mkfs_clear_devices(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Makes one that is filled; the devices have their total_bytes, unless they are to fit. */
int mkfs_make_filled(struct mkfs_plan *p, struct btrkit_mkfs_result *result,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
