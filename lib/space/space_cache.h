/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_CACHE_H
#define BTRKIT_SPACE_SPACE_CACHE_H

/*
 * The v1 cache of a block group: a header in the root tree names a file there, whose pages hold free ranges. It is used
 * only where it is whole; if anything about it does not fit it is ignored, as Linux does, and that is no error.
 */

#include "lib/format/items/space_cache.h"
#include "lib/space/block_group.h"

enum space_cache_state {
	SPACE_CACHE_ABSENT,	/* there is no header */
	SPACE_CACHE_IGNORED,	/* see why */
	SPACE_CACHE_EMPTY,	/* whole, without entries: Linux does not load it, and is right if nothing is free */
	SPACE_CACHE_USABLE,
};

struct space_cache_bitmap {
	uint64_t start;
	uint64_t bytes; /* free in it */
	size_t page;	/* number among the bitmaps */
};

struct space_cache_group {
	enum space_cache_state state;
	char why[256];
	bool unfinished; /* ignored since Linux left it so, and not since something does not fit */
	struct space_cache header;
	uint64_t size;	/* of the file */
	uint64_t bytes; /* allocated for it */
	/* The contents, ordered by address. */
	struct range *extents;
	size_t num_extents;
	struct space_cache_bitmap *bitmaps;
	size_t num_bitmaps;
	uint8_t *bits; /* a page for each bitmap */
	uint32_t page_size;
	uint64_t end; /* of the group */
	/* Where the iteration stands. */
	size_t extent, bitmap;
	uint64_t bit;
	struct range ahead[2]; /* what comes next of extents and of bitmaps; length 0: not known yet, or none */
	struct range joined;   /* grows until there is a gap behind it */
};

/*
 * Reads the cache of @group. Free with space_cache_group_release().
 * @return 0, whatever the state is; -EIO, -ENOMEM, and -EUCLEAN when the root tree cannot be read
 */
int space_cache_load(struct btrkit_fs *fs, const struct block_group *group, struct space_cache_group *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same by a root tree of before. */
int space_cache_load_at(struct btrkit_fs *fs, const struct tree_root *root_tree, const struct block_group *group,
			struct space_cache_group *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void space_cache_group_release(struct space_cache_group *cache);

/* The next free range, none touching the one before. @return 0, 1 the end */
int space_cache_next(struct space_cache_group *cache, struct range *free) BTRKIT_MUST_CHECK;

/*
 * Calls @found for every header that no block group of @groups has, and counts all headers. What it returns, if that is
 * not 0, ends it: 1 like an end, <0 as a failure.
 * @return 0; <0
 */
int space_cache_headers(struct btrkit_fs *fs, const struct block_groups *groups,
			int (*found)(void *ctx, const struct space_cache *header), void *ctx, uint64_t *count,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
