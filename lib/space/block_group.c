// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/block_group.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/raid.h"
#include "lib/tree/cursor.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

static int no_group(const struct volume_chunk *chunk, struct btrkit_error *err)
{
	return err_corrupt(err, NULL, "chunk %" PRIu64 " of %" PRIu64 " bytes has no block group", chunk->logical,
			   chunk->length);
}

static int check_group(const struct volume_chunk *chunk, const struct block_group *g, struct btrkit_error *err)
{
	if (g->length != chunk->length)
		return err_corrupt(err, "key.offset", "block group of %" PRIu64 " bytes for a chunk of %" PRIu64,
				   g->length, chunk->length);
	if (g->flags != chunk->type)
		return err_corrupt(err, "flags", "block group has flags 0x%" PRIx64 ", its chunk has 0x%" PRIx64,
				   g->flags, chunk->type);
	return 0;
}

/* Adds the current item as the group of the next chunk. */
static int take(struct block_groups *groups, const struct volume *v, const struct cursor *c, struct btrkit_error *err)
{
	const struct volume_chunk *chunk;
	struct block_group g;
	int ret;

	ret = block_group_decode(&c->fs->items, &c->item, &g, err);
	if (ret)
		return ret;
	chunk = groups->n < volume_num_chunks(v) ? volume_chunk(v, groups->n) : NULL;
	if (chunk && chunk->logical < g.start)
		return no_group(chunk, err);
	if (!chunk || chunk->logical > g.start)
		return err_corrupt(err, "key.objectid", "block group without a chunk");
	ret = check_group(chunk, &g, err);
	if (ret)
		return ret;
	groups->at[groups->n++] = g;
	return 0;
}

