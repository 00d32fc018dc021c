/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CHUNK_H
#define BTRKIT_SPACE_CHUNK_H

/*
 * Chunks come and go: the chunk item, its device extents, the device's and the superblock's counters, the array of
 * system chunks in the superblock, the block group with its item and its free space. Sizes and places are those that
 * Linux takes.
 *
 * Making and removing edit trees, so they are not for the middle of an edit.
 */

#include "lib/space/space.h"
#include "lib/volume/volume.h"

#define CHUNK_STRIPES_MAX 512u /* about as many as Linux puts into an item of a leaf of 16 KiB */

/* What a new chunk would be: its length and its places. */
struct chunk_plan {
	uint64_t logical, length, type;
	uint64_t unused; /* bytes of all devices that no chunk has, this one not counted */
	unsigned num_stripes;
	struct {
		uint64_t devid, physical;
	} stripes[CHUNK_STRIPES_MAX];
};

/*
 * Plans one of @type (BG_DATA, BG_METADATA or BG_SYSTEM). The profile is that of the groups of that type; of several,
 * the one that keeps most.
 * @return 0; -ENOSPC: no device has room; <0
 */
int chunk_plan(struct space *s, uint64_t type, struct chunk_plan *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes it. @super is the superblock that the commit will write: its device item and its array of system chunks are
 * changed, and if it says that the free space tree is valid, the group's free space is put there. The group's own
 * blocks may be taken at once, also by the edits that this does.
 * @return 0; -ENOSPC: also when the array is full; <0
 */
int chunk_create(struct space *s, const struct chunk_plan *plan, struct disk_super *super, struct space_group **ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes an empty group and its chunk. Its place on the devices is free for others after the commit. A v1 cache of the
 * group stays: who goes on with that removes it first.
 * @return 0; -EBUSY: something of it is used, handed out or pinned, or there is no other of its type and profile; <0
 */
int chunk_remove(struct space *s, struct space_group *g, struct disk_super *super,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
