// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the free space caches with the extent tree. */
#include <btrkit/space.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/space/extent_ranges.h"
#include "lib/space/free_space_tree.h"
#include "lib/space/space_cache.h"

#define WHY_SIZE 512

/* Compares the free ranges of the extent tree with those of a cache, and records the first difference. */
struct comparison {
	int (*next)(void *cache, struct range *free, struct btrkit_error *err); /* NULL: nothing to compare */
	void *cache;
	struct btrkit_space_copy *copy;
	char why[WHY_SIZE];
};

struct status {
	struct btrkit_fs *fs;
	const struct btrkit_space_sink *sink;
	struct btrkit_space_summary sum;
	struct block_groups groups;
	struct extent_ranges extents;
	struct free_space_tree tree; /* v2 */
	bool have_tree;
	struct comparison v1, v2;
};

static int next_v1(void *cache, struct range *free, struct btrkit_error *err)
{
	(void)err;
	return space_cache_next(cache, free);
}

static int next_v2(void *cache, struct range *free, struct btrkit_error *err)
{
	return free_space_tree_next(cache, free, err);
}

/* Damage of the cache itself is a verdict; other failures are returned to the caller. */
static int cache_failed(struct comparison *c, int ret, const struct btrkit_error *e, struct btrkit_error *err)
{
	if (ret != -EUCLEAN && ret != -ENXIO) {
		if (err)
			*err = *e;
		return ret;
	}
	btrkit_error_format(e, c->why, sizeof(c->why));
	c->copy->verdict = BTRKIT_SPACE_DAMAGED;
	c->copy->why = c->why;
	c->next = NULL;
	return 1;
}

/* Read and count the next range of the cache. @return 0; 1: no more ranges; <0 */
static int next_of_cache(struct comparison *c, struct range *range, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	int ret;

	if (!c->next)
		return 1;
	ret = c->next(c->cache, range, &e);
	if (ret < 0)
		return cache_failed(c, ret, &e, err);
	if (!ret) {
		c->copy->free_bytes += range->length;
		c->copy->free_ranges++;
	}
	return ret;
}

static void differs(struct comparison *c, uint64_t at, bool free)
{
	if (c->copy->verdict != BTRKIT_SPACE_EQUAL)
		return;
	c->copy->verdict = BTRKIT_SPACE_DIFFERENT;
	c->copy->at = at;
	c->copy->free = free;
}

/* Compares the next free range of the extent tree. All free ranges before it have been compared. */
static int compare(struct comparison *c, const struct range *truth, struct btrkit_error *err)
{
	struct range said;
	int ret = next_of_cache(c, &said, err);

	if (ret < 0 || !c->next)
		return ret < 0 ? ret : 0;
	if (ret)
		differs(c, truth->start, false);
	else if (said.start != truth->start)
		differs(c, said.start < truth->start ? said.start : truth->start, said.start < truth->start);
	else if (said.length != truth->length)
		differs(c, said.length < truth->length ? range_end(&said) : range_end(truth),
			said.length > truth->length);
	return 0;
}

/* End of the group: all remaining ranges of the cache are differences. */
static int compare_end(struct comparison *c, struct btrkit_error *err)
{
	struct range said;
	int ret;

	while (!(ret = next_of_cache(c, &said, err)))
		differs(c, said.start, true);
	return ret < 0 ? ret : 0;
}

/* Like compare() for v1, which excludes the locations of superblocks. */
static int compare_but_supers(struct comparison *c, struct range truth, const struct range *supers, unsigned n,
			      struct btrkit_error *err)
{
	for (unsigned i = 0; i < n; i++) {
		const uint64_t end = range_end(&truth), to = range_end(&supers[i]);
		struct range before = { truth.start, 0 };
		int ret = 0;

		if (to <= truth.start || supers[i].start >= end)
			continue;
		if (supers[i].start > truth.start) {
			before.length = supers[i].start - truth.start;
			ret = compare(c, &before, err);
		}
		if (ret || to >= end)
			return ret;
		truth = (struct range){ to, end - to };
	}
	return compare(c, &truth, err);
}