/* A block group tree contains nothing else. */
static int load_own_tree(struct block_groups *groups, struct cursor *c, struct btrkit_error *err)
{
	const struct volume *v = c->fs->volume;
	int ret;

	c->scan = true;
	for (ret = cursor_seek(c, &KEY(0, 0, 0), err); !ret; ret = cursor_next(c, err)) {
		if (c->item.key.type != KEY_BLOCK_GROUP_ITEM)
			continue;
		ret = cursor_blame(c, take(groups, v, c, err), err);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

/* Looks up each group in the extent tree. Groups without a chunk are found by those who read the whole tree. */
static int load_extent_tree(struct block_groups *groups, struct cursor *c, struct btrkit_error *err)
{
	const struct volume *v = c->fs->volume;

	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		const struct volume_chunk *chunk = volume_chunk(v, i);
		int ret = cursor_seek(c, &KEY(chunk->logical, KEY_BLOCK_GROUP_ITEM, 0), err);

		if (ret < 0)
			return ret;
		if (ret || c->item.key.objectid != chunk->logical || c->item.key.type != KEY_BLOCK_GROUP_ITEM)
			return no_group(chunk, err);
		ret = cursor_blame(c, take(groups, v, c, err), err);
		if (ret)
			return ret;
	}
	return 0;
}

int block_groups_load(struct btrkit_fs *fs, struct block_groups *ret, struct btrkit_error *err)
{
	const size_t chunks = volume_num_chunks(fs->volume);
	const bool own = fs->super.compat_ro & COMPAT_RO_BLOCK_GROUP_TREE;
	struct block_groups groups = { .tree = own ? OID_BLOCK_GROUP_TREE : OID_EXTENT_TREE };
	struct tree_root root;
	struct cursor c;
	int r;

	r = fs_find_root(fs, groups.tree, &root, NULL, err);
	if (r)
		return r;
	groups.at = calloc(chunks + 1, sizeof(*groups.at));
	if (!groups.at)
		return err_nomem(err);
	cursor_init(&c, fs, &root);
	r = own ? load_own_tree(&groups, &c, err) : load_extent_tree(&groups, &c, err);
	cursor_release(&c);
	if (!r && groups.n < chunks)
		r = no_group(volume_chunk(fs->volume, groups.n), err);
	if (r) {
		err_at_tree(err, groups.tree);
		block_groups_release(&groups);
		return r;
	}
	*ret = groups;
	return 0;
}

void block_groups_release(struct block_groups *groups)
{
	free(groups->at);
	*groups = (struct block_groups){ 0 };
}

const struct block_group *block_groups_find(const struct block_groups *groups, uint64_t start)
{
	size_t low = 0, high = groups->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (groups->at[mid].start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < groups->n && groups->at[low].start == start ? &groups->at[low] : NULL;
}

int block_groups_blame(const struct block_groups *groups, const struct block_group *group, int ret,
		       struct btrkit_error *err)
{
	if (ret < 0) {
		err_at_tree(err, groups->tree);
		err_at_key(err, &KEY(group->start, KEY_BLOCK_GROUP_ITEM, group->length));
	}
	return ret;
}

uint64_t block_group_full_stripe(const struct btrkit_fs *fs, const struct block_group *group)
{
	const size_t number = volume_find_chunk(fs->volume, group->start);
	struct raid_shape shape;

	if (number == volume_num_chunks(fs->volume) || !raid_profile_find(group->flags)->parity)
		return 0;
	shape = (struct raid_shape){ group->flags, volume_chunk(fs->volume, number)->num_stripes };
	return (uint64_t)CHUNK_STRIPE_LEN * raid_data_stripes(&shape);
}

/* Inserts a range, keeping @ranges sorted and merging adjacent ones. There are only a few. */
static unsigned add_range(struct range *ranges, unsigned n, struct range add)
{
	unsigned at = 0, kept = 0;

	while (at < n && ranges[at].start < add.start)
		at++;
	for (unsigned i = n; i > at; i--)
		ranges[i] = ranges[i - 1];
	ranges[at] = add;
	n++;
	for (unsigned i = 1; i < n; i++) {
		struct range *last = &ranges[kept];
		uint64_t end = range_end(&ranges[i]);

		if (ranges[i].start > range_end(last))
			ranges[++kept] = ranges[i];
		else if (end > range_end(last))
			last->length = end - last->start;
	}
	return kept + 1;
}

/* The part of a chunk reserved for a superblock at @offset of a stripe: the strip there. */
static struct range kept_for(const struct volume_chunk *c, unsigned stripe, uint64_t offset)
{
	const struct raid_shape shape = { c->type, c->num_stripes };
	uint64_t at, left, length = CHUNK_STRIPE_LEN;

	/* With parity it is the whole full stripe, which shares its parity. */
	if (raid_profile_find(c->type)->parity) {
		length *= raid_data_stripes(&shape);
		at = offset / CHUNK_STRIPE_LEN * length;
	} else {
		raid_unmap(&shape, stripe, offset, &at);
	}
	/* Nothing if the chunk ends within a full stripe, before that strip. */
	left = at < c->length ? c->length - at : 0;
	return (struct range){ c->logical + at, left < length ? left : length };
}

int block_group_supers(const struct btrkit_fs *fs, const struct block_group *group, struct block_group_supers *ret,
		       struct btrkit_error *err)
{
	const size_t number = volume_find_chunk(fs->volume, group->start);
	const struct volume_chunk *c;
	struct block_group_supers s = { 0 };

	if (number == volume_num_chunks(fs->volume))
		return err_corrupt(err, NULL, "block group %" PRIu64 " has no chunk", group->start);
	c = volume_chunk(fs->volume, number);
	s.at = calloc((size_t)SUPER_MIRRORS * c->num_stripes + 1, sizeof(*s.at));
	if (!s.at)
		return err_nomem(err);
	/* The first 64 KiB of logical addresses are excluded, too, wherever they are on a device. */
	if (group->start < super_offset(0)) {
		const uint64_t length = super_offset(0) - group->start;

		s.n = add_range(s.at, s.n,
				(struct range){ group->start, length < group->length ? length : group->length });
	}
	for (unsigned mirror = 0; mirror < SUPER_MIRRORS; mirror++) {
		for (unsigned i = 0; i < c->num_stripes; i++) {
			const uint64_t offset = super_offset(mirror) - c->stripes[i].physical;
			struct range kept = { 0 };

			if (super_offset(mirror) >= c->stripes[i].physical && offset < c->stripe_length)
				kept = kept_for(c, i, offset);
			if (kept.length)
				s.n = add_range(s.at, s.n, kept);
		}
	}
	*ret = s;
	return 0;
}

void block_group_supers_release(struct block_group_supers *s)
{
	free(s->at);
	*s = (struct block_group_supers){ 0 };
}

uint64_t block_group_supers_bytes(const struct block_group_supers *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->n; i++)
		bytes += s->at[i].length;
	return bytes;
}
