/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LAYOUT_H
#define BTRKIT_MKFS_LAYOUT_H

/* Where the block groups of a new filesystem lie, and the blocks in them. */

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#include "lib/volume/raid_map.h"

#define MKFS_GROUPS_MAX 3

/* A device of the new filesystem. Its number there is that in the array, from 1. */
struct mkfs_device {
	struct btrkit_io *io;
	uint64_t total_bytes; /* that the filesystem uses */
	uint64_t bytes_used;  /* of these, in device extents */
	uint8_t uuid[16];
};

/* A range of bytes, logical. */
struct mkfs_range {
	uint64_t start, length;
};

struct mkfs_stripe {
	unsigned device; /* in the array */
	uint64_t physical;
};

struct mkfs_group {
	uint64_t logical, length;
	struct raid_shape shape; /* its type is the group's, BG_* */
	uint64_t stripe_length;	 /* of each device extent */
	struct mkfs_stripe *stripes;
	/*
	 * What no block may be placed on, since a superblock lies there on a device: in order, without overlap. With
	 * parity a whole row.
	 */
	struct mkfs_range *holes;
	unsigned num_holes;
};

struct mkfs_layout {
	struct mkfs_group groups[MKFS_GROUPS_MAX]; /* in order of their logical addresses */
	unsigned num_groups;
	uint64_t total_bytes;
};

/* How a profile, which is not the default, spreads its bytes; how many devices it needs. */
const struct raid_profile *mkfs_profile(enum btrkit_profile p);
unsigned mkfs_profile_devices(const struct raid_profile *p);

/* What no device may be below, in bytes, whatever the others are. The options must have been judged. */
uint64_t mkfs_layout_min_device(const struct btrkit_mkfs_options *opts);
/* The smallest size that @n devices of one size can have. */
int mkfs_layout_min_size(const struct btrkit_mkfs_options *opts, unsigned n, uint64_t *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Lays out the groups on devices, none of which may be too small; their bytes_used are set. Release it, whatever is
 * returned.
 * @return 0; -ENOSPC: there is no room for a group; -ENOMEM
 */
int mkfs_layout(const struct btrkit_mkfs_options *opts, struct mkfs_device *devices, unsigned n,
		struct mkfs_layout *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_layout_release(struct mkfs_layout *l);

/* The group for trees, and the one for the chunk tree. */
const struct mkfs_group *mkfs_metadata_group(const struct mkfs_layout *l);
const struct mkfs_group *mkfs_system_group(const struct mkfs_layout *l);

/* Address of block number @slot of a group, from 0, holes left out. */
uint64_t mkfs_group_block(const struct mkfs_group *g, uint32_t nodesize, uint64_t slot);

/*
 * The next free range of a group whose first @used blocks are taken: the first that begins at @from or after.
 * @return false: there is none
 */
bool mkfs_group_next_free(const struct mkfs_group *g, uint32_t nodesize, uint64_t used, uint64_t from,
			  struct mkfs_range *ret);

/* How much of each device extent the first @used blocks take, from its beginning. */
uint64_t mkfs_group_extent_used(const struct mkfs_group *g, uint32_t nodesize, uint64_t used);

#endif
