/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_FREE_MAP_H
#define BTRKIT_SPACE_FREE_MAP_H

/*
 * A set of ranges inside one stretch of addresses, in units of a sector: what is free of a block group. Few ranges are
 * kept as a sorted list, many as a bitmap, so that no map takes more than a bit a sector, nor an empty one anything.
 */

#include <btrkit/error.h>

#include "lib/space/range.h"

struct free_map;

/* @over is aligned to @sectorsize, which is a power of two. @return 0 or -ENOMEM */
int free_map_create(const struct range *over, uint32_t sectorsize, struct free_map **ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct free_map *free_map_destroy(struct free_map *m);

/*
 * Adds a range of which no part is there.
 * @return 0; -EUCLEAN: part of it is there, or it is not one of whole sectors inside the map; -ENOMEM
 */
int free_map_add(struct free_map *m, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Takes out a range that is there as a whole. @return 0; -EUCLEAN: it is not; -ENOMEM */
int free_map_remove(struct free_map *m, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * The first range from @from on that has @min bytes when it begins at a multiple of @align (a power of two); *ret
 * begins there and has at most @max bytes. @return whether there is one
 */
bool free_map_find(const struct free_map *m, uint64_t from, uint64_t min, uint64_t max, uint64_t align,
		   struct range *ret);
/* The first range that ends behind @from, cut off there. @return whether there is one */
bool free_map_next(const struct free_map *m, uint64_t from, struct range *ret);

uint64_t free_map_bytes(const struct free_map *m);
/* Whether any part of a range is there. */
bool free_map_touches(const struct free_map *m, const struct range *r);
/* How many pieces of @size bytes that begin at multiples of it can be taken; stops counting at @enough. */
uint64_t free_map_pieces(const struct free_map *m, uint64_t size, uint64_t enough);
/*
 * Adds everything that is in @from, a map over the same; @from is empty then.
 * @return 0; -EUCLEAN: part of it is there; -ENOMEM. Then both are as they were.
 */
int free_map_move(struct free_map *m, struct free_map *from, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
