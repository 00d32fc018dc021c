// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/space_impl.h"

#include <inttypes.h>

#include "lib/base/err.h"

/* So many groups are searched before data is allocated in pieces. */
#define SEARCH_GROUPS 4u

static uint64_t *next_of(struct space *s, uint64_t type)
{
	return &s->next[space_type_index(type)];
}

void space_inc_ro(struct space_group *g)
{
	g->read_only++;
}

void space_dec_ro(struct space_group *g)
{
	g->read_only--;
}

static bool serves(const struct space_group *g, uint64_t type)
{
	if (g->removed || g->read_only)
		return false;
	return g->item.flags & type && !(g->item.flags & ~(BG_TYPE_MASK | BG_PROFILE_MASK));
}

/* Upper bound of the free space of a group, without loading it. */
static uint64_t free_bytes(const struct space_group *g)
{
	return g->loaded ? free_map_bytes(g->free) : g->item.length - g->committed_used;
}

/* Finds @size bytes or more in a group, first from @from on. @return 0; 1: there are none; <0 */
static int find(struct space *s, struct space_group *g, uint64_t from, uint64_t size, uint64_t max, uint64_t align,
		struct range *ret, struct btrkit_error *err)
{
	int r;

	if (free_bytes(g) < size || (size >= g->unfit && align >= g->unfit_align))
		return 1;
	r = space_load(s, g, SPACE_FROM_ANY, err);
	if (r)
		return r;
	if (free_map_find(g->free, from, size, max, align, ret))
		return 0;
	if (from > g->item.start && free_map_find(g->free, g->item.start, size, max, align, ret))
		return 0;
	g->unfit = size;
	g->unfit_align = align;
	return 1;
}

/*
 * Finds the largest range of @min bytes or more. There are usually many of the same length, so after the first one, the
 * next is searched from @from on; the whole map is searched only when there are no more.
 */
static int find_largest(struct space *s, struct space_group *g, uint64_t from, uint64_t min, uint64_t max,
			uint64_t align, struct range *ret, struct btrkit_error *err)
{
	const uint32_t sector = s->fs->geometry.sectorsize;
	uint64_t largest = align >= g->unfit_align && g->unfit <= max ? g->unfit - sector : max;
	struct range best;
	int r;

	if (largest < min)
		return 1;
	r = find(s, g, from, largest, max, align, ret, err);
	if (r <= 0 || largest == min)
		return r;
	r = find(s, g, g->item.start, min, max, align, &best, err);
	if (r)
		return r;
	while (free_map_find(g->free, range_end(&best), best.length + sector, max, align, ret))
		best = *ret;
	g->unfit = best.length + sector;
	g->unfit_align = align;
	*ret = best;
	return 0;
}

int space_check_unused(struct cursor *extents, const struct range *r, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(range_end(r) - 1, KEY_METADATA_ITEM, UINT64_MAX);
	const struct item *item = &extents->item;
	uint64_t length;
	int ret;

	while (!(ret = cursor_seek_back(extents, &key, err))) {
		/* No extent crosses the beginning of a block group. */
		if (item->key.type == KEY_BLOCK_GROUP_ITEM && item->key.objectid <= r->start)
			return 0;
		if (item->key.type <= KEY_METADATA_ITEM)
			break;
		/* The items of an extent's references are after its own. */
		key = KEY(item->key.objectid, KEY_METADATA_ITEM, UINT64_MAX);
	}
	if (ret)
		return ret < 0 ? ret : 0;
	length = item->key.type == KEY_METADATA_ITEM ? extents->fs->geometry.nodesize : item->key.offset;
	if (item->key.objectid < r->start && length <= r->start - item->key.objectid)
		return 0;
	return cursor_blame(extents, err_corrupt(err, NULL, "free space at %" PRIu64 " is in use", r->start), err);
}

/*
 * Data is written as soon as it is allocated, long before the commit inserts it into the extent tree and would find
 * what is there. So check the last commit. Within this transaction nothing is allocated twice.
 */
int space_check_committed(struct space *s, const struct space_group *g, const struct range *r,
			  struct btrkit_error *err)
{
	struct tree_root root;
	int ret;

	if (g->fresh || g->by_extents)
		return 0;
	if (!s->reads_extents) {
		ret = space_committed_root(s, OID_EXTENT_TREE, &root, err);
		if (ret)
			return ret;
		cursor_init(&s->extents, s->fs, &root);
		s->reads_extents = true;
	}
	return space_check_unused(&s->extents, r, err);
}

static int take(struct space *s, struct space_group *g, const struct range *r, uint64_t type, struct btrkit_error *err)
{
	int ret = space_check_committed(s, g, r, err);

	if (!ret)
		ret = free_map_remove(g->free, r, err);
	if (ret)
		return ret;
	*next_of(s, type) = range_end(r);
	space_touch(s, g);
	return 0;
}

/*
 * Allocates @max bytes in one piece, starting with the group of the last allocation. @return 0; 1: there are none; <0
 */
static int alloc_whole(struct space *s, uint64_t type, size_t search, uint64_t max, uint64_t align, struct range *ret,
		       struct btrkit_error *err)
{
	const uint64_t from = *next_of(s, type);
	const size_t first = space_group_index(s, from ? from - 1 : 0);

	for (size_t i = 0; i < s->num_groups && search; i++) {
		struct space_group *g = s->groups[(first + i) % s->num_groups];
		int r;

		if (!serves(g, type) || free_bytes(g) < max)
			continue;
		search--;
		r = find(s, g, i ? 0 : from, max, max, align, ret, err);
		if (r <= 0)
			return r ? r : take(s, g, ret, type, err);
	}
	return 1;
}

