/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_RAID_H
#define BTRKIT_FORMAT_RAID_H

/* Properties of the block group profiles. */

#include <stdint.h>

#include "lib/format/ids.h"

#define CHUNK_STRIPE_SHIFT 16
#define CHUNK_STRIPE_LEN (1u << CHUNK_STRIPE_SHIFT)

struct raid_profile {
	uint64_t flag;		/* BG_*; 0 for single */
	const char *name;	/* as printed by dump-tree */
	uint8_t copies;		/* of each byte, excluding parity */
	uint8_t parity;		/* parity stripes per row */
	uint16_t min_stripes;
	uint16_t max_stripes;	/* 0: no limit */
};

/* The profile in @flags. If several bits are set (damaged chunk), the first in Linux's order. Never NULL. */
const struct raid_profile *raid_profile_find(uint64_t flags);

#endif
