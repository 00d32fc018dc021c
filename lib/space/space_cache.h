/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_CACHE_H
#define BTRKIT_SPACE_SPACE_CACHE_H

/*
 * The v1 cache of a block group: a header in the root tree refers to a file there, whose pages contain free ranges. The
 * cache is used only if it is complete. If anything about it is inconsistent it is ignored, as in Linux; that is no
 * error.
 */

#include "lib/format/items/space_cache.h"
#include "lib/space/block_group.h"

enum space_cache_state {
	SPACE_CACHE_ABSENT,	/* there is no header */
	SPACE_CACHE_IGNORED,	/* the reason is in @why */
	SPACE_CACHE_EMPTY,	/* complete, without entries: not loaded by Linux; correct if nothing is free */
	SPACE_CACHE_USABLE,
};

struct space_cache_bitmap {
	uint64_t start;
	uint64_t bytes; /* free bytes in it */
	size_t page;	/* index among the bitmaps */
};

struct space_cache_group {
	enum space_cache_state state;
	char why[256];
	bool unfinished; /* ignored because Linux left it unfinished, not because of an inconsistency */
	struct space_cache header;
	uint64_t size;	/* of the file */
	uint64_t bytes; /* allocated for it */
	/* The contents, in address order. */
	struct range *extents;
	size_t num_extents;
	struct space_cache_bitmap *bitmaps;
	size_t num_bitmaps;
	uint8_t *bits; /* one page for each bitmap */
	uint32_t page_size;
	uint64_t end; /* of the group */
	/* State of the iteration. */
	size_t extent, bitmap;
	uint64_t bit;
	struct range ahead[2]; /* next extent, and next run of bits; length 0: not known yet, or none */
	struct range joined;   /* grows until a gap follows */
};

/*
 * Reads the cache of @group. To be freed with space_cache_group_release().
 * @return 0, whatever the state is; -EIO, -ENOMEM; -EUCLEAN: the root tree cannot be read
 */
int space_cache_load(struct btrkit_fs *fs, const struct block_group *group, struct space_cache_group *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like space_cache_load(), for an earlier root tree. */
int space_cache_load_at(struct btrkit_fs *fs, const struct tree_root *root_tree, const struct block_group *group,
			struct space_cache_group *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void space_cache_group_release(struct space_cache_group *cache);

/* The next free range, not adjacent to the previous one. @return 0; 1: end */
int space_cache_next(struct space_cache_group *cache, struct range *free) BTRKIT_MUST_CHECK;

/*
 * Calls @found for each header that belongs to no block group of @groups, and counts all headers. If it does not return
 * 0, the iteration ends: 1 is success, <0 a failure.
 * @return 0; <0
 */
int space_cache_headers(struct btrkit_fs *fs, const struct block_groups *groups,
			int (*found)(void *ctx, const struct space_cache *header), void *ctx, uint64_t *count,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
