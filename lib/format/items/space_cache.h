/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_SPACE_CACHE_H
#define BTRKIT_FORMAT_ITEMS_SPACE_CACHE_H

#include "lib/format/item.h"

/* Header of the v1 space cache for a block group, in the root tree with objectid OID_FREE_SPACE and type 0. */
struct disk_space_cache {
	struct disk_key location;
	le64 generation;
	le64 num_entries;
	le64 num_bitmaps;
};
DISK_ASSERT_SIZE(disk_space_cache, 41);
DISK_ASSERT_AT(disk_space_cache, generation, 17);
DISK_ASSERT_AT(disk_space_cache, num_entries, 25);
DISK_ASSERT_AT(disk_space_cache, num_bitmaps, 33);

struct space_cache {
	uint64_t start;		/* of the block group */
	struct btrkit_key location;	/* of the file with the contents */
	uint64_t generation;
	uint64_t num_entries, num_bitmaps;
};

int space_cache_decode(const struct item *item, struct space_cache *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
