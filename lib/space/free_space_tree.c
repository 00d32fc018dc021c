// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/free_space_tree.h"

#include <inttypes.h>

#include "lib/base/err.h"

int free_space_tree_begin(struct free_space_tree *t, struct btrkit_fs *fs, free_space_leftover_fn leftover, void *ctx,
			  struct btrkit_error *err)
{
	struct tree_root root = { 0 };
	int ret;

	*t = (struct free_space_tree){ .leftover = leftover, .ctx = ctx, .told = true };
	ret = fs_find_root(fs, OID_FREE_SPACE_TREE, &root, NULL, err);
	cursor_init(&t->c, fs, &root);
	t->c.scan = true;
	return ret;
}

void free_space_tree_begin_at(struct free_space_tree *t, struct btrkit_fs *fs, const struct tree_root *root,
			      uint64_t start)
{
	*t = (struct free_space_tree){ .group = { start, 0 }, .told = true };
	cursor_init(&t->c, fs, root);
}

void free_space_tree_release(struct free_space_tree *t)
{
	cursor_release(&t->c);
}

/* Called after each step. Since steps are in key order, each block of the tree is counted once. */
static int stepped(struct free_space_tree *t, int ret)
{
	t->ended = ret != 0;
	t->bit = 0;
	for (unsigned level = 0; level < LEVELS_MAX && t->c.nodes[level]; level++) {
		if (t->seen[level] == t->c.nodes[level]->bytenr)
			break;
		t->seen[level] = t->c.nodes[level]->bytenr;
		t->blocks++;
	}
	return ret < 0 ? ret : 0;
}

static int step(struct free_space_tree *t, struct btrkit_error *err)
{
	return stepped(t, cursor_next(&t->c, err));
}

static int tell_leftover(struct free_space_tree *t, struct range *last)
{
	const struct btrkit_key *key = &t->c.item.key;

	if (key->type != KEY_FREE_SPACE_INFO) {
		t->outside += key->objectid - last->start >= last->length;
		return 0;
	}
	*last = (struct range){ key->objectid, key->offset };
	t->leftovers++;
	return t->leftover ? t->leftover(t->ctx, last) : 0;
}

/* Goes to the first item that is not before @start. */
static int pass_leftovers(struct free_space_tree *t, uint64_t start, struct btrkit_error *err)
{
	struct range last = { 0 };
	int ret = 0;

	while (!ret && !t->ended && t->c.item.key.objectid < start) {
		ret = tell_leftover(t, &last);
		if (!ret)
			ret = step(t, err);
	}
	return ret;
}

/* Goes to the end of the previous group, or if its items could not all be read, to the next item after it. */
static int resume(struct free_space_tree *t, struct btrkit_error *err)
{
	const uint64_t end = range_end(&t->group);

	if (t->begun && t->told)
		return 0;
	t->begun = true;
	t->told = true;
	return stepped(t, cursor_seek(&t->c, &KEY(end, 0, 0), err));
}

int free_space_tree_enter(struct free_space_tree *t, const struct block_group *group, struct btrkit_error *err)
{
	const struct btrkit_key *key = &t->c.item.key;
	int ret = resume(t, err);

	if (!ret)
		ret = pass_leftovers(t, group->start, err);
	t->group = (struct range){ group->start, group->length };
	t->told = false;
	if (ret)
		return ret;
	if (t->ended || key->objectid != group->start || key->type != KEY_FREE_SPACE_INFO)
		return 1;
	ret = free_space_info_decode(&t->c.fs->items, &t->c.item, &t->info, err);
	if (!ret && t->info.length != group->length)
		ret = err_corrupt(err, "key.offset", "free space of %" PRIu64 " bytes for a block group of %" PRIu64,
				  t->info.length, group->length);
	if (!ret && (t->info.flags & ~FREE_SPACE_USING_BITMAPS))
		ret = err_corrupt(err, "flags", "unknown free space flags 0x%" PRIx32, t->info.flags);
	cursor_blame(&t->c, ret, err);
	t->pos = group->start;
	t->in_run = false;
	t->ranges = 0;
	return ret ? ret : step(t, err);
}

