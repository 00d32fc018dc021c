// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/extent_ranges.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"

static bool is_extent(const struct btrkit_key *key)
{
	return key->type == KEY_EXTENT_ITEM || key->type == KEY_METADATA_ITEM;
}

/* Goes from the current item to the first extent or block group, skipping references. */
static int to_space_item(struct extent_ranges *r, int ret, struct btrkit_error *err)
{
	while (!ret) {
		const struct btrkit_key *key = &r->c.item.key;

		if (is_extent(key) || (key->type == KEY_BLOCK_GROUP_ITEM && r->groups->tree == OID_EXTENT_TREE))
			break;
		ret = cursor_next(&r->c, err);
	}
	r->ended = ret != 0;
	return ret < 0 ? ret : 0;
}

static int advance(struct extent_ranges *r, struct btrkit_error *err)
{
	return to_space_item(r, cursor_next(&r->c, err), err);
}

int extent_ranges_begin(struct extent_ranges *r, struct btrkit_fs *fs, const struct block_groups *groups,
			struct btrkit_error *err)
{
	struct tree_root root = { 0 };
	int ret;

	*r = (struct extent_ranges){ .groups = groups };
	ret = fs_find_root(fs, OID_EXTENT_TREE, &root, NULL, err);
	cursor_init(&r->c, fs, &root);
	r->c.scan = true;
	return ret ? ret : to_space_item(r, cursor_seek(&r->c, &KEY(0, 0, 0), err), err);
}

/* Check that the extent before @start, if any, ends there or earlier. Its item is the first with its address. */
static int check_before(struct extent_ranges *r, uint64_t start, struct btrkit_error *err)
{
	const struct item *item = &r->c.item;
	struct extent_item ei;
	int ret = start ? cursor_seek_back(&r->c, &KEY(start - 1, UINT8_MAX, UINT64_MAX), err) : 1;

	if (!ret)
		ret = cursor_seek(&r->c, &KEY(item->key.objectid, 0, 0), err);
	if (ret || !is_extent(&item->key))
		return ret < 0 ? ret : 0;
	ret = extent_item_decode(&r->c.fs->items, item, &ei, err);
	if (!ret && ei.num_bytes > start - ei.bytenr)
		ret = err_corrupt(err, "key.offset",
				  "extent of %" PRIu64 " bytes extends past the end of its block group, %" PRIu64,
				  ei.num_bytes, start);
	return cursor_blame(&r->c, ret, err);
}

int extent_ranges_begin_at(struct extent_ranges *r, struct btrkit_fs *fs, const struct tree_root *root,
			   const struct block_groups *groups, struct btrkit_error *err)
{
	const uint64_t start = groups->at[0].start;
	int ret;

	*r = (struct extent_ranges){ .groups = groups };
	cursor_init(&r->c, fs, root);
	ret = check_before(r, start, err);
	return ret ? ret : to_space_item(r, cursor_seek(&r->c, &KEY(start, 0, 0), err), err);
}

void extent_ranges_release(struct extent_ranges *r)
{
	cursor_release(&r->c);
}

/* The current item is not in any group. */
static int misplaced(struct extent_ranges *r, struct btrkit_error *err)
{
	const bool group = r->c.item.key.type == KEY_BLOCK_GROUP_ITEM;

	return cursor_blame(&r->c, err_corrupt(err, "key.objectid", "%s",
					       group ? "block group without a chunk" :
						       "extent outside of any block group"),
			    err);
}

int extent_ranges_next_group(struct extent_ranges *r, struct btrkit_error *err)
{
	struct range ignored;
	int ret = 0;

	while (r->group && !ret)
		ret = extent_ranges_next(r, &ignored, err);
	if (ret < 0)
		return ret;
	r->group = NULL;
	if (r->next == r->groups->n)
		return r->ended ? 1 : misplaced(r, err);
	r->group = &r->groups->at[r->next++];
	r->pos = r->group->start;
	r->used = 0;
	r->told = false;
	return !r->ended && r->c.item.key.objectid < r->pos ? misplaced(r, err) : 0;
}

/* Process the current item, an extent of the group. @free: the gap before it */
static int take_extent(struct extent_ranges *r, struct range *free, struct btrkit_error *err)
{
	const uint64_t end = r->group->start + r->group->length;
	struct extent_item ei;
	int ret = extent_item_decode(&r->c.fs->items, &r->c.item, &ei, err);

	if (ret)
		return ret;
	if (ei.bytenr < r->pos)
		return err_corrupt(err, "key.objectid", "extent overlaps the previous one, which ends at %" PRIu64,
				   r->pos);
	if (!ei.num_bytes || ei.num_bytes > end - ei.bytenr)
		return err_corrupt(err, "key.offset",
				   "extent of %" PRIu64 " bytes in a block group that ends at %" PRIu64, ei.num_bytes,
				   end);
	*free = (struct range){ r->pos, ei.bytenr - r->pos };
	r->pos = ei.bytenr + ei.num_bytes;
	r->used += ei.num_bytes;
	r->extents++;
	return 0;
}

static int end_group(struct extent_ranges *r, struct range *free, struct btrkit_error *err)
{
	const struct block_group *g = r->group;

	r->told = true;
	if (r->used != g->used)
		return block_groups_blame(r->groups, g,
					  err_corrupt(err, "used", "block group has %" PRIu64 " bytes used, its "
						      "extents have %" PRIu64, g->used, r->used),
					  err);
	*free = (struct range){ r->pos, g->start + g->length - r->pos };
	return free->length ? 0 : 1;
}

int extent_ranges_next(struct extent_ranges *r, struct range *free, struct btrkit_error *err)
{
	const struct block_group *g = r->group;

	while (!r->told) {
		const struct btrkit_key *key = &r->c.item.key;
		struct range gap = { 0 };
		int ret = 0;

		if (r->ended || key->objectid - g->start >= g->length)
			return end_group(r, free, err);
		if (key->type != KEY_BLOCK_GROUP_ITEM)
			ret = cursor_blame(&r->c, take_extent(r, &gap, err), err);
		else if (key->objectid != g->start || key->offset != g->length)
			ret = misplaced(r, err);
		if (!ret)
			ret = advance(r, err);
		if (ret)
			return ret;
		if (gap.length) {
			*free = gap;
			return 0;
		}
	}
	return 1;
}
