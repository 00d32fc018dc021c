// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_tree_select.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/dump/dump_tree_extents.h"
#include "lib/dump/dump_tree_walk.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"

#define FLAGS_KNOWN ((BTRKIT_DUMP_WITH_EXTENTS << 1) - 1)
#define KEY_MIN KEY(0, 0, 0)
#define KEY_MAX KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX)

static int compare_ranges(const void *a, const void *b)
{
	const struct btrkit_dump_range *x = a, *y = b;

	return key_cmp(&x->min, &y->min);
}

/* Sorts, and merge overlapping ranges. */
static void tidy(struct ranges *r)
{
	size_t n = 0;

	qsort(r->at, r->n, sizeof(*r->at), compare_ranges);
	for (size_t i = 0; i < r->n; i++) {
		if (n && key_cmp(&r->at[i].min, &r->at[n - 1].max) <= 0) {
			if (key_cmp(&r->at[i].max, &r->at[n - 1].max) > 0)
				r->at[n - 1].max = r->at[i].max;
		} else {
			r->at[n++] = r->at[i];
		}
	}
	r->n = n;
}

/* Intersection of two sorted lists without overlap. The result is sorted too. */
static int intersect(const struct ranges *a, const struct ranges *b, struct ranges *ret, struct btrkit_error *err)
{
	size_t i = 0, j = 0, n = 0;

	ret->at = calloc(a->n + b->n + 1, sizeof(*ret->at));
	if (!ret->at)
		return err_nomem(err);
	while (i < a->n && j < b->n) {
		const struct btrkit_dump_range *x = &a->at[i], *y = &b->at[j];
		const struct btrkit_key *min = key_cmp(&x->min, &y->min) > 0 ? &x->min : &y->min;
		const bool x_first = key_cmp(&x->max, &y->max) < 0;
		const struct btrkit_key *max = x_first ? &x->max : &y->max;

		if (key_cmp(min, max) <= 0)
			ret->at[n++] = (struct btrkit_dump_range){ *min, *max };
		i += x_first;
		j += !x_first;
	}
	ret->n = n;
	return 0;
}

