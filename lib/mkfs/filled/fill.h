/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_FILL_H
#define BTRKIT_MKFS_FILL_H

/* The contents of a new filesystem after its data was placed: the input of the item streams. */

#include "lib/format/ids.h"
#include "lib/mkfs/filled/contents.h"
#include "lib/mkfs/plan.h"

/* A name of an inode with several names. */
struct mkfs_link {
	uint32_t inode, entry;
};

struct mkfs_fill {
	struct source *source;
	struct mkfs_contents *contents;
	uint8_t (*uuids)[16];	 /* by subvolume; that of the top level is in the plan */
	struct mkfs_link *links; /* all names of such inodes, in item order */
	size_t num_links;
	bool clamp; /* limit times, see mkfs_fill_times() */
	int64_t time;
};

/* Returns the number of subvolumes including the top level; 1 if @f is NULL. */
uint32_t mkfs_fill_subvolumes(const struct mkfs_fill *f);
/* Converts the number of a subvolume in the source to its id. */
uint64_t mkfs_fill_subvolume_id(uint32_t number);
/* Converts the id of a subvolume to its number in the source. */
uint32_t mkfs_fill_subvolume_number(uint64_t id);
/* Returns the id of the default subvolume. */
uint64_t mkfs_fill_default(const struct mkfs_fill *f);

/* Subvolume id and inode number of an inode in the new filesystem. */
static inline uint64_t mkfs_fill_root(const struct source_inode *n)
{
	return mkfs_fill_subvolume_id(n->subvolume);
}

static inline uint64_t mkfs_fill_objectid(const struct source_inode *n)
{
	return OID_FIRST_FREE + n->number;
}

/* Fields of the inode item that are not copied directly from the source. */
struct mkfs_times {
	struct source_time atime, mtime, ctime, otime;
};
/* With @clamp, all times are derived from mtime and a limit, so that they do not depend on the host. */
struct mkfs_times mkfs_fill_times(const struct mkfs_fill *f, const struct source_inode *n);
uint64_t mkfs_fill_size(const struct source *s, const struct source_inode *n);
/* Returns the first of n->nlink links of an inode with several names. */
const struct mkfs_link *mkfs_fill_links(const struct mkfs_fill *f, uint32_t inode);
/* Returns the inode flags in the on-disk format. */
uint64_t mkfs_fill_inode_flags(const struct source *s, const struct source_inode *n);

/*
 * Prepares the data that the streams need, when source and contents are complete. Call mkfs_fill_release() even after a
 * failure.
 * @return 0; -ENOMEM; <0: random UUIDs are not available
 */
int mkfs_fill_prepare(struct mkfs_fill *f, const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_fill_release(struct mkfs_fill *f);

#endif
