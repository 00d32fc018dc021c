/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_RAID_MAP_H
#define BTRKIT_VOLUME_RAID_MAP_H

/*
 * Maps offsets in a chunk to offsets on its stripes, and back: arithmetic only. Offsets are relative to the start of
 * the chunk, and on a stripe to the start of its device extent.
 *
 * Chunks with striped profiles are divided into strips of CHUNK_STRIPE_LEN bytes. A full stripe consists of the strips
 * at the same offset on all stripes. With parity, the strips rotate by one stripe from each full stripe to the next.
 */

#include <stdbool.h>

#include "lib/format/raid.h"

/* Layout of a chunk. */
struct raid_shape {
	uint64_t type; /* BG_* */
	unsigned num_stripes;
};

/* Contents of a strip. */
enum raid_role { RAID_DATA, RAID_P, RAID_Q };

struct raid_place {
	unsigned stripe;
	uint64_t offset; /* on the stripe */
	uint64_t length; /* bytes from there on that are contiguous both in the chunk and on the stripe */
};

/* Whether a chunk with this profile may have this number of stripes. */
bool raid_shape_valid(const struct raid_shape *s);

/* Whether the profile in @type divides a chunk into strips. */
bool raid_striped(uint64_t type);

/* Number of stripes with distinct data: the length of a chunk divided by that of its device extents. */
unsigned raid_data_stripes(const struct raid_shape *s);

/* Number of copies of each byte, excluding what parity can rebuild. */
unsigned raid_copies(const struct raid_shape *s);

/* Location of copy @copy of the byte at @offset in the chunk. */
struct raid_place raid_map(const struct raid_shape *s, uint64_t offset, unsigned copy);

/*
 * Reverse mapping of @offset on a stripe. For data, *chunk_offset is set to its offset in the chunk; for parity, to the
 * offset of the full stripe.
 */
enum raid_role raid_unmap(const struct raid_shape *s, unsigned stripe, uint64_t offset, uint64_t *chunk_offset);

/*
 * For profiles with parity: the stripe with strip @strip of full stripe @full_stripe. Strips from raid_data_stripes()
 * on are P and Q.
 */
unsigned raid_strip_stripe(const struct raid_shape *s, uint64_t full_stripe, unsigned strip);

#endif