static int check_options(const struct btrkit_dump_options *o, struct btrkit_error *err)
{
	const struct btrkit_dump_select *a = o->select;
	const bool file = a->path || a->flags & BTRKIT_DUMP_BY_INODE;

	if (a->flags & ~(unsigned)FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", a->flags & ~(unsigned)FLAGS_KNOWN);
	if (o->flags & BTRKIT_DUMP_ROOTS)
		return err_set(err, BTRKIT_INVALID, "a list of roots cannot be combined with a selection");
	if (a->path && (a->flags & BTRKIT_DUMP_BY_INODE || o->num_trees))
		return err_set(err, BTRKIT_INVALID, "a path cannot be combined with an inode or trees");
	if (o->num_blocks && file)
		return err_set(err, BTRKIT_INVALID, "an inode or a path cannot be combined with blocks");
	if (a->flags & BTRKIT_DUMP_WITH_EXTENTS && !file)
		return err_set(err, BTRKIT_INVALID, "extents can only be selected for an inode or a path");
	for (size_t i = 0; i < a->num_ranges; i++)
		if (key_cmp(&a->ranges[i].min, &a->ranges[i].max) > 0)
			return err_set(err, BTRKIT_INVALID, "the lowest key is above the highest");
	return 0;
}

static int take_ranges(struct dump_select *s, const struct btrkit_dump_select *a, struct btrkit_error *err)
{
	s->asked.n = a->num_ranges + !a->num_ranges;
	s->asked.at = calloc(s->asked.n, sizeof(*s->asked.at));
	if (!s->asked.at)
		return err_nomem(err);
	if (a->num_ranges)
		memcpy(s->asked.at, a->ranges, a->num_ranges * sizeof(*a->ranges));
	else
		s->asked.at[0] = (struct btrkit_dump_range){ KEY_MIN, KEY_MAX };
	tidy(&s->asked);
	return 0;
}

static void take_types(struct dump_pick *p, const struct btrkit_dump_select *a)
{
	for (size_t i = 0; i < a->num_types; i++)
		p->types[a->types[i] / 64] |= 1ull << a->types[i] % 64;
	if (!a->num_types)
		memset(p->types, 0xff, sizeof(p->types));
}

/* Restrict the ranges to items of the inode. */
static int take_inode(struct dump_select *s, uint64_t inode, struct btrkit_error *err)
{
	struct btrkit_dump_range own = { KEY(inode, 0, 0), KEY(inode, UINT8_MAX, UINT64_MAX) };
	const struct ranges one = { &own, 1 };
	struct ranges both;
	int ret = intersect(&s->asked, &one, &both, err);

	if (ret)
		return ret;
	free(s->asked.at);
	s->asked = both;
	return 0;
}

static int find_path(struct btrkit_fs *fs, const struct btrkit_dump_select *a, struct inode_place *ret,
		     struct btrkit_error *err)
{
	struct subvolume sub;
	int r = subvolume_get(fs, a->subvolume ? a->subvolume : OID_FS_TREE, &sub, err);

	return r ? r : path_resolve(fs, &sub.root, a->path, false, ret, err);
}

/* Intersect @all with @asked, and select items with types from @first to @last there. */
static int pick_more(const struct dump_select *s, const struct ranges *all, const struct ranges *asked, unsigned first,
		     unsigned last, struct ranges *own, struct dump_pick *ret, struct btrkit_error *err)
{
	int r = intersect(all, asked, own, err);

	if (r)
		return r;
	*ret = (struct dump_pick){ .ranges = own->at, .num_ranges = own->n };
	for (unsigned type = first; type <= last; type++)
		if (dump_pick_type(&s->pick, (uint8_t)type))
			ret->types[type / 64] |= 1ull << type % 64;
	return 0;
}

/* For adjacent extents, one range can include all items, because items in between have other types. */
static int pick_extents(struct btrkit_fs *fs, struct dump_select *s, const struct ranges *asked,
			struct btrkit_error *err)
{
	/* A checksum item may begin this far before the range. */
	const uint64_t most = (uint64_t)fs->geometry.nodesize / fs->geometry.csum->size * fs->geometry.sectorsize;
	struct ranges extents = { calloc(s->num_data + 1, sizeof(*extents.at)), s->num_data };
	struct ranges csums = { calloc(s->num_data + 1, sizeof(*csums.at)), s->num_data };
	int ret = extents.at && csums.at ? 0 : err_nomem(err);

	for (size_t i = 0; !ret && i < s->num_data; i++) {
		const struct dump_data *d = &s->data[i];

		extents.at[i].min = KEY(d->start, KEY_EXTENT_ITEM, 0);
		extents.at[i].max = KEY(d->end - 1, KEY_SHARED_DATA_REF, UINT64_MAX);
		csums.at[i].min = KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, d->start > most ? d->start - most : 0);
		csums.at[i].max = KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, d->end - 1);
	}
	if (!ret)
		tidy(&csums);
	if (!ret)
		ret = pick_more(s, &extents, asked, KEY_EXTENT_ITEM, KEY_SHARED_DATA_REF, &s->extent_ranges,
				&s->extents, err);
	if (!ret)
		ret = pick_more(s, &csums, asked, KEY_EXTENT_CSUM, KEY_EXTENT_CSUM, &s->csum_ranges, &s->csums, err);
	s->csums.data = s->data;
	s->csums.num_data = s->num_data;
	s->csums.sectorsize = fs->geometry.sectorsize;
	s->csums.csum_size = fs->geometry.csum->size;
	free(extents.at);
	free(csums.at);
	return ret;
}

