// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares what a free space cache says with the gaps between extents. */
#include "lib/check/space/space_gaps.h"

#include <inttypes.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"

struct block_group space_group(const struct check_group *g)
{
	return (struct block_group){ .start = g->start,
				     .length = g->length,
				     .used = g->said_used,
				     .chunk_objectid = OID_FIRST_CHUNK_TREE,
				     .flags = g->flags };
}

static void take_first(struct range *used, uint64_t start, uint64_t length)
{
	if (start < used->start)
		*used = (struct range){ start, length };
}

/* Returns the next range that is not free; an empty one at the end of the group. */
static struct range next_used(struct gaps *g)
{
	const struct check_tables *t = &g->s->c->tables;
	const struct item_ctx *items = &g->s->c->items;
	struct range used = { range_end(&g->group), 0 };
	size_t *extent = &g->s->extent, *block = &g->s->block;

	for (unsigned i = 0; i < g->supers.n; i++)
		if (g->supers.at[i].start >= g->pos)
			take_first(&used, g->supers.at[i].start, g->supers.at[i].length);
	while (*extent < t->extents.n && check_extent_start(check_extent_at(t, *extent)) < g->pos)
		++*extent;
	if (*extent < t->extents.n) {
		const struct check_extent *e = check_extent_at(t, *extent);

		take_first(&used, check_extent_start(e), (uint64_t)e->sectors * items->sectorsize);
	}
	/* Skip blocks that the extent tree lacks; they are reported elsewhere. */
	while (*block < t->blocks.n && (check_block_bytenr(check_block_at(t, *block)) < g->pos ||
					check_block_at(t, *block)->tagged & CHECK_BLOCK_STRAY))
		++*block;
	if (*block < t->blocks.n)
		take_first(&used, check_block_bytenr(check_block_at(t, *block)), items->nodesize);
	return used;
}

/* @return 0; 1: end of the group */
static int next_gap(struct gaps *g, struct range *ret)
{
	const uint64_t end = range_end(&g->group);

	while (g->pos < end) {
		const uint64_t from = g->pos;
		const struct range used = next_used(g);

		g->pos = used.start < end && used.length ? range_end(&used) : end;
		if (used.start > from) {
			*ret = (struct range){ from, used.start - from };
			return 0;
		}
	}
	return 1;
}

static void report_gap(const struct gaps *g, enum check_code code, uint64_t tree, const struct range *truth,
		       const struct range *said)
{
	const struct btrkit_key key = KEY(g->group.start, KEY_BLOCK_GROUP_ITEM, g->group.length);
	struct check_location at = { tree, truth->length ? truth->start : said->start, &key, NULL };

	if (!said->length)
		check_report_at(g->s->c, code, &at,
				"%" PRIu64 " bytes at %" PRIu64 " are free, but not recorded as free", truth->length,
				truth->start);
	else if (!truth->length)
		check_report_at(g->s->c, code, &at,
				"%" PRIu64 " bytes at %" PRIu64 " are recorded as free, but are not free", said->length,
				said->start);
	else
		check_report_at(g->s->c, code, &at,
				"free range is recorded as %" PRIu64 " bytes at %" PRIu64 ", should be %" PRIu64
				" at %" PRIu64,
				said->length, said->start, truth->length, truth->start);
}

int space_compare(struct gaps *g, int (*next)(void *cache, struct range *ret, struct btrkit_error *err), void *cache,
		  enum check_code code, uint64_t tree, struct btrkit_error *err)
{
	struct range truth, said;
	int ret, end;

	do {
		truth = said = (struct range){ 0 };
		end = next_gap(g, &truth);
		ret = next(cache, &said, err);
		if (ret < 0)
			return ret;
		if (ret)
			said.length = 0;
		if (end != ret || (!end && (truth.start != said.start || truth.length != said.length))) {
			report_gap(g, code, tree, &truth, &said);
			return 0;
		}
	} while (!end);
	return 0;
}
