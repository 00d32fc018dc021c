/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_PICK_H
#define BTRKIT_DUMP_DUMP_TREE_PICK_H

/* Which items and blocks of a tree to show. */

#include <btrkit/dump.h>

#include "lib/format/item.h"

/* A range of data, by logical address. */
struct dump_data {
	uint64_t start, end;
};

/* Selection of items. */
struct dump_pick {
	const struct btrkit_dump_range *ranges;	/* ascending, disjoint; only keys in these ranges are shown */
	size_t num_ranges;
	uint64_t types[4];	/* a bit for each type to show */
	/* If there are any: show only checksum items that cover one of these ranges. Ascending, disjoint. */
	const struct dump_data *data;
	size_t num_data;
	uint32_t sectorsize, csum_size;
};

#define DUMP_PICK_ALL_TYPES { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX }

static inline bool dump_pick_type(const struct dump_pick *p, uint8_t type)
{
	return p->types[type / 64] >> type % 64 & 1;
}

/* Whether to show the item. */
bool dump_pick_item(const struct dump_pick *p, const struct item *item);
/* Whether items with keys from @min up to (not including) @end may be shown; @end NULL: to the last key. */
bool dump_pick_overlaps(const struct dump_pick *p, const struct btrkit_key *min, const struct btrkit_key *end);

/* Selection of blocks, as inclusive ranges. */
struct dump_blocks {
	uint64_t min_bytenr, max_bytenr;
	uint64_t min_generation, max_generation;
	uint8_t min_level, max_level;
};

#define DUMP_BLOCKS_ALL ((struct dump_blocks){ 0, UINT64_MAX, 0, UINT64_MAX, 0, UINT8_MAX })

static inline bool dump_blocks_have(const struct dump_blocks *b, uint64_t bytenr, uint64_t generation, uint8_t level)
{
	return !b || (bytenr >= b->min_bytenr && bytenr <= b->max_bytenr && generation >= b->min_generation &&
		      generation <= b->max_generation && level >= b->min_level && level <= b->max_level);
}

#endif
