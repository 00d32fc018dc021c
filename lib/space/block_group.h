/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_BLOCK_GROUP_H
#define BTRKIT_SPACE_BLOCK_GROUP_H

/* The block groups of a filesystem, one for each chunk, and how much of each is used. */

#include "lib/format/items/block_group.h"
#include "lib/space/range.h"
#include "lib/tree/filesystem.h"

struct block_groups {
	struct block_group *at; /* in address order, one for each chunk */
	size_t n;
	uint64_t tree; /* that contains their items: OID_EXTENT_TREE or OID_BLOCK_GROUP_TREE */
};

/*
 * Reads all block groups and compares each with its chunk: none may be missing, or have another length or other flags.
 * To be freed with block_groups_release().
 * @return 0, -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int block_groups_load(struct btrkit_fs *fs, struct block_groups *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void block_groups_release(struct block_groups *groups);

/* The group that begins at @start, or NULL. */
const struct block_group *block_groups_find(const struct block_groups *groups, uint64_t start);

/* Adds the location of the group's item to an error. @return @ret */
int block_groups_blame(const struct block_groups *groups, const struct block_group *group, int ret,
		       struct btrkit_error *err);

/* Bytes of data in a full stripe, which share their parity; 0: no parity */
uint64_t block_group_full_stripe(const struct btrkit_fs *fs, const struct block_group *group);

/*
 * The parts of a group that Linux never allocates, because a copy of the superblock is at that place on a device. They
 * are in order, and not adjacent. The extent tree and the free space tree do not mention them; the v1 cache excludes
 * them. To be freed with block_group_supers_release().
 * @return 0, -EUCLEAN, -ENOMEM
 */
struct block_group_supers {
	struct range *at;
	unsigned n;
};
int block_group_supers(const struct btrkit_fs *fs, const struct block_group *group, struct block_group_supers *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void block_group_supers_release(struct block_group_supers *s);
uint64_t block_group_supers_bytes(const struct block_group_supers *s);

#endif
