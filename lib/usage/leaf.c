// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a leaf of a tree of files says: which data it names, what it holds itself, which files have no name. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/file_extent.h"
#include "lib/usage/state.h"

static void take_inline(struct usage_leaf_reader *r, const struct file_extent *fe)
{
	struct btrkit_usage_stored *to = &r->types.inlined[BTRKIT_USAGE_PLAIN + fe->compression];

	/* A tree of relocation has no files of its own. */
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

	if (r->weight)
		info |= r->weight > 1 ? USAGE_IN_SHARED_LEAF : USAGE_IN_OWN_LEAF;
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

static int take_extent(struct usage_work *w, struct usage_leaf_reader *r, const struct file_extent *fe, uint32_t set,
		       struct btrkit_error *err)
{
	struct usage_table *t = &w->u->extents;
	const size_t i = usage_table_find(t, sizeof(struct usage_extent), fe->disk_bytenr, &r->hint);
	const uint32_t info = info_of(w, r, fe);
	const uint64_t sectors = fe->disk_num_bytes / w->u->sectorsize;
	struct usage_extent *e;
	int ret;

	r->types.extents[fe->type == FILE_EXTENT_PREALLOC ? BTRKIT_USAGE_PREALLOC :
							    BTRKIT_USAGE_PLAIN + fe->compression]
		.referenced += fe->num_bytes * r->weight;
	if (i == SIZE_MAX)
		return usage_stray_extent(w,
					  &(struct usage_stray){ .bytenr = fe->disk_bytenr,
								 .set = set,
								 .sectors = sectors > UINT32_MAX ? 0 :
												   (uint32_t)sectors,
								 .info = info },
					  err);
	e = usage_extents_at(t, i);
	ret = usage_add_to_set(w, &r->memo, &e->set, set, err);
	if (ret)
		return ret;
	join_info(&e->info, info);
	if (e->sectors == sectors ||
	    atomic_fetch_or_explicit(&e->info, USAGE_DOUBTFUL, memory_order_relaxed) & USAGE_DOUBTFUL)
		return 0;
	return err_corrupt(err, "disk_num_bytes",
			   "data extent of %" PRIu64 " bytes, the extent tree has it with %" PRIu64, fe->disk_num_bytes,
			   (uint64_t)e->sectors * w->u->sectorsize);
}

static int take_file_extent(struct usage_work *w, struct usage_leaf_reader *r, const struct item *item, uint32_t set,
			    struct btrkit_error *err)
{
	struct file_extent fe;
	int ret = file_extent_decode(&w->fs->items, item, &fe, err);

	if (ret)
		return ret;
	if (fe.type == FILE_EXTENT_INLINE)
		take_inline(r, &fe);
	else if (fe.disk_bytenr)
		ret = take_extent(w, r, &fe, set, err);
	return ret;
}

/* A file that nobody has a name of any more. */
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
		last = usage_list_add(&r->orphans, sizeof(*last), err);
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
	const struct disk_item *items = block_items(leaf);
	const uint32_t n = block_nritems(leaf);
	int ret = 0;

	if (set != r->set) {
		r->weight = sets_get(&w->u->sets, set).weight;
		r->set = set;
	}
	for (uint32_t i = 0; !ret && i < n; i++) {
		const uint8_t type = items[i].key.type;
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct item item;

		if (type != KEY_EXTENT_DATA && type != KEY_INODE_ITEM)
			continue;
		item = block_item(leaf, i);
		if (type == KEY_EXTENT_DATA)
			ret = take_file_extent(w, r, &item, set, &what);
		else if (is_orphan(&item))
			ret = count_orphan(r, set, &what);
		if (ret) {
			err_at_logical(&what, le64_get(block_header(leaf)->bytenr));
			err_at_item(&what, i, &item.key);
			ret = usage_damage(w, ret, &what, err);
		}
	}
	return ret;
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
