// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/space_impl.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/space/chunk.h"
#include "lib/space/space_device.h"

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

/* Inserts a new group in address order. */
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
	g->full_stripe = block_group_full_stripe(s->fs, item);
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
	for (size_t i = 0; i < sizeof(s->profiles) / sizeof(s->profiles[0]); i++)
		s->profiles[i] = CHUNK_ANY_PROFILE;
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

static void forget_extents(struct space *s)
{
	if (s->reads_extents)
		cursor_release(&s->extents);
	s->reads_extents = false;
}

struct space *space_destroy(struct space *s)
{
	if (!s)
		return NULL;
	forget_extents(s);
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

	r = free_map_create(&over, s->fs->geometry.sectorsize, &map, err);
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
	r = space_sort_full_stripes(s, g, err);
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

/* Removes @g from the list of touched groups. @return the next one */
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
	forget_extents(s);
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
	space_devices_committed(s);
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
	space_devices_aborted(s);
}
