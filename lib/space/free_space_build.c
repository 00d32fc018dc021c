// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Builds the free space tree from the extent tree. The INFO of a group comes before its ranges and contains their
 * number, so the ranges of one group are collected: in a list as long as they may become extents, otherwise as bits.
 */
#include "lib/space/free_space_edit.h"

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/free_space.h"
#include "lib/space/free_space_form.h"

struct builder {
	struct bulk *bulk;
	uint32_t sectorsize;
	struct free_space_built built;
	/* The current group. */
	const struct block_group *group;
	uint32_t high;	/* threshold */
	uint32_t count; /* of ranges */
	bool bitmaps;
	/* Its ranges. The allocations are reused for the next group. */
	struct range *list;
	size_t list_size;
	uint8_t *bits;
	uint64_t bits_size;
};

static void put_bits(struct builder *b, const struct range *r)
{
	const uint64_t first = (r->start - b->group->start) / b->sectorsize;

	bits_put(b->bits, first, first + r->length / b->sectorsize, true);
}

/* Converts the list to bits. They take at most 23 bytes per range read so far. */
static int to_bitmaps(struct builder *b, struct btrkit_error *err)
{
	const uint64_t size = b->group->length / b->sectorsize / 8 + 1;

	if (size > b->bits_size) {
		free(b->bits);
		b->bits_size = 0;
		b->bits = malloc(size);
		if (!b->bits)
			return err_nomem(err);
		b->bits_size = size;
	}
	memset(b->bits, 0, size);
	for (uint32_t i = 0; i < b->count; i++)
		put_bits(b, &b->list[i]);
	b->bitmaps = true;
	return 0;
}

static int keep_in_list(struct builder *b, const struct range *r, struct btrkit_error *err)
{
	if (b->count == b->list_size) {
		const size_t size = b->list_size ? 2 * b->list_size : 1024;
		struct range *list = realloc(b->list, size * sizeof(*list));

		if (!list)
			return err_nomem(err);
		b->list = list;
		b->list_size = size;
	}
	b->list[b->count] = *r;
	return 0;
}

static int keep(struct builder *b, const struct range *r, struct btrkit_error *err)
{
	int ret = 0;

	if (!b->bitmaps && b->count == b->high)
		ret = to_bitmaps(b, err);
	if (!ret && b->bitmaps)
		put_bits(b, r);
	else if (!ret)
		ret = keep_in_list(b, r, err);
	if (!ret)
		b->count++;
	return ret;
}

static int add_info(struct builder *b, struct btrkit_error *err)
{
	const struct disk_free_space_info info = { le32_put(b->count),
						   le32_put(b->bitmaps ? FREE_SPACE_USING_BITMAPS : 0) };

	return bulk_add(b->bulk, &KEY(b->group->start, KEY_FREE_SPACE_INFO, b->group->length), &info, sizeof(info),
			err);
}

static int add_extents(struct builder *b, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < b->count; i++)
		ret = bulk_add(b->bulk, &KEY(b->list[i].start, KEY_FREE_SPACE_EXTENT, b->list[i].length), "", 0, err);
	b->built.extents += b->count;
	return ret;
}

static int add_bitmaps(struct builder *b, struct btrkit_error *err)
{
	const uint64_t whole = 8ull * FREE_SPACE_BITMAP_BYTES, sectors = b->group->length / b->sectorsize;
	int ret = 0;

	for (uint64_t at = 0; !ret && at < sectors; at += whole) {
		const uint64_t n = sectors - at < whole ? sectors - at : whole;
		const struct btrkit_key key = KEY(b->group->start + at * b->sectorsize, KEY_FREE_SPACE_BITMAP,
						  n * b->sectorsize);

		ret = bulk_add(b->bulk, &key, b->bits + at / 8, (uint32_t)(n / 8 + !!(n % 8)), err);
		b->built.bitmaps++;
	}
	b->built.bitmap_groups++;
	return ret;
}

static int build_group(struct builder *b, struct extent_ranges *ranges, struct btrkit_error *err)
{
	struct range free;
	int ret;

	b->group = ranges->group;
	b->high = free_space_thresholds(b->group->length, b->sectorsize).high;
	b->count = 0;
	b->bitmaps = false;
	while (!(ret = extent_ranges_next(ranges, &free, err))) {
		ret = keep(b, &free, err);
		if (ret)
			return ret;
	}
	if (ret > 0)
		ret = add_info(b, err);
	if (!ret)
		ret = b->bitmaps ? add_bitmaps(b, err) : add_extents(b, err);
	b->built.groups++;
	b->built.ranges += b->count;
	return ret;
}

int free_space_build(struct extent_ranges *ranges, uint32_t sectorsize, struct bulk *b, struct free_space_built *ret,
		     struct btrkit_error *err)
{
	struct builder builder = { .bulk = b, .sectorsize = sectorsize };
	int r;

	while (!(r = extent_ranges_next_group(ranges, err))) {
		r = build_group(&builder, ranges, err);
		if (r)
			break;
	}
	free(builder.list);
	free(builder.bits);
	if (r < 0)
		return r;
	builder.built.extents_read = ranges->extents;
	*ret = builder.built;
	return 0;
}
