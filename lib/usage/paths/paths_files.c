// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts each file in a directory, and finds the directory that contains all references to a data extent. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/sweep/block.h"
#include "lib/usage/damage.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/paths/paths.h"
#include "lib/usage/paths/paths_dirs.h"
#include "lib/usage/paths/paths_files.h"
#include "lib/usage/paths/paths_link.h"
#include "lib/usage/paths/paths_ranges.h"
#include "lib/usage/paths/paths_read.h"
#include "lib/usage/query.h"
#include "lib/usage/state.h"
#include "lib/usage/sum.h"
#include "lib/usage/table.h"
#include "lib/usage/work.h"

/* Values of usage_extent.common: 0: no reference so far; NOWHERE: no common directory; otherwise a node plus 1. */
#define NOWHERE UINT32_MAX

/* Completes the current file. */
static void leave_file(struct paths_batch *b)
{
	struct paths_file *f = &b->file;
	struct paths_work *pw = b->pw;

	if (!pw->again && f->total) {
		struct paths_node *node = &pw->p->nodes[pw->dirs[f->dir].node];

		atomic_fetch_add_explicit(&node->total, f->total, memory_order_relaxed);
		atomic_fetch_add_explicit(&node->unshared, f->unshared, memory_order_relaxed);
	}
	*f = (struct paths_file){ 0 };
}

static int enter_file(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	const struct disk_inode_item *d = (const struct disk_inode_item *)item->data;

	leave_file(b);
	if (item->size < sizeof(*d))
		return err_corrupt(err, "item_size", "inode item of %" PRIu32 " bytes", item->size);
	b->file = (struct paths_file){
		.inode = item->key.objectid,
		.known = true,
		.regular = S_ISREG(le32_get(d->mode)),
		.linked = le32_get(d->nlink),
		.dir = PATHS_NONE,
		.common = PATHS_NONE,
	};
	return 0;
}

/* Returns whether the walk reaches an entry of one directory before an entry of another. */
static bool is_before(const struct paths_work *pw, uint32_t dir, uint64_t index, uint32_t other, uint64_t other_index)
{
	const struct paths_dir *dirs = pw->dirs;

	while (dir != other) {
		if (dirs[dir].rank > dirs[other].rank) {
			index = dirs[dir].index;
			dir = dirs[dir].parent;
		} else {
			other_index = dirs[other].index;
			other = dirs[other].parent;
		}
	}
	return index < other_index;
}

static void add_link(struct paths_batch *b, const struct inode_ref *ref)
{
	const struct paths_work *pw = b->pw;
	struct paths_file *f = &b->file;
	const uint32_t dir = paths_find_dir(pw, b->subvolume, ref->parent, &b->dir_hint);
	const uint32_t node = dir == PATHS_NONE ? PATHS_NONE : pw->dirs[dir].node;

	f->common = f->named ? paths_common(pw->p, f->common, node) : node;
	f->named = true;
	if (node == PATHS_NONE)
		return;
	if (f->dir == PATHS_NONE || is_before(pw, dir, ref->index, f->dir, f->index)) {
		f->dir = dir;
		f->index = ref->index;
	}
}

static int add_links(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	struct inode_ref_iter it = inode_ref_first(item);
	struct inode_ref ref;
	int ret;

	while (!(ret = inode_ref_next(&it, &ref, err)))
		add_link(b, &ref);
	return ret < 0 ? ret : 0;
}

static int take_inode(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	if (item->key.type == KEY_INODE_ITEM)
		return enter_file(b, item, err);
	if (item->key.type != KEY_INODE_REF && item->key.type != KEY_INODE_EXTREF)
		return 0;
	/* If the file began in an earlier batch, everything is looked up when its data is found. */
	return b->file.known && b->file.inode == item->key.objectid ? add_links(b, item, err) : 0;
}

/* Reads the inode and names of a file that began in an earlier batch. */
static int look_up(struct paths_batch *b, uint64_t inode, struct btrkit_error *err)
{
	struct usage_work *w = &b->pw->w;
	struct cursor c;
	int ret;

	leave_file(b);
	cursor_init(&c, w->fs, &b->subvolume->root);
	ret = paths_seek(b, &c, inode, KEY_INODE_ITEM, err);
	while (!ret && c.item.key.objectid == inode && c.item.key.type <= KEY_INODE_EXTREF) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		ret = take_inode(b, &c.item, &what);
		if (ret)
			ret = usage_damage(w, cursor_blame(&c, ret, &what), &what, err);
		if (ret)
			break;
		ret = cursor_next(&c, &what);
		if (ret < 0) {
			ret = usage_damage(w, ret, &what, err);
			break;
		}
	}
	cursor_release(&c);
	b->file.inode = inode;
	return ret < 0 ? ret : 0;
}

