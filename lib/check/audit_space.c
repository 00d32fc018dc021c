// SPDX-License-Identifier: LGPL-2.1-or-later
/* The caches of free space that Linux would trust, against what lies between the extents. */
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"
#include "lib/format/feature_bits.h"
#include "lib/space/free_space_tree.h"
#include "lib/space/space_cache.h"

/*
 * mkfs.btrfs up to 6.2 leaves the free space of its first, temporary groups behind, which end here. It harms nobody: no
 * group is made there any more.
 */
#define MKFS_TEMPORARY_END (21ull << 20)

struct space_audit {
	struct audit *a;
	struct free_space_tree tree;
	size_t extent; /* the first that was not looked at */
};

/* What lies between extents of a group, one by one. */
struct gaps {
	struct space_audit *s;
	const struct block_group *group;
	uint64_t pos;
	struct block_group_supers supers; /* left out */
};

/* The next thing that is not free: an extent, or what is kept for a superblock. Empty at the end of the group. */
static struct range next_used(struct gaps *g)
{
	const struct audit_list *list = &g->s->a->extents;
	const struct audit_extent *extents = list->at;
	const uint64_t end = g->group->start + g->group->length;
	struct range used = { end, 0 };

	for (unsigned i = 0; i < g->supers.n; i++)
		if (g->supers.at[i].start >= g->pos && g->supers.at[i].start < used.start)
			used = g->supers.at[i];
	while (g->s->extent < list->n && extents[g->s->extent].bytenr < g->pos)
		g->s->extent++;
	if (g->s->extent < list->n && extents[g->s->extent].bytenr < used.start)
		used = (struct range){ extents[g->s->extent].bytenr, extents[g->s->extent].num_bytes };
	return used;
}

/* @return 0; 1 the end */
static int next_gap(struct gaps *g, struct range *ret)
{
	const uint64_t end = g->group->start + g->group->length;

	while (g->pos < end) {
		const uint64_t from = g->pos;
		const struct range used = next_used(g);

		g->pos = used.length ? range_end(&used) : end;
		if (used.start > from) {
			*ret = (struct range){ from, used.start - from };
			return 0;
		}
	}
	return 1;
}

/* @next: of the cache. @return 0; -EUCLEAN: @tree contradicts the extent tree */
static int compare_group(struct gaps *g, int (*next)(void *cache, struct range *ret, struct btrkit_error *err),
			 void *cache, uint64_t tree, struct btrkit_error *err)
{
	struct range truth = { 0 }, said = { 0 };
	int ret, end;

	do {
		end = next_gap(g, &truth);
		ret = next(cache, &said, err);
		if (ret < 0)
			return ret;
		if (end != ret || (!end && (truth.start != said.start || truth.length != said.length))) {
			if (ret)
				err_corrupt(err, NULL, "%" PRIu64 " bytes at %" PRIu64 " are free and not told",
					    truth.length, truth.start);
			else if (end)
				err_corrupt(err, NULL,
					    "%" PRIu64 " bytes at %" PRIu64 " are told to be free and are not",
					    said.length, said.start);
			else
				err_corrupt(err, NULL,
					    "%" PRIu64 " bytes at %" PRIu64 " are told to be free, it is %" PRIu64
					    " at %" PRIu64,
					    said.length, said.start, truth.length, truth.start);
			err_at_tree(err, tree);
			err_at_key(err, &KEY(g->group->start, KEY_FREE_SPACE_INFO, g->group->length));
			return -EUCLEAN;
		}
		g->s->a->counts.free_ranges += !end;
	} while (!end);
	return 0;
}

static int next_v2(void *cache, struct range *ret, struct btrkit_error *err)
{
	return free_space_tree_next(cache, ret, err);
}

static int next_v1(void *cache, struct range *ret, struct btrkit_error *err)
{
	(void)err;
	return space_cache_next(cache, ret);
}

static int leftover(void *ctx, const struct range *range)
{
	struct range *found = ctx;

	if (range_end(range) > MKFS_TEMPORARY_END && !found->length)
		*found = *range;
	return 0;
}

static int compare_tree(struct space_audit *s, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < s->a->groups.n; i++) {
		struct gaps gaps = { .s = s, .group = &s->a->groups.at[i], .pos = s->a->groups.at[i].start };

		ret = free_space_tree_enter(&s->tree, gaps.group, err);
		if (ret > 0) {
			ret = err_corrupt(err, NULL, "block group without free space info");
			err_at_tree(err, OID_FREE_SPACE_TREE);
			err_at_key(err, &KEY(gaps.group->start, KEY_FREE_SPACE_INFO, gaps.group->length));
		}
		if (!ret)
			ret = compare_group(&gaps, next_v2, &s->tree, OID_FREE_SPACE_TREE, err);
	}
	return ret ? ret : free_space_tree_end(&s->tree, err);
}

static int judge_tree(struct space_audit *s, struct btrkit_error *err)
{
	struct range stale = { 0 };
	int ret = free_space_tree_begin(&s->tree, s->a->fs, leftover, &stale, err);

	if (!ret)
		ret = compare_tree(s, err);
	free_space_tree_release(&s->tree);
	if (!ret && (stale.length || s->tree.strays)) {
		ret = err_corrupt(err, NULL, "free space of no block group, at %" PRIu64, stale.start);
		err_at_tree(err, OID_FREE_SPACE_TREE);
	}
	return ret;
}

/* A cache that is not whole is passed over, as Linux does. */
static int judge_cache(struct space_audit *s, const struct block_group *group, struct btrkit_error *err)
{
	struct gaps gaps = { .s = s, .group = group, .pos = group->start };
	struct space_cache_group cache;
	int ret = space_cache_load(s->a->fs, group, &cache, err);

	if (ret)
		return ret;
	ret = block_group_supers(s->a->fs, group, &gaps.supers, err);
	if (!ret && cache.state == SPACE_CACHE_USABLE)
		ret = compare_group(&gaps, next_v1, &cache, OID_ROOT_TREE, err);
	block_group_supers_release(&gaps.supers);
	space_cache_group_release(&cache);
	return ret;
}

static bool tree_exists(const struct audit *a)
{
	const struct audit_root *roots = a->roots.at;

	for (size_t i = 0; i < a->roots.n; i++)
		if (roots[i].root.id == OID_FREE_SPACE_TREE)
			return true;
	return false;
}

int audit_compare_space(struct audit *a, struct btrkit_error *err)
{
	const struct super *super = &a->fs->super;
	const bool has = super->compat_ro & COMPAT_RO_FREE_SPACE_TREE;
	struct space_audit s = { .a = a };
	int ret = 0;

	if (has != tree_exists(a))
		return err_corrupt(err, "compat_ro_flags", "%s",
				   has ? "free-space-tree is set and there is no such tree" :
					 "there is a free space tree and free-space-tree is not set");
	if (has)
		return super->compat_ro & COMPAT_RO_FREE_SPACE_TREE_VALID ? judge_tree(&s, err) : 0;
	for (size_t i = 0; !ret && super->cache_generation == super->generation && i < a->groups.n; i++)
		ret = judge_cache(&s, &a->groups.at[i], err);
	return ret;
}
