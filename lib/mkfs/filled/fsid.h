/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_FSID_H
#define BTRKIT_MKFS_FSID_H

#include "lib/mkfs/filled/fill.h"
#include "lib/mkfs/plan.h"

/* Derives an fsid that is the same for equal contents and options. @fits: the size follows from the contents */
int mkfs_derive_fsid(const struct mkfs_plan *p, const struct mkfs_fill *fill, bool fits, uint8_t *fsid,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