/* Check that the current item is the next one of the group, and in the group's form. */
static int check_item(const struct free_space_tree *t, struct btrkit_error *err)
{
	const bool bitmaps = t->info.flags & FREE_SPACE_USING_BITMAPS;
	const struct btrkit_key *key = &t->c.item.key;

	if (key->type != (bitmaps ? KEY_FREE_SPACE_BITMAP : KEY_FREE_SPACE_EXTENT))
		return err_corrupt(err, "key.type", "item of type %u in a block group that uses %s",
				   key->type, bitmaps ? "bitmaps" : "extents");
	if (key->offset > range_end(&t->group) - key->objectid)
		return err_corrupt(err, "key.offset", "free space of %" PRIu64 " bytes in a group ending at %" PRIu64,
				   key->offset, range_end(&t->group));
	if (bitmaps && key->objectid != t->pos)
		return err_corrupt(err, "key.objectid", "bitmap found where one at %" PRIu64 " is expected", t->pos);
	/* Linux merges adjacent extents. */
	if (!bitmaps && t->ranges && key->objectid <= t->pos)
		return err_corrupt(err, "key.objectid", "free space overlaps or adjoins the previous one at %" PRIu64,
				   t->pos);
	return item_validate(&t->c.fs->items, &t->c.item, err);
}

static int end_group(struct free_space_tree *t, struct range *free, struct btrkit_error *err)
{
	const bool bitmaps = t->info.flags & FREE_SPACE_USING_BITMAPS;
	int ret = 0;

	if (bitmaps && t->pos != range_end(&t->group))
		ret = err_corrupt(err, NULL, "bitmaps end at %" PRIu64 ", before the end of their block group", t->pos);
	if (!ret && t->in_run) {
		t->in_run = false;
		t->ranges++;
		*free = (struct range){ t->run, t->pos - t->run };
		return 0;
	}
	if (!ret && t->ranges != t->info.extent_count)
		ret = err_corrupt(err, "extent_count", "free space has %" PRIu64 " ranges, its info says %" PRIu32,
				  t->ranges, t->info.extent_count);
	if (ret) {
		err_at_tree(err, t->c.root.id);
		err_at_key(err, &KEY(t->group.start, KEY_FREE_SPACE_INFO, t->group.length));
		return ret;
	}
	t->told = true;
	return 1;
}

static int next_extent(struct free_space_tree *t, struct range *free, struct btrkit_error *err)
{
	*free = (struct range){ t->c.item.key.objectid, t->c.item.key.offset };
	t->pos = range_end(free);
	t->ranges++;
	return step(t, err);
}

/* Continues in the current bitmap. @return 0; 1: no run ends in the rest of it, and the next item is current; <0 */
static int next_in_bitmap(struct free_space_tree *t, struct range *free, struct btrkit_error *err)
{
	const struct btrkit_key *key = &t->c.item.key;
	const uint32_t unit = t->c.fs->geometry.sectorsize;
	const uint64_t bits = key->offset / unit;
	int ret;

	while (t->bit < bits) {
		t->bit = bits_find(t->c.item.data, bits, t->bit, !t->in_run);
		if (t->bit == bits)
			break;
		t->in_run = !t->in_run;
		if (t->in_run) {
			t->run = key->objectid + t->bit * unit;
			continue;
		}
		*free = (struct range){ t->run, key->objectid + t->bit * unit - t->run };
		t->ranges++;
		return 0;
	}
	t->pos = key->objectid + key->offset;
	ret = step(t, err);
	return ret ? ret : 1;
}

int free_space_tree_next(struct free_space_tree *t, struct range *free, struct btrkit_error *err)
{
	int ret = 1;

	while (!t->told && ret > 0) {
		if (t->ended || t->c.item.key.objectid >= range_end(&t->group))
			return end_group(t, free, err);
		if (!t->bit) {
			ret = cursor_blame(&t->c, check_item(t, err), err);
			if (ret)
				return ret;
		}
		ret = t->info.flags & FREE_SPACE_USING_BITMAPS ? next_in_bitmap(t, free, err) :
								 next_extent(t, free, err);
	}
	return ret;
}

int free_space_tree_end(struct free_space_tree *t, struct btrkit_error *err)
{
	int ret = resume(t, err);

	return ret ? ret : pass_leftovers(t, UINT64_MAX, err);
}
