/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_MAP_H
#define BTRKIT_SPACE_FREE_MAP_H

/*
 * A set of ranges within an address range, in units of sectors: the free space of a block group. A few ranges are
 * stored as a sorted list, many as a bitmap. So no map takes more than one bit per sector, and an empty one takes
 * nothing.
 */

#include <btrkit/error.h>

#include "lib/space/range.h"

struct free_map;

/* @over must be aligned to @sectorsize, a power of two. @return 0 or -ENOMEM */
int free_map_create(const struct range *over, uint32_t sectorsize, struct free_map **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct free_map *free_map_destroy(struct free_map *m);

/*
 * Adds a range that does not overlap the set.
 * @return 0; -EUCLEAN: it does, it is not aligned, or it is not within the map; -ENOMEM
 */
int free_map_add(struct free_map *m, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes a range that is completely in the set. @return 0; -EUCLEAN: it is not; -ENOMEM */
int free_map_remove(struct free_map *m, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds the first range from @from on with @min bytes, if it begins at a multiple of @align (a power of two). *ret
 * begins there and has at most @max bytes. @return whether there is one
 */
bool free_map_find(const struct free_map *m, uint64_t from, uint64_t min, uint64_t max, uint64_t align,
		   struct range *ret);
/* Finds the first range that ends after @from, which is cut off there. @return whether there is one */
bool free_map_next(const struct free_map *m, uint64_t from, struct range *ret);

uint64_t free_map_bytes(const struct free_map *m);
/* Whether any part of a range is in the set. */
bool free_map_touches(const struct free_map *m, const struct range *r);
/* Number of aligned pieces of @size bytes in the set, counted up to @enough. */
uint64_t free_map_pieces(const struct free_map *m, uint64_t size, uint64_t enough);
/*
 * Moves everything from @from, a map of the same address range, to @m.
 * @return 0; -EUCLEAN: the sets overlap; -ENOMEM. After a failure both are unchanged.
 */
int free_map_move(struct free_map *m, struct free_map *from, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
