// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads the free space of a block group from one of three sources. */
#include "lib/space/space_impl.h"

#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/space/extent_ranges.h"
#include "lib/space/free_space_tree.h"
#include "lib/space/space_cache.h"

/* A group whose map is being loaded. */
struct loader {
	struct space *s;
	struct block_group group; /* as committed */
	struct block_group_supers supers;
	struct free_map *map;
	uint64_t bytes; /* free bytes, including those reserved for superblocks if the source includes them */
};

int space_add_free(struct free_map *m, const struct block_group_supers *supers, struct range range,
		   struct btrkit_error *err)
{
	for (unsigned i = 0; i < supers->n; i++) {
		const struct range *super = &supers->at[i];
		const uint64_t end = range_end(&range), to = range_end(super);
		struct range before = { range.start, super->start - range.start };
		int ret = 0;

		if (to <= range.start || super->start >= end)
			continue;
		if (super->start > range.start)
			ret = free_map_add(m, &before, err);
		if (ret || to >= end)
			return ret;
		range = (struct range){ to, end - to };
	}
	return free_map_add(m, &range, err);
}

static int add(struct loader *l, const struct range *free, struct btrkit_error *err)
{
	l->bytes += free->length;
	return space_add_free(l->map, &l->supers, *free, err);
}

int space_committed_root(const struct space *s, uint64_t id, struct tree_root *ret, struct btrkit_error *err)
{
	if (s->overlay)
		return overlay_committed_root(s->overlay, id, ret, err);
	return fs_find_tree(s->fs, id, ret, NULL, err);
}

static int read_tree(struct loader *l, struct free_space_tree *t, struct btrkit_error *err)
{
	const struct block_group *g = &l->group;
	struct range free;
	int ret;

	ret = free_space_tree_enter(t, g, err);
	if (ret == 1)
		ret = err_corrupt(err, NULL, "block group is missing in the free space tree");
	if (ret)
		return ret;
	while (!(ret = free_space_tree_next(t, &free, err))) {
		ret = add(l, &free, err);
		if (ret)
			return ret;
	}
	if (ret == 1 && l->bytes != g->length - g->used)
		return err_corrupt(err, NULL,
				   "free space tree has %" PRIu64 " bytes free, but the block group %" PRIu64, l->bytes,
				   g->length - g->used);
	return ret < 0 ? ret : 0;
}

static int by_tree(struct loader *l, struct btrkit_error *err)
{
	struct free_space_tree t;
	struct tree_root root;
	int ret;

	if (!free_space_tree_is_valid(l->s->fs->super.compat_ro))
		return err_set(err, BTRKIT_NOT_FOUND, "no valid free space tree");
	ret = space_committed_root(l->s, OID_FREE_SPACE_TREE, &root, err);
	if (ret)
		return ret == -ENOENT ? err_corrupt(err, NULL, "free space tree is missing, but marked as valid") : ret;
	free_space_tree_begin_at(&t, l->s->fs, &root, l->group.start);
	ret = read_tree(l, &t, err);
	free_space_tree_release(&t);
	if (ret < 0) {
		err_at_tree(err, OID_FREE_SPACE_TREE);
		err_at_key(err, &KEY(l->group.start, KEY_FREE_SPACE_INFO, l->group.length));
	}
	return ret;
}

/* Uses the cache under the same conditions as Linux: it is complete, and matches the group's counter. */
static int read_cache(struct loader *l, struct space_cache_group *cache, struct btrkit_error *err)
{
	uint64_t expected = l->group.length - l->group.used;
	struct range free;
	int ret = 0;

	expected -= block_group_supers_bytes(&l->supers);
	if (cache->state != SPACE_CACHE_USABLE && cache->state != SPACE_CACHE_EMPTY)
		return err_set(err, BTRKIT_NOT_FOUND, "no usable space cache");
	while (!ret && !(ret = space_cache_next(cache, &free)))
		ret = add(l, &free, err);
	if (ret == 1 && l->bytes != expected)
		return err_set(err, BTRKIT_NOT_FOUND, "the space cache does not fit the block group");
	return ret < 0 ? ret : 0;
}

static int by_cache(struct loader *l, struct btrkit_error *err)
{
	const struct super *super = &l->s->fs->super;
	struct space_cache_group cache;
	struct tree_root root;
	int ret;

	if (super->compat_ro & COMPAT_RO_FREE_SPACE_TREE || super->cache_generation != super->generation)
		return err_set(err, BTRKIT_NOT_FOUND, "no valid space cache");
	ret = space_committed_root(l->s, OID_ROOT_TREE, &root, err);
	if (!ret)
		ret = space_cache_load_at(l->s->fs, &root, &l->group, &cache, err);
	if (ret)
		return ret;
	ret = read_cache(l, &cache, err);
	space_cache_group_release(&cache);
	return ret;
}

static int by_extents(struct loader *l, struct btrkit_error *err)
{
	const struct block_groups groups = { .at = &l->group, .n = 1, .tree = l->s->tree };
	struct extent_ranges r;
	struct tree_root root;
	struct range free;
	int ret;

	ret = space_committed_root(l->s, OID_EXTENT_TREE, &root, err);
	if (ret)
		return ret;
	ret = extent_ranges_begin_at(&r, l->s->fs, &root, &groups, err);
	if (!ret)
		ret = extent_ranges_next_group(&r, err);
	while (!ret && !(ret = extent_ranges_next(&r, &free, err)))
		ret = add(l, &free, err);
	extent_ranges_release(&r);
	return ret < 0 ? ret : 0;
}

static int load(struct loader *l, int (*by)(struct loader *l, struct btrkit_error *err), struct btrkit_error *err)
{
	const struct range over = { l->group.start, l->group.length };
	int ret;

	l->bytes = 0;
	ret = free_map_create(&over, l->s->fs->geometry.sectorsize, &l->map, err);
	if (!ret)
		ret = by(l, err);
	if (ret)
		l->map = free_map_destroy(l->map);
	return ret;
}

int space_load(struct space *s, struct space_group *g, enum space_source from, struct btrkit_error *err)
{
	struct loader l = { .s = s, .group = g->item };
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	const struct {
		enum space_source source;
		int (*by)(struct loader *l, struct btrkit_error *err);
		uint64_t *count;
	} sources[] = {
		{ SPACE_FROM_TREE, by_tree, &s->stats.by_tree },
		{ SPACE_FROM_CACHE, by_cache, &s->stats.by_cache },
		{ SPACE_FROM_EXTENTS, by_extents, &s->stats.by_extents },
	};
	int ret;

	if (g->loaded)
		return 0;
	l.group.used = g->committed_used;
	ret = block_group_supers(s->fs, &l.group, &l.supers, err);
	if (ret)
		return ret;
	ret = -ENOENT;
	for (size_t i = 0; ret == -ENOENT && i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (from != SPACE_FROM_ANY && from != sources[i].source)
			continue;
		ret = load(&l, sources[i].by, &own);
		*sources[i].count += !ret;
		g->by_extents = sources[i].source == SPACE_FROM_EXTENTS;
	}
	block_group_supers_release(&l.supers);
	if (ret)
		return err_pass(err, &own, ret);
	g->free = l.map;
	ret = space_sort_full_stripes(s, g, err);
	if (ret)
		g->free = free_map_destroy(g->free);
	g->loaded = !ret;
	return ret;
}

struct space_load_stats space_load_stats(const struct space *s)
{
	return s->stats;
}
