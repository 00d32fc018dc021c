/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CHUNK_H
#define BTRKIT_SPACE_CHUNK_H

/*
 * Creates and removes chunks: the chunk item, its device extents, the counters of devices and superblock, the array of
 * system chunks in the superblock, and the block group with its item and free space. Sizes and locations are chosen as
 * in Linux.
 *
 * Creating and removing chunks edits trees, so it must not be done during an edit. What fails before the first edit,
 * also because of a damaged item, has changed nothing. A later failure is recorded in the transaction.
 */

#include "lib/space/space.h"
#include "lib/volume/volume.h"

#define CHUNK_STRIPES_MAX 512u /* about as many as Linux puts into an item in a leaf of 16 KiB */

/* Size and location of a new chunk. */
struct chunk_plan {
	uint64_t logical, length, type;
	uint64_t unused; /* unallocated bytes of all devices, before this chunk */
	unsigned num_stripes;
	struct {
		uint64_t devid, physical;
	} stripes[CHUNK_STRIPES_MAX];
};

/* In chunk_place.c: */
/*
 * Plans a chunk of @type (BG_DATA, BG_METADATA or BG_SYSTEM). It gets the profile that was set by chunk_set_profile(),
 * or else that of existing groups of that type; if there are several, the one with most redundancy.
 * @return 0; -ENOSPC: no device has space; <0
 */
int chunk_plan(struct space *s, uint64_t type, struct chunk_plan *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In chunk.c: */

/* In chunk_place.c: */
/*
 * Plans a chunk with a given profile: a bit of BG_PROFILE_MASK, or 0 for single. Otherwise as chunk_plan().
 * @return also -EINVAL: this is no profile, or it needs more devices than there are
 */
int chunk_plan_profile(struct space *s, uint64_t type, uint64_t profile, struct chunk_plan *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * From now on chunk_plan() chooses @profile for chunks of @type, as Linux does during a balance with "convert", also
 * for chunks that a reservation needs. With mixed block groups, data and metadata share one. CHUNK_ANY_PROFILE: as
 * before. This is a state of the handle, which neither a commit nor an abort changes.
 * @return 0; -EINVAL: as chunk_plan_profile()
 */
#define CHUNK_ANY_PROFILE UINT64_MAX
int chunk_set_profile(struct space *s, uint64_t type, uint64_t profile, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In chunk.c: */
/*
 * Creates it. @super is the superblock that the commit will write: its device item, its array of system chunks and the
 * feature flags of the profile are updated. If its flags say that the free space tree is valid, the free space of the
 * group is entered there. Blocks of the new group may be used immediately, also by the edits that this function makes.
 * @return 0; -ENOSPC: including a full array; <0
 */
int chunk_create(struct space *s, const struct chunk_plan *plan, struct disk_super *super, struct space_group **ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes an empty group and its chunk, and the feature flag of its profile if no other group needs that. Its space on
 * the devices can be reused after the commit. The caller must have removed the v1 cache of the group, if any. Unless it
 * converts, it must also leave a group of each profile, from which Linux takes that of new ones.
 * @return 0; -EBUSY: some of it is used, allocated or pinned, or it is the only one of its type; <0
 */
int chunk_remove(struct space *s, struct space_group *g, struct disk_super *super,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
