/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_SPACE_TREE_H
#define BTRKIT_SPACE_FREE_SPACE_TREE_H

/*
 * Reads the free space tree (the v2 cache) from beginning to end, group by group. A group has an INFO, followed by its
 * free ranges in one of two forms: an EXTENT for each, or BITMAPs that cover the group without gaps.
 */

#include "lib/format/feature_bits.h"
#include "lib/format/items/free_space.h"
#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"

/* Whether the superblock's compat_ro bits say that there is a valid free space tree. Linux trusts no other. */
static inline bool free_space_tree_is_valid(uint64_t compat_ro)
{
	const uint64_t both = COMPAT_RO_FREE_SPACE_TREE | COMPAT_RO_FREE_SPACE_TREE_VALID;

	return (compat_ro & both) == both;
}

/* Gets the INFO of a range that is no block group. mkfs.btrfs up to 6.2 leaves two of them behind. */
typedef int (*free_space_leftover_fn)(void *ctx, const struct range *range);

struct free_space_tree {
	free_space_leftover_fn leftover; /* may be NULL */
	void *ctx;
	uint64_t leftovers;	/* number of such ranges */
	uint64_t outside;	/* items that belong to no block group and no INFO before them */
	uint64_t blocks;	/* of the tree, seen so far */
	struct cursor c;
	bool begun;
	bool ended;		/* there are no more items */
	uint64_t seen[LEVELS_MAX];
	/* The current group. */
	struct range group;
	struct free_space_info info;
	uint64_t pos;		/* items before this address have been read */
	uint64_t run;		/* start of the run of set bits that ends at @pos or later */
	bool in_run;
	bool told;
	uint64_t ranges;	/* number returned so far */
	/* The current item, if it is a bitmap. */
	uint64_t bit;
};

/* To be freed with free_space_tree_release(), even after a failure. @return 0; -ENOENT: there is no such tree; <0 */
int free_space_tree_begin(struct free_space_tree *t, struct btrkit_fs *fs, free_space_leftover_fn leftover, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like free_space_tree_begin(), for an earlier tree, from the group at @start on. What is before it is not read. */
void free_space_tree_begin_at(struct free_space_tree *t, struct btrkit_fs *fs, const struct tree_root *root,
			      uint64_t start);
void free_space_tree_release(struct free_space_tree *t);

/*
 * Goes to a group, which must be after the previous one; t->info is then its INFO. After a failure, the next group can
 * still be tried.
 * @return 0; 1: the tree has no INFO for the group; -EUCLEAN: its INFO is wrong; <0
 */
int free_space_tree_enter(struct free_space_tree *t, const struct block_group *group,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The next free range of the group, not adjacent to the previous one. At the end, the number of ranges has been
 * compared with the INFO. @return 0; 1: end; <0
 */
int free_space_tree_next(struct free_space_tree *t, struct range *free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads what is after the last group. @return 0, <0 */
int free_space_tree_end(struct free_space_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
