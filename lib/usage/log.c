// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Log trees: recent changes that Linux will merge into the file trees when it mounts the filesystem. Their blocks, and
 * the data that only they refer to, are not in the extent tree.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/file_extent.h"
#include "lib/tree/node.h"
#include "lib/usage/state.h"

/* State for one log tree, or for the log root tree, which refers to the log trees. */
struct log {
	struct usage_work *w;
	struct usage_list data;	 /* struct usage_stray with sectors and info */
	struct usage_list trees; /* struct tree_root */
	bool top;		 /* reading the log root tree */
};

static int take_data(struct log *l, const struct item *item, struct btrkit_error *err)
{
	struct usage_work *w = l->w;
	const uint32_t sector = w->u->sectorsize;
	struct usage_stray s;
	struct file_extent fe;
	size_t hint = 0;
	int ret = file_extent_decode(&w->fs->items, item, &fe, err);

	if (ret || !fe.disk_bytenr ||
	    usage_table_find(&w->u->extents, sizeof(struct usage_extent), fe.disk_bytenr, &hint) != SIZE_MAX)
		return ret;
	s = (struct usage_stray){ .bytenr = fe.disk_bytenr, .sectors = usage_sectors(w->u, fe.disk_num_bytes) };
	if (fe.compression && fe.ram_bytes / sector < USAGE_UNCOMPRESSED_MAX)
		s.info = (uint32_t)(fe.ram_bytes / sector) << USAGE_UNCOMPRESSED_SHIFT;
	return usage_strays_add(w, &l->data, &s, err);
}

static int take_tree(struct log *l, const struct item *item, struct btrkit_error *err)
{
	struct tree_root *to;
	struct root_item ri;
	int ret = root_item_decode(&l->w->fs->items, item, &ri, err);

	if (ret || item->key.objectid != OID_TREE_LOG)
		return ret;
	to = usage_list_add(&l->trees, sizeof(*to), err);
	if (!to)
		return -ENOMEM;
	*to = tree_root_of(&item->key, &ri);
	return 0;
}

static int read_leaf(void *ctx, const struct node *leaf, struct btrkit_error *err)
{
	struct log *l = ctx;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (l->top && item.key.type == KEY_ROOT_ITEM)
			ret = take_tree(l, &item, &what);
		else if (!l->top && item.key.type == KEY_EXTENT_DATA)
			ret = take_data(l, &item, &what);
		if (ret) {
			err_at_tree(&what, OID_TREE_LOG);
			err_at_logical(&what, leaf->bytenr);
			err_at_item(&what, i, &item.key);
			ret = usage_damage(l->w, ret, &what, err);
		}
	}
	return ret;
}

static void add_data(struct log *l, struct btrkit_usage_space *to)
{
	const struct usage_stray *s = l->data.at;

	for (size_t i = 0; i < l->data.n; i++) {
		const uint64_t uncompressed = s[i].info >> USAGE_UNCOMPRESSED_SHIFT;

		to->data += (uint64_t)s[i].sectors * l->w->u->sectorsize;
		to->uncompressed += (uncompressed ? uncompressed : s[i].sectors) * l->w->u->sectorsize;
		to->extents++;
	}
}

/* Reads all of a tree and adds its blocks to @to. */
static int read_tree(struct log *l, const struct tree_root *root, bool top, struct btrkit_usage_space *to,
		     struct btrkit_error *err)
{
	struct usage_work *w = l->w;
	const uint64_t before = w->u->total.blocks_read;
	int ret;

	l->top = top;
	ret = usage_each_leaf(w, root, read_leaf, l, err);
	to->blocks += w->u->total.blocks_read - before;
	to->metadata += (w->u->total.blocks_read - before) * w->u->nodesize;
	return ret;
}

static int read_log(struct usage_work *w, const struct tree_root *root, struct btrkit_error *err)
{
	struct log log = { .w = w };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	size_t owner;
	int ret;

	if (btrkit_usage_find(w->u, root->key_offset, &owner)) {
		err_corrupt(&what, "key.offset", "log tree of subvolume %" PRIu64 ", which does not exist",
			    root->key_offset);
		err_at_tree(&what, OID_TREE_LOG);
		return usage_damage(w, -EUCLEAN, &what, err);
	}
	ret = read_tree(&log, root, false, &w->u->owners[owner].log, err);
	if (!ret)
		ret = usage_strays_tidy(w, &log.data, err);
	if (!ret)
		add_data(&log, &w->u->owners[owner].log);
	free(log.data.at);
	return ret;
}

int usage_load_logs(struct usage_work *w, struct btrkit_error *err)
{
	const struct super *super = &w->fs->super;
	/* Log trees have the generation of the next commit. */
	const struct tree_root root = { OID_TREE_LOG, 0, super->log_root, super->generation + 1,
					super->log_root_level };
	struct log top = { .w = w };
	int ret = 0;

	if (super->log_root)
		ret = read_tree(&top, &root, true, &w->u->owners[w->u->num_owners - 1].log, err);
	for (size_t i = 0; !ret && i < top.trees.n; i++)
		ret = read_log(w, (const struct tree_root *)top.trees.at + i, err);
	free(top.trees.at);
	return ret;
}
