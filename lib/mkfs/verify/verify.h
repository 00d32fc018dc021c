/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_VERIFY_H
#define BTRKIT_MKFS_VERIFY_H

#include "lib/mkfs/filled/fill.h"

/*
 * Opens the new filesystem on the same devices and compares everything in it with the source. Differences are passed to
 * the options' warning().
 * @return 0; -EUCLEAN: it differs; -ESTALE: the source changed; what verifying() returned; <0
 */
int mkfs_verify(const struct mkfs_plan *p, const struct mkfs_fill *f, struct btrkit_mkfs_result *result,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
