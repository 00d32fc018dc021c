// SPDX-License-Identifier: LGPL-2.1-or-later
/* Evaluates a leaf of a file tree: references to data, inline data, and orphans. */
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/sweep/block.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaf.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

static void take_inline(struct usage_leaf_reader *r, const struct file_extent *fe)
{
	struct btrkit_usage_stored *to = &r->types.inlined[BTRKIT_USAGE_PLAIN + fe->compression];

	/* Relocation trees have no files of their own. */
	if (!r->weight)
		return;
	to->extents++;
	to->disk += fe->inline_len;
	to->uncompressed += fe->ram_bytes;
	to->referenced += fe->ram_bytes * r->weight;
}

static uint32_t info_of(const struct usage_work *w, const struct usage_leaf_reader *r, const struct file_extent *fe)
{
	uint32_t info = fe->type == FILE_EXTENT_PREALLOC ? USAGE_PREALLOC : USAGE_WRITTEN;

	if (r->weight > 1)
		info |= USAGE_IN_SHARED_LEAF;
	if (fe->compression && fe->type == FILE_EXTENT_REG) {
		const uint64_t sectors = fe->ram_bytes / w->u->sectorsize;

		info |= (uint32_t)fe->compression << USAGE_COMPRESSION_SHIFT;
		info |= (uint32_t)(sectors < USAGE_UNCOMPRESSED_MAX ? sectors : USAGE_UNCOMPRESSED_MAX)
			<< USAGE_UNCOMPRESSED_SHIFT;
	}
	return info;
}

static void join_info(atomic_uint *to, uint32_t info)
{
	unsigned was = atomic_load_explicit(to, memory_order_relaxed), both;

	do {
		both = usage_info_join(was, info);
	} while (both != was &&
		 !atomic_compare_exchange_weak_explicit(to, &was, both, memory_order_relaxed, memory_order_relaxed));
}

/* The leaf being read. */
struct reading {
	struct usage_work *w;
	struct usage_leaf_reader *r;
	const uint8_t *leaf;
	uint32_t set;
};

/* Reports damage in an item of the leaf. */
static int report_item(const struct reading *g, uint32_t slot, int ret, struct btrkit_error *what,
		       struct btrkit_error *err)
{
	const struct btrkit_key key = block_item(g->leaf, slot).key;

	err_at_logical(what, le64_get(block_header(g->leaf)->bytenr));
	err_at_item(what, slot, &key);
	return usage_damage_of(g->w, g->set, ret, what, err);
}

static int report_size(const struct reading *g, const struct usage_named *x, uint32_t sectors, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const uint32_t sector = g->w->u->sectorsize;
	const int ret = err_corrupt(&what, "disk_num_bytes",
				    "data extent of %" PRIu64 " bytes, but the extent tree has %" PRIu64,
				    x->sectors * sector, (uint64_t)sectors * sector);

	return report_item(g, x->slot, ret, &what, err);
}

/* Adds the owners of the leaf to an extent. @i: its number in the table; SIZE_MAX: not in the table */
static int settle(const struct reading *g, const struct usage_named *x, size_t i, struct btrkit_error *err)
{
	struct usage_work *w = g->w;
	struct usage_extent *e;
	int ret;

	if (i == SIZE_MAX) {
		const struct usage_stray s = { .bytenr = x->bytenr,
					       .set = g->set,
					       .sectors = x->sectors > UINT32_MAX ? 0 : (uint32_t)x->sectors,
					       .info = x->info };

		return usage_stray_extent(w, &s, err);
	}
	e = usage_extents_at(&w->u->extents, i);
	ret = usage_add_later(g->r->pending, i, &e->set, g->set, err);
	if (ret)
		return ret;
	join_info(&e->info, x->info);
	if (e->sectors == x->sectors ||
	    atomic_fetch_or_explicit(&e->info, USAGE_DOUBTFUL, memory_order_relaxed) & USAGE_DOUBTFUL)
		return 0;
	return report_size(g, x, e->sectors, err);
}

/* Looks up and handles all extents in the waiting list. */
static int settle_waiting(const struct reading *g, struct btrkit_error *err)
{
	struct usage_leaf_reader *r = g->r;
	uint64_t addresses[USAGE_FIND_MANY];
	size_t at[USAGE_FIND_MANY];
	int ret = 0;

	for (size_t i = 0; i < r->num_waiting; i++)
		addresses[i] = r->waiting[i].bytenr;
	usage_table_find_many(&g->w->u->extents, sizeof(struct usage_extent), addresses, r->num_waiting, at);
	for (size_t i = 0; !ret && i < r->num_waiting; i++) {
		ret = settle(g, &r->waiting[i], at[i], err);
		if (at[i] != SIZE_MAX)
			r->hint = at[i];
	}
	r->num_waiting = 0;
	r->astray = false;
	return ret;
}

