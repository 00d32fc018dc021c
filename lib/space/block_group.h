/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_BLOCK_GROUP_H
#define BTRKIT_SPACE_BLOCK_GROUP_H

/* The block groups of a filesystem: one for each chunk, with what is used of it. */

#include "lib/format/items/block_group.h"
#include "lib/space/range.h"
#include "lib/tree/filesystem.h"

struct block_groups {
	struct block_group *at; /* in the order of addresses, one for each chunk */
	size_t n;
	uint64_t tree; /* that has their items: OID_EXTENT_TREE or OID_BLOCK_GROUP_TREE */
};

/*
 * Reads all block groups and holds each against its chunk: none may lack, be of another length or have other flags.
 * Free with block_groups_release().
 * @return 0, -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 */
int block_groups_load(struct btrkit_fs *fs, struct block_groups *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void block_groups_release(struct block_groups *groups);

/* The group that begins at @start, or NULL. */
const struct block_group *block_groups_find(const struct block_groups *groups, uint64_t start);

/* Adds the place of the group's item to a failure. @return @ret */
int block_groups_blame(const struct block_groups *groups, const struct block_group *group, int ret,
		       struct btrkit_error *err);

/* How many bytes of a group are in a row that has parity in common; 0: it has no parity. */
uint64_t block_group_row(const struct btrkit_fs *fs, const struct block_group *group);

/*
 * The parts of a group that Linux never allocates, since a copy of the superblock lies there on the device: in order,
 * none touching the next. The extent tree and the free space tree know nothing of them; the v1 cache leaves them out.
 * Free with block_group_supers_release().
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