static int begin_v1(struct status *s, const struct block_group *g, struct space_cache_group *cache,
		    struct btrkit_space_group *told, struct btrkit_error *err)
{
	struct btrkit_space_copy *copy = &told->v1;
	int ret = space_cache_load(s->fs, g, cache, err);

	s->v1 = (struct comparison){ .copy = copy };
	if (ret || cache->state == SPACE_CACHE_ABSENT)
		return ret;
	copy->inode = cache->header.location.objectid;
	copy->generation = cache->header.generation;
	copy->num_entries = cache->header.num_entries;
	copy->num_bitmaps = cache->header.num_bitmaps;
	copy->file_bytes = cache->bytes;
	s->sum.v1.bytes += cache->bytes;
	if (cache->state != SPACE_CACHE_USABLE) {
		copy->verdict = BTRKIT_SPACE_IGNORED;
		copy->why = cache->state == SPACE_CACHE_EMPTY ? "it has no entries" : cache->why;
		return 0;
	}
	copy->verdict = BTRKIT_SPACE_EQUAL;
	s->v1.next = next_v1;
	s->v1.cache = cache;
	return 0;
}

static int begin_v2(struct status *s, const struct block_group *g, struct btrkit_space_group *told,
		    struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	int ret;

	s->v2 = (struct comparison){ .copy = &told->v2 };
	if (!s->have_tree)
		return 0;
	ret = free_space_tree_enter(&s->tree, g, &e);
	if (ret < 0) {
		ret = cache_failed(&s->v2, ret, &e, err);
		return ret < 0 ? ret : 0;
	}
	if (ret)
		return 0;
	told->v2.verdict = BTRKIT_SPACE_EQUAL;
	told->v2.bitmaps = s->tree.info.flags & FREE_SPACE_USING_BITMAPS;
	s->v2.next = next_v2;
	s->v2.cache = &s->tree;
	return 0;
}

/* Compares the free ranges of the group with both caches. */
static int compare_group(struct status *s, const struct block_group *g, struct btrkit_space_group *told,
			 struct btrkit_error *err)
{
	struct block_group_supers supers;
	struct range free;
	int ret;

	ret = block_group_supers(s->fs, g, &supers, err);
	if (ret)
		return ret;
	told->super_bytes = block_group_supers_bytes(&supers);
	while (!(ret = extent_ranges_next(&s->extents, &free, err))) {
		told->free_bytes += free.length;
		told->free_ranges++;
		ret = compare(&s->v2, &free, err);
		if (!ret)
			ret = compare_but_supers(&s->v1, free, supers.at, supers.n, err);
		if (ret)
			break;
	}
	block_group_supers_release(&supers);
	if (ret < 0)
		return ret;
	ret = compare_end(&s->v2, err);
	return ret ? ret : compare_end(&s->v1, err);
}

/* Counts the results of a group, and whether Linux would be misled. */
static void count_group(struct status *s, const struct btrkit_space_group *told)
{
	const enum btrkit_space_verdict v1 = told->v1.verdict, v2 = told->v2.verdict;
	struct btrkit_space_summary *sum = &s->sum;
	bool wrong = sum->in_use == BTRKIT_SPACE_CACHE_V1 && v1 == BTRKIT_SPACE_DIFFERENT;

	wrong |= sum->in_use == BTRKIT_SPACE_CACHE_V2 && v2 != BTRKIT_SPACE_EQUAL;
	sum->groups++;
	sum->length += told->length;
	sum->used += told->used;
	sum->v1.groups[v1]++;
	sum->v2.groups[v2]++;
	if (!wrong || !sum->valid)
		return;
	if (!sum->contradictions++)
		sum->first_contradiction = told->logical;
}

static int tell_group(struct status *s, const struct block_group *g, struct btrkit_error *err)
{
	struct btrkit_space_group told = {
		.logical = g->start, .length = g->length, .flags = g->flags, .used = g->used
	};
	struct space_cache_group cache = { 0 };
	int ret;

	ret = begin_v1(s, g, &cache, &told, err);
	if (!ret)
		ret = begin_v2(s, g, &told, err);
	if (!ret)
		ret = compare_group(s, g, &told, err);
	if (cache.state == SPACE_CACHE_EMPTY && told.free_bytes <= told.super_bytes) {
		told.v1.verdict = BTRKIT_SPACE_EQUAL;
		told.v1.why = NULL;
	}
	if (!ret) {
		count_group(s, &told);
		ret = s->sink && s->sink->group ? s->sink->group(s->sink->ctx, &told) : 0;
	}
	space_cache_group_release(&cache);
	return ret;
}

