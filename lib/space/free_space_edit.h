/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_SPACE_EDIT_H
#define BTRKIT_SPACE_FREE_SPACE_EDIT_H

/*
 * Changes the free space tree in a transaction, and builds it from the extent tree. Whether a group uses extents or
 * bitmaps depends on Linux's thresholds: it changes to bitmaps above the high one, and back to extents below the low
 * one.
 */

#include "lib/space/extent_ranges.h"
#include "lib/space/space.h"
#include "lib/tree/bulk.h"
#include "lib/tree/edit.h"

/* Maximum size of a bitmap item in the format. */
#define FREE_SPACE_BITMAP_BYTES 256u

struct free_space_stats {
	uint64_t ranges;	 /* changes applied */
	uint64_t to_bitmaps, to_extents; /* groups that were converted */
};

/* In free_space_edit.c: */
/*
 * Applies changes to a group's items; they must be sorted and within the group. What becomes free must be used in the
 * tree, and vice versa. As in Linux, the form is reconsidered after each change, so that a batch leaves the group in
 * the form in which Linux would leave it. @stats is added to.
 * @return 0; -EUCLEAN: the tree contradicts a change; <0
 */
int free_space_edit(struct edit_tree *t, const struct block_group *group, const struct space_change *changes, size_t n,
		    struct free_space_stats *stats, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds a new group that is completely free; removes a group, whatever its items are. */
int free_space_add_group(struct edit_tree *t, const struct block_group *group,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
int free_space_remove_group(struct edit_tree *t, const struct block_group *group,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Statistics of a built tree. */
struct free_space_built {
	uint64_t groups, extents, bitmaps; /* groups and items in the free space tree */
	uint64_t bitmap_groups;
	uint64_t ranges;		   /* number of free ranges: the sum of the groups' counts */
	uint64_t extents_read;		   /* items of the extent tree that were read */
};

/* In free_space_build.c: */
/*
 * Adds the items of a complete free space tree to @b, in one pass over @ranges and with memory for one group. If @b
 * only counts, this does, too.
 */
int free_space_build(struct extent_ranges *ranges, uint32_t sectorsize, struct bulk *b, struct free_space_built *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
