/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_PLAN_H
#define BTRKIT_MKFS_PLAN_H

/*
 * The plan of a new filesystem down to the address of every tree block, made before anything is written. Trees that
 * describe other trees (extents, free space, block groups) can then be built like the others: from streams of items
 * that are generated as often as needed and never stored.
 */

#include "lib/format/super.h"
#include "lib/mkfs/layout.h"
#include "lib/tree/bulk.h"

struct mkfs_plan;
struct mkfs_tree;
struct mkfs_fill;

/* Adds the items of a tree in key order. The data may be omitted if the builder only counts. */
typedef int (*mkfs_stream_fn)(const struct mkfs_plan *p, const struct mkfs_tree *t, struct bulk *b,
			      struct btrkit_error *err);

struct mkfs_tree {
	uint64_t owner;
	mkfs_stream_fn stream;
	enum mkfs_role role;	     /* role of the groups for its blocks */
	bool settled;		     /* items do not depend on other trees: counted only once */
	uint64_t blocks[LEVELS_MAX]; /* blocks per level */
	uint64_t first_slot;	     /* slot of its first block; leaves first, then level by level */
	/*
	 * First keys of all blocks in slot order. Only needed without skinny metadata, where extent items contain them.
	 */
	struct btrkit_key *keys;
	size_t num_keys, keys_size;
};

struct mkfs_plan {
	struct btrkit_mkfs_options opts;
	struct mkfs_layout layout;
	struct item_ctx items;
	struct node_rules rules;
	uint64_t generation;
	uint8_t fsid[16], chunk_tree_uuid[16], subvolume_uuid[16];
	struct mkfs_device *devices;
	unsigned num_devices;
	struct mkfs_tree *trees; /* in slot order */
	unsigned num_trees;
	const struct mkfs_fill *fill; /* contents; NULL: none */
	/* Allocates space for tree blocks after each count. NULL: the space is fixed. */
	int (*make_room)(struct mkfs_plan *p, uint64_t blocks, struct btrkit_error *err);
	void *room_ctx;
};

/* Returns the maximum size of the data of an item. */
static inline uint32_t mkfs_item_room(const struct btrkit_mkfs_options *o)
{
	return leaf_room(o->nodesize) - (uint32_t)sizeof(struct disk_item);
}

/*
 * Counts the blocks of every tree until the counts no longer change, and assigns their addresses. Options, UUIDs and
 * layout must be set. Call mkfs_plan_release() even after a failure.
 * @return 0; -ENOSPC: the metadata group is too small; -ENOMEM
 */
int mkfs_plan_make(struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Does not free the devices. */
void mkfs_plan_release(struct mkfs_plan *p);

/*
 * Passes the items of a tree to a builder. @blocks receives the counts per level; may be NULL.
 * @return 0, or the error of the stream or the builder
 */
int mkfs_tree_run(const struct mkfs_plan *p, const struct mkfs_tree *t, const struct bulk_config *config,
		  struct tree_root *root, uint64_t *blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

uint64_t mkfs_tree_num_blocks(const struct mkfs_tree *t);
/* Level and address of the root. */
uint8_t mkfs_tree_level(const struct mkfs_tree *t);
uint64_t mkfs_tree_root(const struct mkfs_plan *p, const struct mkfs_tree *t);
/* Returns the tree with that owner; NULL if the filesystem does not have it. */
const struct mkfs_tree *mkfs_plan_tree(const struct mkfs_plan *p, uint64_t owner);
/* Returns the slot of a block. */
uint64_t mkfs_tree_slot(const struct mkfs_tree *t, unsigned level, uint64_t index);
/* Returns the address of a slot, and its group in *group unless @group is NULL. */
uint64_t mkfs_slot_address(const struct mkfs_plan *p, enum mkfs_role role, uint64_t slot,
			   const struct mkfs_group **group);
/* Returns the number of used slots of a role. */
uint64_t mkfs_slots_used(const struct mkfs_plan *p, enum mkfs_role role);
/* Used bytes of a group, and the end of the last of them. */
uint64_t mkfs_group_used(const struct mkfs_plan *p, const struct mkfs_group *g);
uint64_t mkfs_group_end(const struct mkfs_plan *p, const struct mkfs_group *g);
/* Returns how much of each device extent is used by tree blocks. */
uint64_t mkfs_group_extent_taken(const struct mkfs_plan *p, const struct mkfs_group *g);
/* Returns the total size of all extents. */
uint64_t mkfs_plan_bytes_used(const struct mkfs_plan *p);

#endif