static int tell_leftover(const struct status *s, const struct btrkit_space_leftover *leftover)
{
	return s->sink && s->sink->leftover ? s->sink->leftover(s->sink->ctx, leftover) : 0;
}

static int leftover_v2(void *ctx, const struct range *range)
{
	struct status *s = ctx;
	const struct btrkit_space_leftover leftover = { BTRKIT_SPACE_CACHE_V2, range->start, range->length, 0 };

	s->sum.v2.leftovers++;
	return tell_leftover(s, &leftover);
}

static int leftover_v1(void *ctx, const struct space_cache *header)
{
	struct status *s = ctx;
	const struct btrkit_space_leftover leftover = { BTRKIT_SPACE_CACHE_V1, header->start, 0,
							header->location.objectid };

	s->sum.v1.leftovers++;
	return tell_leftover(s, &leftover);
}

/* Decides like Linux does when mounting. */
static void check_super(struct status *s)
{
	const struct super *super = &s->fs->super;
	struct btrkit_space_summary *sum = &s->sum;

	sum->generation = super->generation;
	sum->cache_generation = super->cache_generation;
	sum->valid = true;
	if (super->compat_ro & COMPAT_RO_FREE_SPACE_TREE) {
		sum->in_use = BTRKIT_SPACE_CACHE_V2;
		if (!(super->compat_ro & COMPAT_RO_FREE_SPACE_TREE_VALID))
			sum->why = "free-space-tree-valid is not set";
	} else if (super->cache_generation) {
		sum->in_use = BTRKIT_SPACE_CACHE_V1;
		if (super->cache_generation != super->generation)
			sum->why = "its generation differs from the superblock's";
	}
	sum->valid = !sum->why;
}

static int begin_tree(struct status *s, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	int ret = free_space_tree_begin(&s->tree, s->fs, leftover_v2, s, &e);

	s->have_tree = !ret;
	if (ret == -ENOENT) {
		if (s->sum.in_use == BTRKIT_SPACE_CACHE_V2 && s->sum.valid)
			return err_corrupt(err, "compat_ro_flags",
					   "free-space-tree is set, but the tree does not exist");
		return 0;
	}
	if (ret && err)
		*err = e;
	return ret;
}

static int walk(struct status *s, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	uint64_t headers;
	int ret;

	while (!(ret = extent_ranges_next_group(&s->extents, err))) {
		ret = tell_group(s, s->extents.group, err);
		if (ret)
			return ret;
	}
	if (ret < 0)
		return ret;
	s->sum.extents = s->extents.extents;
	ret = s->have_tree ? free_space_tree_end(&s->tree, &e) : 0;
	/* Unreadable blocks of the tree were reported with the group that they describe. */
	if (ret && ret != -EUCLEAN) {
		if (err)
			*err = e;
		return ret;
	}
	s->sum.v2.bytes = s->have_tree ? s->tree.blocks * s->fs->geometry.nodesize : 0;
	return space_cache_headers(s->fs, &s->groups, leftover_v1, s, &headers, err);
}

int btrkit_space_status(struct btrkit_fs *fs, const struct btrkit_space_sink *sink, struct btrkit_space_summary *ret,
			struct btrkit_error *err)
{
	struct status s = { .fs = fs, .sink = sink };
	int r;

	r = fs_check_committed(fs, err);
	if (r)
		return r;
	check_super(&s);
	r = block_groups_load(fs, &s.groups, err);
	if (r)
		return r;
	r = begin_tree(&s, err);
	if (!r)
		r = extent_ranges_begin(&s.extents, fs, &s.groups, err);
	if (!r)
		r = walk(&s, err);
	extent_ranges_release(&s.extents);
	free_space_tree_release(&s.tree);
	block_groups_release(&s.groups);
	if (!r && ret)
		*ret = s.sum;
	return r;
}
