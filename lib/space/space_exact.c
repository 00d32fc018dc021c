// SPDX-License-Identifier: LGPL-2.1-or-later
/* Allocates ranges whose addresses are given. */
#include "lib/space/space_impl.h"

#include <inttypes.h>

#include "lib/base/err.h"

/* Finds the first free range from @at on, cut off there, whether space_alloc() may take it or not. @m: where it is */
static bool next_free(const struct space_group *g, uint64_t at, struct range *ret, struct free_map **m)
{
	struct range other;
	bool found = free_map_next(g->free, at, ret);

	*m = g->free;
	if (g->closed && free_map_next(g->closed, at, &other) && (!found || other.start < ret->start)) {
		*ret = other;
		*m = g->closed;
		found = true;
	}
	return found;
}

/* Finds the part of @r from @at on that is free in one map. @return whether there is one that begins at @at */
static bool next_piece(const struct space_group *g, const struct range *r, uint64_t at, struct range *ret,
		       struct free_map **m)
{
	const uint64_t left = range_end(r) - at;

	if (!next_free(g, at, ret, m) || ret->start != at)
		return false;
	if (ret->length > left)
		ret->length = left;
	return true;
}

/* The full stripes that @r is in, as far as they are in the group. */
static struct range full_stripes_of(const struct space_group *g, const struct range *r)
{
	const uint64_t offset = r->start - g->item.start, first = offset - offset % g->full_stripe;
	const uint64_t end = (offset + r->length + g->full_stripe - 1) / g->full_stripe * g->full_stripe;

	return (struct range){ g->item.start + first, (end < g->item.length ? end : g->item.length) - first };
}

/* With parity: whether the transaction will write a full stripe of @r, of which it has allocated another part. */
static bool is_begun(const struct space_group *g, const struct range *r)
{
	struct range all, whole;

	if (!g->full_stripe)
		return false;
	all = full_stripes_of(g, r);
	return !free_map_next(g->free, all.start, &whole) || whole.start != all.start || whole.length < all.length;
}

static bool is_free(const struct space_group *g, const struct range *r)
{
	struct free_map *m;
	struct range piece;

	for (uint64_t at = r->start; at < range_end(r); at = range_end(&piece))
		if (!next_piece(g, r, at, &piece, &m) || (m == g->free && is_begun(g, &piece)))
			return false;
	return true;
}

/* Whether a range can be in a group at all. */
static int check_range(const struct space *s, const struct range *r, const struct space_group *g,
		       struct btrkit_error *err)
{
	const uint64_t sector = s->fs->geometry.sectorsize;
	int ret = 0;

	if (!r->length || r->start % sector || r->length % sector)
		ret = err_set(err, BTRKIT_INVALID, "range of %" PRIu64 " bytes has no whole sectors", r->length);
	else if (!g || g->removed || r->length > g->item.length - (r->start - g->item.start))
		ret = err_corrupt(err, NULL, "range of %" PRIu64 " bytes is in no block group", r->length);
	else if (g->read_only)
		ret = err_set(err, BTRKIT_BUSY, "block group %" PRIu64 " is read-only", g->item.start);
	if (ret)
		err_at_logical(err, r->start);
	return ret;
}

/*
 * What is left of the full stripes of the range must not be written. Others stay as they are: what the transaction has
 * begun to fill is recognized by what is left of it in g->free.
 */
static int close_rest(const struct space_group *g, const struct range *r, struct btrkit_error *err)
{
	const struct range all = full_stripes_of(g, r);
	struct range rest;
	int ret = 0;

	while (!ret && free_map_next(g->free, all.start, &rest) && rest.start < range_end(&all)) {
		if (rest.length > range_end(&all) - rest.start)
			rest.length = range_end(&all) - rest.start;
		ret = free_map_remove(g->free, &rest, err);
		if (!ret)
			ret = free_map_add(g->closed, &rest, err);
	}
	return ret;
}

/* If memory runs out, the rest of the range stays free, and what was taken is lost until the transaction ends. */
static int take_exact(struct space *s, struct space_group *g, const struct range *r, struct btrkit_error *err)
{
	struct free_map *m;
	struct range piece;
	int ret = 0;

	space_touch(s, g);
	for (uint64_t at = r->start; !ret && at < range_end(r) && next_piece(g, r, at, &piece, &m);
	     at = range_end(&piece))
		ret = free_map_remove(m, &piece, err);
	return ret || !g->full_stripe ? ret : close_rest(g, r, err);
}

int space_alloc_exact(struct space *s, const struct range *r, struct btrkit_error *err)
{
	struct space_group *g = space_group_of(s, r->start);
	int ret = check_range(s, r, g, err);

	if (!ret)
		ret = space_load(s, g, SPACE_FROM_ANY, err);
	if (!ret && !is_free(g, r)) {
		ret = err_set(err, BTRKIT_BUSY, "range of %" PRIu64 " bytes is not free", r->length);
		err_at_logical(err, r->start);
	}
	if (!ret)
		ret = space_check_committed(s, g, r, err);
	return ret ? ret : take_exact(s, g, r, err);
}
