/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_MAKE_H
#define BTRKIT_MKFS_MAKE_H

/* Steps shared by the creation of empty and of filled filesystems. */

#include "lib/mkfs/plan.h"

/* What a UUID belongs to, as mkfs.btrfs 7.3 numbers it for UUIDs that it derives with DETERMINISTIC_SEED=1. */
enum mkfs_uuid_kind {
	MKFS_UUID_CHUNK_TREE,
	MKFS_UUID_SUBVOLUME,
	MKFS_UUID_DEVICE,
};

/* In mkfs.c: */
/*
 * Makes the UUID of subvolume or device @number (0 for the chunk tree): derived from the plan's fsid as by mkfs.btrfs
 * 7.3 if the filesystem is to be reproducible, else random.
 */
int mkfs_make_uuid(const struct mkfs_plan *p, enum mkfs_uuid_kind kind, uint64_t number, uint8_t to[16],
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Sets all UUIDs of the plan. @fsid: NULL for a random one */
int mkfs_make_uuids(struct mkfs_plan *p, const uint8_t *fsid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Initializes the parameters for verification of tree blocks and items. Needs the fsid. */
void mkfs_set_check(struct mkfs_plan *p);
/* Invalidates old superblocks, discards the devices if requested, and wipes signatures of other filesystems. */
int mkfs_clear_devices(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In filled.c: */
/* Creates a filled filesystem. The devices need their total_bytes, unless the size follows from the contents. */
int mkfs_make_filled(struct mkfs_plan *p, struct btrkit_mkfs_result *result,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