static int take_file(struct btrkit_fs *fs, struct dump_select *s, const struct btrkit_dump_options *o,
		     struct btrkit_error *err)
{
	const struct btrkit_dump_select *a = o->select;
	struct inode_place place = { .inode = a->inode };
	struct ranges asked = { 0 };
	int ret = a->path ? find_path(fs, a, &place, err) : 0;

	if (ret)
		return ret;
	s->of_files = true;
	s->tree = a->path ? place.root.id : 0;
	s->with_extents = a->flags & BTRKIT_DUMP_WITH_EXTENTS;
	if (s->with_extents) {
		/* Copy the ranges before they are restricted to the inode. */
		ret = intersect(&s->asked, &s->asked, &asked, err);
		if (!ret)
			ret = dump_select_extents(fs, o, s->tree, place.inode, &s->data, &s->num_data, err);
		if (!ret)
			ret = pick_extents(fs, s, &asked, err);
		free(asked.at);
	}
	return ret ? ret : take_inode(s, place.inode, err);
}

static void take_blocks(struct dump_select *s, const struct btrkit_dump_select *a)
{
	s->filters = a->flags & (BTRKIT_DUMP_BY_BYTENR | BTRKIT_DUMP_BY_GENERATION | BTRKIT_DUMP_BY_LEVEL);
	s->blocks = DUMP_BLOCKS_ALL;
	if (a->flags & BTRKIT_DUMP_BY_BYTENR) {
		s->blocks.min_bytenr = a->min_bytenr;
		s->blocks.max_bytenr = a->max_bytenr;
	}
	if (a->flags & BTRKIT_DUMP_BY_GENERATION) {
		s->blocks.min_generation = a->min_generation;
		s->blocks.max_generation = a->max_generation;
	}
	if (a->flags & BTRKIT_DUMP_BY_LEVEL) {
		s->blocks.min_level = a->min_level < UINT8_MAX ? (uint8_t)a->min_level : UINT8_MAX;
		s->blocks.max_level = a->max_level < UINT8_MAX ? (uint8_t)a->max_level : UINT8_MAX;
	}
}

int dump_select_begin(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump_select *ret,
		      struct btrkit_error *err)
{
	const struct btrkit_dump_select *a = o->select;
	int r;

	*ret = (struct dump_select){ 0 };
	if (!a)
		return 0;
	r = check_options(o, err);
	if (r)
		return r;
	take_blocks(ret, a);
	take_types(&ret->pick, a);
	ret->picks = a->num_ranges || a->num_types || a->path || a->flags & BTRKIT_DUMP_BY_INODE;
	ret->any = ret->picks || ret->filters;
	r = take_ranges(ret, a, err);
	if (!r && (a->path || a->flags & BTRKIT_DUMP_BY_INODE))
		r = take_file(fs, ret, o, err);
	ret->pick.ranges = ret->asked.at;
	ret->pick.num_ranges = ret->asked.n;
	return r;
}

void dump_select_end(struct dump_select *s)
{
	free(s->asked.at);
	free(s->extent_ranges.at);
	free(s->csum_ranges.at);
	free(s->data);
}

/* Which items of the tree to show; NULL: none. */
static const struct dump_pick *pick_of(const struct dump_select *s, uint64_t id, bool named, bool log)
{
	if (!s->of_files)
		return &s->pick;
	if (s->with_extents && id == OID_EXTENT_TREE)
		return &s->extents;
	if (s->with_extents && id == OID_CSUM_TREE)
		return &s->csums;
	if (s->tree)
		return id == s->tree ? &s->pick : NULL;
	return named || log || oid_is_file_tree(id) ? &s->pick : NULL;
}

bool dump_select_tree(const struct dump_select *s, uint64_t id, bool named, bool log, struct dump_what *what)
{
	if (s->filters)
		what->blocks = &s->blocks;
	if (!s->picks)
		return true;
	what->pick = pick_of(s, id, named, log);
	return what->pick;
}
