/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LANE_H
#define BTRKIT_MKFS_LANE_H

/*
 * Queue of non-overlapping writes to one device. While one batch is collected, a thread writes the previous one, so
 * that trees are built on one processor and copied to the device on another.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

struct mkfs_lane;

/* @budget: maximum bytes to buffer. @return 0 or -ENOMEM */
int mkfs_lane_create(struct btrkit_io *io, size_t budget, struct mkfs_lane **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Discards what is not written yet. NULL is allowed. */
struct mkfs_lane *mkfs_lane_destroy(struct mkfs_lane *l);

/* @return 0; <0: this or an earlier write failed */
int mkfs_lane_write(struct mkfs_lane *l, uint64_t offset, const void *data, size_t len,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Waits until everything is written, but does not flush the device. */
int mkfs_lane_finish(struct mkfs_lane *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
