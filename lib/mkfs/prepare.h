/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PREPARE_H
#define BTRKIT_MKFS_PREPARE_H

/* Prepares devices for a new filesystem. */

#include "lib/mkfs/plan.h"

/*
 * Reserves space for everything that will be written. If the host's disk is full, a sparse file keeps its old contents.
 */
int mkfs_reserve(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Overwrites old superblocks and nothing else: until that is durable, the old filesystems are intact. */
int mkfs_disown(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Removes the new superblocks from all devices after a failure. Calls the options' warning() if that fails, too. */
void mkfs_take_back(const struct mkfs_plan *p);

/*
 * Discards the part of the devices that the filesystem will use. @return 0; what the options' progress() returned; <0
 */
int mkfs_discard(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Wipes signatures of other filesystems at both ends of the devices. With byte_count, the end is left alone. */
int mkfs_wipe_ends(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
