/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_EXTENT_RANGES_H
#define BTRKIT_SPACE_EXTENT_RANGES_H

/*
 * What is free by the extent tree, which is what lies between the extents: one pass over the tree, block group by block
 * group, in little memory. The pass judges what it reads: no extent overlaps another or lies outside of a block group,
 * the bytes of a group's extents are what the group says is used, and no block group is there without a chunk.
 */

#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"

struct extent_ranges {
	const struct block_groups *groups;
	size_t next;			 /* the group to come */
	const struct block_group *group; /* the current one, or NULL */
	uint64_t pos;			 /* up to here its extents were read */
	uint64_t used;			 /* bytes of them */
	uint64_t extents;		 /* of all groups so far */
	bool told;			 /* all free ranges of the group were handed out */
	bool ended;			 /* there are no more items */
	struct cursor c;
};

/* @groups must live as long. Free with extent_ranges_release(), on failure too. @return 0; <0 */
int extent_ranges_begin(struct extent_ranges *r, struct btrkit_fs *fs, const struct block_groups *groups,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * The same of an extent tree of before, from the first of @groups on, which need not be all. What lies before is not
 * read, but for whether it reaches into the group.
 */
int extent_ranges_begin_at(struct extent_ranges *r, struct btrkit_fs *fs, const struct tree_root *root,
			   const struct block_groups *groups, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void extent_ranges_release(struct extent_ranges *r);

/* To the next group. What was not asked for of the one before is read all the same. @return 0, 1 the end, <0 */
int extent_ranges_next_group(struct extent_ranges *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The next free range of the group, none touching the one before. @return 0, 1 the end, <0 */
int extent_ranges_next(struct extent_ranges *r, struct range *free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
