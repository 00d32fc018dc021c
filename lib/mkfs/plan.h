/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PLAN_H
#define BTRKIT_MKFS_PLAN_H

/*
 * What a new filesystem will consist of, down to the address of every tree block, before anything is written. Trees
 * that describe the others (extents, free space, block groups) can then be made like all: from streams of items that
 * are run as often as needed, and kept nowhere.
 */

#include "lib/format/super.h"
#include "lib/mkfs/layout.h"
#include "lib/tree/bulk.h"

struct mkfs_plan;
struct mkfs_tree;
struct mkfs_fill;

/* Adds the items of a tree in the order of their keys. In a builder that only counts, data may be left out. */
typedef int (*mkfs_stream_fn)(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			      struct btrkit_error *err);

struct mkfs_tree {
	uint64_t owner;
	mkfs_stream_fn stream;
	enum mkfs_role role;	     /* of the groups that its blocks go to */
	bool settled;		     /* its items do not depend on the other trees: they are counted once */
	uint64_t blocks[LEVELS_MAX]; /* of each level */
	uint64_t first_slot;	     /* of its first block: leaves first, then level by level */
	/*
	 * First keys of all blocks in the order of their slots: only where back references name them, which is without
	 * skinny metadata.
	 */
	struct btrkit_key *keys;
	size_t num_keys, keys_size;
};

struct mkfs_plan {
	struct btrkit_mkfs_options opts;
	struct mkfs_layout layout;
	struct item_ctx items;
	struct node_judge judge;
	uint64_t generation;
	uint8_t fsid[16], chunk_tree_uuid[16], subvolume_uuid[16];
	struct mkfs_device *devices;
	unsigned num_devices;
	struct mkfs_tree *trees; /* in the order of their slots */
	unsigned num_trees;
	const struct mkfs_fill *fill; /* what is in it; NULL: nothing */
	/* Makes room for blocks of trees when they are counted; NULL: there is what there is. */
	int (*make_room)(struct mkfs_plan *p, uint64_t blocks, struct btrkit_error *err);
	void *room_ctx;
};

/* Bytes that one item may have. */
static inline uint32_t mkfs_item_room(const struct btrkit_mkfs_options *o)
{
	return leaf_room(o->nodesize) - (uint32_t)sizeof(struct disk_item);
}

/*
 * Counts the blocks of every tree until nothing changes any more, and gives them their places. The options, UUIDs and
 * layout must be there. Free with mkfs_plan_release(), whatever is returned.
 * @return 0; -ENOSPC: the metadata group is too small; -ENOMEM
 */
int mkfs_plan_make(struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The devices stay the caller's. */
void mkfs_plan_release(struct mkfs_plan *p);

/*
 * Runs the items of a tree through a builder. @blocks, of each level, may be NULL.
 * @return 0, or what the stream or the builder returned
 */
int mkfs_tree_run(const struct mkfs_plan *p, const struct mkfs_tree *t, const struct bulk_config *config,
		  struct tree_root *root, uint64_t *blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

uint64_t mkfs_tree_num_blocks(const struct mkfs_tree *t);
/* The root is the one block of the highest level. */
uint8_t mkfs_tree_level(const struct mkfs_tree *t);
uint64_t mkfs_tree_root(const struct mkfs_plan *p, const struct mkfs_tree *t);
/* The tree with that owner; NULL if the features leave it out. */
const struct mkfs_tree *mkfs_plan_tree(const struct mkfs_plan *p, uint64_t owner);
/* Slot of a block. */
uint64_t mkfs_tree_slot(const struct mkfs_tree *t, unsigned level, uint64_t index);
/* Its address, and the group that it lies in. */
uint64_t mkfs_slot_address(const struct mkfs_plan *p, enum mkfs_role role, uint64_t slot,
			   const struct mkfs_group **group);
/* Slots that are taken of groups of that role. */
uint64_t mkfs_slots_used(const struct mkfs_plan *p, enum mkfs_role role);
/* Bytes that are used in a group, and where the last of them ends. */
uint64_t mkfs_group_used(const struct mkfs_plan *p, const struct mkfs_group *g);
uint64_t mkfs_group_end(const struct mkfs_plan *p, const struct mkfs_group *g);
/* How much of each of its device extents blocks of trees take. */
uint64_t mkfs_group_extent_taken(const struct mkfs_plan *p, const struct mkfs_group *g);
/* Bytes of all extents. */
uint64_t mkfs_plan_bytes_used(const struct mkfs_plan *p);

#endif
