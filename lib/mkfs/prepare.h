/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PREPARE_H
#define BTRKIT_MKFS_PREPARE_H

/* What is done to devices before a filesystem is written to them. */

#include "lib/mkfs/plan.h"

/*
 * Room for all that will be written, before anything is: on a full disk the old contents of a sparse file stay as they
 * are.
 */
int mkfs_reserve(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Old superblocks go, and only they: until they have gone for good, the old filesystems are whole. */
int mkfs_disown(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* After a failure there is no filesystem on any device; where that fails too, the options' warning() is told. */
void mkfs_take_back(const struct mkfs_plan *p);

/* Discards what the filesystem will use, and no more. @return 0; what the options' progress() returned; <0 */
int mkfs_discard(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Signatures of other filesystems, at either end of the devices; but what lies behind a part of one stays. */
int mkfs_wipe_ends(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
