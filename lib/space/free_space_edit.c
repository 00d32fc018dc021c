// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes of a group's items are applied one after another in address order, checking the thresholds after each, as
 * Linux does when it runs delayed references. So both arrive at the same form.
 */
#include "lib/space/free_space_edit.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/free_space.h"
#include "lib/space/free_space_form.h"

static uint64_t group_end(const struct free_space_editor *e)
{
	return e->group->start + e->group->length;
}

/* The highest possible key of items that begin at @start. */
static struct btrkit_key last_at(uint64_t start)
{
	return KEY(start, UINT8_MAX, UINT64_MAX);
}

/* Takes the cursor's item if it is a range of the group. @return 0; 1: it is not; -EUCLEAN */
static int take_item(const struct free_space_editor *e, struct range *ret, struct btrkit_error *err)
{
	const struct cursor *c = &e->t->c;
	const struct btrkit_key *key = &c->item.key;
	int r = 0;

	if (key->objectid - e->group->start >= e->group->length ||
	    (key->objectid == e->group->start && key->type == KEY_FREE_SPACE_INFO))
		return 1;
	if (key->type != (e->bitmaps ? KEY_FREE_SPACE_BITMAP : KEY_FREE_SPACE_EXTENT))
		r = err_corrupt(err, "key.type", "item of type %u in a block group that uses %s",
				key->type, e->bitmaps ? "bitmaps" : "extents");
	else if (key->offset > group_end(e) - key->objectid)
		r = err_corrupt(err, "key.offset", "free space of %" PRIu64 " bytes in a group ending at %" PRIu64,
				key->offset, group_end(e));
	else
		r = item_validate(&c->fs->items, &c->item, err);
	if (r)
		return cursor_blame(c, r, err);
	*ret = (struct range){ key->objectid, key->offset };
	return 0;
}

/* The last item of the group that begins at or before @at. @return 0; 1: there is none; <0 */
static int item_before(const struct free_space_editor *e, uint64_t at, struct range *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = last_at(at);
	int r = cursor_seek_back(&e->t->c, &key, err);

	return r ? r : take_item(e, ret, err);
}

/* The tree contradicts a change. */
static int contradicts(const struct free_space_editor *e, const struct space_change *change, struct btrkit_error *err)
{
	return cursor_blame(&e->t->c,
			    err_corrupt(err, "key.objectid", "%" PRIu64 " bytes at %" PRIu64 " become %s, but %s",
					change->range.length, change->range.start, change->free ? "free" : "used",
					change->free ? "part of them is free already" : "not all of them are free"),
			    err);
}

/* The free ranges that begin at or before @at, and after it; length 0: there is none */
static int neighbours(const struct free_space_editor *e, uint64_t at, struct range *before, struct range *behind,
		      struct btrkit_error *err)
{
	int ret = item_before(e, at, before, err);

	if (ret < 0)
		return ret;
	if (ret)
		*before = (struct range){ at, 0 };
	ret = cursor_next(&e->t->c, err);
	if (!ret)
		ret = take_item(e, behind, err);
	if (ret > 0)
		*behind = (struct range){ group_end(e), 0 };
	else if (!ret && before->length && behind->start <= range_end(before))
		ret = cursor_blame(&e->t->c,
				   err_corrupt(err, "key.objectid",
					       "free space overlaps or adjoins the previous one at %" PRIu64,
					       range_end(before)),
				   err);
	return ret < 0 ? ret : 0;
}

static struct btrkit_key extent_key(uint64_t start, uint64_t end)
{
	return KEY(start, KEY_FREE_SPACE_EXTENT, end - start);
}

static int move_extent(const struct free_space_editor *e, const struct range *from, uint64_t start, uint64_t end,
		       struct btrkit_error *err)
{
	const struct btrkit_key old = extent_key(from->start, range_end(from)), key = extent_key(start, end);

	return edit_rekey(e->t, &old, &key, err);
}

static int delete_extent(const struct free_space_editor *e, const struct range *r, struct btrkit_error *err)
{
	const struct btrkit_key key = extent_key(r->start, range_end(r));

	return edit_delete(e->t, &key, err);
}

/* @delta: change of the number of ranges */
static int add_extent(const struct free_space_editor *e, const struct space_change *change, int *delta,
		      struct btrkit_error *err)
{
	const uint64_t start = change->range.start, end = range_end(&change->range);
	struct range before, behind;
	struct btrkit_key key;
	bool joins_before, joins_behind;
	int ret = neighbours(e, start, &before, &behind, err);

