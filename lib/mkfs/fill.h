/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_FILL_H
#define BTRKIT_MKFS_FILL_H

/* What a new filesystem is filled with, when its contents have their places: the input of the streams. */

#include "lib/format/ids.h"
#include "lib/mkfs/contents.h"
#include "lib/mkfs/plan.h"

/* One of several names of an inode. */
struct mkfs_link {
	uint32_t inode, entry;
};

struct mkfs_fill {
	struct source *source;
	struct mkfs_contents *contents;
	uint8_t (*uuids)[16];	 /* of subvolumes; the top level's is the plan's */
	struct mkfs_link *links; /* of inodes with several, sorted by inode, and as their items lie */
	size_t num_links;
	bool clamp; /* times are not the host's: see mkfs_fill_times() */
	int64_t time;
};

/* Subvolumes, the top level included; 1 where nothing is filled in. */
uint32_t mkfs_fill_subvolumes(const struct mkfs_fill *f);
/* The id of a subvolume by its number in the source. */
uint64_t mkfs_fill_subvolume_id(uint32_t number);
/* The reverse. */
uint32_t mkfs_fill_subvolume_number(uint64_t id);
/* Which one is mounted when nothing else is asked for. */
uint64_t mkfs_fill_default(const struct mkfs_fill *f);

/* What the filesystem calls an inode of the source: its subvolume, and its number there. */
static inline uint64_t mkfs_fill_root(const struct source_inode *n)
{
	return mkfs_fill_subvolume_id(n->subvolume);
}

static inline uint64_t mkfs_fill_objectid(const struct source_inode *n)
{
	return OID_FIRST_FREE + n->number;
}

/* What the item of an inode has beside what the source says. */
struct mkfs_times {
	struct source_time atime, mtime, ctime, otime;
};
/* Where nothing may depend on the host, only the time of change is taken, up to a limit. */
struct mkfs_times mkfs_fill_times(const struct mkfs_fill *f, const struct source_inode *n);
uint64_t mkfs_fill_size(const struct source *s, const struct source_inode *n);
/* The first of the links of an inode that has several names, of which there are as many. */
const struct mkfs_link *mkfs_fill_links(const struct mkfs_fill *f, uint32_t inode);
/* As on disk. */
uint64_t mkfs_fill_inode_flags(const struct source *s, const struct source_inode *n);

/*
 * Prepares what streams need, when source and contents are complete. Release it, whatever is returned.
 * @return 0; -ENOMEM; <0: no random UUIDs
 */
int mkfs_fill_prepare(struct mkfs_fill *f, const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void mkfs_fill_release(struct mkfs_fill *f);

#endif
