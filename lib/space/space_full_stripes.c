// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Full stripes of groups with parity. After a crash while part of a full stripe is being written, its parity might not
 * match the older data in it, which could then not be rebuilt. So free space next to used space in a full stripe is not
 * allocated.
 */
#include "lib/space/space_impl.h"

uint64_t space_group_free(const struct space_group *g)
{
	return free_map_bytes(g->free) + (g->closed ? free_map_bytes(g->closed) : 0);
}

bool space_group_touches(const struct space_group *g, const struct range *r)
{
	return free_map_touches(g->free, r) || (g->closed && free_map_touches(g->closed, r));
}

static int add(struct free_map *m, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	return to > from ? free_map_add(m, &(struct range){ from, to - from }, err) : 0;
}

/* Divides a range into its full stripes, and what is before and after these. */
static int split(const struct space_group *g, const struct range *r, struct free_map *whole, struct free_map *rest,
		 struct btrkit_error *err)
{
	const uint64_t base = g->item.start, from = r->start - base, to = from + r->length;
	/*
	 * Relative to the start of the group: the full stripe of a partly free one may end after the highest address.
	 */
	const uint64_t first = (from + g->full_stripe - 1) / g->full_stripe * g->full_stripe,
		       last = to / g->full_stripe * g->full_stripe;
	int ret;

	if (first >= last)
		return add(rest, r->start, range_end(r), err);
	ret = add(rest, r->start, base + first, err);
	if (!ret)
		ret = add(whole, base + first, base + last, err);
	return ret ? ret : add(rest, base + last, range_end(r), err);
}

/* Adds to both maps in address order, which is cheap. */
static int split_all(const struct space_group *g, struct free_map *whole, struct free_map *rest,
		     struct btrkit_error *err)
{
	struct range r;
	int ret = 0;

	for (uint64_t from = g->item.start; !ret && free_map_next(g->free, from, &r); from = range_end(&r))
		ret = split(g, &r, whole, rest, err);
	return ret;
}

int space_sort_full_stripes(struct space *s, struct space_group *g, struct btrkit_error *err)
{
	const struct range over = { g->item.start, g->item.length };
	struct free_map *whole = NULL, *rest = NULL;
	int ret;

	if (!g->full_stripe)
		return 0;
	ret = free_map_create(&over, s->fs->geometry.sectorsize, &whole, err);
	if (!ret)
		ret = free_map_create(&over, s->fs->geometry.sectorsize, &rest, err);
	if (!ret)
		ret = split_all(g, whole, rest, err);
	if (!ret && g->closed)
		ret = free_map_move(rest, g->closed, err);
	if (ret) {
		free_map_destroy(whole);
		free_map_destroy(rest);
		return ret;
	}
	free_map_destroy(g->free);
	free_map_destroy(g->closed);
	g->free = whole;
	g->closed = rest;
	return 0;
}

int space_free_pinned(struct space *s, struct space_group *g, struct btrkit_error *err)
{
	int ret = g->pinned ? free_map_move(g->free, g->pinned, err) : 0;

	if (!ret && g->closed)
		ret = free_map_move(g->free, g->closed, err);
	return ret ? ret : space_sort_full_stripes(s, g, err);
}

int space_close_full_stripes(struct space *s, struct btrkit_error *err)
{
	int ret = 0;

	for (struct space_group *g = s->touched; !ret && g; g = g->next_touched)
		if (g->loaded)
			ret = space_sort_full_stripes(s, g, err);
	return ret;
}