static int alloc_largest(struct space *s, uint64_t type, uint64_t min, uint64_t max, uint64_t align, struct range *ret,
			 struct btrkit_error *err)
{
	const uint64_t from = *next_of(s, type);
	const size_t first = space_group_index(s, from ? from - 1 : 0);

	for (size_t i = 0; i < s->num_groups; i++) {
		struct space_group *g = s->groups[(first + i) % s->num_groups];
		int r = serves(g, type) ? find_largest(s, g, i ? 0 : from, min, max, align, ret, err) : 1;

		if (r <= 0)
			return r ? r : take(s, g, ret, type, err);
	}
	return 1;
}

int space_alloc(struct space *s, uint64_t type, uint64_t min, uint64_t max, uint64_t align, struct range *ret,
		struct btrkit_error *err)
{
	struct range found;
	int r;

	r = alloc_whole(s, type, min < max ? SEARCH_GROUPS : SIZE_MAX, max, align, &found, err);
	if (r == 1 && min < max)
		r = alloc_largest(s, type, min, max, align, &found, err);
	if (r == 1)
		return err_set(err, BTRKIT_NO_SPACE, "no block group has %" PRIu64 " bytes free", min);
	if (r)
		return r;
	*ret = found;
	return 0;
}

/* The group that contains all of a range, which must not be free. */
static int used_group(struct space *s, const struct range *r, struct space_group **ret, struct btrkit_error *err)
{
	struct space_group *g = space_group_of(s, r->start);

	if (!g || g->removed || !r->length || r->length > g->item.length - (r->start - g->item.start) ||
	    (g->loaded && space_group_touches(g, r))) {
		err_corrupt(err, NULL, "extent of %" PRIu64 " bytes is %s", r->length,
			    g ? "not used" : "in no block group");
		err_at_logical(err, r->start);
		return -EUCLEAN;
	}
	*ret = g;
	return 0;
}

static int pin(struct space *s, struct space_group *g, const struct range *r, struct btrkit_error *err)
{
	const struct range over = { g->item.start, g->item.length };
	int ret = 0;

	if (!g->pinned)
		ret = free_map_create(&over, s->fs->geometry.sectorsize, &g->pinned, err);
	if (!ret)
		ret = free_map_add(g->pinned, r, err);
	space_touch(s, g);
	return ret;
}

int space_unalloc(struct space *s, const struct range *r, struct btrkit_error *err)
{
	struct space_group *g;
	int ret = used_group(s, r, &g, err);

	return ret ? ret : pin(s, g, r, err);
}

static int changed(struct space *s, struct space_group *g, const struct range *r, bool freed, struct btrkit_error *err)
{
	const uint64_t room = freed ? g->item.used : g->item.length - g->item.used;
	int ret;

	if (room < r->length)
		return err_corrupt(err, "used", "block group %" PRIu64 " of %" PRIu64 " bytes, %" PRIu64
				   " used, cannot %s %" PRIu64, g->item.start, g->item.length, g->item.used,
				   freed ? "free" : "use", r->length);
	ret = space_record(g, r, freed, err);
	if (ret)
		return ret;
	g->item.used += freed ? -r->length : r->length;
	s->used += freed ? -r->length : r->length;
	g->changed = true;
	space_touch(s, g);
	return 0;
}

int space_enter(struct space *s, const struct range *r, struct btrkit_error *err)
{
	struct space_group *g;
	int ret = used_group(s, r, &g, err);

	return ret ? ret : changed(s, g, r, false, err);
}

int space_leave(struct space *s, const struct range *r, struct btrkit_error *err)
{
	struct space_group *g;
	int ret = used_group(s, r, &g, err);

	if (!ret)
		ret = pin(s, g, r, err);
	return ret ? ret : changed(s, g, r, true, err);
}

/* Called for loaded groups first, which cost nothing. */
static int count(struct space *s, uint64_t type, uint64_t size, uint64_t enough, bool loaded, uint64_t *pieces,
		 struct btrkit_error *err)
{
	for (size_t i = 0; i < s->num_groups && *pieces < enough; i++) {
		struct space_group *g = s->groups[i];
		int ret;

		if (!serves(g, type) || g->loaded != loaded || free_bytes(g) < size)
			continue;
		ret = space_load(s, g, SPACE_FROM_ANY, err);
		if (ret)
			return ret;
		*pieces += free_map_pieces(g->free, size, enough - *pieces);
	}
	return 0;
}

uint64_t space_free_bytes(const struct space *s, uint64_t type)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->num_groups; i++)
		sum += serves(s->groups[i], type) ? free_bytes(s->groups[i]) : 0;
	return sum;
}

int space_count(struct space *s, uint64_t type, uint64_t size, uint64_t enough, uint64_t *pieces,
		struct btrkit_error *err)
{
	uint64_t n = 0;
	int ret = count(s, type, size, enough, true, &n, err);

	if (!ret)
		ret = count(s, type, size, enough, false, &n, err);
	if (!ret)
		*pieces = n;
	return ret;
}

uint64_t space_pinned(const struct space *s, uint64_t type)
{
	uint64_t sum = 0;

	for (const struct space_group *g = s->touched; g; g = g->next_touched) {
		if (serves(g, type) && g->pinned)
			sum += free_map_bytes(g->pinned);
	}
	return sum;
}
