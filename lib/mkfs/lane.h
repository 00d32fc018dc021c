/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LANE_H
#define BTRKIT_MKFS_LANE_H

/*
 * Writes to one device, of which no two overlap: while some are gathered a thread writes those before, so that one
 * processor makes trees and another one copies them to where they go.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

struct mkfs_lane;

/* @budget: bytes to keep at the most. @return 0 or -ENOMEM */
int mkfs_lane_create(struct btrkit_io *io, size_t budget, struct mkfs_lane **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What is not written yet is lost. NULL is allowed. */
struct mkfs_lane *mkfs_lane_destroy(struct mkfs_lane *l);

/* @return 0; <0, also for a write before */
int mkfs_lane_write(struct mkfs_lane *l, uint64_t offset, const void *data, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Until all is written; it is not flushed. */
int mkfs_lane_finish(struct mkfs_lane *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