/* Records that a file below the node refers to the extent. */
static void join(struct paths_work *pw, struct usage_extent *e, uint32_t node)
{
	unsigned was = atomic_load_explicit(&e->common, memory_order_relaxed), both;

	do {
		if (was == NOWHERE)
			return;
		both = was ? paths_common(pw->p, was - 1, node) : node;
		both = both == PATHS_NONE ? NOWHERE : both + 1;
	} while (both != was && !atomic_compare_exchange_weak_explicit(&e->common, &was, both, memory_order_relaxed,
								       memory_order_relaxed));
}

/*
 * Adds the range of an extent as FIEMAP reports it: compressed extents start at the start of the extent, with the
 * length of the file's part.
 */
static int add_range(struct paths_batch *b, const struct file_extent *fe, struct btrkit_error *err)
{
	const struct paths_work *pw = b->pw;
	const uint32_t sector = pw->usage->sectorsize, node = pw->dirs[b->file.dir].node;
	const uint64_t offset = fe->compression ? 0 : fe->offset;
	const uint64_t start = fe->disk_bytenr + offset, end = start + fe->num_bytes;
	struct paths_range *last = b->ranges.n ? (struct paths_range *)b->ranges.at + b->ranges.n - 1 : NULL;
	const uint64_t sectors = fe->num_bytes / sector;

	if (start < offset || end < start || sectors > UINT32_MAX)
		return err_corrupt(err, "num_bytes", "extent of %" PRIu64 " bytes", fe->num_bytes);
	if (!sectors)
		return 0;
	if (last && last->node == node && last->start + (uint64_t)last->sectors * sector == start &&
	    sectors <= UINT32_MAX - last->sectors) {
		last->sectors += (uint32_t)sectors;
		return 0;
	}
	last = array_add(&b->ranges, sizeof(*last), err);
	if (!last)
		return -ENOMEM;
	*last = (struct paths_range){ start, (uint32_t)sectors, node };
	return 0;
}

static int take_extent(struct paths_batch *b, const struct file_extent *fe, struct btrkit_error *err)
{
	struct paths_work *pw = b->pw;
	const struct usage_table *t = &pw->usage->extents;
	struct paths_file *f = &b->file;
	const size_t i = usage_table_find(t, sizeof(struct usage_extent), fe->disk_bytenr, &b->extent_hint);
	struct btrkit_usage_extent x = { .linux_shared = false };

	if (i != SIZE_MAX) {
		usage_extent_describe(pw->usage, usage_extents_at(t, i), &x);
		if (!pw->again)
			join(pw, usage_extents_at(t, i), f->common);
	}
	if (!f->regular || f->dir == PATHS_NONE)
		return 0;
	f->total += fe->num_bytes;
	if (x.linux_shared)
		return add_range(b, fe, err);
	f->unshared += fe->num_bytes;
	return 0;
}

/* Counts a file with data whose directories were not found. Files without links and special inodes are no damage. */
static void count_lost(struct paths_batch *b)
{
	const struct paths_file *f = &b->file;

	if (b->pw->again || f->inode < OID_FIRST_FREE || f->inode > OID_LAST_FREE || f->lost ||
	    (f->known && !f->linked) || f->dir != PATHS_NONE)
		return;
	b->file.lost = true;
	atomic_fetch_add_explicit(&b->subvolume->lost, 1, memory_order_relaxed);
}

static int take_file_extent(struct paths_batch *b, const struct item *item, struct btrkit_error *err)
{
	struct file_extent fe;
	int ret = file_extent_decode(&b->pw->w.fs->items, item, &fe, err);

	if (ret || fe.type == FILE_EXTENT_INLINE || !fe.disk_bytenr)
		return ret;
	if (b->file.inode != item->key.objectid)
		ret = look_up(b, item->key.objectid, err);
	if (ret)
		return ret;
	if (!b->file.known)
		b->file.dir = b->file.common = PATHS_NONE;
	count_lost(b);
	return take_extent(b, &fe, err);
}

