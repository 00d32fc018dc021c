/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_LAYOUT_H
#define BTRKIT_MKFS_LAYOUT_H

/* Where the block groups of a new filesystem lie, and the blocks in them. */

#include <btrkit/mkfs.h>

#define MKFS_GROUPS_MAX 3
#define MKFS_COPIES_MAX 2
/* Superblock mirrors that can lie in a group: two, in either copy. */
#define MKFS_HOLES_MAX (2 * MKFS_COPIES_MAX)

/* A range of bytes, logical. */
struct mkfs_range {
	uint64_t start, length;
};

struct mkfs_group {
	uint64_t type; /* BG_* */
	uint64_t logical, length;
	unsigned copies;
	uint64_t physical[MKFS_COPIES_MAX];
	/* What no block may be placed on, since a superblock lies there on the device: in order, without overlap. */
	struct mkfs_range holes[MKFS_HOLES_MAX];
	unsigned num_holes;
};

struct mkfs_layout {
	struct mkfs_group groups[MKFS_GROUPS_MAX]; /* in order of their logical addresses */
	unsigned num_groups;
	uint64_t total_bytes;
};

/* The smallest device for these profiles, in bytes. */
uint64_t mkfs_layout_min_size(const struct btrkit_mkfs_options *opts);

/* @total_bytes is not below the smallest. */
void mkfs_layout(const struct btrkit_mkfs_options *opts, uint64_t total_bytes, struct mkfs_layout *ret);

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

#endif
