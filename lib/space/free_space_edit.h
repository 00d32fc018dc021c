/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_SPACE_EDIT_H
#define BTRKIT_SPACE_FREE_SPACE_EDIT_H

/*
 * Changes of the free space tree within a transaction, and its making from the extent tree. A group's form, extents or
 * bitmaps, follows Linux's thresholds: bitmaps above the high one, extents again below the low one.
 */

#include "lib/space/extent_ranges.h"
#include "lib/space/space.h"
#include "lib/tree/bulk.h"
#include "lib/tree/edit.h"

/* Above @high ranges a group is told by bitmaps, below @low by extents; between, as it was. */
struct free_space_thresholds {
	uint32_t low, high;
};
struct free_space_thresholds free_space_thresholds(uint64_t group_length, uint32_t sectorsize);

/* How many bytes a bitmap item of the format covers at the most, in sectors: 256 bytes. */
#define FREE_SPACE_BITMAP_BYTES 256u

struct free_space_stats {
	uint64_t ranges;	 /* changes that were applied */
	uint64_t to_bitmaps, to_extents; /* groups that changed their form */
};

/*
 * Applies changes to a group's items; they are sorted and within the group. What became free was used before, and the
 * reverse: the tree is held against that. After each change the form is judged anew, as Linux does it, so that a batch
 * leaves the group in the form in which Linux would leave it. @stats is added to.
 * @return 0; -EUCLEAN: the tree says otherwise; <0
 */
int free_space_edit(struct edit_tree *t, const struct block_group *group, const struct space_change *changes, size_t n,
		    struct free_space_stats *stats, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A new group, all of it free; a group that goes, whatever its items are. */
int free_space_add_group(struct edit_tree *t, const struct block_group *group,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
int free_space_remove_group(struct edit_tree *t, const struct block_group *group,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What building the tree came to. */
struct free_space_built {
	uint64_t groups, extents, bitmaps; /* of the free space tree: groups, and items */
	uint64_t bitmap_groups;
	uint64_t ranges;		   /* free ones: the sum of the groups' counts */
	uint64_t extents_read;		   /* of the extent tree */
};

/*
 * Feeds @b with the items of a whole free space tree, in one pass over @ranges, in memory for one group. Counts only
 * when @b does.
 */
int free_space_build(struct extent_ranges *ranges, uint32_t sectorsize, struct bulk *b, struct free_space_built *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
