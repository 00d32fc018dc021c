/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_COMPACT_H
#define BTRKIT_MKFS_COMPACT_H

/*
 * Places block groups one after another without gaps, for a filesystem that is filled when it is created: first the
 * group of the chunk tree, then data groups for as long as data arrives, then the groups of the other trees, whose
 * blocks can be counted by then.
 */

#include "lib/mkfs/layout.h"

/* State of the placement. The layout and the devices belong to the plan. */
struct mkfs_compact {
	const struct btrkit_mkfs_options *opts;
	struct mkfs_device *devices;
	unsigned num_devices;
	struct mkfs_layout *layout;
	uint64_t *ends;	  /* start of the free space, per device */
	uint64_t logical; /* start of the next group */
	unsigned *chosen; /* scratch */
	bool grow;	  /* devices get the size that is needed; otherwise total_bytes is the limit */
	bool dry;	  /* nothing is written */
	bool open;	  /* the last group is a data group that accepts more data */
	/* State after the last data group. */
	unsigned before_trees; /* groups */
	uint64_t logical_before_trees;
	uint64_t *ends_before_trees;
	uint64_t *reserved; /* end of the preallocated space, per growing device */
	uint64_t bytes_written;
	uint64_t global_blocks; /* blocks of the planned trees that every transaction changes */
};

/* Places the group of the chunk tree. Call mkfs_compact_release() even after a failure. @return 0; -ENOSPC; -ENOMEM */
int mkfs_compact_begin(struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_compact_release(struct mkfs_compact *c);

/*
 * Allocates contiguous space for data, at least @min and at most @max bytes.
 * @return 0; -ENOSPC: the devices are full; <0
 */
int mkfs_compact_take(struct mkfs_compact *c, uint64_t min, uint64_t max, struct mkfs_range *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns whether the next piece of @min bytes is in the group of the last one, possibly after a hole. */
bool mkfs_compact_goes_on(struct mkfs_compact *c, uint64_t min);
/* Writes data to allocated space, in every copy that has an address by now. Call it before the next group is opened. */
int mkfs_compact_write(struct mkfs_compact *c, uint64_t logical, const void *data, size_t len,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like mkfs_compact_write(), but shares the blocks of a file of the host. */
int mkfs_compact_share(struct mkfs_compact *c, uint64_t logical, int fd, uint64_t offset, size_t len,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Ends the data: shrinks the last group to its contents. */
int mkfs_compact_end_data(struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Places groups for @blocks tree blocks plus spare space. Groups of an earlier call are removed.
 * @return 0; -ENOSPC; -ENOMEM
 */
int mkfs_compact_trees(struct mkfs_compact *c, uint64_t blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks that everything placed so far fits on the devices. @return 0; -ENOSPC */
int mkfs_compact_check(const struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the size that a device needs for what was placed on it. */
uint64_t mkfs_compact_device_size(const struct mkfs_compact *c, unsigned device);

#endif