	if (ret)
		return ret;
	if ((before.length && range_end(&before) > start) || behind.start < end)
		return contradicts(e, change, err);
	joins_before = before.length && range_end(&before) == start;
	joins_behind = behind.length && behind.start == end;
	*delta = 1 - joins_before - joins_behind;
	if (joins_before) {
		ret = move_extent(e, &before, before.start, joins_behind ? range_end(&behind) : end, err);
		return ret || !joins_behind ? ret : delete_extent(e, &behind, err);
	}
	if (joins_behind)
		return move_extent(e, &behind, start, range_end(&behind), err);
	key = extent_key(start, end);
	return edit_insert(e->t, &key, NULL, 0, err);
}

static int remove_extent(const struct free_space_editor *e, const struct space_change *change, int *delta,
			 struct btrkit_error *err)
{
	const uint64_t start = change->range.start, end = range_end(&change->range);
	struct range from, behind;
	struct btrkit_key key;
	int ret = neighbours(e, start, &from, &behind, err);

	if (ret)
		return ret;
	if (range_end(&from) < end)
		return contradicts(e, change, err);
	*delta = (from.start < start) + (end < range_end(&from)) - 1;
	if (*delta < 0)
		return delete_extent(e, &from, err);
	if (from.start == start)
		return move_extent(e, &from, end, range_end(&from), err);
	ret = move_extent(e, &from, from.start, start, err);
	if (ret || end == range_end(&from))
		return ret;
	key = extent_key(end, range_end(&from));
	return edit_insert(e->t, &key, NULL, 0, err);
}

/* Moves the cursor to the bitmap with the bit of @at. */
static int to_bitmap(struct free_space_editor *e, uint64_t at, struct btrkit_error *err)
{
	struct range r;
	int ret;

	if (at - e->bitmap.start < e->bitmap.length)
		return 0;
	e->bitmap.length = 0;
	ret = item_before(e, at, &r, err);
	if (ret < 0)
		return ret;
	if (ret || at >= range_end(&r)) {
		err_corrupt(err, NULL, "no bitmap for %" PRIu64 " in a block group that uses bitmaps",
			    at);
		err_at_tree(err, e->t->c.root.id);
		err_at_key(err, &KEY(e->group->start, KEY_FREE_SPACE_INFO, e->group->length));
		return -EUCLEAN;
	}
	e->bitmap = r;
	return 0;
}

/* Whether a sector of the group is free. Sectors of other groups do not count. */
static int is_free(struct free_space_editor *e, uint64_t at, bool *ret, struct btrkit_error *err)
{
	uint64_t bit;
	int r;

	*ret = false;
	if (at - e->group->start >= e->group->length)
		return 0;
	r = to_bitmap(e, at, err);
	if (r)
		return r;
	bit = (at - e->bitmap.start) / e->sectorsize;
	*ret = e->t->c.item.data[bit / 8] >> bit % 8 & 1;
	return 0;
}

/* Changes bits from @at on that are in one bitmap. @return 0 and in *@at the end of these; <0 */
static int put_bits(struct free_space_editor *e, const struct space_change *change, uint64_t *at,
		    struct btrkit_error *err)
{
	uint64_t first, last, end = range_end(&change->range);
	uint8_t *bits;
	uint32_t size;
	int ret = to_bitmap(e, *at, err);

	if (ret)
		return ret;
	if (end > range_end(&e->bitmap))
		end = range_end(&e->bitmap);
	first = (*at - e->bitmap.start) / e->sectorsize;
	last = (end - e->bitmap.start) / e->sectorsize;
	if (bits_find(e->t->c.item.data, last, first, change->free) < last)
		return contradicts(e, change, err);
	ret = edit_bytes(e->t, &KEY(e->bitmap.start, KEY_FREE_SPACE_BITMAP, e->bitmap.length), &bits, &size, err);
	e->bitmap.length = 0;
	if (ret)
		return ret;
	bits_put(bits, first, last, change->free);
	*at = end;
	return 0;
}

static int change_bits(struct free_space_editor *e, const struct space_change *change, int *delta,
		       struct btrkit_error *err)
{
	uint64_t at = change->range.start;
	bool before, behind;
	int ret = is_free(e, range_end(&change->range), &behind, err);

