/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_AUDIT_STATE_H
#define BTRKIT_CHECK_AUDIT_STATE_H

/* What the parts of the audit hand to each other; they run in the order in which they stand here. */

#include "lib/check/audit.h"
#include "lib/format/items/chunk.h"
#include "lib/format/items/dev.h"
#include "lib/format/items/extent.h"
#include "lib/space/block_group.h"
#include "lib/tree/node.h"

/* Grows; no element is taken out. */
struct audit_list {
	void *at;
	size_t n, room;
};

/* An extent as the extent tree has it. */
struct audit_extent {
	uint64_t bytenr, num_bytes;
	uint64_t refs, generation, flags;
	uint64_t counted; /* references told in its item and behind it */
	uint8_t level;	  /* of a tree block */
	bool skinny;
};

/* A reference to an extent: told by the extent tree, or made by a tree block, by a file extent, by a root. */
struct audit_ref {
	uint64_t bytenr;
	uint64_t root_or_parent;
	uint64_t objectid, offset;
	uint64_t count;
	uint8_t type;
};

/* What there is from a block on down. */
struct audit_subtree {
	struct btrkit_key last; /* the highest key */
	uint64_t blocks;	/* the same one as often as it is pointed to */
};

/* A tree block that was visited. */
struct audit_block {
	uint64_t bytenr;
	struct audit_subtree below;
	UT_hash_handle hh;
};

struct audit_root {
	struct tree_root root;
	struct root_item item;
};

struct audit {
	struct btrkit_fs *fs;
	struct audit_counts counts;
	struct block_groups groups;
	struct audit_list extents;     /* struct audit_extent, in the order of addresses */
	struct audit_list found, made; /* struct audit_ref */
	struct audit_block *blocks;
	struct audit_list roots;       /* struct audit_root, in the order of keys */
	struct audit_list devices;     /* struct dev_item */
	struct audit_list stripes;     /* struct dev_extent, as the chunks tell them */
	struct audit_list dev_extents; /* as the device tree tells them, in the order of keys */
	uint64_t csum_end;	       /* where the checksums met so far end */
	uint32_t system_chunks;	       /* bytes that they would take in the superblock */
};

/* Room for another element of @size bytes; NULL without memory. */
void *audit_list_add(struct audit_list *list, size_t size);

/* Reads the block groups and the extent tree: extents and the references to them. */
int audit_load_extents(struct audit *a, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The extent that holds an address, or NULL. */
const struct audit_extent *audit_extent_of(const struct audit *a, uint64_t bytenr);
/* The block group that holds an address, which an extent does. */
const struct block_group *audit_group_of(const struct audit *a, uint64_t logical);
/* Adds the place of the extent's item to a failure. @return @ret */
int audit_blame_extent(const struct audit_extent *e, int ret, struct btrkit_error *err);

/* Visits all blocks of all trees. */
int audit_walk_trees(struct audit *a, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What the walk hears of an item of the chunk tree or the device tree. */
int audit_volume_item(struct audit *a, const struct item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Holds the references that were made against those that were found. */
int audit_compare_refs(struct audit *a, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Devices, their extents, chunks, and what the superblock says of them. */
int audit_compare_volume(struct audit *a, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The caches of free space, as far as Linux would trust them. */
int audit_compare_space(struct audit *a, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
