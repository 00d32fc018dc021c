/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_EXTENT_RANGES_H
#define BTRKIT_SPACE_EXTENT_RANGES_H

/*
 * Free space according to the extent tree, that is, the gaps between extents: read in one pass over the tree, group by
 * group, using little memory. The pass also checks the tree: extents must not overlap or be outside of block groups,
 * the sizes of a group's extents must add up to its used bytes, and every block group must have a chunk.
 */

#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"

struct extent_ranges {
	const struct block_groups *groups;
	size_t next;			 /* next group */
	const struct block_group *group; /* the current one, or NULL */
	uint64_t pos;			 /* extents before this address have been read */
	uint64_t used;			 /* total size of these */
	uint64_t extents;		 /* number in all groups so far */
	bool told;			 /* all free ranges of the group have been returned */
	bool ended;			 /* there are no more items */
	struct cursor c;
};

/* @groups must live as long as @r. To be freed with extent_ranges_release(), even after a failure. @return 0; <0 */
int extent_ranges_begin(struct extent_ranges *r, struct btrkit_fs *fs, const struct block_groups *groups,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Like extent_ranges_begin(), for an earlier extent tree, from the first of @groups on, which may be a part of all
 * groups. What is before them is not read, except to check that it does not extend into the first one.
 */
int extent_ranges_begin_at(struct extent_ranges *r, struct btrkit_fs *fs, const struct tree_root *root,
			   const struct block_groups *groups, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void extent_ranges_release(struct extent_ranges *r);

/* Goes to the next group. The rest of the previous one is read in any case. @return 0; 1: end; <0 */
int extent_ranges_next_group(struct extent_ranges *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The next free range of the group, not adjacent to the previous one. @return 0; 1: end; <0 */
int extent_ranges_next(struct extent_ranges *r, struct range *free, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
