// SPDX-License-Identifier: LGPL-2.1-or-later
/* Determines how many bytes of shared data each directory has, counting each byte of the address space once. */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_ranges.h"

#define MEMORY_DEFAULT (128u << 20)
#define ROOM_MIN 64u

int paths_ranges_init(struct paths_ranges *r, uint64_t range_memory, size_t num_nodes, uint32_t sectorsize,
		      struct btrkit_error *err)
{
	const uint64_t memory = range_memory ? range_memory : MEMORY_DEFAULT;
	/* Sorting may need the same amount of memory again. */
	uint64_t room = memory / 2 / sizeof(*r->at);

	/* One range per directory must not take more than half of the space: see make_room(). */
	if (room < 2 * (uint64_t)num_nodes + ROOM_MIN)
		room = 2 * (uint64_t)num_nodes + ROOM_MIN;
	*r = (struct paths_ranges){ .end = UINT64_MAX, .sectorsize = sectorsize };
	if (room > SIZE_MAX / sizeof(*r->at))
		return err_nomem(err);
	r->at = malloc((size_t)room * sizeof(*r->at));
	if (!r->at)
		return err_nomem(err);
	r->room = (size_t)room;
	return 0;
}

void paths_ranges_release(struct paths_ranges *r)
{
	free(r->at);
	*r = (struct paths_ranges){ 0 };
}

static uint64_t end_of(const struct paths_ranges *r, const struct paths_range *range)
{
	return range->start + (uint64_t)range->sectors * r->sectorsize;
}

/* Restricts a range to the window. @return false: nothing is left */
static bool clip(const struct paths_ranges *r, struct paths_range *range)
{
	const uint64_t start = range->start > r->first ? range->start : r->first;
	const uint64_t end = end_of(r, range) < r->end ? end_of(r, range) : r->end;

	if (start >= end)
		return false;
	range->start = start;
	range->sectors = (uint32_t)((end - start) / r->sectorsize);
	return true;
}

static int compare_in_nodes(const void *a, const void *b)
{
	const struct paths_range *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_starts(const void *a, const void *b)
{
	const struct paths_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Merges ranges of the same directory that overlap or are adjacent. */
static void merge(struct paths_ranges *r)
{
	size_t n = 0;

	if (r->n)
		qsort(r->at, r->n, sizeof(*r->at), compare_in_nodes);
	for (size_t i = 0; i < r->n; i++) {
		struct paths_range *last = n ? &r->at[n - 1] : NULL;
		const uint64_t end = end_of(r, &r->at[i]);

		if (!last || last->node != r->at[i].node || r->at[i].start > end_of(r, last) ||
		    (end - last->start) / r->sectorsize > UINT32_MAX)
			r->at[n++] = r->at[i];
		else if (end > end_of(r, last))
			last->sectors = (uint32_t)((end - last->start) / r->sectorsize);
	}
	r->n = n;
}

static void clip_all(struct paths_ranges *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (clip(r, &r->at[i]))
			r->at[n++] = r->at[i];
	r->n = n;
}

/*
 * Shrinks the window until half of the space is free. The window is cut where the middle one of the sorted ranges
 * starts or, if too many ranges start at its beginning, to half of its length. In a window of one sector, each
 * directory has at most one range.
 */
static void make_room(struct paths_ranges *r)
{
	merge(r);
	while (r->n > r->room / 2) {
		uint64_t last = r->first, middle;

		for (size_t i = 0; i < r->n; i++)
			if (end_of(r, &r->at[i]) > last)
				last = end_of(r, &r->at[i]);
		qsort(r->at, r->n, sizeof(*r->at), compare_starts);
		middle = r->at[r->room / 2].start;
		if (middle > r->at[0].start)
			r->end = middle;
		else
			r->end = middle + (last - middle) / r->sectorsize / 2 * r->sectorsize;
		if (r->end <= middle && middle == r->at[0].start)
			r->end = middle + r->sectorsize;
		clip_all(r);
		merge(r);
	}
}

void paths_ranges_add(struct paths_ranges *r, const struct paths_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (r->n == r->room)
			make_room(r);
		r->at[r->n] = ranges[i];
		r->n += clip(r, &r->at[r->n]);
	}
}

/*
 * Adds the part of a range that is not yet counted to its directory and all parents. If a directory is already covered,
 * so are its parents.
 */
static void add(const struct paths_ranges *r, struct btrkit_usage_paths *p, const struct paths_range *range)
{
	const uint64_t end = end_of(r, range);

	for (uint32_t i = range->node; i != PATHS_NONE && p->nodes[i].covered < end; i = p->nodes[i].parent) {
		struct paths_node *n = &p->nodes[i];

		n->set_shared += end - (n->covered > range->start ? n->covered : range->start);
		n->covered = end;
	}
}

bool paths_ranges_sum(struct paths_ranges *r, struct btrkit_usage_paths *p)
{
	if (r->n)
		qsort(r->at, r->n, sizeof(*r->at), compare_starts);
	for (size_t i = 0; i < r->n; i++)
		add(r, p, &r->at[i]);
	r->n = 0;
	r->first = r->end;
	r->end = UINT64_MAX;
	return r->first != UINT64_MAX;
}