static int take_extent(const struct reading *g, uint32_t slot, const struct file_extent *fe, struct btrkit_error *err)
{
	const struct usage_named x = { slot, info_of(g->w, g->r, fe), fe->disk_bytenr,
				       fe->disk_num_bytes / g->w->u->sectorsize };
	const struct usage_table *t = &g->w->u->extents;
	struct usage_leaf_reader *r = g->r;
	size_t i = usage_table_near(t, sizeof(struct usage_extent), x.bytenr, &r->hint);

	r->types.extents[fe->type == FILE_EXTENT_PREALLOC ? BTRKIT_USAGE_PREALLOC :
							    BTRKIT_USAGE_PLAIN + fe->compression]
		.referenced += fe->num_bytes * r->weight;
	if (i == SIZE_MAX && r->astray) {
		r->waiting[r->num_waiting++] = x;
		return r->num_waiting == USAGE_FIND_MANY ? settle_waiting(g, err) : 0;
	}
	r->astray = i == SIZE_MAX;
	if (i == SIZE_MAX)
		i = usage_table_find(t, sizeof(struct usage_extent), x.bytenr, &r->hint);
	return settle(g, &x, i, err);
}

static int take_file_extent(const struct reading *g, uint32_t slot, struct btrkit_error *err)
{
	const struct item item = block_item(g->leaf, slot);
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct file_extent fe;
	int ret = file_extent_decode(&g->w->fs->items, &item, &fe, &what);

	if (ret)
		return report_item(g, slot, ret, &what, err);
	if (fe.type == FILE_EXTENT_INLINE)
		take_inline(g->r, &fe);
	else if (fe.disk_bytenr)
		ret = take_extent(g, slot, &fe, err);
	return ret;
}

/* Returns whether an item is the inode of a file without names. */
static bool is_orphan(const struct item *item)
{
	const struct disk_inode_item *d = (const struct disk_inode_item *)item->data;

	return item->size >= sizeof(*d) && !le32_get(d->nlink) && item->key.objectid >= OID_FIRST_FREE &&
	       item->key.objectid <= OID_LAST_FREE;
}

static int count_orphan(struct usage_leaf_reader *r, uint32_t set, struct btrkit_error *err)
{
	struct usage_orphans *last = r->orphans.n ? (struct usage_orphans *)r->orphans.at + r->orphans.n - 1 : NULL;

	if (!last || last->set != set) {
		last = array_add(&r->orphans, sizeof(*last), err);
		if (!last)
			return -ENOMEM;
		*last = (struct usage_orphans){ set, 0 };
	}
	last->n++;
	return 0;
}

int usage_read_leaf(struct usage_work *w, struct usage_leaf_reader *r, const uint8_t *leaf, uint32_t set,
		    struct btrkit_error *err)
{
	const struct reading g = { w, r, leaf, set };
	const struct disk_item *items = block_items(leaf);
	const uint32_t n = block_nritems(leaf);
	int ret = 0;

	r->weight = sets_get(&w->u->sets, set).weight;
	for (uint32_t i = 0; !ret && i < n; i++) {
		const uint8_t type = items[i].key.type;

		if (type == KEY_EXTENT_DATA) {
			ret = take_file_extent(&g, i, err);
		} else if (type == KEY_INODE_ITEM) {
			const struct item item = block_item(leaf, i);

			if (is_orphan(&item))
				ret = count_orphan(r, set, err);
		}
	}
	return ret ? ret : settle_waiting(&g, err);
}

static void add_stored(struct btrkit_usage_stored *to, struct btrkit_usage_stored *more)
{
	to->extents += more->extents;
	to->disk += more->disk;
	to->uncompressed += more->uncompressed;
	to->referenced += more->referenced;
	*more = (struct btrkit_usage_stored){ 0 };
}

void usage_leaf_gathered(struct usage_work *w, struct usage_leaf_reader *r)
{
	const struct usage_orphans *orphans = r->orphans.at;

	for (unsigned i = 0; i < BTRKIT_USAGE_NUM_TYPES; i++) {
		add_stored(&w->u->types.extents[i], &r->types.extents[i]);
		add_stored(&w->u->types.inlined[i], &r->types.inlined[i]);
	}
	for (size_t i = 0; i < r->orphans.n; i++) {
		const struct set set = sets_get(&w->u->sets, orphans[i].set);

		for (uint32_t run = 0; run < set.num_runs; run++) {
			w->orphans[set.runs[run].first] += orphans[i].n;
			w->orphans[set.runs[run].last + 1] -= orphans[i].n;
		}
	}
	r->orphans.n = 0;
}
