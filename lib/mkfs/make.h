/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_MAKE_H
#define BTRKIT_MKFS_MAKE_H

/* Steps shared by the creation of empty and of filled filesystems. */

#include "lib/mkfs/plan.h"

/* Sets all UUIDs of the plan. @fsid: NULL for a random one */
int mkfs_make_uuids(struct mkfs_plan *p, const uint8_t *fsid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Initializes the parameters for verification of tree blocks and items. Needs the fsid. */
void mkfs_set_judge(struct mkfs_plan *p);
/* Invalidates old superblocks, discards the devices if requested, and wipes signatures of other filesystems. */
int mkfs_clear_devices(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Creates a filled filesystem. The devices need their total_bytes, unless the size follows from the contents. */
int mkfs_make_filled(struct mkfs_plan *p, struct btrkit_mkfs_result *result,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
