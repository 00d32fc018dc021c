/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LAYOUT_H
#define BTRKIT_MKFS_LAYOUT_H

/* Where the block groups of a new filesystem lie, and the blocks in them. */

#include <btrkit/error.h>
#include <btrkit/mkfs.h>

#include "lib/volume/raid_map.h"

/* The first bytes of a device belong to boot loaders and the primary superblock. */
#define MKFS_RESERVED (1ull << 20)

/* A device of the new filesystem. Its number there is that in the array, from 1. */
struct mkfs_device {
	struct btrkit_io *io;
	uint64_t total_bytes; /* that the filesystem uses */
	uint64_t bytes_used;  /* of these, in device extents */
	uint8_t uuid[16];
	bool keeps_size; /* the filesystem may take less of it, but it cannot be made smaller or larger */
};

/* A range of bytes, logical. */
struct mkfs_range {
	uint64_t start, length;
};

struct mkfs_stripe {
	unsigned device; /* in the array */
	uint64_t physical;
};

/* What a group is for. With mixed groups the type does not tell. */
enum mkfs_role { MKFS_CHUNK_TREE, MKFS_TREES, MKFS_DATA };

struct mkfs_group {
	enum mkfs_role role;
	uint64_t logical, length;
	struct raid_shape shape; /* its type is the group's, BG_* */
	uint64_t stripe_length;	 /* of each device extent */
	struct mkfs_stripe *stripes;
	/* For trees: how many blocks it has room for, and those of the groups of its role before it. */
	uint64_t slots, first_slot;
	/* For data: bytes that are used, and where the last of them ends. */
	uint64_t used, end;
	/*
	 * What no block may be placed on, since a superblock lies there on a device: in order, without overlap. With
	 * parity a whole row.
	 */
	struct mkfs_range *holes;
	unsigned num_holes;
};

struct mkfs_layout {
	struct mkfs_group *groups; /* in order of their logical addresses */
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

/* Appends a group, and finds its holes. @return 0 or -ENOMEM; then it stays the caller's */
int mkfs_layout_add(struct mkfs_layout *l, const struct mkfs_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes the last group away. */
void mkfs_layout_drop_last(struct mkfs_layout *l);
/* Holes behind a length that a group was cut to are forgotten. */
void mkfs_group_cut(struct mkfs_group *g, uint64_t length);
/* Finds the holes of a group whose places are known. @return 0 or -ENOMEM */
int mkfs_group_find_holes(struct mkfs_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The one for the chunk tree. */
const struct mkfs_group *mkfs_system_group(const struct mkfs_layout *l);
/* Counts the blocks that fit into each group for trees. */
void mkfs_layout_count_slots(struct mkfs_layout *l, uint32_t nodesize);
/* The group that has a block with that number among those of its role; the last one if there is none. */
const struct mkfs_group *mkfs_layout_slot(const struct mkfs_layout *l, enum mkfs_role role, uint64_t slot);

/* Address of block number @slot of a group, from 0, holes left out. */
uint64_t mkfs_group_block(const struct mkfs_group *g, uint32_t nodesize, uint64_t slot);

/* Where the last of the first @used blocks of a group ends. */
uint64_t mkfs_group_blocks_end(const struct mkfs_group *g, uint32_t nodesize, uint64_t used);

/*
 * The next free range of a group that is used up to @end, but for its holes: the first that begins at @from or after.
 * @return false: there is none
 */
bool mkfs_group_next_free(const struct mkfs_group *g, uint64_t end, uint64_t from, struct mkfs_range *ret);

/* How much of each device extent is taken, from its beginning, by what ends at @end. */
uint64_t mkfs_group_extent_used(const struct mkfs_group *g, uint64_t end);

#endif
