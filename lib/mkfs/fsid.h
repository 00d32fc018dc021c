/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_FSID_H
#define BTRKIT_MKFS_FSID_H

#include "lib/mkfs/fill.h"
#include "lib/mkfs/plan.h"

/* One that equal contents with equal options have. @fits: the filesystem is as large as they need. */
int mkfs_derive_fsid(const struct mkfs_plan *p, const struct mkfs_fill *fill, bool fits, uint8_t *fsid,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
