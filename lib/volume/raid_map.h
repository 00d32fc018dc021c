/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_RAID_MAP_H
#define BTRKIT_VOLUME_RAID_MAP_H

/*
 * Where the bytes of a chunk lie on its stripes, and back: arithmetic only. Offsets are counted from the beginning of
 * the chunk, and on a stripe from the beginning of its device extent.
 *
 * Striped profiles are cut into strips of CHUNK_STRIPE_LEN. A row is what lies at the same offset of all stripes; with
 * parity the strips of a row rotate by one stripe from row to row.
 */

#include <stdbool.h>

#include "lib/format/raid.h"

/* The shape of a chunk. */
struct raid_shape {
	uint64_t type; /* BG_* */
	unsigned num_stripes;
};

/* What a strip of a row holds. */
enum raid_role { RAID_DATA, RAID_P, RAID_Q };

struct raid_place {
	unsigned stripe;
	uint64_t offset; /* on the stripe */
	uint64_t length; /* from there on that lie one after the other, in the chunk and on the stripe */
};

/* Whether a chunk of that profile can have so many stripes. */
bool raid_shape_valid(const struct raid_shape *s);

/* Whether the profile in @type cuts a chunk into strips. */
bool raid_striped(uint64_t type);

/* Stripes that hold data of their own: a chunk has that many times the bytes of a device extent. */
unsigned raid_data_stripes(const struct raid_shape *s);

/* How many copies there are of each byte, what parity could rebuild not counted. */
unsigned raid_copies(const struct raid_shape *s);

/* Where copy @copy of the byte at @offset of the chunk lies. */
struct raid_place raid_map(const struct raid_shape *s, uint64_t offset, unsigned copy);

/*
 * The reverse: what lies at @offset of a stripe. Of data *chunk_offset gets where that is in the chunk, of parity where
 * the row begins.
 */
enum raid_role raid_unmap(const struct raid_shape *s, unsigned stripe, uint64_t offset, uint64_t *chunk_offset);

/* With parity: the stripe that has data strip @data (or, from raid_data_stripes() on, P and Q) of row @row. */
unsigned raid_strip_stripe(const struct raid_shape *s, uint64_t row, unsigned strip);

#endif
