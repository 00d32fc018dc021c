// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/space_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

/* Data is looked for in so many groups before it is taken in pieces. */
#define SEARCH_GROUPS 4u

static struct space_group *group_destroy(struct space_group *g)
{
	if (g) {
		free_map_destroy(g->free);
		free_map_destroy(g->closed);
		free_map_destroy(g->pinned);
		free(g->changes);
	}
	free(g);
	return NULL;
}

/* Puts a new group where it belongs. */
static int insert_group(struct space *s, const struct block_group *item, struct space_group **ret,
			struct btrkit_error *err)
{
	const size_t at = space_group_index(s, item->start);
	struct space_group *g;

	if (s->num_groups == s->groups_size) {
		const size_t size = s->groups_size + s->groups_size / 4 + 16;
		struct space_group **more = reallocarray(s->groups, size, sizeof(struct space_group *));

		if (!more)
			return err_nomem(err);
		s->groups = more;
		s->groups_size = size;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return err_nomem(err);
	g->item = *item;
	g->committed_used = item->used;
	g->row = block_group_row(s->fs, item);
	g->unfit = UINT64_MAX;
	memmove(s->groups + at + 1, s->groups + at, (s->num_groups - at) * sizeof(struct space_group *));
	s->groups[at] = g;
	s->num_groups++;
	s->used += item->used;
	*ret = g;
	return 0;
}

int space_create(struct btrkit_fs *fs, struct space **ret, struct btrkit_error *err)
{
	struct block_groups groups;
	struct space_group *g;
	struct space *s;
	int r;

	r = block_groups_load(fs, &groups, err);
	if (r)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s) {
		block_groups_release(&groups);
		return err_nomem(err);
	}
	s->fs = fs;
	s->tree = groups.tree;
	for (size_t i = 0; !r && i < groups.n; i++)
		r = insert_group(s, &groups.at[i], &g, err);
	block_groups_release(&groups);
	if (r) {
		space_destroy(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct space *space_destroy(struct space *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->num_groups; i++)
		group_destroy(s->groups[i]);
	free(s->groups);
	free(s->gone);
	free(s);
	return NULL;
}

size_t space_group_index(const struct space *s, uint64_t logical)
{
	size_t low = 0, high = s->num_groups;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const struct block_group *g = &s->groups[mid]->item;

		if (g->start + g->length <= logical)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t space_num_groups(const struct space *s)
{
	return s->num_groups;
}

struct space_group *space_group_at(struct space *s, size_t i)
{
	return s->groups[i];
}

struct space_group *space_group_of(struct space *s, uint64_t logical)
{
	const size_t i = space_group_index(s, logical);

	return i < s->num_groups && s->groups[i]->item.start <= logical ? s->groups[i] : NULL;
}

uint64_t space_bytes_used(const struct space *s)
{
	return s->used;
}

void space_touch(struct space *s, struct space_group *g)
{
	if (g->touched)
		return;
	g->touched = true;
	g->next_touched = s->touched;
	s->touched = g;
}

struct space_group *space_next_touched(const struct space *s, const struct space_group *g)
{
	return g ? g->next_touched : s->touched;
}

static void forget_group(struct space *s, struct space_group *g)
{
	const size_t at = space_group_index(s, g->item.start);

	s->num_groups--;
	memmove(s->groups + at, s->groups + at + 1, (s->num_groups - at) * sizeof(struct space_group *));
	group_destroy(g);
}

int space_add_group(struct space *s, const struct block_group *item, struct space_group **ret,
		    struct btrkit_error *err)
{
	const struct range over = { item->start, item->length };
	struct block_group_supers supers;
	struct free_map *map;
	struct space_group *g;
	int r;

	r = free_map_create(&over, s->fs->items.sectorsize, &map, err);
	if (r)
		return r;
	r = block_group_supers(s->fs, item, &supers, err);
	if (!r) {
		r = space_add_free(map, &supers, over, err);
		block_group_supers_release(&supers);
	}
	if (!r)
		r = insert_group(s, item, &g, err);
	if (r) {
		free_map_destroy(map);
		return r;
	}
	g->free = map;
	g->loaded = g->fresh = true;
	space_touch(s, g);
	r = space_sort_rows(s, g, err);
	if (r) {
		s->touched = g->next_touched;
		forget_group(s, g);
		return r;
	}
	*ret = g;
	return 0;
}

int space_begin(struct space *s, struct overlay *o, struct btrkit_error *err)
{
	if (s->overlay)
		return err_set(err, BTRKIT_BUSY, "a transaction is open");
	s->overlay = o;
	return 0;
}

/* The next of the list of what was touched; @g is no part of it any more. */
static struct space_group *untouch(struct space_group *g)
{
	struct space_group *next = g->next_touched;

	g->touched = g->changed = false;
	g->next_touched = NULL;
	g->num_changes = g->changes_size = 0;
	free(g->changes);
	g->changes = NULL;
	return next;
}

static void forget_map(struct space_group *g)
{
	g->free = free_map_destroy(g->free);
	g->closed = free_map_destroy(g->closed);
	g->loaded = false;
}

static void end(struct space *s)
{
	s->touched = NULL;
	s->overlay = NULL;
	while (s->num_gone)
		free(s->gone[--s->num_gone]);
}

void space_committed(struct space *s)
{
	for (struct space_group *g = s->touched, *next; g; g = next) {
		next = untouch(g);
		if (g->removed) {
			forget_group(s, g);
			continue;
		}
		if (g->loaded && space_free_pinned(s, g, NULL))
			forget_map(g);
		g->pinned = free_map_destroy(g->pinned);
		g->committed_used = g->item.used;
		g->unfit = UINT64_MAX;
		g->fresh = false;
	}
	end(s);
}

void space_aborted(struct space *s)
{
	for (struct space_group *g = s->touched, *next; g; g = next) {
		next = untouch(g);
		s->used += g->committed_used - g->item.used;
		g->item.used = g->committed_used;
		g->pinned = free_map_destroy(g->pinned);
		g->unfit = UINT64_MAX;
		g->removed = false;
		forget_map(g);
		if (g->fresh) {
			free(volume_take_chunk(s->fs->volume, g->item.start));
			forget_group(s, g);
		}
	}
	for (size_t i = 0; i < s->num_gone; i++) {
		if (!space_group_of(s, s->gone[i]->logical))
			continue;
		volume_put_chunk(s->fs->volume, s->gone[i]);
		s->gone[i] = NULL;
	}
	end(s);
}

static uint64_t *next_of(struct space *s, uint64_t type)
{
	return &s->next[type & BG_DATA ? 0 : type & BG_METADATA ? 1 : 2];
}

static bool serves(const struct space_group *g, uint64_t type)
{
	return !g->removed && g->item.flags & type && !(g->item.flags & ~(BG_TYPE_MASK | BG_PROFILE_MASK));
}

/* How much can be free in a group, without loading it. */
static uint64_t free_bytes(const struct space_group *g)
{
	return g->loaded ? free_map_bytes(g->free) : g->item.length - g->committed_used;
}

/* @size bytes or more from a group, first from @from on. @return 0; 1: it has none; <0 */
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
 * The largest range of @min bytes or more. There are mostly many of its length, so that after the first one the next is
 * looked for from @from on, and all of the map only when there are no more.
 */
static int find_largest(struct space *s, struct space_group *g, uint64_t from, uint64_t min, uint64_t max,
			uint64_t align, struct range *ret, struct btrkit_error *err)
{
	const uint32_t sector = s->fs->items.sectorsize;
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

static int take(struct space *s, struct space_group *g, const struct range *r, uint64_t type, struct btrkit_error *err)
{
	int ret = free_map_remove(g->free, r, err);

	if (ret)
		return ret;
	*next_of(s, type) = range_end(r);
	space_touch(s, g);
	return 0;
}

/* Whole pieces of @max bytes, from the group of the last allocation on. @return 0; 1: there is none; <0 */
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
		return err_set(err, BTRKIT_NO_SPACE, "no %" PRIu64 " bytes are free in any block group", min);
	if (r)
		return r;
	*ret = found;
	return 0;
}

/* The group that has all of a range, which is not free. */
static int used_group(struct space *s, const struct range *r, struct space_group **ret, struct btrkit_error *err)
{
	struct space_group *g = space_group_of(s, r->start);

	if (!g || g->removed || !r->length || r->length > g->item.length - (r->start - g->item.start) ||
	    (g->loaded && space_group_touches(g, r))) {
		err_corrupt(err, NULL, "an extent of %" PRIu64 " bytes is %s", r->length,
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
		ret = free_map_create(&over, s->fs->items.sectorsize, &g->pinned, err);
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
		return err_corrupt(err, "used", "block group %" PRIu64 " of %" PRIu64 " bytes with %" PRIu64
				   " used %s %" PRIu64, g->item.start, g->item.length, g->item.used,
				   freed ? "frees" : "uses", r->length);
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

/* Groups that are loaded come first, and cost nothing. */
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
