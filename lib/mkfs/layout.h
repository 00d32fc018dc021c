/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LAYOUT_H
#define BTRKIT_MKFS_LAYOUT_H

/* The addresses of the block groups of a new filesystem and of the blocks in them. */

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#include "lib/volume/raid_map.h"

/* The start of a device is reserved for boot loaders and the primary superblock. */
#define MKFS_RESERVED (1ull << 20)

/* A device of the new filesystem. Its devid is its index in the array plus 1. */
struct mkfs_device {
	struct btrkit_io *io;
	uint64_t total_bytes; /* used by the filesystem */
	uint64_t bytes_used;  /* part of total_bytes in device extents */
	uint8_t uuid[16];
	bool keeps_size; /* it cannot be resized, but the filesystem may be smaller */
};

/* A logical address range. */
struct mkfs_range {
	uint64_t start, length;
};

struct mkfs_stripe {
	unsigned device; /* index in the array */
	uint64_t physical;
};

/* The use of a group. For mixed groups it does not follow from the type. */
enum mkfs_role { MKFS_CHUNK_TREE, MKFS_TREES, MKFS_DATA };

struct mkfs_group {
	enum mkfs_role role;
	uint64_t logical, length;
	struct raid_shape shape; /* shape.type holds the BG_* flags of the group */
	uint64_t stripe_length;	 /* length of each device extent */
	struct mkfs_stripe *stripes;
	/* For trees: number of blocks in this group and in earlier groups of the same role. */
	uint64_t slots, first_slot;
	/* For data: used bytes, and the end of the last of them. */
	uint64_t used, end;
	/*
	 * Ranges where no block may be placed because of a superblock, sorted and without overlap. Full stripes if the
	 * group has parity.
	 */
	struct mkfs_range *holes;
	unsigned num_holes;
};

struct mkfs_layout {
	struct mkfs_group *groups; /* by logical address */
	unsigned num_groups;
	uint64_t total_bytes;
};

/* Returns the RAID profile (not for the default), and the number of devices that it needs. */
const struct raid_profile *mkfs_profile(enum btrkit_profile p);
unsigned mkfs_profile_devices(const struct raid_profile *p);

/* Returns the minimum size of each device in bytes. The options must have been checked. */
uint64_t mkfs_layout_min_device(const struct btrkit_mkfs_options *opts);
/* Determines the minimum size of each of @n devices of equal size. */
int mkfs_layout_min_size(const struct btrkit_mkfs_options *opts, unsigned n, uint64_t *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Places the groups on the devices, none of which may be too small, and sets bytes_used. Call mkfs_layout_release()
 * even after a failure.
 * @return 0; -ENOSPC: no space for a group; -ENOMEM
 */
int mkfs_layout(const struct btrkit_mkfs_options *opts, struct mkfs_device *devices, unsigned n,
		struct mkfs_layout *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_layout_release(struct mkfs_layout *l);

/* Appends a group and finds its holes. @return 0 or -ENOMEM: the caller keeps ownership of the group */
int mkfs_layout_add(struct mkfs_layout *l, const struct mkfs_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes the last group. */
void mkfs_layout_drop_last(struct mkfs_layout *l);
/* Shrinks a group, and drops holes past its new end. */
void mkfs_group_cut(struct mkfs_group *g, uint64_t length);
/* Finds the holes of a group whose stripes are placed. @return 0 or -ENOMEM */
int mkfs_group_find_holes(struct mkfs_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns the group of the chunk tree. */
const struct mkfs_group *mkfs_system_group(const struct mkfs_layout *l);
/* Computes the number of tree blocks that fit into each group. */
void mkfs_layout_count_slots(struct mkfs_layout *l, uint32_t nodesize);
/* Returns the group that contains block number @slot of a role, or the last group if there is no such block. */
const struct mkfs_group *mkfs_layout_slot(const struct mkfs_layout *l, enum mkfs_role role, uint64_t slot);

/* Returns the address of block number @slot of a group, from 0, not counting holes. */
uint64_t mkfs_group_block(const struct mkfs_group *g, uint32_t nodesize, uint64_t slot);

/* Returns the end of block number @used - 1 of a group. */
uint64_t mkfs_group_blocks_end(const struct mkfs_group *g, uint32_t nodesize, uint64_t used);

/*
 * Finds the first free range at or after @from in a group that is used up to @end except for its holes.
 * @return false: there is none
 */
bool mkfs_group_next_free(const struct mkfs_group *g, uint64_t end, uint64_t from, struct mkfs_range *ret);

/* Returns how much of each device extent is used, from its start, if the group is used up to @end. */
uint64_t mkfs_group_extent_used(const struct mkfs_group *g, uint64_t end);

#endif
