/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_SPACE_TREE_H
#define BTRKIT_SPACE_FREE_SPACE_TREE_H

/*
 * The free space tree (the v2 cache), read from its beginning to its end, block group by block group. A group has an
 * INFO and then its free ranges, in one of two forms: an EXTENT for each, or BITMAPs that cover the group without gaps.
 */

#include "lib/format/feature_bits.h"
#include "lib/format/items/free_space.h"
#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"

/* Whether there is one that is kept up, by the compat_ro bits of the superblock: Linux trusts no other. */
static inline bool free_space_tree_is_valid(uint64_t compat_ro)
{
	const uint64_t both = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;

	return (compat_ro & both) == both;
}

/* Hears of the INFO of a range that is no block group's: mkfs.btrfs up to 6.2 leaves two of them behind. */
typedef int (*free_space_leftover_fn)(void *ctx, const struct range *range);

struct free_space_tree {
	free_space_leftover_fn leftover; /* may be NULL */
	void *ctx;
	uint64_t leftovers;	/* ranges so told */
	uint64_t strays;	/* items with no block group and no INFO before them */
	uint64_t blocks;	/* of the tree, met so far */
	struct cursor c;
	bool begun;
	bool ended;		/* there are no more items */
	uint64_t seen[LEVELS_MAX];
	/* The current group. */
	struct range group;
	struct free_space_info info;
	uint64_t pos;		/* up to here its items were read */
	uint64_t run;		/* where the run of set bits began that ends at pos or later */
	bool in_run;
	bool told;
	uint64_t ranges;	/* handed out */
	/* The item that is being read, a bitmap. */
	uint64_t bit;
};

/* Free with free_space_tree_release(), on failure too. @return 0; -ENOENT: there is no such tree; <0 */
int free_space_tree_begin(struct free_space_tree *t, struct btrkit_fs *fs, free_space_leftover_fn leftover, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of a tree of before, from the group at @start on: what lies before is not read. */
void free_space_tree_begin_at(struct free_space_tree *t, struct btrkit_fs *fs, const struct tree_root *root,
			      uint64_t start);
void free_space_tree_release(struct free_space_tree *t);

/*
 * To a group, which must lie behind the one before; t->info is its INFO then. After a failure the next group can be
 * tried all the same.
 * @return 0; 1: the tree knows nothing of the group; -EUCLEAN: its INFO is wrong; <0
 */
int free_space_tree_enter(struct free_space_tree *t, const struct block_group *group,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The next free range of the group, none touching the one before. At the end they have been held against the INFO's
 * count. @return 0, 1 the end, <0
 */
int free_space_tree_next(struct free_space_tree *t, struct range *free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads what lies behind the last group. @return 0, <0 */
int free_space_tree_end(struct free_space_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
