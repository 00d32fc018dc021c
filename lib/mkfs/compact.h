/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_COMPACT_H
#define BTRKIT_MKFS_COMPACT_H

/*
 * Block groups one behind the other without gaps, for a filesystem that is filled when it is made: the one of the chunk
 * tree, then those of data, which grow as long as data come, then those of the other trees, whose blocks can be counted
 * by then.
 */

#include "lib/mkfs/layout.h"

/* All that is placed. The layout and the devices are the plan's. */
struct mkfs_compact {
	const struct btrkit_mkfs_options *opts;
	struct mkfs_device *devices;
	unsigned num_devices;
	struct mkfs_layout *layout;
	uint64_t *ends;	  /* of each device, where what is free begins */
	uint64_t logical; /* where the next group begins */
	unsigned *chosen; /* scratch */
	bool grow;	  /* devices have the size that comes out; else total_bytes is all they have */
	bool dry;	  /* nothing is written */
	bool open;	  /* the last group is one of data that takes more */
	/* As it was when the last data had come. */
	unsigned before_trees; /* groups */
	uint64_t logical_before_trees;
	uint64_t *ends_before_trees;
	uint64_t *reserved; /* of each device that grows, up to where there is room */
	uint64_t bytes_written;
	uint64_t global_blocks; /* of the trees that every change reaches, of those that are to be placed */
};

/* Places the group of the chunk tree. Release it, whatever is returned. @return 0; -ENOSPC; -ENOMEM */
int mkfs_compact_begin(struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_compact_release(struct mkfs_compact *c);

/*
 * Takes room for data: @min bytes at least, @max at the most, in one piece.
 * @return 0; -ENOSPC: the devices are full; <0
 */
int mkfs_compact_take(struct mkfs_compact *c, uint64_t min, uint64_t max, struct mkfs_range *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the next piece of @min bytes lies in the group of the last one, behind it or behind a hole. */
bool mkfs_compact_goes_on(struct mkfs_compact *c, uint64_t min);
/* Writes data where room was taken, every copy that has its place by now: before the next group begins. */
int mkfs_compact_write(struct mkfs_compact *c, uint64_t logical, const void *data, size_t len,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of what a file of the host has: it shares its blocks. */
int mkfs_compact_share(struct mkfs_compact *c, uint64_t logical, int fd, uint64_t offset, size_t len,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* No more data will come: the last group is cut to what is in it. */
int mkfs_compact_end_data(struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Places groups for that many blocks of trees, and some to spare, in place of those that it placed before.
 * @return 0; -ENOSPC; -ENOMEM
 */
int mkfs_compact_trees(struct mkfs_compact *c, uint64_t blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether devices have room for what was placed so far. @return 0; -ENOSPC */
int mkfs_compact_judge(const struct mkfs_compact *c, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* How large a device has to be for what was placed. */
uint64_t mkfs_compact_device_size(const struct mkfs_compact *c, unsigned device);

#endif