static int read_leaf(struct paths_batch *b, const uint8_t *leaf, struct btrkit_error *err)
{
	const struct disk_item *items = block_items(leaf);
	const uint32_t n = block_nritems(leaf);
	int ret = 0;

	for (uint32_t i = 0; !ret && i < n; i++) {
		const uint8_t type = items[i].key.type;
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct item item;

		if (type > KEY_INODE_EXTREF && type != KEY_EXTENT_DATA)
			continue;
		item = block_item(leaf, i);
		ret = type == KEY_EXTENT_DATA ? take_file_extent(b, &item, &what) : take_inode(b, &item, &what);
		ret = paths_report_item(b, leaf, i, ret, &what, err);
	}
	return ret;
}

static int read_end(struct paths_batch *b, struct btrkit_error *err)
{
	(void)err;
	leave_file(b);
	return 0;
}

static int gather(struct paths_batch *b, struct btrkit_error *err)
{
	(void)err;
	paths_ranges_add(&b->pw->ranges, b->ranges.at, b->ranges.n);
	return 0;
}

static int report_lost(struct paths_work *pw, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < pw->num_subvolumes; i++) {
		struct paths_subvolume *s = &pw->subvolumes[i];
		const uint64_t lost = atomic_load_explicit(&s->lost, memory_order_relaxed);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (!lost)
			continue;
		err_corrupt(&what, NULL, "files without a reachable directory: %" PRIu64, lost);
		ret = paths_report(pw, s->root.id, &what, err);
	}
	return ret;
}

/* Returns whether all owners of the set are subvolumes, whose files were read. */
static bool only_subvolumes(const struct btrkit_usage *u, const struct set *set)
{
	for (uint32_t run = 0; run < set->num_runs; run++)
		for (uint32_t i = set->runs[run].first; i <= set->runs[run].last; i++)
			if (u->owners[u->outside[i]].kind != BTRKIT_USAGE_SUBVOLUME)
				return false;
	return true;
}

static int add_freed(struct paths_work *pw, struct btrkit_error *err)
{
	const struct btrkit_usage *u = pw->usage;
	bool *known = calloc(u->num_final + 1, sizeof(*known));

	if (!known)
		return err_nomem(err);
	for (size_t i = 0; i < u->num_final; i++)
		known[i + 1] = only_subvolumes(u, usage_set_at(u, i));
	for (size_t i = 0; i < u->extents.n; i++) {
		const struct usage_extent *e = usage_extents_at(&u->extents, i);
		const uint32_t common = atomic_load_explicit(&e->common, memory_order_relaxed);

		if (common && common != NOWHERE && known[atomic_load_explicit(&e->set, memory_order_relaxed)])
			pw->p->nodes[common - 1].frees += (uint64_t)e->sectors * u->sectorsize;
	}
	free(known);
	return 0;
}

static void add_below(struct btrkit_usage_paths *p)
{
	for (size_t i = p->num_nodes; i-- > 0;) {
		struct paths_node *n = &p->nodes[i], *parent;

		if (n->parent == PATHS_NONE)
			continue;
		parent = &p->nodes[n->parent];
		atomic_fetch_add_explicit(&parent->total, atomic_load_explicit(&n->total, memory_order_relaxed),
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&parent->unshared, atomic_load_explicit(&n->unshared, memory_order_relaxed),
					  memory_order_relaxed);
		parent->frees += n->frees;
	}
}

int paths_count(struct paths_work *pw, struct btrkit_error *err)
{
	const struct paths_reader reader = { read_leaf, read_end, gather };
	const uint64_t due = pw->w.due / 2;
	int ret;

	for (size_t i = 0; i < pw->usage->extents.n; i++)
		atomic_store_explicit(&usage_extents_at(&pw->usage->extents, i)->common, 0, memory_order_relaxed);
	ret = paths_read(pw, &reader, err);
	if (!ret)
		ret = report_lost(pw, err);
	if (!ret)
		ret = add_freed(pw, err);
	if (!ret)
		add_below(pw->p);
	pw->again = true;
	while (!ret && paths_ranges_sum(&pw->ranges, pw->p)) {
		pw->w.due += due;
		ret = paths_read(pw, &reader, err);
	}
	if (!ret && pw->w.done < pw->w.due)
		ret = usage_progress(&pw->w, pw->w.due - pw->w.done, err);
	return ret;
}