	/* In this order, the bitmap to be changed first is usually the one looked at last. */
	if (!ret)
		ret = is_free(e, at - e->sectorsize, &before, err);
	while (!ret && at < range_end(&change->range))
		ret = put_bits(e, change, &at, err);
	*delta = ret ? 0 : change->free ? 1 - before - behind : before + behind - 1;
	return ret;
}

/* Reads the group's INFO. */
static int read_info(struct free_space_editor *e, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(e->group->start, KEY_FREE_SPACE_INFO, e->group->length);
	struct cursor *c = &e->t->c;
	struct free_space_info info;
	int ret = cursor_find(c, &key, err);

	if (ret < 0)
		return ret;
	if (ret) {
		err_corrupt(err, NULL, "block group is missing in the free space tree");
		err_at_tree(err, c->root.id);
		err_at_key(err, &key);
		return -EUCLEAN;
	}
	ret = free_space_info_decode(&c->fs->items, &c->item, &info, err);
	if (!ret && (info.flags & ~FREE_SPACE_USING_BITMAPS))
		ret = err_corrupt(err, "flags", "unknown free space flags 0x%" PRIx32, info.flags);
	if (ret)
		return cursor_blame(c, ret, err);
	e->bitmaps = info.flags & FREE_SPACE_USING_BITMAPS;
	e->count = info.extent_count;
	return 0;
}

static int count_ranges(struct free_space_editor *e, int delta, struct btrkit_error *err)
{
	if (delta < 0 && !e->count) {
		err_corrupt(err, "extent_count", "free space info has no ranges, but there is one");
		err_at_tree(err, e->t->c.root.id);
		err_at_key(err, &KEY(e->group->start, KEY_FREE_SPACE_INFO, e->group->length));
		return -EUCLEAN;
	}
	e->count += (uint32_t)delta;
	/* Even if the count is beyond a threshold, the form stays until the count changes. */
	if (!delta)
		return 0;
	if (!e->bitmaps && e->count > e->limits.high)
		return free_space_to_bitmaps(e, err);
	if (e->bitmaps && e->count < e->limits.low)
		return free_space_to_extents(e, err);
	return 0;
}

int free_space_edit(struct edit_tree *t, const struct block_group *group, const struct space_change *changes, size_t n,
		    struct free_space_stats *stats, struct btrkit_error *err)
{
	const uint32_t sectorsize = t->overlay->fs->geometry.sectorsize;
	struct free_space_editor e = { .t = t,
				       .group = group,
				       .limits = free_space_thresholds(group->length, sectorsize),
				       .sectorsize = sectorsize,
				       .stats = stats };
	uint32_t count;
	bool bitmaps;
	int ret;

	if (!n)
		return 0;
	ret = read_info(&e, err);
	count = e.count;
	bitmaps = e.bitmaps;
	for (size_t i = 0; !ret && i < n; i++) {
		int delta = 0;

		if (e.bitmaps)
			ret = change_bits(&e, &changes[i], &delta, err);
		else if (changes[i].free)
			ret = add_extent(&e, &changes[i], &delta, err);
		else
			ret = remove_extent(&e, &changes[i], &delta, err);
		if (!ret)
			ret = count_ranges(&e, delta, err);
	}
	if (!ret && (e.count != count || e.bitmaps != bitmaps))
		ret = free_space_write_info(&e, err);
	if (!ret)
		stats->ranges += n;
	return ret;
}

int free_space_add_group(struct edit_tree *t, const struct block_group *group, struct btrkit_error *err)
{
	const struct disk_free_space_info info = { le32_put(1), le32_put(0) };
	const struct item items[] = {
		{ KEY(group->start, KEY_FREE_SPACE_INFO, group->length), (const uint8_t *)&info, sizeof(info) },
		{ KEY(group->start, KEY_FREE_SPACE_EXTENT, group->length), NULL, 0 },
	};
	int ret = cursor_seek(&t->c, &KEY(group->start, 0, 0), err);

	if (ret < 0)
		return ret;
	if (!ret && t->c.item.key.objectid - group->start < group->length)
		return cursor_blame(&t->c, err_corrupt(err, "key.objectid", "free space item in a new block group"),
				    err);
	return edit_insert_many(t, items, 2, err);
}

int free_space_remove_group(struct edit_tree *t, const struct block_group *group, struct btrkit_error *err)
{
	const struct btrkit_key last = last_at(group->start + group->length - 1);

	return edit_delete_range(t, &KEY(group->start, 0, 0), &last, NULL, err);
}
